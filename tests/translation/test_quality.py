"""exact_match: the share of sentences whose translation is the reference, token for token."""

from collections.abc import Callable

import pytest
import torch

from qkvtrace.corpus.batches import Batches
from qkvtrace.corpus.prepared import Corpus, TokenPair
from qkvtrace.corpus.vocabulary import EOS
from qkvtrace.model.transformer import Transformer
from qkvtrace.translation.quality import exact_match
from qkvtrace.translation.search import greedy


@pytest.fixture
def model(transformer: Callable[..., Transformer]) -> Transformer:
    model = transformer()
    with torch.no_grad():
        model.vocabulary.bias[EOS] += 1.0
    return model


@pytest.fixture
def own(model: Transformer, corpus: Corpus) -> list[list[str]]:
    """What the model makes of the validation sentences, each translated by itself."""
    found = [
        greedy(model, torch.tensor([corpus.source.ids(source)])).ids[0].tolist()
        for source, _ in corpus.splits["valid"]
    ]
    return [corpus.target.words(ids) for ids in found]


@pytest.mark.parametrize("size", [1, 2, 5, 64])
@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda words: words, 1.0),
        (lambda words: [*words, "es"], 2 / 5),
        (lambda words: words[:-1], 2 / 5),
        (lambda words: [*words[:-1], "unbekannt"], 2 / 5),
    ],
    ids=["same", "longer", "shorter", "unknown"],
)
def test_only_whole_translations_count(
    model: Transformer,
    corpus: Corpus,
    own: list[list[str]],
    size: int,
    spoil: Callable[[list[str]], list[str]],
    expected: float,
) -> None:
    spoilt = (0, 1, 3)
    assert all(own[index] for index in spoilt)
    pairs: list[TokenPair] = [
        (source, spoil(own[index]) if index in spoilt else own[index])
        for index, (source, _) in enumerate(corpus.splits["valid"])
    ]
    batches = Batches(pairs, corpus.source, corpus.target, size=size, device=torch.device("cpu"))
    assert exact_match(model, batches, pairs, corpus.target) == expected
