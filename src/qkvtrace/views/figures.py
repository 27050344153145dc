"""Attention as pictures: small multiples of heat maps, tokens on the axes.

Drawn with Pillow. The same pictures by matplotlib take ten times as long, more than the training
of the default corpus. One colour scale everywhere, from white (0) to dark blue (1): it reads the
same in grey and to every kind of colour vision.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import Site

Pixels = NDArray[np.uint8]  # (height, width, 3), RGB

INK, QUIET, GRID, PAPER = (28, 32, 38), (98, 106, 117), (226, 229, 233), (255, 255, 255)
DARK_BLUE = (8, 48, 107)
CELL = 24  # pixels a token
EXPLANATION = "Row: the word that attends. Column: what it attends to. A row sums to 1."
MARGIN = 24
HEADER = 112  # height of title, explanation and colour scale
SCALE = 160  # width of the colour scale
TITLE_SPACE = 34  # height of a panel's title and of the space around its tokens
TITLE, LABEL = 22, 14  # font sizes in pixels
COLUMNS = 5
WIDTH = 1500  # pixels beside TensorBoard's list of runs on a large screen
MOST_PANELS = 20


@dataclass(frozen=True)
class Panel:
    """One heat map: weights (queries, keys) in 0 ... 1, and what stands at its sides."""

    title: str
    queries: Sequence[str]
    keys: Sequence[str]
    weights: NDArray[np.float32]


def attention_figure(snapshot: Snapshot, site: Site, layer: int, head: int) -> Pixels:
    """The weights of one head for each sentence of a snapshot, at most MOST_PANELS of them."""
    weights = snapshot.values[site.tap(layer, "weights")][:, head].numpy()
    panels = []
    for index, sentence in enumerate(snapshot.sentences[:MOST_PANELS]):
        queries, keys = site.tokens(sentence, "query"), site.tokens(sentence, "key")
        title = shorten(f"{index + 1}) {' '.join(sentence.source[1:-1])}", 50, placeholder=" …")
        panels.append(Panel(title, queries, keys, weights[index, : len(queries), : len(keys)]))
    title = f"{site.title}, layer {layer}, head {head}, epoch {snapshot.epoch}"
    return small_multiples(title, panels)


def attention_over_epochs(
    snapshots: Sequence[Snapshot], sites: Sequence[Site], *, sentence: int, layer: int, head: int
) -> Pixels:
    """The weights of one head for one sentence: a row for each site, a column for each snapshot.

    Raises UserError if there is no such sentence, layer or head.
    """
    values = snapshots[0].values
    heads = values[sites[0].tap(0, "weights")].shape[1]
    for name, wanted, count in (
        ("sentence", sentence, len(snapshots[0].sentences)),
        ("layer", layer, sites[0].layers(values)),
        ("head", head, heads),
    ):
        if not 0 <= wanted < count:
            raise UserError(f"{name}: expected 0 to {count - 1}, found {wanted}")
    panels = []
    for site in sites:
        for snapshot in snapshots:
            probe = snapshot.sentences[sentence]
            queries, keys = site.tokens(probe, "query"), site.tokens(probe, "key")
            weights = snapshot.values[site.tap(layer, "weights")][sentence, head].numpy()
            panels.append(
                Panel(
                    f"{site.title}, epoch {snapshot.epoch}",
                    queries,
                    keys,
                    weights[: len(queries), : len(keys)],
                )
            )
    words = " ".join(snapshots[0].sentences[sentence].source[1:-1])
    return small_multiples(f"Attention being learned: “{words}”", panels, columns=len(snapshots))


def png(picture: Pixels) -> bytes:
    """A picture as a PNG; so few colours are small even when hardly compressed, and quick."""
    content = io.BytesIO()
    Image.fromarray(picture).save(content, format="PNG", compress_level=1)
    return content.getvalue()


def small_multiples(title: str, panels: Sequence[Panel], *, columns: int | None = None) -> Pixels:
    """Panels in a grid under a title and the colour scale.

    columns: panels a row; None: as many as fit into a screen, at most COLUMNS.
    """
    left = max(_width(token, LABEL) for panel in panels for token in panel.queries) + 8
    widths = [max(left + len(p.keys) * CELL, _width(p.title, LABEL)) for p in panels]
    step = max(widths) + MARGIN
    columns = columns or max(1, min(COLUMNS, (WIDTH - MARGIN) // step))
    columns = min(columns, len(panels))
    rows = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    tops = [max(_width(t, LABEL) for p in row for t in p.keys) + TITLE_SPACE for row in rows]
    heights = [
        top + max(len(panel.queries) for panel in row) * CELL + MARGIN
        for top, row in zip(tops, rows, strict=True)
    ]
    width = max(columns * step, _width(title, TITLE) + MARGIN, _width(EXPLANATION, LABEL) + MARGIN)
    picture = Image.new("RGB", (MARGIN + width, HEADER + sum(heights)), PAPER)
    _draw_header(picture, title)
    y = HEADER
    for row, top, height in zip(rows, tops, heights, strict=True):
        for column, panel in enumerate(row):
            _draw_panel(picture, panel, MARGIN + column * step, y, left, top)
        y += height
    return np.asarray(picture)


def _draw_header(picture: Image.Image, title: str) -> None:
    draw = ImageDraw.Draw(picture)
    draw.text((MARGIN, 16), title, INK, _font(TITLE))
    draw.text((MARGIN, 50), EXPLANATION, QUIET, _font(LABEL))
    scale = _colours(np.linspace(0, 1, SCALE, dtype=np.float32)[None].repeat(14, axis=0))
    x, y = MARGIN, 76
    for text in ("weight", "0"):
        draw.text((x, y), text, QUIET, _font(LABEL))
        x += _width(text, LABEL) + 8
    picture.paste(Image.fromarray(scale), (x, y + 2))
    draw.rectangle((x, y + 2, x + SCALE - 1, y + 15), outline=QUIET)
    draw.text((x + SCALE + 8, y), "1", QUIET, _font(LABEL))


def _draw_panel(picture: Image.Image, panel: Panel, x: int, y: int, left: int, top: int) -> None:
    """Draw a panel whose corner is (x, y), with `left` and `top` pixels for title and tokens."""
    draw = ImageDraw.Draw(picture)
    draw.text((x, y), panel.title, INK, _font(LABEL))
    x, y = x + left, y + top
    right, bottom = x + len(panel.keys) * CELL, y + len(panel.queries) * CELL
    cells = Image.fromarray(_colours(panel.weights))
    picture.paste(cells.resize((right - x, bottom - y), Image.Resampling.NEAREST), (x, y))
    for row, token in enumerate(panel.queries):
        if row:
            draw.line((x, y + row * CELL, right - 1, y + row * CELL), fill=GRID)
        draw.text((x - 6, y + row * CELL + CELL // 2), token, INK, _font(LABEL), anchor="rm")
    for column, token in enumerate(panel.keys):
        if column:
            draw.line((x + column * CELL, y, x + column * CELL, bottom - 1), fill=GRID)
        upright = _upright(token)
        centred = x + column * CELL + (CELL - upright.width) // 2
        picture.paste(upright, (centred, y - 5 - upright.height))
    draw.rectangle((x - 1, y - 1, right, bottom), outline=QUIET)


def _colours(weights: NDArray[np.float32]) -> Pixels:
    """(...) in 0 ... 1 -> (..., 3), white to dark blue."""
    share = weights.clip(0, 1)[..., None]
    return (np.array(PAPER) * (1 - share) + np.array(DARK_BLUE) * share).round().astype(np.uint8)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    # matplotlib brings DejaVu Sans, which has most alphabets; finding it does not import it.
    spec = find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(path, size)


@cache
def _width(text: str, size: int) -> int:
    return round(_font(size).getlength(text))


@cache
def _upright(token: str) -> Image.Image:
    """A token that reads from bottom to top."""
    flat = Image.new("RGB", (_width(token, LABEL) + 1, LABEL + 5), PAPER)
    ImageDraw.Draw(flat).text((0, 0), token, INK, _font(LABEL))
    return flat.rotate(90, expand=True)
