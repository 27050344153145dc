"""Claim a: q, k and v of a word form clusters, and x1 separates its contexts.

Encoder self-attention. Each number is the mean over layers and heads. d is cosine distance,
1 - cos: 0 alike, 1 unrelated.

clusters: s = mean over words w and over the vectors i of w of (b_i - a_i) / max(a_i, b_i), where
    a_i is the mean d from i to the others with its label (q, k or v) and b_i the smaller mean d to
    those with another: the silhouette coefficient (Rousseeuw 1987), from -1 to 1. Below 0.25 it
    finds no substantial structure (Kaufman and Rousseeuw 1990). A vector counts once: in the first
    layer a word has one q, k and v at each position. So words count that stand at two positions.
    Controls: the same before training, where three random projections of a vector are unrelated to
    one another and thus already three clusters; labels dealt out at random at each place, where
    there is no structure to find.

contexts: g = d(x1) - max(d(q), d(k), d(v)), each d the mean over minimal pairs (two sentences of
    the same length that differ in one word) and over the words that the two share, each at its
    position. 0.1 is an angle of 26 degrees between vectors that were one. The sentence compares
    vectors with each other once the model is trained, and not two epochs. So the effect is g after
    training, and g before training its control: where that is not exceeded, training has nothing
    to do with it, since any mean over words differs if one of the words does.

same: max |a - b| / |a| over q, k and v of the first layer, before and after training, and over each
    two places in different sentences that have the same word and position. 1e-5 leaves room for
    sums of some hundred float32 products in another order. Control: the same of x1.

From "Understanding Q, K, V in Transformer (self attention)", which shows "eat" in two sentences.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.corpus.vocabulary import SPECIALS
from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.studies.claims.tools.different_vectors import different
from qkvtrace.studies.claims.tools.shared_words import ENCODER, QKV, SharedWords, deviation, gap
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory, Member, Words

SENTENCES = 64  # at most, of a corpus' minimal pairs
SMALLEST = 1e-12  # distance that is not rounding's


@dataclass(frozen=True, kw_only=True)
class Context:
    """q, k and v know the word, x1 knows its neighbours."""

    letter: ClassVar = "a"
    title: ClassVar = "Words and contexts"
    sentence: ClassVar = (
        "q, k and v of a word form clusters of their own, and after training its x1 differs "
        "between contexts more than they do."
    )
    source: ClassVar = "the article; silhouettes: Rousseeuw 1987"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="clusters",
            says="q, k and v of a word form clusters of their own.",
            measure="silhouette coefficient of the labels q, k and v, by cosine distance, over the "
            "places where a word stands: (b - a) / max(a, b)",
            unit="silhouette, -1 to 1",
            least=0.25,
        ),
        Part(
            name="contexts",
            says="After training, x1 of a word differs between contexts more than q, k and v do.",
            measure="d(x1) - max(d(q), d(k), d(v)): mean cosine distances of a word in two "
            "sentences that differ in one other word",
            unit="cosine distance",
            least=0.1,
        ),
        Part(
            name="same",
            says="In the first layer q, k and v of a word at its position are the same in every "
            "sentence.",
            measure="max |a - b| / |a| over each two sentences with the same word at the same "
            "position, before and after training",
            unit="relative deviation",
            least=1e-5,
            because="the first layer makes them of the word's and the position's vectors alone",
        ),
    )

    sentences: tuple[str, ...] | None

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Raises UserError if no two sentences differ in one word, or no word stands elsewhere."""
        members = laboratory.members(laboratory.base)
        given: Sequence[str | Words] = self.sentences or minimal_pairs(members[0].corpus)
        words = list(dict.fromkeys(tuple(members[0].words(each)) for each in given))
        contexts, everywhere = (shared(words, minimal=minimal) for minimal in (True, False))
        rows = [_numbers(member, words, contexts, everywhere) for member in members]
        clusters, unlearned, shuffled, context, unlearned_context, same, x1 = zip(
            *rows, strict=True
        )
        return {
            "clusters": Measured(clusters, {"untrained": unlearned, "shuffled labels": shuffled}),
            "contexts": Measured(context, {"untrained": unlearned_context}),
            "same": Measured(same, {"x1": x1}),
        }


