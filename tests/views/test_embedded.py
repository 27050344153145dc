"""A run's scenes for a page: every place, for two sentences."""

import json
from collections.abc import Callable
from dataclasses import replace

from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import SITES
from qkvtrace.snapshots.store import Store
from qkvtrace.views import scene
from qkvtrace.views.embedded import embedded
from qkvtrace.views.history import History


def test_each_site_layer_and_head_has_its_scenes(
    write_run: Callable[..., Run], history: Callable[[Run], History]
) -> None:
    opened = history(write_run())
    found = embedded(opened, "a name")
    assert found["about"]["name"] == "a name"
    assert len(found["places"]) == 3 * 2 * 2
    for site in SITES:
        place = scene.Place(site, 1, 0)
        there = found["places"][f"{site.name}/1/0"]
        assert there["curves"] == scene.curves(opened.layer(site, 1), place)
        assert there["attention"][1] == scene.attention(opened.layer(site, 1), place, 1)
        assert there["alike"]["k"] == scene.alike(opened.layer(site, 1), place, 0, 1, "k")
    json.dumps(found, allow_nan=False)


def test_a_cloud_of_all_words_and_one_of_each_that_both_sentences_have(
    write_run: Callable[..., Run], history: Callable[[Run], History]
) -> None:
    opened = history(write_run())
    found = embedded(opened, "a name")
    one, other = ({*s["source"], *s["target"]} for s in found["about"]["sentences"])
    clouds = found["places"]["encoder_self/0/0"]["clouds"]
    heads = [cloud for cloud in clouds if cloud["vectors"] == ["q", "k", "v", "x1"]]
    assert set(heads[0]["words"]) >= one | other
    own = {cloud["words"][0] for cloud in heads[1:]}
    source = {*found["about"]["words"]["source"]}
    assert own == {word for word in one & other & source if not word.startswith("<")}
    chosen = heads[0]["words"]
    place = scene.Place(SITES[0], 0, 0)
    expected = scene.cloud(
        opened.layer(place.site, 0), place, heads[0]["vectors"], {0, 1}, chosen, (0, 1)
    )
    assert {name: heads[0][name] for name in expected} == expected


def test_a_run_with_one_sentence_has_scenes_of_it_alone(
    write_run: Callable[..., Run],
    history: Callable[[Run], History],
    snapshots: list[Snapshot],
) -> None:
    alone = [
        replace(
            snapshot,
            sentences=snapshot.sentences[:1],
            values={name: value[:1] for name, value in snapshot.values.items()},
        )
        for snapshot in snapshots
    ]
    found = embedded(history(write_run(recorded=alone)), "a name")
    assert found["first"] == {"a": 0, "b": None}
    for place in found["places"].values():
        assert place["attention"].keys() == {0}
        assert all(point["sentence"] == 0 for c in place["clouds"] for point in c["points"])


def test_a_damaged_epoch_is_told_of(
    write_run: Callable[..., Run], history: Callable[[Run], History]
) -> None:
    run = write_run()
    store = Store(run.snapshots)
    damaged = store.epochs()[1]
    store.path(damaged).write_bytes(b"")
    found = embedded(history(run), "a name")
    assert f"Epoch {damaged} is left out: " in found["about"]["note"]
