"""Draw how a run's attention was learned: make picture, which the README shows.

A row for each attention site, a column for each epoch, one sentence, one head.
"""

from pathlib import Path

from omegaconf import DictConfig

from qkvtrace.command import command, plain
from qkvtrace.conversion import from_config
from qkvtrace.settings import PictureSettings


@command("picture")
def main(config: DictConfig) -> None:
    """Draw the run that the configuration names into its file."""
    settings = from_config(PictureSettings, plain(config))

    from qkvtrace.runs.folder import Run
    from qkvtrace.snapshots.sites import SITES
    from qkvtrace.snapshots.store import Store
    from qkvtrace.views.figures import attention_over_epochs, png

    run = Run.open(settings.run)
    store = Store(run.snapshots)
    shown = run.settings().snapshots.shown(max(store.epochs(), default=1))
    snapshots = [store.load(epoch) for epoch in settings.epochs or shown]
    picture = attention_over_epochs(
        snapshots,
        SITES,
        sentence=settings.sentence,
        layer=settings.layer,
        head=settings.head,
    )
    Path(settings.file).write_bytes(png(picture))
    print(settings.file)


if __name__ == "__main__":
    main()
