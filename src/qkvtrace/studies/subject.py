"""The run that is studied: its model at each epoch that was kept, and what that does."""

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

import torch

from qkvtrace.corpus.prepared import Corpus, prepare
from qkvtrace.errors import UserError
from qkvtrace.model.stored import load_trained
from qkvtrace.model.transformer import Transformer
from qkvtrace.runs.folder import Run
from qkvtrace.runs.metrics import read_metrics
from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.interventions import changed
from qkvtrace.snapshots.probes import Probe, Snapshot, observe, probes
from qkvtrace.snapshots.store import Store
from qkvtrace.studies.asked import some
from qkvtrace.translation.translator import Translation, Translator

AS_LEARNED = InterventionSettings()
SENTENCES = {"sentence", "sentences", "pairs", "encoder_pairs", "phrases"}  # settings of studies


class Subject:
    """Answers what studies ask of a run. Sentences are text, as in the studies' settings."""

    def __init__(self, run: Run, device: torch.device, given: Collection[str] = ()) -> None:
        """given: the settings that a person chose; what these name is not replaced by other words.

        Raises UserError if the run has no checkpoint yet, or a file of it is damaged.
        """
        self.given = given
        self.run = run
        self.store = Store(run.snapshots)
        self.trained = load_trained(run, "latest", device)
        self.notes: list[str] = []  # what had to differ from what a study asked for
        self._latest = {name: p.clone() for name, p in self.trained.model.named_parameters()}
        self._translator = Translator(self.trained)
        self._probes: dict[str, Probe] = {}

    @cached_property
    def corpus(self) -> Corpus:
        """What the run was trained on; raises UserError if its files are not there any more."""
        settings = self.trained.settings
        corpus = prepare(settings.data, Path(settings.outputs) / "prepared")
        self.run.check_corpus(corpus.fingerprint)
        return corpus

    @cached_property
    def epochs(self) -> list[int]:
        """The epochs whose model is kept, ascending; at least the last that was trained."""
        metrics = read_metrics(self.run.metrics)
        return self._kept or [metrics[-1].epoch if metrics else 0]

    @cached_property
    def _kept(self) -> list[int]:
        return self.store.models()

    @property
    def last(self) -> int:
        """The last of them."""
        return self.epochs[-1]

    @cached_property
    def landmarks(self) -> list[int]:
        """Of these, the few that TensorBoard shows: 0, 1, half-way and the last."""
        snapshots = self.trained.settings.snapshots
        shown = snapshots.epochs or snapshots.shown(self.last)  # a stopped run has not them all
        return [epoch for epoch in self.epochs if epoch in shown] or [self.last]

    def chosen(self, epochs: Sequence[int] | None) -> list[int]:
        """The epochs that a study asks for, ascending; None: all that are kept.

        Raises UserError naming those that are kept if one is not.
        """
        missing = [epoch for epoch in epochs or () if epoch not in self.epochs]
        if missing:
            kept = ", ".join(map(str, self.epochs))
            raise UserError(f"study.epochs: expected some of {kept}, found {missing[0]}")
        return sorted(set(epochs)) if epochs else self.epochs

    def model(self, epoch: int | None = None) -> Transformer:
        """The model as it was at the end of an epoch; None: the last. Valid until the next call."""
        epoch = self.last if epoch is None else epoch
        kept = epoch in self._kept
        self.trained.model.load_parameters(self.store.parameters(epoch) if kept else self._latest)
        return self.trained.model

    def sentences(self, wanted: Sequence[str] | None) -> list[str]:
        """`wanted`, each once, without those that have a word the run never learned.

        If that leaves none (the run has another corpus), the run's own probes, all of which None
        stands for. Raises UserError if nothing is wanted, or more words than the model has
        positions for.
        """
        if wanted is None:
            return self.own_sentences
        asked = some("sentences", wanted)
        known = [text for text in asked if not self._unknown(text)]
        if not known:
            unknown = ", ".join(self.trained.source.unknown(self.tokens(asked[0]))) or "no word"
            if SENTENCES & set(self.given):
                raise UserError(f"expected words that the run knows, found {unknown}: {asked[0]}")
            self._note(
                f"the run does not know {unknown} (“{asked[0]}”): sentences of its own instead"
            )
            return self.own_sentences[: len(asked)]
        if len(known) < len(asked):
            left_out = ", ".join(text for text in asked if text not in known)
            self._note(f"left out for words that the run does not know: {left_out}")
        self._check_lengths(known)
        return known

    @cached_property
    def own_sentences(self) -> list[str]:
        """The probes of the run itself."""
        return [" ".join(probe.source) for probe in probes(self.corpus)[0]]

    def words(self, wanted: Sequence[str], sentences: Sequence[Sequence[str]]) -> list[str]:
        """Those of `wanted` that stand in the token lists.

        If none does: the longest word that stands in all of them, or else in the first. Raises
        UserError if nothing is wanted.
        """
        wanted = some("words", filter(None, wanted))
        standing = {token for tokens in sentences for token in tokens}
        found = [word for word in wanted if word in standing]
        if found or not sentences:
            return found
        if "words" in self.given:
            there = ", ".join(sorted(standing))
            raise UserError(f"study.words: expected some of {there}, found {', '.join(wanted)}")
        bare = ([t for t in tokens if not t.startswith("<")] for tokens in sentences)
        first = next(filter(None, bare), sentences[0])  # a translation may have no word at all
        shared = [t for t in first if all(t in tokens for tokens in sentences)] or first
        word = max(shared, key=len)
        self._note(f"none of {', '.join(wanted)} stands in the sentences: {word} is followed")
        return [word]

    def observe(
        self, sentences: Sequence[str], epoch: int | None = None, patterns: Sequence[str] = ()
    ) -> Snapshot:
        """What passes the taps matching `patterns` (all) for some sentences at an epoch (the last).

        The decoder is given the corpus' translation of a sentence, or else the one that the last
        model makes: the same tokens at every epoch.
        """
        epoch = self.last if epoch is None else epoch
        probes = [self._probe(text) for text in sentences]
        source, target = self.trained.source, self.trained.target
        return observe(self.model(epoch), probes, source, target, epoch, 0, *patterns)

    def translate(
        self,
        sentences: Sequence[str],
        change: InterventionSettings = AS_LEARNED,
        epoch: int | None = None,
    ) -> list[Translation]:
        """Translate greedily, under an intervention, with the model of an epoch (the last)."""
        with changed(self.model(epoch), change):
            return self._translator.translate(sentences)

    def reference(self, text: str) -> list[str] | None:
        """The corpus' translation of a sentence, if it has one."""
        return self._references.get(tuple(self.tokens(text)))

    @cached_property
    def _references(self) -> dict[tuple[str, ...], list[str]]:
        return self.corpus.references()

    def tokens(self, text: str) -> list[str]:
        """A sentence's source tokens."""
        return self._translator.tokenizer(text)

    def told(self) -> list[str]:
        """The notes since it was last asked."""
        notes, self.notes = self.notes, []
        return notes

    def _unknown(self, text: str) -> bool:
        tokens = self.tokens(text)
        return not tokens or bool(self.trained.source.unknown(tokens))

    def _check_lengths(self, sentences: Sequence[str]) -> None:
        limit = self.trained.model.max_positions
        for text in sentences:
            count = len(self.tokens(text))
            if limit is not None and count + 2 > limit:
                raise UserError(
                    f"expected at most {limit - 2} tokens, which the model's {limit} positions "
                    f"hold, found {count}: “{text}”"
                )

    def _probe(self, text: str) -> Probe:
        if text not in self._probes:
            reference = self.reference(text)
            if reference is None:
                limit = self.trained.model.max_positions
                fitting = None if limit is None else limit - 1  # beside <sos>
                reference = self.translate([text])[0].target[:fitting]
            self._probes[text] = Probe(self.tokens(text), reference)
        return self._probes[text]

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
