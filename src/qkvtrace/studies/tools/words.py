"""The words of a run as its embeddings have them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from qkvtrace.corpus.vocabulary import SPECIALS
from qkvtrace.studies.geometry import cosines
from qkvtrace.studies.subject import Subject

Neighbour = tuple[str, int, str, float]  # word, rank, another word, cosine


@dataclass(frozen=True)
class Words:
    """The words of one side, the most frequent first, and their vectors at one epoch."""

    tokens: tuple[str, ...]
    vectors: Tensor  # (words, D)

    def first(self, count: int) -> "Words":
        """The most frequent of them."""
        return Words(self.tokens[:count], self.vectors[:count])


def by_side(subject: Subject, epoch: int) -> dict[str, Words]:
    """The words of both sides, without <sos> and the like."""
    model, n = subject.model(epoch), len(SPECIALS)
    tables = {"source": model.encoder.embed.tokens, "target": model.decoder.embed.tokens}
    return {
        side: Words(
            getattr(subject.trained, side).tokens[n:], table.weight[n:].detach().cpu().clone()
        )
        for side, table in tables.items()
    }


def neighbours(words: Words, count: int) -> list[Neighbour]:
    """For each word its most alike others: the word, rank, the other, cosine."""
    alike = cosines(words.vectors, words.vectors).fill_diagonal_(-torch.inf)
    best = alike.topk(min(count, len(words.tokens) - 1))
    return [
        (word, rank, words.tokens[index], cosine)
        for word, indices, values in zip(
            words.tokens, best.indices.tolist(), best.values.tolist(), strict=True
        )
        for rank, (index, cosine) in enumerate(zip(indices, values, strict=True), start=1)
    ]


def closest(source: Words, target: Words) -> str:
    """The most alike source and target word, as a sentence has them."""
    alike = cosines(source.vectors, target.vectors)
    i, j = divmod(int(alike.argmax()), len(target.tokens))
    return f"{source.tokens[i]} and {target.tokens[j]} with {float(alike[i, j]):.2f}"
