"""The scenes of a run that a page holds, which has no server to ask: those of two sentences."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from qkvtrace.corpus.vocabulary import SPECIALS
from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import LAYER_VECTORS, SITES, VECTORS
from qkvtrace.views import scene
from qkvtrace.views.history import History

Data = dict[str, Any]
MOST_HEADS = 4  # at each site, from layer 0 on: more would make a heavy page


def embedded(history: History, name: str, a: int = 0, b: int = 1) -> Data:
    """What Sources.embedded of web/sources.js takes: scenes of sentences a, b at each site.

    Words are picked in the page, from a space of all words; one that stands in both sentences has
    a space of its own besides. Of many heads only the first are there.

    Raises UserError if there are no snapshots to be read.
    """
    about = scene.about(history.layer(SITES[0], 0), history.last())
    both = [about["sentences"][index] for index in (a, b)]
    tokens = [{*sentence["source"], *sentence["target"]} for sentence in both]
    words = [*dict.fromkeys(word for side in ("source", "target") for word in about["words"][side])]
    own = [[word] for word in words if all(word in s for s in tokens) and word not in SPECIALS]
    places = {}
    for described in about["sites"]:
        described["heads"] = min(described["heads"], MOST_HEADS)
        described["layers"] = min(described["layers"], MOST_HEADS // described["heads"])
        site = next(site for site in SITES if site.name == described["name"])
        for layer in range(described["layers"]):
            for head in range(described["heads"]):
                place = scene.Place(site, layer, head)
                places[f"{site.name}/{layer}/{head}"] = _scenes(history, place, a, b, [words, *own])
    about |= {"name": name, "version": history.version()}
    return {"about": about, "first": {"a": a, "b": b}, "places": places}


def _scenes(history: History, place: scene.Place, a: int, b: int, words: list[list[str]]) -> Data:
    def snapshots() -> Iterator[Snapshot]:
        return history.layer(place.site, place.layer)

    clouds = []
    for vectors in (VECTORS, LAYER_VECTORS):
        for chosen in words:
            with suppress(UserError):  # these words do not stand where these vectors do
                cloud = scene.cloud(snapshots(), place, list(vectors), {a, b}, chosen, (a, b))
                clouds.append({"words": chosen, "vectors": list(vectors)} | cloud)
    return {
        "clouds": clouds,
        "attention": {index: scene.attention(snapshots(), place, index) for index in (a, b)},
        "alike": {v: scene.alike(snapshots(), place, a, b, v) for v in scene.AXES},
        "curves": scene.curves(snapshots(), place),
    }