def _numbers(
    member: Member, sentences: Sequence[Words], contexts: SharedWords, everywhere: SharedWords
) -> tuple[float, ...]:
    layers = range(member.recipe.model.layers)
    taps = [ENCODER.tap(layer, vector) for layer in layers for vector in (*QKV, "x1")]
    both = trained, untrained = [
        member.observe(sentences, taps, epoch) for epoch in (LAST, UNTRAINED)
    ]
    generator = torch.Generator().manual_seed(member.seed)
    return (
        mean(clusters(trained, layer) for layer in layers),
        mean(clusters(untrained, layer) for layer in layers),
        mean(clusters(trained, layer, generator) for layer in layers),
        *(
            mean(gap(at.values, contexts, layer, ENCODER.tap(layer, "x1")) for layer in layers)
            for at in both
        ),
        max(deviation(at.values, everywhere, QKV) for at in both),
        deviation(trained.values, everywhere, ["x1"]),
    )


def minimal_pairs(corpus: Corpus) -> list[tuple[str, ...]]:
    """The first sentences of a corpus that differ from another in one word.

    Of the validation split, then of the training split; without those that have a word which the
    corpus never learned.
    """
    alike: dict[tuple[str | None, ...], dict[tuple[str, ...], None]] = {}
    for words, _ in corpus.splits["valid"] + corpus.splits["train"]:
        if not corpus.source.unknown(words):
            for place in range(len(words)):
                others = (*words[:place], None, *words[place + 1 :])
                alike.setdefault(others, {})[tuple(words)] = None
    found = dict.fromkeys(one for some in alike.values() if len(some) > 1 for one in some)
    return list(found)[:SENTENCES]


def shared(sentences: Sequence[Sequence[str]], *, minimal: bool) -> SharedWords:
    """Words that stand at the same position in two sentences.

    minimal: of two that have the same length and differ in one word. Raises UserError if there is
    none.
    """
    found: list[tuple[int, int, int, int]] = []
    for (i, one), (j, other) in combinations(enumerate(sentences), 2):
        both = enumerate(zip(one, other, strict=False), start=1)  # <sos> stands at 0
        places = [place for place, (word, another) in both if word == another]
        if not minimal or len(one) == len(other) == len(places) + 1:
            found += [(i, place, j, place) for place in places]
    if not found:
        raise UserError(
            "context.sentences: expected two that have the same length and differ in one word of "
            f"several, found none among {len(sentences)}"
        )
    return SharedWords.at(found)


def clusters(snapshot: Snapshot, layer: int, shuffled: torch.Generator | None = None) -> float:
    """The mean silhouette of a layer's q, k and v over words and heads.

    shuffled: deals out the labels anew. Raises UserError if no word has two different vectors.
    """
    places = different(ENCODER, layer, "q", snapshot.sentences)
    counts = Counter(places.values())
    words = [token for token, count in counts.items() if count > 1 and token not in SPECIALS]
    if not words:
        raise UserError(
            "context.sentences: expected a word that stands at two positions, found none"
        )
    found = [(*place, words.index(token)) for place, token in places.items() if token in words]
    sentences, positions, word = torch.tensor(found).T  # (P,) each
    vectors = torch.stack(
        [
            snapshot.values[ENCODER.tap(layer, vector)].transpose(1, 2)[sentences, positions]
            for vector in QKV
        ]
    )  # (3, P, H, K)
    if shuffled is not None:
        order = torch.rand(vectors.shape[:2], generator=shuffled).argsort(0)
        vectors = vectors[order, torch.arange(len(word))]
    share = 1 / (word.bincount()[word] * len(words))  # each word counts alike
    return float((silhouettes(vectors, word) * share[:, None]).sum(1).mean())


def silhouettes(vectors: Tensor, word: Tensor) -> Tensor:
    """(b - a) / max(a, b) of each vector among those of its word, (3, P, H, K) -> (3, P, H).

    vectors: by label. word: the number of the word at each of P places, (P,); each word stands at
    two places or more. Mean distances come from sums of unit vectors: the mean cosine with several
    vectors is the product with their mean.
    """
    unit = normalize(vectors.double(), dim=-1)
    count = word.bincount()[word][:, None]  # (P, 1): how many vectors a label of that word has
    sums = unit.new_zeros(len(unit), int(word.max()) + 1, *unit.shape[2:])
    sums = sums.index_add(1, word, unit)[:, word]
    cosines = torch.einsum("lphk,mphk->lmph", unit, sums)  # with all of label m
    own = torch.eye(len(unit), dtype=torch.bool)
    a = 1 - (cosines[own] - unit.square().sum(-1)) / (count - 1)
    b = (1 - cosines / count).masked_fill(own[..., None, None], torch.inf).amin(1)
    return (b - a) / torch.maximum(a, b).clamp(min=SMALLEST)
