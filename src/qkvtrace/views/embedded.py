"""The scenes of a run that a page holds, which has no server to ask: those of two sentences."""

from contextlib import suppress
from typing import Any

from qkvtrace.corpus.vocabulary import SPECIALS
from qkvtrace.errors import UserError
from qkvtrace.snapshots.sites import AXES, LAYER_VECTORS, SITES, VECTORS
from qkvtrace.views import scene
from qkvtrace.views.history import History

Data = dict[str, Any]
MOST_HEADS = 4  # at each site, from layer 0 on: more would make a heavy page


def embedded(history: History, name: str) -> Data:
    """What Sources.embedded of web/sources.js takes: scenes of the first two sentences, or the one.

    Words are picked in the page, from a space of all words; one that stands in both sentences has
    a space of its own besides. Of many heads only the first are there, and `note` tells.

    Raises UserError if there are no snapshots to be read.
    """
    about = scene.about(history.layer(SITES[0], 0), history.last())
    chosen = about["sentences"][:2]
    tokens = [{*sentence["source"], *sentence["target"]} for sentence in chosen]
    words = [*dict.fromkeys(word for side in ("source", "target") for word in about["words"][side])]
    own = [[word] for word in words if all(word in s for s in tokens) and word not in SPECIALS]
    places = {}
    about["note"] = ""
    for described in about["sites"]:
        layers, heads = described["layers"], described["heads"]
        described["heads"] = min(heads, MOST_HEADS)
        described["layers"] = min(layers, MOST_HEADS // described["heads"])
        if (layers, heads) != (described["layers"], described["heads"]):
            about["note"] = (
                f"Here are {described['layers']} of {layers} layers and {described['heads']} of "
                f"{heads} heads; TensorBoard's tab Q/K/V has all."
            )
        site = next(site for site in SITES if site.name == described["name"])
        for layer in range(described["layers"]):
            for head in range(described["heads"]):
                place = scene.Place(site, layer, head)
                places[f"{site.name}/{layer}/{head}"] = _scenes(
                    history, place, len(chosen), [words, *own]
                )
    for epoch, reason in history.left_out.items():
        about["note"] += f" Epoch {epoch} is left out: {reason}."
    about |= {"name": name, "version": history.version()}
    first = {"a": 0, "b": 1 if len(chosen) > 1 else None}
    return {"about": about, "first": first, "places": places}


def _scenes(history: History, place: scene.Place, count: int, words: list[list[str]]) -> Data:
    a, b = 0, count - 1
    pair = (a, b) if count > 1 else None
    snapshots = history.layer(place.site, place.layer)
    clouds = []
    for vectors in (VECTORS, LAYER_VECTORS):
        for chosen in words:
            with suppress(UserError):  # these words do not stand where these vectors do
                cloud = scene.cloud(snapshots, place, list(vectors), {a, b}, chosen, pair)
                clouds.append({"words": chosen, "vectors": list(vectors)} | cloud)
    return {
        "clouds": clouds,
        "attention": {index: scene.attention(snapshots, place, index) for index in (a, b)},
        "alike": {v: scene.alike(snapshots, place, a, b, v) for v in AXES},
        "curves": scene.curves(snapshots, place),
    }
