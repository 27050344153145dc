"""The tab Q/K/V in a real TensorBoard, used as people use it."""

import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Frame, Locator, Page, expect

from qkvtrace.runs import files
from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.sites import SITES
from qkvtrace.snapshots.store import Store
from qkvtrace.studies.points import Point
from qkvtrace.views import scene

Open = Callable[..., Page]
Keep = Callable[..., None]
LAST = 30
PLACE = scene.Place(SITES[0], 0, 0)
MARKUP = ("<img src=x onerror=alert(1)>", "&amp;", "<b>bold</b>")


@pytest.fixture(scope="module")
def folder(run: Run, trained: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of all kinds; the default one, "run", has the newest name."""
    folder = tmp_path_factory.mktemp("runs")
    few = ("training.epochs=3", "data.probes=[we want to eat apple,we want to eat bread]")
    heads = trained("model.heads=2", *few)
    shutil.copytree(heads.folder, folder / "heads")
    for name in ("run", "live", "damaged", "odd"):
        shutil.copytree(run.folder, folder / name)
    broken = Store(folder / "damaged" / "snapshots").path(7)
    broken.write_bytes(broken.read_bytes()[:-9])
    bare = Run(folder / "bare")
    bare.folder.mkdir()
    files.write_json(bare.manifest, {})
    forget(folder / "live", 29)
    rename_words(folder / "odd")
    return folder


def forget(run: Path, first: int) -> None:
    """Let a run be as it was before its epoch `first` was recorded."""
    index = run / "snapshots" / "index.json"
    content = json.loads(index.read_text(encoding="utf-8"))
    content["epochs"] = [epoch for epoch in content["epochs"] if epoch < first]
    files.write_json(index, content)


def rename_words(run: Path) -> None:
    """Let a run's words be such as HTML would not show as they are."""
    store = Store(run / "snapshots")
    names = dict(zip(("eat", "want", "apple"), MARKUP, strict=True))
    index = json.loads(store.index.read_text(encoding="utf-8"))
    for epoch in store.epochs():
        snapshot = store.load(epoch)
        sentences = [
            Sentence(
                [names.get(token, token) for token in sentence.source],
                sentence.target,
                sentence.translation,
                sentence.reference,
            )
            for sentence in snapshot.sentences[:2]
        ]
        values = {name: value[:2] for name, value in snapshot.values.items()}
        store.save(Snapshot(epoch, snapshot.step, sentences, values), index["taps"])


@pytest.fixture(scope="module")
def address(folder: Path, tensorboard: Callable[..., AbstractContextManager[str]]) -> Iterator[str]:
    with tensorboard(folder, "data/plugin/qkv/runs", '"run"') as url:
        yield url


@pytest.fixture
def view(new_page: Open, address: str, said: list[str]) -> Iterator[Open]:
    """Open the view outside TensorBoard's frame; its console stays silent."""

    def build(hash_: str = "", width: int = 1280, height: int = 720, **options: Any) -> Page:
        page = new_page(width, height, **options)
        page.goto(f"{address}/data/plugin/qkv/view{hash_}")
        expect(page.locator(".explorer:not(.busy)")).to_be_visible()
        return page

    yield build
    assert said == []


@pytest.fixture(scope="module")
def store(run: Run) -> Store:
    return Store(run.snapshots)


def tab(page: Page) -> Frame:
    page.wait_for_selector("iframe", state="attached")
    for _ in range(100):
        for frame in page.frames:
            if "plugin_entry.html" in frame.url:
                frame.wait_for_selector(".cloud .point")
                return frame
        page.wait_for_timeout(100)
    pytest.fail("the tab did not open")


def ready(page: Page | Frame) -> None:
    page.wait_for_selector(".cloud .plot-container")
    expect(page.locator(".explorer")).not_to_have_class(re.compile("busy"))


def slide(page: Page | Frame, epoch: int) -> None:
    """Move the slider as a drag would; the runs here have every epoch, from 0."""
    slider = page.get_by_label("Epoch", exact=True)
    slider.evaluate(
        "(s, to) => { s.value = to; s.dispatchEvent(new Event('input', {bubbles: true})); }",
        epoch,
    )


def plot(page: Page | Frame, read: str) -> Any:
    """What JavaScript `read` makes of the cloud's Plotly element, named plot."""
    return page.locator(".cloud").first.evaluate(f"plot => {read}")


def places(page: Page | Frame) -> dict[int, tuple[float, ...]]:
    """The coordinates of each point, by its number in the scene."""
    axes = "['x', 'y', 'z'].filter(axis => t[axis]).map(axis => t[axis][i])"
    marked = "plot.data.filter(t => t.customdata)"
    found = plot(page, f"{marked}.flatMap(t => t.customdata.map((n, i) => [n, ...{axes}]))")
    return {int(number): tuple(place) for number, *place in found}


def pixel(page: Page, number: int) -> tuple[float, float]:
    """Where a point lies in the window."""
    x, y = places(page)[number]
    box = "(({left, top}) => [left, top])(plot.getBoundingClientRect())"
    across = f"{box}[0] + plot._fullLayout.xaxis._offset + plot._fullLayout.xaxis.l2p({x})"
    down = f"{box}[1] + plot._fullLayout.yaxis._offset + plot._fullLayout.yaxis.l2p({y})"
    at: list[float] = plot(page, f"[{across}, {down}]")
    return at[0], at[1]


def trails(page: Page | Frame) -> int:
    return int(plot(page, "plot.data.filter(t => t.mode === 'lines').length"))


def numbers(table: Locator) -> Any:
    """What a heat map shows."""
    return table.locator(".js-plotly-plot").evaluate("plot => plot.data[0].z")


def names(page: Page | Frame) -> set[str]:
    """The names at points, as they are drawn."""
    return {*page.locator(".cloud .annotation-text").all_text_contents()}


def test_the_first_sight_tells_the_story(
    new_page: Open, address: str, store: Store, keep: Keep
) -> None:
    page = new_page(1280, 720)
    page.goto(f"{address}/#qkv")
    frame = tab(page)
    keep(page, "first-sight-in-tensorboard")
    # The same word in the same place: q, k and v cannot differ in the first layer, x1 can.
    assert names(frame) == {
        *(f"eat {vector} · A and B" for vector in ("q", "k", "v")),
        *("eat x1 · A", "eat x1 · B"),
    }
    expect(frame.locator(".what")).to_have_text(
        "“eat” in A “we want to eat apple” and B “we want to eat bread”: 8 vectors"
    )
    x1 = store.load(LAST).values["encoder.layers.0.self_attention.x1"][:2, 0, 4].double()
    cosine = float(x1[0] @ x1[1] / x1[0].norm() / x1[1].norm())
    assert cosine < 0.5, "this run tells no story"
    said = frame.locator(".alikes").inner_text()
    assert f"x1 {cosine:.2f}".replace("-", "−") in said
    assert "q 1.00" in said
    expect(frame.locator(".time .reading")).to_have_text("epoch 30 of 30")
    assert trails(frame) > 0
    tables = frame.locator(".table").all()
    assert [np.shape(numbers(table)) for table in tables] == [(7, 7)] * 3
    titles = frame.locator(".curve .annotation-text").all_text_contents()
    assert [title.split(" ")[0] for title in titles] == ["Entropy", "Mean", "Scores,"]
    expect(frame.get_by_label("Site")).to_have_value("encoder_self")


def test_it_fits_into_the_frame_with_nothing_to_scroll(view: Open, keep: Keep) -> None:
    page = view(height=656)
    ready(page)
    keep(page, "first-sight")
    too_large = page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll('.panel, .stage, .tables,'
        + '.chips, .grid-holder, .curves, .cloud-holder, .story')].filter(e =>
        e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1)
        .map(e => e.className)"""
    )
    assert too_large == []
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.tables text, .cloud text, .key, select')]
        .filter(e => { const own = e.getBoundingClientRect(); const around = e.closest(
            '.grid-holder, .curves, .cloud-holder, .panel, .stage, h3').getBoundingClientRect();
          return own.width && (own.left < around.left - 1 || own.right > around.right + 1 ||
            own.top < around.top - 1 || own.bottom > around.bottom + 1); })
        .map(e => e.textContent)"""
    )
    assert cut == []


