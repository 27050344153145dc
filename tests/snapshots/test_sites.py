"""The three sites: their taps exist, and their axes carry the right sentence's tokens."""

from collections.abc import Callable

import pytest

from qkvtrace.corpus.batches import Batch
from qkvtrace.model.taps import matching
from qkvtrace.model.transformer import Transformer
from qkvtrace.snapshots.probes import Sentence
from qkvtrace.snapshots.recording import recording
from qkvtrace.snapshots.sites import SITES, VECTORS, Site

SENTENCE = Sentence(["<sos>", "we", "eat", "<eos>"], ["<sos>", "wir"], [], None)


def test_the_sites_taps_exist_in_each_layer(transformer: Callable[..., Transformer]) -> None:
    model = transformer(layers=3)
    for site in SITES:
        for layer in range(3):
            for value in (*VECTORS, "scores", "weights", "x4"):
                assert list(matching(model, site.tap(layer, value))) == [site.tap(layer, value)]


@pytest.mark.parametrize("layers", [1, 3])
def test_layers_are_counted_from_what_was_recorded(
    transformer: Callable[..., Transformer], random_batch: Callable[..., Batch], layers: int
) -> None:
    model, batch = transformer(layers=layers), random_batch([3], [3])
    with recording(model, "*.weights") as record:
        model(batch.source, batch.target)
    values = {name: value for name, (value,) in record.items()}
    assert [site.layers(values) for site in SITES] == [layers] * 3


@pytest.mark.parametrize(
    ("site", "queries", "keys"),
    [
        (SITES[0], SENTENCE.source, SENTENCE.source),
        (SITES[1], SENTENCE.target, SENTENCE.target),
        (SITES[2], SENTENCE.target, SENTENCE.source),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_queries_and_keys_are_the_tokens_of_their_side(
    site: Site, queries: list[str], keys: list[str]
) -> None:
    assert site.tokens(SENTENCE, "query") == queries
    assert site.tokens(SENTENCE, "key") == keys
