"""Write a run's page: make page. It opens from disk, with every study and the view to explore."""

import sys

from omegaconf import DictConfig

from qkvtrace.command import command, plain
from qkvtrace.conversion import from_config
from qkvtrace.settings import PageSettings


@command("page")
def main(config: DictConfig) -> None:
    """Write the page into the run's folder."""
    settings = from_config(PageSettings, plain(config))

    from qkvtrace.model.device import one_thread
    from qkvtrace.runs.folder import Run
    from qkvtrace.views.page import write_page

    one_thread()
    run = Run.open(settings.run)
    for lacking in write_page(run):
        print(lacking, file=sys.stderr)
    print(f"{run}/page.html")


if __name__ == "__main__":
    main()