def test_each_epoch_moves_the_points_to_their_coordinates(view: Open, store: Store) -> None:
    page = view()
    ready(page)
    snapshots = [store.load(epoch) for epoch in store.epochs()]
    found = scene.cloud(snapshots, PLACE, ["q", "k", "v", "x1"], {0, 1}, ["eat"])
    frames = []
    for index, epoch in enumerate(store.epochs()):
        slide(page, epoch)
        expect(page.locator(".time .reading")).to_have_text(f"epoch {epoch} of 30")
        shown = places(page)
        assert sorted(shown) == list(range(8))
        for number, place in shown.items():
            assert place == pytest.approx(found["at"][index][number][:2])
        axes = ("xaxis", "yaxis")
        frames.append([plot(page, f"plot._fullLayout.{axis}.range") for axis in axes])
    assert all(frame == frames[0] for frame in frames), "an axis moved"
    wide, high = (plot(page, f"plot._fullLayout.{axis}._length") for axis in axes)
    (left, right), (low, top) = frames[0]
    assert (right - left) / wide == pytest.approx((top - low) / high), "one scale for both axes"
    every = np.array(found["at"])
    assert left < every[..., 0].min() < every[..., 0].max() < right
    assert low < every[..., 1].min() < every[..., 1].max() < top
    share = round(found["explained"][0] * 100)
    expect(page.locator(".cloud .xtitle")).to_have_text(f"PC 1 ({share} % of variance)")


