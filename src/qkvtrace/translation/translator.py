"""Sentences in, sentences out, with a trained model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qkvtrace.corpus.batches import pad
from qkvtrace.corpus.tokens import Tokenizer
from qkvtrace.errors import UserError
from qkvtrace.model.stored import Trained
from qkvtrace.translation.search import greedy


@dataclass(frozen=True)
class Translation:
    """One sentence's translation, and what each step chose from."""

    source: list[str]
    target: list[str]
    unknown: list[str]  # source words that the vocabulary does not have
    steps: list[list[tuple[str, float]]]  # a step: (token, probability), likeliest first
    ids: list[int]  # what each step chose, <eos> included

    def __str__(self) -> str:
        return " ".join(self.target)


class Translator:
    """Translates text with a run's model, greedily."""

    def __init__(
        self, trained: Trained, *, max_length: int | None = None, candidates: int = 1
    ) -> None:
        """Args:
        trained: model and vocabularies.
        max_length: the longest translation in tokens; None: 2 source tokens + 10.
        candidates: how many of the likeliest tokens each step reports.
        """
        self.trained = trained
        self.max_length = max_length
        self.candidates = candidates
        data = trained.settings.data
        self.tokenizer = Tokenizer(data.source_language, lowercase=data.lowercase)

    def translate(self, sentences: Sequence[str]) -> list[Translation]:
        """Translate one batch; an empty sentence has an empty translation.

        Raises UserError for a sentence longer than the model's table of positions.
        """
        tokens = [self.tokenizer(sentence) for sentence in sentences]
        self._check_lengths(tokens)
        found = self._search([words for words in tokens if words])
        return [next(found) if words else Translation([], [], [], [], []) for words in tokens]

    def _search(self, sentences: list[list[str]]) -> Iterator[Translation]:
        if not sentences:
            return
        source, target, model = self.trained.source, self.trained.target, self.trained.model
        ids = pad([source.ids(words) for words in sentences])
        found = greedy(
            model,
            ids.to(next(model.parameters()).device),
            max_length=self.max_length,
            candidates=self.candidates,
        )
        for words, chosen, length, candidates, probabilities in zip(
            sentences,
            found.ids.tolist(),
            found.lengths.tolist(),
            found.candidates.tolist(),
            found.probabilities.tolist(),
            strict=True,
        ):
            steps = [
                [(target[index], p) for index, p in zip(*step, strict=True)]
                for step in zip(candidates[:length], probabilities[:length], strict=True)
            ]
            ids = chosen[:length]
            yield Translation(words, target.words(ids), source.unknown(words), steps, ids)

    def _check_lengths(self, sentences: list[list[str]]) -> None:
        limit = self.trained.model.max_positions
        for words in sentences:
            if limit is not None and len(words) + 2 > limit:
                raise UserError(
                    f"expected at most {limit - 2} tokens, which the model's {limit} positions "
                    f"hold, found {len(words)}: {' '.join(words[:8])} ..."
                )
