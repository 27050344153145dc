"""Claim c: the same words in another order.

Cross-attention, for pairs of sentences with the same words in another order. The decoder is given
the translation of each: the corpus' own, or else what the model makes of it. Rows i and columns j
are the two sentences' decoder steps (q, x4, weights) or source words (k, v; without <sos> and
<eos>). cos(i, j) is the cosine of the one's vector and the other's. Each number is the mean over
pairs, layers and heads:

q, x4: mean cos(i, i) - mean cos(i, j) over j != i: the same step against different steps.
k, v:  mean cos(i, j) over the same word at another position - mean over different words, which may
       stand at the same position: a vector that follows its position counts against it.
weights: o(word) - o(position), each the mean over the steps t that both have of
       sum over source words of min(w(t, i), w'(t, j)), where j is the same word as i or the same
       position: the share of attention that two rows have in common, 0 to 1. <sos> and <eos>, which
       do not move, would add the same to both.

least: 0.1, a tenth of the way from unrelated to alike, or a tenth of the attention. Controls: the
same before training, with the same decoder tokens; and the other sentence's steps, words or (for
weights) columns shuffled, where the mean over all orders is 0. In the first layer q knows the
target words so far and nothing of the source: if both sentences have one translation, q is alike
by construction.

From "Understanding Q, K, V in Transformer (self attention)".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import torch
from torch import Tensor

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import site_named
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory, Member
from qkvtrace.studies.geometry import cosines

CROSS = site_named("cross")

Pair = tuple[str, ...]  # two sentences


def _alike(vector: str, says: str, measure: str) -> Part:
    return Part(
        name=vector,
        says=f"{vector} of the cross-attention is alike {says}.",
        measure=f"mean cosine {measure}",
        unit="cosine",
        least=0.1,
    )


STEP = "at the same decoder step", "at the same step minus at different steps"
WORD = "for the same word wherever it stands", "of the same word elsewhere minus of other words"


@dataclass(frozen=True, kw_only=True)
class WordOrder:
    """What follows a word to where it stands, and what stays where it was."""

    letter: ClassVar = "c"
    title: ClassVar = "Word order"
    sentence: ClassVar = (
        "Of the same words in another order, decoder q and x4 are alike at the same step, k and v "
        "for the same word wherever it stands, and so are the weights."
    )
    source: ClassVar = "the article"
    parts: ClassVar[tuple[Part, ...]] = (
        _alike("q", *STEP),
        _alike("k", *WORD),
        _alike("v", *WORD),
        _alike("x4", *STEP),
        Part(
            name="weights",
            says="The decoder's weights are alike for the same word wherever it stands.",
            measure="overlap of the weights at the same step, Σ min(w, w'), words matched by word "
            "minus matched by position",
            unit="share of attention",
            least=0.1,
        ),
    )

    pairs: tuple[Pair, ...]

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Raises UserError unless each pair has the same words in another order."""
        members = laboratory.members(laboratory.base)
        _check(self.pairs, members[0])
        names = [part.name for part in self.parts]
        rows = [_numbers(member, self.pairs, names) for member in members]
        numbers = torch.tensor(rows).permute(1, 2, 0).tolist()  # what is seen, part, member
        return {
            name: Measured(effect, {"untrained": untrained, "shuffled tokens": shuffled})
            for name, effect, untrained, shuffled in zip(names, *numbers, strict=True)
        }


def _check(pairs: Sequence[Pair], member: Member) -> None:
    if not pairs:
        raise UserError("word_order.pairs: expected one or more, found none")
    for pair in pairs:
        words = [member.words(text) for text in pair]
        if len(pair) != 2 or sorted(words[0]) != sorted(words[-1]) or words[0] == words[-1]:
            raise UserError(
                "word_order.pairs: expected two sentences with the same words in another order, "
                f"found {' and '.join(pair)}"
            )


def _numbers(member: Member, pairs: Sequence[Pair], names: Sequence[str]) -> list[list[float]]:
    """The number of each name: trained, untrained and shuffled."""
    layers = range(member.recipe.model.layers)
    taps = [CROSS.tap(layer, name) for layer in layers for name in names]
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    places = [(texts.index(one), texts.index(other)) for one, other in pairs]
    trained, untrained = (member.observe(texts, taps, epoch) for epoch in (LAST, UNTRAINED))
    generator = torch.Generator().manual_seed(member.seed)
    return [
        [
            # Of two empty translations there is one step each, and no other to compare with.
            torch.stack(
                [
                    alikeness(snapshot, place, layer, name, shuffled)
                    for place, layer in product(places, layers)
                ]
            )
            .nanmean()
            .item()
            for name in names
        ]
        for snapshot, shuffled in ((trained, None), (untrained, None), (trained, generator))
    ]


def alikeness(
    snapshot: Snapshot,
    pair: tuple[int, int],
    layer: int,
    name: str,
    shuffled: torch.Generator | None = None,
) -> Tensor:
    """What a part compares in two sentences of a snapshot, the mean over a layer's heads.

    shuffled: deals out the other sentence's steps or words anew.
    """
    values = snapshot.values[CROSS.tap(layer, name)]
    if name == "x4":
        values = values[:, None]  # of all heads together
    words = [snapshot.sentences[n].source[1:-1] for n in pair]
    steps = [len(snapshot.sentences[n].target) for n in pair]
    if name in ("q", "x4"):
        one, other = (values[n, :, :count] for n, count in zip(pair, steps, strict=True))
        return by_step(one, _dealt(other, 1, shuffled))
    among = slice(1, 1 + len(words[0]))
    if name == "weights":
        one, other = (values[n, :, : min(steps), among] for n in pair)
        return overlap(one, _dealt(other, 2, shuffled), *words)
    one, other = (values[n, :, among] for n in pair)
    return by_word(one, _dealt(other, 1, shuffled), *words)


def by_step(one: Tensor, other: Tensor) -> Tensor:
    """Mean cosine at the same step minus that at different ones, (H, T, K), (H, U, K) -> ()."""
    cosine = cosines(one, other)
    same = torch.eye(*cosine.shape[1:], dtype=torch.bool)
    return cosine[:, same].mean() - cosine[:, ~same].mean()


def by_word(one: Tensor, other: Tensor, words: Sequence[str], others: Sequence[str]) -> Tensor:
    """Mean cosine of the same word elsewhere minus that of different words, (H, S, K) -> ()."""
    cosine = cosines(one, other)
    same = torch.tensor([[word == another for another in others] for word in words])
    elsewhere = ~torch.eye(len(words), dtype=torch.bool)
    return cosine[:, same & elsewhere].mean() - cosine[:, ~same].mean()


def overlap(one: Tensor, other: Tensor, words: Sequence[str], others: Sequence[str]) -> Tensor:
    """Mean overlap, words matched by word minus matched by position, (H, T, S) -> ().

    A word that stands several times is matched in the order in which it does.
    """
    place = torch.empty(len(words), dtype=torch.long)
    place[_sorted(words)] = _sorted(others)
    by_word, by_position = (torch.minimum(one, each) for each in (other[..., place], other))
    return (by_word - by_position).double().sum(-1).mean()


def _sorted(words: Sequence[str]) -> Tensor:
    return torch.tensor(sorted(range(len(words)), key=words.__getitem__))


def _dealt(values: Tensor, axis: int, generator: torch.Generator | None) -> Tensor:
    """Along an axis in random order, or as they are without a generator."""
    if generator is None:
        return values
    return values.index_select(axis, torch.randperm(values.shape[axis], generator=generator))