def test_each_epoch_shows_its_attention_and_cosines(view: Open, store: Store) -> None:
    page = view("#run=run&word=eat")
    ready(page)
    for epoch in (0, 7, LAST):
        slide(page, epoch)
        values = store.load(epoch).values
        weights = values["encoder.layers.0.self_attention.weights"][:2, 0]
        for table, sentence in zip(page.locator(".table.weight").all(), (0, 1), strict=True):
            np.testing.assert_allclose(numbers(table), weights[sentence], atol=1e-4)
        x1 = values["encoder.layers.0.self_attention.x1"][:2, 0].double()
        x1 = x1 / x1.norm(dim=-1, keepdim=True)
        cosines = page.locator(".table.cosine")
        np.testing.assert_allclose(numbers(cosines), x1[0] @ x1[1].T, atol=1e-4)
        written = cosines.locator(".heatmaplayer text").all_text_contents()
        parsed = [float(text.replace("−", "-")) for text in written]
        assert sorted(parsed) == pytest.approx(
            sorted((x1[0] @ x1[1].T).flatten().tolist()), abs=0.006
        )


def test_a_weight_has_the_colour_of_the_scale(view: Open, store: Store) -> None:
    page = view("#run=run&word=eat")
    ready(page)
    weights = store.load(LAST).values["encoder.layers.0.self_attention.weights"][0, 0]
    row, column = divmod(int(weights.argmax()), 7)
    heat = page.locator(".table.weight").first.locator(".js-plotly-plot")
    left, top = heat.evaluate(
        f"""plot => {{ const box = plot.getBoundingClientRect(), l = plot._fullLayout;
        return [box.left + l.xaxis._offset + l.xaxis.l2p({column - 0.38}),
          box.top + l.yaxis._offset + l.yaxis.l2p({row - 0.38})]; }}"""
    )
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    expected = 255 + (np.array([8, 48, 107]) - 255) * float(weights.max())
    assert weights.max() > 0.9
    drawn = np.asarray(picture)[round(top), round(left)]
    np.testing.assert_allclose(drawn, expected, atol=4)


