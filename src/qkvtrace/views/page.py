"""A run as one page that opens from disk: the view to explore, its studies, claims of its kind.

The page is its data as JSON, and the scripts that draw it, the same as in TensorBoard's tab.
"""

import json
from html import escape
from pathlib import Path
from typing import Any

from qkvtrace.corpus.vocabulary import Vocabulary
from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.runs.folder import Run
from qkvtrace.runs.metrics import read_metrics
from qkvtrace.studies.catalogue import STUDIES
from qkvtrace.studies.evidence import kept as claims
from qkvtrace.studies.kept import kept
from qkvtrace.views.embedded import embedded
from qkvtrace.views.history import Cache, History
from qkvtrace.views.plotly import plotly

WEB = Path(__file__).parent / "web"
STYLES = ("explorer.css", "page.css")
SCRIPTS = (
    *("colours.js", "drawing.js", "labels.js", "key.js", "matrix.js"),
    *("tables.js", "pictures.js", "claims.js", "studies.js"),
    *("grid.js", "curves.js", "cloud.js", "state.js", "choices.js", "sources.js", "story.js"),
    *("side.js", "explorer.js", "page.js"),
)

POLICY = (  # whatever the data holds, nothing is fetched and nothing is sent
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


def write_page(run: Run) -> list[str]:
    """Write the run's page.html; returns what it lacks, a sentence each.

    Raises UserError if no study was made of the run yet, or one is damaged.
    """
    data, unreadable = answers(run)
    there = [study["name"] for study in data["studies"]]
    explored = explore(run)
    files.write_text(run.page, html(f"{run.folder.name} · qkvtrace", data | {"explore": explored}))
    missing = [name for name in STUDIES if name not in there]
    lacking = [f"without these studies (make study): {', '.join(missing)}"] if missing else []
    noted = [explored["about"]["note"]] if explored and explored["about"]["note"] else []
    return lacking + unreadable + noted


def answers(run: Run) -> tuple[dict[str, Any], list[str]]:
    """What the run is, the studies that were made of it, in their order, and claims of its kind.

    The sentences with it say which reports on claims cannot be read and are left out.

    Raises UserError if no study was made yet, or one is damaged.
    """
    studies = [kept(run.studies, name) for name in STUDIES]
    there = [study for study in studies if study is not None]
    if not there:
        raise UserError(
            f"expected studies of the run (make study ARGS=run={run} makes them), found none: "
            f"{run.studies}"
        )
    tested, unreadable = claims.about(run)
    named = {"facts": facts(run), "vocabulary": vocabulary(run)}
    return named | {"studies": there, "claims": tested}, unreadable


def sources(run: Run) -> list[Path]:
    """The files of the run that `answers` reads."""
    vocabularies = [run.vocabulary(side) for side in ("source", "target")]
    studies = [run.studies / name / "study.json" for name in STUDIES]
    return [run.manifest, run.metrics, run.settings_file, *vocabularies, *studies]


def facts(run: Run) -> str:
    """What the run is, in one line."""
    manifest = files.read_json(run.manifest)
    settings = run.settings()
    metrics = read_metrics(run.metrics)
    reached = (
        f"epoch {metrics[-1].epoch}, exact match {metrics[-1].exact_match:.3f}"
        if metrics
        else "before the end of epoch 1"
    )
    model = settings.model
    heads = "1 head" if model.heads == 1 else f"{model.heads} heads"
    return (
        f"{run.folder.name}: {settings.data.name}, {model.layers} + {model.layers} layers, "
        f"{heads}, width {model.width}, {manifest['parameters']:,} parameters, "
        f"seed {settings.training.seed}, {reached}"
    )


def explore(run: Run) -> dict[str, Any] | None:
    """The scenes of the view to explore; None if the run has no snapshots."""
    history = History(run.snapshots, run.folder, Cache())
    return embedded(history, run.folder.name) if history.store.epochs() else None


def vocabulary(run: Run) -> list[str]:
    """The run's tokens, source then target, in the order that gives each its colour."""
    sides = [Vocabulary.load(run.vocabulary(side)) for side in ("source", "target")]
    return [token for tokens in sides for token in tokens]


def html(title: str, data: dict[str, Any]) -> str:
    """The page, with everything in it."""
    styles = "\n".join((WEB / name).read_text(encoding="utf-8") for name in STYLES)
    scripts = [plotly(), *((WEB / name).read_text(encoding="utf-8") for name in SCRIPTS)]
    content = json.dumps(data, ensure_ascii=False, allow_nan=False)
    content = content.replace("<", "\\u003c")  # nothing in it ends its element
    assert not any("</script" in script for script in scripts)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<style>\n{styles}</style>\n<body class="page">\n'
        f'<script type="application/json" id="data">{content}</script>\n'
        + "".join(f"<script>{script}</script>\n" for script in scripts)
    )
