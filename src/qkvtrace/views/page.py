"""A run as one page that opens from disk: the view to explore, and every study that was made.

The page is its data as JSON, and the scripts that draw it, the same as in TensorBoard's tab.
"""

import json
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qkvtrace.corpus.vocabulary import Vocabulary
from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.runs.folder import Run
from qkvtrace.runs.metrics import read_metrics
from qkvtrace.studies.catalogue import STUDIES
from qkvtrace.studies.kept import kept

WEB = Path(__file__).parent / "web"
STYLES = ("page.css",)
SCRIPTS = (
    "colours.js",
    "drawing.js",
    "tables.js",
    "labels.js",
    "key.js",
    "matrix.js",
    "pictures.js",
    "studies.js",
    "page.js",
)

# Whatever the data holds, nothing is fetched and nothing is sent.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write_page(run: Run) -> list[str]:
    """Write the run's page.html; returns the names of studies that it lacks.

    Raises UserError if no study was made of the run yet, or one is damaged.
    """
    answers = {name: kept(run.studies, name) for name in STUDIES}
    there = [answer for answer in answers.values() if answer is not None]
    if not there:
        raise UserError(f"expected studies of the run (make study), found none: {run.studies}")
    data = {"facts": facts(run), "vocabulary": vocabulary(run), "studies": there}
    files.write_text(run.page, html(f"{run.folder.name} · qkvtrace", data))
    return [name for name, answer in answers.items() if answer is None]


def facts(run: Run) -> str:
    """What the run is, in one line."""
    manifest = files.read_json(run.manifest)
    settings = run.settings()
    last = read_metrics(run.metrics)[-1]
    model = settings.model
    return (
        f"{run.folder.name}: {settings.data.name}, {model.layers} + {model.layers} layers, "
        f"{model.heads} heads, width {model.width}, {manifest['parameters']:,} parameters, "
        f"seed {settings.training.seed}, epoch {last.epoch}, exact match {last.exact_match:.3f}"
    )


def vocabulary(run: Run) -> list[str]:
    """The run's tokens, source then target, in the order that gives each its colour."""
    return [token for side in ("source", "target") for token in Vocabulary.load(run.vocabulary(side))]


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


def plotly() -> str:
    """Plotly's script, from its Python package, which is not imported."""
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