@pytest.mark.parametrize("chosen", ["word=eat", "words=all&sentences=all"])
def test_sliding_asks_nothing_of_the_server(view: Open, chosen: str) -> None:
    page = view(f"#run=run&{chosen}")
    ready(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for epoch in range(LAST + 1):
        slide(page, epoch)
    assert not [url for url in asked if not url.endswith(("/runs", "state?run=run"))]


def test_another_head_is_another_picture(view: Open, keep: Keep) -> None:
    page = view("#run=heads")
    ready(page)
    before = (places(page), numbers(page.locator(".table.weight").first))
    page.get_by_label("Head").select_option("1")
    expect(page.locator(".explorer")).not_to_have_class(re.compile("busy"))
    after = (places(page), numbers(page.locator(".table.weight").first))
    assert before[0].keys() == after[0].keys()
    assert before[0] != after[0]
    assert before[1] != after[1]
    page.wait_for_url("**head=1**")


def test_vectors_of_another_width_take_the_place_of_the_others(view: Open) -> None:
    page = view("#run=heads")
    ready(page)
    page.get_by_role("button", name="x4").click()
    expect(page.locator(".hint")).to_have_text(
        "x4 has 64 numbers, the others 32: no space holds both."
    )
    expect(page.locator(".what")).to_contain_text(": 2 vectors")
    assert names(page) == {"eat x4 · A", "eat x4 · B"} or names(page) == {"eat x4 · A and B"}
    pressed = page.locator(".chips[aria-label=Vectors] [aria-pressed=true]")
    assert pressed.all_inner_texts() == ["x4"]
    page.get_by_role("button", name="output").click()
    expect(page.locator(".what")).to_contain_text(": 4 vectors")


def test_play_moves_through_the_epochs_and_stops_at_the_last(view: Open) -> None:
    page = view("#run=heads")
    ready(page)
    reading = page.locator(".time .reading")
    reading.evaluate(
        """reading => { window.read = [];
        new MutationObserver(() => window.read.push(reading.textContent))
          .observe(reading, {childList: true}); }"""
    )
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_role("button", name="Play").wait_for()
    read = page.evaluate("window.read")
    assert read == [f"epoch {epoch} of 3" for epoch in range(4)]
    page.wait_for_timeout(900)  # longer than an epoch takes
    expect(reading).to_have_text("epoch 3 of 3")
    end = places(page)
    slide(page, 2)
    slide(page, 3)
    assert places(page) == end


def test_points_glide_from_epoch_to_epoch_when_played(view: Open) -> None:
    page = view("#run=heads")
    ready(page)
    at_epochs = []
    for epoch in range(4):
        slide(page, epoch)
        at_epochs.append(places(page))
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".time .reading")).to_have_text("epoch 1 of 3")
    page.wait_for_timeout(100)
    assert places(page) not in at_epochs


