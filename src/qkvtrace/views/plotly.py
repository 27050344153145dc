"""Plotly's script, from its Python package: no network, and no build step of our own."""

from importlib.util import find_spec
from pathlib import Path


def plotly() -> str:
    """plotly.min.js. The package itself, which is slow to import, is not."""
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
