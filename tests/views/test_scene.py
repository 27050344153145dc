"""What the tab shows, against the same computed another way from the stored tensors."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import SITES
from qkvtrace.studies.points import Point
from qkvtrace.views import scene
from qkvtrace.views.scene import Place

ENCODER, DECODER, CROSS = SITES
PLACE = Place(ENCODER, 1, 1)
CROSSED = Place(CROSS, 0, 1)


def vector(snapshot: Snapshot, place: Place, point: dict[str, Any]) -> np.ndarray:
    """A point's vector, taken by its tap's name."""
    tap = snapshot.values[place.site.tap(place.layer, point["vector"])]
    value = tap[point["sentence"]]
    value = value[place.head] if value.dim() == 3 else value
    return value[point["position"]].double().numpy()


def test_coordinates_are_principal_components_of_all_epochs(snapshots: list[Snapshot]) -> None:
    found = scene.cloud(snapshots, PLACE, ["q", "x1"])
    rows = np.array([[vector(s, PLACE, p) for p in found["points"]] for s in snapshots])
    flat = rows.reshape(-1, rows.shape[-1])
    _, singular, axes = np.linalg.svd(flat - flat.mean(0), full_matrices=False)
    expected = (rows - flat.mean(0)) @ axes[:3].T
    signs = np.sign(axes[:3][range(3), np.abs(axes[:3]).argmax(1)])
    np.testing.assert_allclose(np.array(found["at"]), expected * signs, atol=1e-3)
    shares = singular**2 / (singular**2).sum()
    np.testing.assert_allclose(found["explained"], shares[:3], atol=1e-4)
    assert found["epochs"] == [0, 1, 3]
    assert found["width"] == 11


def test_points_are_those_of_the_chosen_words_and_sentences(snapshots: list[Snapshot]) -> None:
    source = snapshots[0].sentences[1].source
    found = scene.cloud(snapshots, PLACE, ["k"], {1}, ["eat", "water"])
    expected = [(1, i, token) for i, token in enumerate(source) if token in ("eat", "water")]
    assert [(p["sentence"], p["position"], p["token"]) for p in found["points"]] == expected
    assert len(expected) == 4


def test_every_token_of_every_sentence_is_a_point_and_no_padding(
    snapshots: list[Snapshot],
) -> None:
    found = scene.cloud(snapshots, PLACE, ["q", "v"])
    assert len(found["points"]) == 2 * sum(len(s.source) for s in snapshots[0].sentences)
    assert all(place for epoch in found["at"] for place in epoch)


def test_a_token_of_a_translation_is_there_only_while_it_stands_there(
    snapshots: list[Snapshot],
) -> None:
    found = scene.cloud(snapshots, CROSSED, ["q"], {1})
    targets = [snapshot.sentences[1].target for snapshot in snapshots]
    assert len({tuple(target) for target in targets}) > 1, "no test of anything"
    for target, places in zip(targets, found["at"], strict=True):
        for point, place in zip(found["points"], places, strict=True):
            stands = target[point["position"] : point["position"] + 1] == [point["token"]]
            assert (place is not None) == stands
    there = sum(place is not None for epoch in found["at"] for place in epoch)
    assert there == sum(map(len, targets))


def test_a_place_in_the_cloud_is_that_of_its_epoch(snapshots: list[Snapshot]) -> None:
    """Distances hold within rounding where three axes explain everything."""
    found = scene.cloud(snapshots, PLACE, ["q"], {0}, ["<sos>"])
    rows = np.array([vector(s, PLACE, found["points"][0]) for s in snapshots])
    places = np.array(found["at"])[:, 0]
    for one in range(3):
        for other in range(3):
            assert np.linalg.norm(places[one] - places[other]) == pytest.approx(
                np.linalg.norm(rows[one] - rows[other]), abs=2e-3
            )


def test_vectors_that_are_not_finite_are_no_points(snapshots: list[Snapshot]) -> None:
    name = ENCODER.tap(1, "q")
    broken = snapshots[2].values[name].clone()
    broken[0, 1, 2] = torch.nan
    broken[1, 1, 0] = torch.inf
    last = replace(snapshots[2], values=snapshots[2].values | {name: broken})
    found = scene.cloud([*snapshots[:2], last], PLACE, ["q"])
    absent = [p for p, place in zip(found["points"], found["at"][2], strict=True) if not place]
    assert [(p["sentence"], p["position"]) for p in absent] == [(0, 2), (1, 0)]
    json.dumps(found, allow_nan=False)
    values = {name: torch.full_like(broken, torch.nan)}
    with pytest.raises(UserError, match="diverged"):
        scene.cloud([replace(s, values=s.values | values) for s in snapshots], PLACE, ["q"])


@pytest.mark.parametrize("words", [[], ["nowhere"]])
def test_no_point_is_an_error(snapshots: list[Snapshot], words: list[str]) -> None:
    with pytest.raises(UserError, match="no word is chosen"):
        scene.cloud(snapshots, PLACE, ["q"], None, words)


def test_too_many_points_are_cut_and_counted(
    snapshots: list[Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = len(scene.cloud(snapshots, PLACE, ["q"])["points"])
    monkeypatch.setattr(scene, "MOST_PLACES", 15)
    found = scene.cloud(snapshots, PLACE, ["q"])
    assert len(found["points"]) == 5
    assert found["points_left_out"] == every - 5


def test_what_is_cut_is_the_last_words_and_no_kind(
    snapshots: list[Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene, "MOST_PLACES", 3 * 8)
    found = scene.cloud(snapshots, PLACE, ["q", "k", "v", "x1"])
    places = [(p["vector"], p["sentence"], p["position"]) for p in found["points"]]
    assert places == [(v, 0, i) for v in ("q", "k", "v", "x1") for i in (0, 1)]
    rows = np.array([[vector(s, PLACE, p) for p in found["points"]] for s in snapshots])
    flat = rows.reshape(-1, rows.shape[-1])
    explained = np.linalg.svd(flat - flat.mean(0), compute_uv=False) ** 2
    np.testing.assert_allclose(found["explained"], (explained / explained.sum())[:3], atol=1e-4)


def test_only_the_vectors_that_are_shown_are_held(
    snapshots: list[Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    values = scene.Place.values

    def count(place: Place, snapshot: Snapshot, chosen: list[Point]) -> torch.Tensor:
        taken.append(len(chosen))
        return values(place, snapshot, chosen)

    monkeypatch.setattr(scene, "MOST_NUMBERS", 3 * 4 * 11)
    monkeypatch.setattr(scene.Place, "values", count)
    scene.cloud(snapshots, PLACE, ["q", "x1"])
    assert taken == [4, 4, 4]


def test_an_epoch_that_comes_between_the_passes_waits(snapshots: list[Snapshot]) -> None:
    class Growing:
        passes = 0

        def __iter__(self) -> Iterator[Snapshot]:
            self.passes += 1
            return iter(snapshots[: 1 + self.passes])

    assert scene.cloud(Growing(), PLACE, ["q"]) == scene.cloud(snapshots[:2], PLACE, ["q"])


def test_a_diverged_head_has_curves_of_nothing(snapshots: list[Snapshot]) -> None:
    values = {
        PLACE.site.tap(1, name): torch.full_like(snapshots[2].values[PLACE.site.tap(1, name)], nan)
        for name in ("q", "k", "v", "scores", "weights")
        for nan in [math.nan]
    }
    last = replace(snapshots[2], values=snapshots[2].values | values)
    found = scene.curves([*snapshots[:2], last], PLACE)
    assert found["low"][2] is found["high"][2] is found["entropy"][2] is None
    assert found["norms"]["q"][2] is None
    assert found["low"][1] < found["high"][1]


def test_a_word_in_two_sentences_is_compared_by_cosine(snapshots: list[Snapshot]) -> None:
    found = scene.cloud(snapshots, PLACE, ["q", "x1"], {0, 1}, ["<eos>"], (0, 1))
    places = [sentence.source.index("<eos>") for sentence in snapshots[0].sentences]
    (same,) = found["same"]
    assert same["token"] == "<eos>"
    for kind in ("q", "x1"):
        for epoch, snapshot in enumerate(snapshots):
            one, other = (
                vector(snapshot, PLACE, {"vector": kind, "sentence": i, "position": places[i]})
                for i in (0, 1)
            )
            expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
            assert same["cosines"][kind][epoch] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("place", [PLACE, CROSSED, Place(DECODER, 1, 0)])
@pytest.mark.parametrize("sentence", [0, 1])
def test_attention_is_that_of_the_snapshot_without_padding(
    snapshots: list[Snapshot], place: Place, sentence: int
) -> None:
    found = scene.attention(snapshots, place, sentence)
    for table, snapshot in zip(found["tables"], snapshots, strict=True):
        said = snapshot.sentences[sentence]
        rows = said.source if place is PLACE else said.target
        columns = said.target if place.site is DECODER else said.source
        assert (table["rows"], table["columns"]) == (rows, columns)
        weights = snapshot.values[place.site.tap(place.layer, "weights")]
        expected = weights[sentence, place.head, : len(rows), : len(columns)].numpy()
        np.testing.assert_allclose(table["values"], expected, atol=1e-4)
        np.testing.assert_allclose(np.sum(table["values"], 1), 1, atol=1e-3)


@pytest.mark.parametrize("kind", ["q", "k", "x4", "output"])
def test_cosines_are_those_of_each_vector_of_one_with_each_of_the_other(
    snapshots: list[Snapshot], kind: str
) -> None:
    found = scene.alike(snapshots, CROSSED, 0, 1, kind)
    for table, snapshot in zip(found["tables"], snapshots, strict=True):
        side = "source" if kind == "k" else "target"
        rows, columns = (getattr(sentence, side) for sentence in snapshot.sentences)
        assert (table["rows"], table["columns"]) == (rows, columns)
        for i, row in enumerate(table["values"]):
            for j, value in enumerate(row):
                one = vector(snapshot, CROSSED, {"vector": kind, "sentence": 0, "position": i})
                other = vector(snapshot, CROSSED, {"vector": kind, "sentence": 1, "position": j})
                expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
                assert value == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("place", [PLACE, CROSSED, Place(DECODER, 0, 1)])
def test_curves_by_hand(snapshots: list[Snapshot], place: Place) -> None:
    found = scene.curves(snapshots, place)
    for epoch, snapshot in enumerate(snapshots):
        entropies, uniform, scores = [], [], []
        norms: dict[str, list[float]] = {"q": [], "k": [], "v": []}
        for index, sentence in enumerate(snapshot.sentences):
            queries = sentence.source if place is PLACE else sentence.target
            keys = sentence.target if place.site is DECODER else sentence.source
            for i in range(len(queries)):
                seen = range(i + 1 if place.site is DECODER else len(keys))
                weights, raw = (
                    snapshot.values[place.site.tap(place.layer, name)][index, place.head, i]
                    for name in ("weights", "scores")
                )
                entropies.append(-sum(float(weights[j]) * math.log(weights[j]) for j in seen))
                uniform.append(math.log(len(seen)))
                scores += [float(raw[j]) for j in seen]
            for name, tokens in (("q", queries), ("k", keys), ("v", keys)):
                for position in range(len(tokens)):
                    point = {"vector": name, "sentence": index, "position": position}
                    norms[name].append(float(np.linalg.norm(vector(snapshot, place, point))))
        assert found["entropy"][epoch] == pytest.approx(np.mean(entropies), rel=1e-4)
        assert found["uniform"][epoch] == pytest.approx(np.mean(uniform), rel=1e-4)
        assert found["low"][epoch] == pytest.approx(min(scores), rel=1e-4)
        assert found["high"][epoch] == pytest.approx(max(scores), rel=1e-4)
        for name, lengths in norms.items():
            assert found["norms"][name][epoch] == pytest.approx(np.mean(lengths), rel=1e-4)


def test_neighbours_are_the_nearest_by_cosine_in_the_full_space(
    snapshots: list[Snapshot],
) -> None:
    snapshot = snapshots[1]
    tokens = snapshot.sentences[0].source
    point = Point("k", 0, 1, tokens[1])
    found = scene.neighbours(snapshot, PLACE, point, ["k", "v"])
    own = vector(snapshot, PLACE, {"vector": "k", "sentence": 0, "position": 1})
    others = []
    for kind in ("k", "v"):
        for index, sentence in enumerate(snapshot.sentences):
            for position, token in enumerate(sentence.source):
                if (kind, index, position) != ("k", 0, 1):
                    at = {"vector": kind, "sentence": index, "position": position}
                    other = vector(snapshot, PLACE, at)
                    cosine = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
                    others.append((cosine, at | {"token": token}))
    others.sort(key=lambda pair: -pair[0])
    assert [{k: n[k] for k in others[0][1]} for n in found] == [at for _, at in others[:3]]
    cosines = [near["cosine"] for near in found]
    np.testing.assert_allclose(cosines, [cosine for cosine, _ in others[:3]], atol=1e-4)
    within = scene.neighbours(snapshot, PLACE, point, ["k"], sentences={0})
    assert {near["sentence"] for near in within} == {0}


def test_about_tells_what_there_is(snapshots: list[Snapshot]) -> None:
    found = scene.about(snapshots, snapshots[-1])
    assert [site["name"] for site in found["sites"]] == ["encoder_self", "decoder_self", "cross"]
    for site in found["sites"]:
        assert (site["layers"], site["heads"]) == (2, 2)
        assert site["widths"] == {"q": 11, "k": 11, "v": 11, "x1": 11, "x4": 22, "output": 22}
    cross = found["sites"][2]["axes"]
    assert [cross[v] for v in ("q", "k", "v", "x1")] == ["target", "source", "source", "target"]
    targets = {t for s in snapshots for sentence in s.sentences for t in sentence.target}
    assert set(found["words"]["target"]) == targets
    assert [s["source"] for s in found["sentences"]] == [s.source for s in snapshots[0].sentences]
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("make", [scene.cloud, scene.curves])
def test_a_scene_is_json(snapshots: list[Snapshot], make: Callable[..., Any]) -> None:
    """Also where attention is masked, whose scores are minus infinity."""
    chosen = (["q", "k", "v", "x1"],) if make is scene.cloud else ()
    found = make(snapshots, Place(DECODER, 0, 0), *chosen)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