def test_the_keyboard_moves_and_plays(view: Open) -> None:
    page = view("#run=run&epoch=10&word=eat")
    ready(page)
    reading = page.locator(".time .reading")
    slider = page.get_by_label("Epoch", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(reading).to_have_text("epoch 11 of 30")
    expect(slider).to_have_attribute("aria-valuetext", "epoch 11")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(reading).to_have_text("epoch 9 of 30")
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(reading).to_have_text(re.compile(r"epoch 1\d of 30"))
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.keyboard.press("Home")
    expect(reading).to_have_text("epoch 0 of 30")


def test_a_curve_moves_the_epoch(view: Open) -> None:
    page = view()
    ready(page)
    curve = page.locator(".curve")
    left, right, top = curve.evaluate(
        """plot => { const box = plot.getBoundingClientRect(), axis = plot._fullLayout.xaxis;
        const at = epoch => box.left + axis._offset + axis.l2p(epoch);
        return [at(0), at(30), box.top + 40]; }"""
    )
    reading = page.locator(".time .reading")
    page.mouse.move((left + right) / 2, top)
    page.mouse.down()
    expect(reading).to_have_text("epoch 15 of 30")
    page.mouse.move(left + (right - left) * 0.2, top)
    expect(reading).to_have_text("epoch 6 of 30")
    page.mouse.move(left, top)
    page.mouse.up()
    expect(reading).to_have_text("epoch 0 of 30")
    page.mouse.move(right, top)
    expect(reading).to_have_text("epoch 0 of 30")
    lines = curve.evaluate("plot => plot.layout.shapes.map(line => [line.x0, line.x1])")
    assert lines == [[0, 0]] * 3


def chosen(page: Page) -> dict[str, Any]:
    """All that can be seen of what is chosen."""
    ready(page)
    selects = page.locator("select").evaluate_all("all => all.map(s => [s.id, s.value])")
    pressed = page.locator("[aria-pressed=true]").all_inner_texts()
    reading = page.locator(".time .reading").inner_text()
    return {"selects": selects, "pressed": pressed, "reading": reading, "places": places(page)}


def test_the_address_brings_everything_back(view: Open) -> None:
    page = view()
    ready(page)
    page.get_by_label("Site").select_option("cross")
    page.get_by_label("A", exact=True).select_option("2")
    page.get_by_label("B", exact=True).select_option("none")
    expect(page.locator(".table.weight:visible")).to_have_count(1)
    page.get_by_label("B", exact=True).select_option("3")
    page.get_by_role("button", name="v", exact=True).click()
    page.get_by_role("button", name="of all").click()
    page.get_by_role("button", name="3-d").click()
    page.get_by_label("Colour").select_option("word")
    page.get_by_label("Trails").uncheck()
    page.get_by_label("Vector whose").select_option("q")
    page.get_by_role("button", name="lesen", exact=True).click()
    slide(page, 12)
    page.wait_for_url("**epoch=12**")
    before = chosen(page)
    assert ["qkv-b", "3"] in before["selects"]
    assert "lesen" in before["pressed"]
    again = view(page.url[page.url.index("#") :])
    assert chosen(again) == before
    link = page.get_by_role("link", name="New window").get_attribute("href")
    assert link == page.url


def test_the_frame_keeps_its_state_in_its_own_address(new_page: Open, address: str) -> None:
    page = new_page(1280, 720)
    page.goto(f"{address}/#qkv")
    frame = tab(page)
    slide(frame, 4)
    frame.wait_for_function("location.hash.includes('epoch=4')")
    assert page.url == f"{address}/#qkv"
    href = frame.get_by_role("link", name="New window").get_attribute("href")
    assert href is not None
    assert href.startswith(f"{address}/data/plugin/qkv/view#")
    assert "epoch=4" in href


def test_a_card_tells_of_the_point_under_the_mouse(view: Open, store: Store, keep: Keep) -> None:
    page = view("#run=run&word=eat&epoch=20")
    ready(page)
    page.mouse.move(*pixel(page, 7))  # x1 of B, the last of q, k, v, x1 in A and in B
    card = page.locator(".explorer-card")
    expect(card).to_contain_text("nearest by cosine")
    keep(page, "a-point")
    nearest = scene.neighbours(
        store.load(20), PLACE, Point("x1", 1, 4, "eat"), ["q", "k", "v", "x1"], {0, 1}
    )
    expected = ["eat x1", "B: we want to eat bread", "position 4, epoch 20", "nearest by cosine"]
    expected += [
        f"{near['cosine']:.3f} {near['token']} {near['vector']}, {'AB'[near['sentence']]}"
        for near in nearest
    ]
    assert card.inner_text().split("\n") == expected
    framed = "plot => (plot.layout.shapes ?? []).map(box => [box.y0, box.y1])"
    heats = [table.locator(".js-plotly-plot") for table in page.locator(".table.weight").all()]
    assert [heat.evaluate(framed) for heat in heats] == [[], [[3.5, 4.5]]]
    page.mouse.move(*pixel(page, 0), steps=2)
    expect(card).to_contain_text("eat q")
    page.locator(".what").hover()
    expect(card).to_be_hidden()


def test_a_cell_tells_its_words_and_its_value(view: Open, store: Store) -> None:
    page = view("#run=run&word=eat&epoch=20")
    ready(page)
    heat = page.locator(".table.weight").first.locator(".js-plotly-plot")
    at = heat.evaluate(
        """plot => { const box = plot.getBoundingClientRect(), l = plot._fullLayout;
        return [box.left + l.xaxis._offset + l.xaxis.l2p(5),
          box.top + l.yaxis._offset + l.yaxis.l2p(4)]; }"""
    )
    page.mouse.move(*at)
    weight = store.load(20).values["encoder.layers.0.self_attention.weights"][0, 0, 4, 5]
    hover = heat.locator(".hoverlayer")
    expect(hover).to_contain_text("eat")
    expect(hover).to_contain_text("apple")
    expect(hover).to_contain_text(f"{weight:.3f}"[:5])


def test_words_are_text_and_never_markup(view: Open, keep: Keep) -> None:
    page = view("#run=odd&words=all&colour=word")
    ready(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(f"a script of the corpus ran: {dialog.message}"))
    image = MARKUP[0]
    keep(page, "words-that-look-like-markup")
    for word in MARKUP:
        expect(page.get_by_role("button", name=word, exact=True)).to_be_visible()
        assert word in page.get_by_label("A", exact=True).inner_text()
    ticks = {*page.locator(".table.weight .ytick text").all_text_contents()}
    assert any(tick.startswith("<img") for tick in ticks)
    assert {*MARKUP[1:]} <= ticks
    expect(page.locator(".what")).to_contain_text(f"“we {MARKUP[1]} to {image} {MARKUP[2]}”")
    expect(page.locator(".key")).to_contain_text(image)
    table = page.locator(".table.cosine .js-plotly-plot")
    box = table.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + box["height"] - 12)
    expect(table.locator(".hoverlayer")).to_contain_text("<eos>")
    page.get_by_role("button", name="none", exact=True).click()
    expect(page.locator(".error")).to_contain_text("No word is chosen")
    page.get_by_role("button", name=image, exact=True).click()
    expect(page.locator(".what")).to_contain_text(f"“{image}” in A")
    assert f"{image} x1 · A" in names(page)
    page.mouse.move(*pixel(page, 6))
    expect(page.locator(".explorer-card")).to_contain_text(f"{image} x1")
    expect(page.locator(".explorer-card")).to_contain_text("nearest by cosine")
    page.wait_for_timeout(300)
    assert page.locator("img, b").count() == 0
    assert not [url for url in asked if url.endswith("/x")]


