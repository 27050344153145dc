"""How good translations are."""

from collections.abc import Sequence

from qkvtrace.corpus.batches import Batches
from qkvtrace.corpus.prepared import TokenPair
from qkvtrace.corpus.vocabulary import Vocabulary
from qkvtrace.model.transformer import Transformer
from qkvtrace.translation.search import greedy


def translations(model: Transformer, batches: Batches, target: Vocabulary) -> list[list[str]]:
    """The greedy translation of each source, in the order of the split, as tokens of `target`."""
    return [
        target.words(ids)
        for batch in batches.in_order()
        for ids in greedy(model, batch.source).ids.tolist()
    ]


def exact_match(
    model: Transformer, batches: Batches, pairs: Sequence[TokenPair], target: Vocabulary
) -> float:
    """The share of `pairs` whose greedy translation is the reference, token for token.

    Args:
        model: translates.
        batches: the sources of `pairs`, in their order.
        pairs: source and reference tokens; a reference with an unknown word is never met.
        target: turns ids into tokens.
    """
    made = translations(model, batches, target)
    hits = sum(words == reference for words, (_, reference) in zip(made, pairs, strict=True))
    return hits / len(pairs)
