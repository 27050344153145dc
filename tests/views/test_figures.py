"""Pictures of attention, read back from their pixels."""

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import pytest
import torch
from PIL import Image

from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.sites import SITES, Site
from qkvtrace.views.figures import (
    CELL,
    COLUMNS,
    HEADER,
    MOST_PANELS,
    QUIET,
    WIDTH,
    Panel,
    Pixels,
    attention_figure,
    attention_over_epochs,
    png,
    small_multiples,
)

WHITE, MIDDLE, DARK_BLUE = (255, 255, 255), (132, 152, 181), (8, 48, 107)
WEIGHTS = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]], dtype=np.float32)

Box = tuple[int, int, int, int]  # left, top, right, bottom of a heat map, outline included


def panel(queries: int, keys: int, title: str = "title", word: str = "w") -> Panel:
    weights = np.full((queries, keys), 1 / keys, dtype=np.float32)
    return Panel(title, [word] * queries, [word] * keys, weights)


def boxes(picture: Pixels) -> list[Box]:
    """Where the heat maps stand, row by row: their outlines are the only lines of their colour."""
    line = (picture == QUIET).all(-1)
    line[:HEADER] = False

    def found() -> Iterator[Box]:
        for y, x in np.argwhere(line).tolist():
            starts = not line[y, x - 1] and not line[y - 1, x]
            if starts and line[y : y + CELL, x].all() and line[y, x : x + CELL].all():
                right = x + line[y, x:].argmin() - 1
                bottom = y + line[y:, x].argmin() - 1
                assert line[bottom, x : right + 1].all()
                assert line[y : bottom + 1, right].all()
                yield x, y, int(right), int(bottom)

    return list(found())