def test_new_snapshots_and_runs_appear_by_themselves(view: Open, folder: Path, run: Run) -> None:
    page = view("#run=live&word=eat")
    ready(page)
    reading = page.locator(".time .reading")
    expect(reading).to_have_text("epoch 28 of 28")
    store = Store(folder / "live" / "snapshots")
    taps = json.loads(store.index.read_text(encoding="utf-8"))["taps"]
    store.save(Store(run.snapshots).load(29), taps)
    shutil.copytree(run.folder, folder / "new")
    expect(reading).to_have_text("epoch 29 of 29")  # who stands at the end goes on with it
    expect(page.get_by_label("Run").locator("option", has_text="new")).to_have_count(1)
    slide(page, 5)
    store.save(Store(run.snapshots).load(30), taps)
    expect(reading).to_have_text("epoch 5 of 30")
    assert page.get_by_label("Epoch", exact=True).get_attribute("max") == "30"


def test_a_damaged_epoch_is_named_and_hides_no_other(view: Open) -> None:
    page = view("#run=damaged&word=eat")
    ready(page)
    expect(page.locator(".notes")).to_contain_text(
        "Epoch 7 is left out: expected a snapshot, found"
    )
    expect(page.locator(".notes")).to_contain_text("epoch-0007.safetensors")
    slide(page, 7)
    expect(page.locator(".time .reading")).to_have_text("epoch 8 of 30")


