"""What the tests of claims share: members whose snapshots are planted: the truth is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.settings import InterventionSettings, Recipe
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.studies.evidence.claim import Claim
from qkvtrace.studies.evidence.laboratory import AS_LEARNED, LAST, Laboratory, Words
from qkvtrace.studies.evidence.verdict import Result, judged

ROOT = Path(__file__).parents[3]
SEEDS = 12

Values = Callable[[int, int, list[Sentence]], Mapping[str, Tensor]]  # seed, epoch, sentences
Translate = Callable[[int, int, InterventionSettings, Words], list[str]]
Variant = Callable[[Recipe], dict[str, Any]]  # what is planted under a recipe


@dataclass
class PlantedMember:
    """Stands where a trained member would: what it shows and says was made up by a test."""

    seed: int
    recipe: Recipe
    corpus: Corpus
    values: Values = lambda seed, epoch, sentences: {}
    translation: Translate = lambda seed, epoch, change, words: list(words)
    losses: Tensor = field(default_factory=lambda: torch.zeros(1))
    updates: Tensor = field(default_factory=lambda: torch.zeros(1))

    def observe(
        self, sentences: Sequence[str | Words], patterns: Sequence[str] = (), epoch: int = LAST
    ) -> Snapshot:
        found = [
            Sentence(["<sos>", *words, "<eos>"], ["<sos>", *words], [], None)
            for words in map(self.words, sentences)
        ]
        return Snapshot(epoch, 0, found, dict(self.values(self.seed, epoch, found)))

    def translate(
        self,
        sources: Sequence[Words],
        change: InterventionSettings = AS_LEARNED,
        epoch: int = LAST,
    ) -> list[list[str]]:
        return [self.translation(self.seed, epoch, change, words) for words in sources]

    def exact_match(
        self, change: InterventionSettings = AS_LEARNED, epoch: int = LAST, split: str = "valid"
    ) -> float:
        pairs = self.corpus.splits[split]
        made = self.translate([source for source, _ in pairs], change, epoch)
        return sum(m == r for m, (_, r) in zip(made, pairs, strict=True)) / len(pairs)

    def words(self, sentence: str | Words) -> list[str]:
        return sentence.split() if isinstance(sentence, str) else list(sentence)


@dataclass
class PlantedLaboratory:
    """Hands out planted members; `member` makes one of a seed and the settings asked for."""

    base: Recipe
    held_out: Recipe
    member: Callable[[int, Recipe], PlantedMember]
    seeds: list[int] = field(default_factory=lambda: list(range(SEEDS)))

    def members(self, recipe: Recipe) -> list[PlantedMember]:
        return [self.member(seed, recipe) for seed in self.seeds]

    def corpus(self, recipe: Recipe) -> Corpus:
        return self.member(self.seeds[0], recipe).corpus


@pytest.fixture(scope="session")
def judge(recipe: Callable[..., Recipe], corpus: Corpus) -> Callable[..., Result]:
    """The result of a claim over planted members: judge(claim, values=..., translation=...).

    What differs between variants is planted by `variant`, which is given the recipe asked for.
    """

    def build(
        claim: Claim, corpus: Corpus = corpus, variant: Variant = lambda wanted: {}, **planted: Any
    ) -> Result:
        def member(seed: int, wanted: Recipe) -> PlantedMember:
            return PlantedMember(seed, wanted, corpus, **(planted | variant(wanted)))

        laboratory = PlantedLaboratory(recipe("base"), recipe("held_out"), member)
        return judged("planted", claim, dict(claim.measure(cast(Laboratory, laboratory))))

    return build
