"""Where claims get their models: the same seeds under whatever settings a claim asks for.

Shapes: N members, P parameters of a member.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from qkvtrace.corpus.batches import Batches
from qkvtrace.corpus.prepared import Corpus, prepare
from qkvtrace.corpus.tokens import Tokenizer
from qkvtrace.errors import UserError
from qkvtrace.model.device import threads_for
from qkvtrace.model.stored import build_model
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import InterventionSettings, Recipe
from qkvtrace.snapshots.interventions import changed
from qkvtrace.snapshots.probes import Probe, Snapshot, observe
from qkvtrace.training.ensemble import Ensemble, train
from qkvtrace.training.schedule import last_step_and_epoch
from qkvtrace.translation.quality import translations

AS_LEARNED = InterventionSettings()
UNTRAINED, LAST = 0, -1  # the epochs of which models are kept
FIRST_STEPS = 40  # of which losses and updates are kept
BATCH_SIZE = 64  # sentences that are translated together

Words = Sequence[str]
Progress = Callable[[Recipe, int, int], None]


class Laboratory:
    """Trains each ensemble that a claim asks for, once, and hands out its members."""

    def __init__(
        self,
        base: Recipe,
        held_out: Recipe,
        seeds: Sequence[int],
        device: torch.device,
        progress: Progress = lambda recipe, step, last_step: None,
    ) -> None:
        """Args:
        base: what claims are tested on; they make variants of it with `dataclasses.replace`.
        held_out: the same for generalisation: no validation pair of it is a training pair.
        seeds: of the members.
        device: where they are trained; they are looked at on the CPU.
        progress: told after each step what is trained, the step, and the last one.
        """
        self.base = base
        self.held_out = held_out
        self.seeds = list(seeds)
        self.device = device
        self.progress = progress
        self._members: dict[Recipe, list[Member]] = {}
        self._corpora: dict[Recipe, Corpus] = {}

    def members(self, recipe: Recipe) -> list["Member"]:
        """The models of all seeds of a recipe, in the order of the seeds."""
        if recipe not in self._members:
            group = self._train(recipe)
            self._members[recipe] = [Member(group, n) for n in range(len(self.seeds))]
        return self._members[recipe]

    def corpus(self, recipe: Recipe) -> Corpus:
        """What models of a recipe learn."""
        if recipe not in self._corpora:
            cache = Path(recipe.outputs) / "prepared"
            self._corpora[recipe] = prepare(recipe.data, cache)
        return self._corpora[recipe]

    def _train(self, recipe: Recipe) -> "Group":
        group = Group(recipe, self.corpus(recipe), self.seeds)
        batches = Batches(
            group.corpus.splits["train"],
            group.corpus.source,
            group.corpus.target,
            size=recipe.training.batch_size,
            device=self.device,
        )
        last_step, _ = last_step_and_epoch(recipe.training, len(batches))
        ensemble = Ensemble(group.build, self.seeds, recipe.training, last_step, self.device)
        group.keep(UNTRAINED, ensemble)
        before = ensemble.rows.clone()

        def after_step(losses: Tensor) -> None:
            self.progress(recipe, ensemble.step, last_step)
            if ensemble.step <= FIRST_STEPS:
                group.losses.append(losses.cpu())
                moved = (ensemble.rows - before).norm(dim=1) / before.norm(dim=1)
                group.updates.append(moved.cpu())
                before.copy_(ensemble.rows)

        with threads_for(ensemble.rows.numel()):
            train(ensemble, batches, after_step=[after_step])
        group.keep(LAST, ensemble)
        return group


class Group:
    """What the members of an ensemble share, and what is kept of them."""

    def __init__(self, recipe: Recipe, corpus: Corpus, seeds: Sequence[int]) -> None:
        self.recipe = recipe
        self.corpus = corpus
        self.seeds = seeds
        self.references = corpus.references()
        self.model = self.build().eval()  # holds one member's parameters at a time
        corpus.check_lengths(self.model.max_positions)
        self.parameters: dict[int, Mapping[str, Tensor]] = {}  # (N, ...) each, by epoch
        self.losses: list[Tensor] = []  # (N,) each
        self.updates: list[Tensor] = []  # (N,) each

    def build(self) -> Transformer:
        """A new model, from PyTorch's random state."""
        return build_model(self.recipe, self.corpus.source, self.corpus.target)

    def keep(self, epoch: int, ensemble: Ensemble) -> None:
        """Copy the members as they are now."""
        named = ensemble.parameters.items()
        self.parameters[epoch] = {name: p.detach().cpu().clone() for name, p in named}

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Splits sentences as the corpus was split."""
        data = self.recipe.data
        return Tokenizer(data.source_language, lowercase=data.lowercase)


class Member:
    """One seed's model, before and after its training, and what it does.

    Sentences are text, `Words` are source tokens. An epoch is UNTRAINED or LAST.
    """

    def __init__(self, group: Group, number: int) -> None:
        self.group = group
        self.number = number
        self._probes: dict[tuple[str, ...], Probe] = {}

    @property
    def seed(self) -> int:
        """Which `make train training.seed=...` trains the same."""
        return self.group.seeds[self.number]

    @property
    def recipe(self) -> Recipe:
        """What it was trained with, but for the seed."""
        return self.group.recipe

    @property
    def corpus(self) -> Corpus:
        """What it was trained on."""
        return self.group.corpus

    @property
    def losses(self) -> Tensor:
        """The training loss at each of the first steps, nats a token, (up to FIRST_STEPS,)."""
        return torch.stack([losses[self.number] for losses in self.group.losses])

    @property
    def updates(self) -> Tensor:
        """How far each of the first steps moved the parameters, by their length: |d| / |p|."""
        return torch.stack([updates[self.number] for updates in self.group.updates])

    def model(self, epoch: int = LAST) -> Transformer:
        """The model at an epoch, in eval mode. Valid until any member's next call."""
        stacked = self.group.parameters[epoch]
        self.group.model.load_parameters({n: p[self.number] for n, p in stacked.items()})
        return self.group.model

    def observe(
        self, sentences: Sequence[str | Words], patterns: Sequence[str] = (), epoch: int = LAST
    ) -> Snapshot:
        """What passes the taps matching `patterns` (all) for some sentences.

        The decoder is given the corpus' translation of a sentence, or else the one that this
        member makes when it is trained: the same tokens at both epochs. Raises UserError as `words`
        does.
        """
        probes = [self._probe(self.words(each)) for each in sentences]
        source, target = self.corpus.source, self.corpus.target
        return observe(self.model(epoch), probes, source, target, epoch, 0, *patterns)

    def translate(
        self,
        sources: Sequence[Words],
        change: InterventionSettings = AS_LEARNED,
        epoch: int = LAST,
    ) -> list[list[str]]:
        """Translate greedily, under an intervention."""
        source, target = self.corpus.source, self.corpus.target
        batches = Batches(
            [(list(words), []) for words in sources],
            source,
            target,
            size=BATCH_SIZE,
            device=torch.device("cpu"),
        )
        model = self.model(epoch)
        with changed(model, change):
            return translations(model, batches, target)

    def exact_match(
        self, change: InterventionSettings = AS_LEARNED, epoch: int = LAST, split: str = "valid"
    ) -> float:
        """The share of a split that is translated as its reference, token for token."""
        sources, references = zip(*self.corpus.splits[split], strict=True)
        made = self.translate(sources, change, epoch)
        return sum(m == r for m, r in zip(made, references, strict=True)) / len(made)

    def words(self, sentence: str | Words) -> list[str]:
        """A sentence's source tokens.

        Raises UserError for words that the corpus does not have, and for more than the model has
        positions for.
        """
        words = self.group.tokenizer(sentence) if isinstance(sentence, str) else list(sentence)
        unknown = self.corpus.source.unknown(words)
        if unknown or not words:
            raise UserError(
                f"expected words of the corpus {self.recipe.data.name}, found "
                f"{', '.join(unknown) or 'none'} in “{' '.join(words)}”: configs/claims.yaml says "
                "which setting names other sentences"
            )
        limit = self.group.model.max_positions
        if limit is not None and len(words) + 2 > limit:
            raise UserError(
                f"expected at most {limit - 2} tokens, which the model's {limit} positions hold, "
                f"found {len(words)}: “{' '.join(words)}”"
            )
        return words

    def _probe(self, words: list[str]) -> Probe:
        key = tuple(words)
        if key not in self._probes:
            reference = self.group.references.get(key)
            if reference is None:
                limit = self.group.model.max_positions
                reference = self.translate([words])[0][: None if limit is None else limit - 1]
            self._probes[key] = Probe(words, reference)
        return self._probes[key]