def test_what_cannot_be_shown_is_said_in_the_tab(
    new_page: Open, address: str, said: list[str]
) -> None:
    page = new_page(1280, 720)
    page.goto(f"{address}/data/plugin/qkv/view#run=bare")
    notes = page.locator(".notes")
    expect(notes).to_contain_text("No snapshots in this run yet")
    page.get_by_label("Run").select_option("run")
    ready(page)
    expect(notes).to_have_text("")
    page.goto("about:blank")
    page.goto(f"{address}/data/plugin/qkv/view#run=..%2F..%2Fetc")
    expect(notes).to_contain_text("No run is named “../../etc” here")
    page.get_by_label("Run").select_option("heads")
    ready(page)
    page.wait_for_url("**run=heads**")
    nothing = {"error": "no run in /somewhere yet: make train writes one, and it appears here"}
    page.route("**/runs", lambda route: route.fulfill(status=404, json=nothing))
    page.reload()
    expect(notes).to_contain_text("No run in /somewhere yet")
    page.unroute("**/runs")
    ready(page)  # it goes on looking
    assert all("status of 40" in text for text in said)


def test_two_runs_side_by_side(view: Open, keep: Keep) -> None:
    page = view("#run=run&word=eat")
    ready(page)
    page.get_by_label("With").select_option("heads")
    expect(page.locator(".side")).to_have_count(2)
    expect(page.locator(".cloud")).to_have_count(2)
    expect(page.locator(".table.weight")).to_have_count(4)
    expect(page.locator(".notes")).to_contain_text("Each run has a space of its own")
    assert page.locator(".side h2").all_inner_texts() == ["── run", "╌╌ heads"]
    dashes = page.locator(".curve").evaluate("plot => plot.data.map(line => line.line.dash)")
    assert dashes.count("dash") == 6
    keep(page, "two-runs")
    first, second = (table.locator(".table.weight").first for table in page.locator(".row").all())
    end = numbers(second)
    slide(page, 2)
    assert numbers(first) != numbers(second) != end
    page.get_by_label("With").select_option("damaged")  # the same run but for an epoch
    expect(page.locator(".side h2").nth(1)).to_have_text("╌╌ damaged")
    page.get_by_label("With").select_option("bare")
    expect(page.locator(".side .error").nth(1)).to_contain_text("No snapshots in this run yet")
    page.get_by_label("With").select_option("")
    expect(page.locator(".side")).to_have_count(1)


def test_cross_attention_starts_with_words_of_both_sides(view: Open, keep: Keep) -> None:
    page = view()
    ready(page)
    page.get_by_label("Site").select_option("cross")
    expect(page.locator(".what")).to_contain_text("“wir”, “essen”, “eat” in A")
    keep(page, "cross-attention")
    kinds = {name.split(" · ")[0] for name in names(page)}
    assert kinds == {"wir q", "essen q", "wir x1", "essen x1", "eat k", "eat v"}
    table = page.locator(".table.weight").first
    rows = table.locator(".ytick text").all_text_contents()
    assert rows == ["<sos>", "wir", "mochten", "apfel", "essen"]


def test_all_words_of_all_sentences(view: Open, keep: Keep) -> None:
    page = view()
    ready(page)
    page.get_by_role("button", name="of all").click()
    page.get_by_role("button", name="all", exact=True).click()
    expect(page.locator(".what")).to_contain_text("All words of all 15 sentences: 376 vectors")
    expect(page.locator(".key")).to_contain_text("no trails: more than 300 points")
    assert len(places(page)) == 376
    assert trails(page) == 0
    keep(page, "all-words")
    boxes = page.locator(".cloud .annotation-text").evaluate_all(
        "names => names.map(n => n.getBoundingClientRect()).map(b => [b.x, b.y, b.width, b.height])"
    )
    assert len(boxes) > 10
    for i, (x, y, wide, high) in enumerate(boxes):
        for other_x, other_y, other_wide, other_high in boxes[i + 1 :]:
            across = min(x + wide, other_x + other_wide) - max(x, other_x)
            down = min(y + high, other_y + other_high) - max(y, other_y)
            assert across < 3 or down < 3, "a name lies on another"