def cells(picture: Pixels, box: Box) -> list[list[tuple[int, ...]]]:
    """The colour in the middle of each cell, (queries, keys)."""
    left, top, right, bottom = box
    middles = picture[top + 1 + CELL // 2 : bottom : CELL, left + 1 + CELL // 2 : right : CELL]
    return [[tuple(colour) for colour in row] for row in middles.tolist()]


def test_weights_are_white_to_dark_blue_in_the_cell_where_they_belong() -> None:
    picture = small_multiples("t", [Panel("p", ["a", "b"], ["c", "d", "e"], WEIGHTS)])
    (box,) = boxes(picture)
    assert cells(picture, box) == [[WHITE, DARK_BLUE, MIDDLE], [DARK_BLUE, WHITE, WHITE]]


def test_a_cell_is_filled_with_its_colour_but_for_a_line_at_its_edges() -> None:
    picture = small_multiples("t", [Panel("p", ["a", "b"], ["c", "d", "e"], WEIGHTS)])
    ((left, top, _, _),) = boxes(picture)
    inside = picture[top + 2 : top + CELL, left + 2 + CELL : left + 2 * CELL]
    assert (inside == DARK_BLUE).all()


@pytest.mark.parametrize(
    ("sizes", "columns"),
    [
        ([(2, 3)], None),
        ([(2, 3), (5, 2), (1, 7)], None),
        ([(2, 3), (5, 2), (1, 7), (4, 4), (3, 11)], 2),
        ([(7, 5)] * 7, 3),
    ],
)
def test_panels_stand_in_rows_inside_the_picture_and_none_overlaps_another(
    sizes: list[tuple[int, int]], columns: int | None
) -> None:
    picture = small_multiples("t", [panel(*size) for size in sizes], columns=columns)
    found = boxes(picture)
    by_row = sorted(found, key=lambda box: box[1])
    shapes = [((b[3] - b[1] - 1) // CELL, (b[2] - b[0] - 1) // CELL) for b in by_row]
    across = columns or len(sizes)
    assert shapes == sizes
    assert [box[0] for box in by_row] == [by_row[i % across][0] for i in range(len(sizes))]
    assert [box[1] for box in by_row] == [
        by_row[i // across * across][1] for i in range(len(sizes))
    ]
    height, width, _ = picture.shape
    assert all(right < width and bottom < height for _, _, right, bottom in found)
    for (a, b, c, d), (e, f, g, h) in combinations(found, 2):
        assert c < e or g < a or d < f or h < b


@pytest.mark.parametrize(
    ("title", "word"),
    [("t", "w"), ("a title that is wider than its cells", "w"), ("t", "Wolkenkratzerfenster")],
)
def test_equal_panels_are_equal_tiles_so_that_no_text_runs_into_another(
    title: str, word: str
) -> None:
    alone = small_multiples("t", [panel(3, 2, title, word)])
    grid = small_multiples("t", [panel(3, 2, title, word)] * 6, columns=3)
    (box,), found = boxes(alone), boxes(grid)
    across, down = found[1][0] - found[0][0], found[3][1] - found[0][1]
    ink = np.argwhere((alone[HEADER:] != WHITE).any(-1))
    (top, left), (bottom, right) = np.add([ink.min(0), ink.max(0)], [HEADER, 0])
    assert right - left < across
    assert bottom - top < down
    tile = alone[top : bottom + 1, left : right + 1]
    for x, y, _, _ in found:
        dx, dy = x - box[0], y - box[1]
        assert (grid[top + dy : bottom + dy + 1, left + dx : right + dx + 1] == tile).all()
    everything = (alone[HEADER:] != WHITE).any(-1).sum() * 6
    assert (grid[HEADER:] != WHITE).any(-1).sum() == everything


def test_a_picture_grows_with_its_tokens_and_titles() -> None:
    small = small_multiples("t", [panel(2, 30)]).shape
    assert small_multiples("t", [panel(3, 30)]).shape == (small[0] + CELL, *small[1:])
    assert small_multiples("t", [panel(2, 31)]).shape == (small[0], small[1] + CELL, 3)
    assert small_multiples("t", [panel(2, 30, word="longer")]).shape[0] > small[0]
    assert small_multiples("a long title " * 9, [panel(2, 30)]).shape[1] > small[1]


@pytest.mark.parametrize("keys", [3, 11, 17, 29])
def test_as_many_panels_stand_in_a_row_as_fit_into_a_screen(keys: int) -> None:
    picture = small_multiples("t", [panel(2, keys, word="word")] * 7)
    across = len({x for x, _, _, _ in boxes(picture)})
    assert picture.shape[1] <= WIDTH
    assert across == COLUMNS or picture.shape[1] * (across + 1) / across > WIDTH


@pytest.fixture
def snapshot() -> Callable[..., Snapshot]:
    """Build one layer with two heads: head h gives query q wholly to key (q + h + epoch)."""

    def build(epoch: int, sentences: Sequence[Sentence]) -> Snapshot:
        longest = 2 + max(max(len(s.source), len(s.target)) for s in sentences)
        values = {}
        for site in SITES:
            heads = [torch.eye(longest).roll(head + epoch, dims=1) for head in range(2)]
            values[site.tap(0, "weights")] = torch.stack(heads).repeat(len(sentences), 1, 1, 1)
        return Snapshot(epoch, 0, list(sentences), values)

    return build


FIRST = Sentence(["<sos>", "we", "eat", "<eos>"], ["<sos>", "wir"], [], None)
SECOND = Sentence(["<sos>", "it", "<eos>"], ["<sos>", "es", "es", "es", "es"], [], None)


def shifted(queries: int, keys: int, by: int) -> list[list[tuple[int, ...]]]:
    return [
        [DARK_BLUE if key == query + by else WHITE for key in range(keys)]
        for query in range(queries)
    ]


@pytest.mark.parametrize(
    ("site", "sizes"),
    list(zip(SITES, ([(4, 4), (3, 3)], [(2, 2), (5, 5)], [(2, 4), (5, 3)]), strict=True)),
    ids=[site.name for site in SITES],
)
@pytest.mark.parametrize("head", [0, 1])
def test_a_figure_shows_each_sentence_s_own_tokens_for_the_head_asked_for(
    snapshot: Callable[..., Snapshot], site: Site, sizes: list[tuple[int, int]], head: int
) -> None:
    picture = attention_figure(snapshot(0, [FIRST, SECOND]), site, 0, head)
    assert [cells(picture, box) for box in boxes(picture)] == [shifted(*s, head) for s in sizes]


def test_a_figure_shows_at_most_so_many_sentences(snapshot: Callable[..., Snapshot]) -> None:
    picture = attention_figure(snapshot(0, [FIRST] * (MOST_PANELS + 3)), SITES[0], 0, 0)
    assert len(boxes(picture)) == MOST_PANELS


def test_over_epochs_sites_are_rows_and_epochs_are_columns(
    snapshot: Callable[..., Snapshot],
) -> None:
    snapshots = [snapshot(epoch, [FIRST, SECOND]) for epoch in (0, 1, 2)]
    picture = attention_over_epochs(snapshots, SITES, sentence=1, layer=0, head=0)
    found = sorted(boxes(picture), key=lambda box: (box[1], box[0]))
    sizes = [(3, 3), (5, 5), (5, 3)]
    assert [cells(picture, box) for box in found] == [
        shifted(*size, epoch) for size in sizes for epoch in (0, 1, 2)
    ]
    assert len({box[1] for box in found}) == len({box[0] for box in found}) == 3


def test_a_png_holds_the_same_pixels() -> None:
    picture = small_multiples("t", [panel(2, 3)])
    assert (np.asarray(Image.open(io.BytesIO(png(picture)))) == picture).all()
