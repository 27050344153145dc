"""Test what texts claim about Q, K and V over many seeds: make claims.

The table of verdicts on stdout; all numbers as JSON in outputs/claims/<date>_<time>/.
"""

import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from qkvtrace.command import command, heavy_imports, plain
from qkvtrace.conversion import from_config
from qkvtrace.errors import UserError
from qkvtrace.settings import ClaimsSettings, Recipe


@command("claims")
def main(config: DictConfig) -> None:
    """Train the seeds under every setting that the claims ask for, measure, judge, report."""
    started = time.perf_counter()

    with heavy_imports():
        from qkvtrace.corpus.prepared import prepare
        from qkvtrace.model.device import choose_device, one_thread
        from qkvtrace.runs import files
        from qkvtrace.runs.manifest import git_revision, versions
        from qkvtrace.studies.claims.catalogue import CLAIMS
        from qkvtrace.studies.evidence.kept import HeldOut, Report, keep
        from qkvtrace.studies.evidence.laboratory import Laboratory
        from qkvtrace.studies.evidence.testing import chunks, verdicts
        from qkvtrace.views.claims import print_report, write_board
        from qkvtrace.views.progress import EnsembleProgress

    # What is claimed, and of which models.
    given = plain(config)
    own = {name: given.pop(name, {}) for name in CLAIMS}
    settings = from_config(ClaimsSettings, given)
    names = settings.claims or tuple(CLAIMS)
    unknown = [name for name in names if name not in CLAIMS]
    if unknown:
        raise UserError(f"claims: expected some of {', '.join(CLAIMS)}, found {unknown[0]}")
    claims = {n: from_config(CLAIMS[n], own[n], n) for n in CLAIMS if n in names}
    data, model, training = settings.data, settings.model, settings.training
    base = Recipe(data=data, model=model, training=training, outputs=settings.outputs)
    held_out = replace(base, data=settings.held_out.data, training=settings.held_out.training)

    corpus = prepare(base.data, Path(base.outputs) / "prepared")
    splits = prepare(held_out.data, Path(base.outputs) / "prepared").splits
    if splits["valid"] == splits["train"]:
        raise UserError("held_out.data.valid: expected other pairs than training's, found the same")

    # The seeds, some of them at a time.
    one_thread()
    device = choose_device(settings.training.device)
    seeds = list(range(settings.seeds))
    with EnsembleProgress([base, held_out]) as progress:
        results, failed = verdicts(
            claims,
            (
                Laboratory(base, held_out, some, device, progress.after_step)
                for some in chunks(seeds, settings.members)
            ),
        )

    # What came out.
    for name, why in failed.items():
        print(f"{name}: {why}", file=sys.stderr)
    if not results:
        raise UserError("no claim could be tested")
    report = Report(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        git_revision=git_revision(),
        corpus=data.name,
        fingerprint=corpus.fingerprint,
        model=asdict(model),
        training=asdict(training),
        held_out=HeldOut(held_out.data.name, held_out.training.epochs),
        asked=plain(config),
        seeds=seeds,
        epochs=training.epochs,
        seconds=time.perf_counter() - started,
        results=results,
    )
    folder = Path(HydraConfig.get().runtime.output_dir)
    keep(folder, report)
    write_board(folder, report)
    shown = Path(base.outputs) / "train"  # what make board shows
    shown.mkdir(exist_ok=True)
    files.point(shown / "claims", "../claims")
    print_report(report, str(folder))
    if failed:
        raise UserError(f"not tested: {', '.join(failed)}")


if __name__ == "__main__":
    main()