def test_three_dimensions_turn_by_hand(view: Open, keep: Keep) -> None:
    page = view("#run=run&word=eat")
    ready(page)
    page.get_by_role("button", name="3-d").click()
    page.wait_for_selector(".cloud canvas")
    assert {len(place) for place in places(page).values()} == {3}
    eye = "Object.values(plot._fullLayout.scene._scene.getCamera().eye)"
    before = plot(page, eye)
    page.wait_for_timeout(300)
    keep(page, "three-dimensions")
    page.mouse.move(400, 450)
    page.mouse.down()
    page.mouse.move(460, 480, steps=4)
    page.mouse.up()
    turned = plot(page, eye)
    assert turned != pytest.approx(before, abs=0.01)
    slide(page, 3)
    page.wait_for_timeout(300)
    assert plot(page, eye) == pytest.approx(turned), "a new epoch turns it back"
    page.get_by_role("button", name="2-d").click()
    assert {len(place) for place in places(page).values()} == {2}


def test_on_a_phone_the_parts_stack(view: Open, keep: Keep) -> None:
    page = view(width=390, height=844, has_touch=True, is_mobile=True, device_scale_factor=2)
    ready(page)
    keep(page, "phone", whole=True)
    tops = [
        page.locator(part).first.evaluate("e => [e.getBoundingClientRect().top, e.clientWidth]")
        for part in (".choices", ".stage", ".tables", ".curves")
    ]
    assert [top for top, _ in tops] == sorted(top for top, _ in tops)
    assert len({top for top, _ in tops}) == 4
    assert all(wide > 340 for _, wide in tops)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator(".panel").is_hidden()
    page.locator("summary").click()
    page.get_by_label("Site").select_option("decoder_self")
    expect(page.locator(".what")).to_contain_text("“wir”, “essen”")
    smallest = page.evaluate(
        """() => Math.min(...[...document.querySelectorAll('.explorer *')].filter(e =>
        [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
        .map(e => parseFloat(getComputedStyle(e).fontSize)))"""
    )
    assert smallest >= 9.5


def paper(page: Page | Frame) -> str:
    colour = page.locator(".explorer").evaluate("e => getComputedStyle(e).backgroundColor")
    return str(colour)


def test_dark_follows_the_system(view: Open, keep: Keep) -> None:
    page = view(color_scheme="dark")
    ready(page)
    keep(page, "dark")
    light = "rgb(255, 255, 255)"
    assert paper(page) != light
    heat = page.locator(".table.weight .js-plotly-plot").first
    scale = heat.evaluate("plot => plot.data[0].colorscale")
    page.emulate_media(color_scheme="light")
    expect(page.locator(":root[data-theme=light]")).to_have_count(1)
    assert paper(page) == light
    assert heat.evaluate("plot => plot.data[0].colorscale") != scale


def test_dark_follows_tensorboard(new_page: Open, address: str, keep: Keep) -> None:
    page = new_page(1280, 720)
    page.goto(f"{address}/#qkv")
    frame = tab(page)
    before = paper(frame)
    page.evaluate("document.body.classList.toggle('dark-mode')")
    frame.wait_for_selector(":root[data-theme=dark]")
    assert paper(frame) != before
    keep(page, "dark-in-tensorboard")
    page.evaluate("document.body.classList.toggle('dark-mode')")
    frame.wait_for_selector(":root[data-theme=light]")
    assert paper(frame) == before
