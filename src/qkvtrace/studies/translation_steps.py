"""Item 4: a translation, step by step."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from qkvtrace.settings import at_least
from qkvtrace.snapshots.probes import Probe, Snapshot, observe
from qkvtrace.snapshots.sites import site_named
from qkvtrace.studies.answer import Answer, Cell, Heatmap, Table
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.weights import Head

CROSS = site_named("cross")


@dataclass(frozen=True, kw_only=True)
class TranslationSteps:
    """What each step of a translation chose from, and what it looked at."""

    title: ClassVar = "A translation, step by step"
    question: ClassVar = "How does each word of a translation come about?"
    look: ClassVar = (
        "A row is a step of the decoder: the word that it was given → the word that it chose, "
        "which the next step is given. Logits are scores of all target words, and the largest is "
        "chosen; see by how much it wins, and which words come next. The weights say which source "
        "words a step looked at: not necessarily the word that it translates."
    )

    sentence: str
    epoch: int | None
    layer: int | None
    head: int | None
    candidates: int
    most_words: int

    def answer(self, subject: Subject) -> Answer:
        """Translate greedily, and record logits and cross-attention on the way."""
        for name in ("candidates", "most_words"):
            at_least(f"study.{name}", getattr(self, name), 1)
        heads = weights.heads(subject, self.layer, self.head)
        epoch = weights.at_epoch(subject, self.epoch)
        text = subject.sentences([self.sentence])[0]
        snapshot = _translated(subject, text, epoch, heads)
        given, logits = snapshot.sentences[0].target, snapshot.values["logits"][0]  # (T, V)
        words = subject.trained.target.tokens
        steps = weights.steps(given, [words[index] for index in logits.argmax(-1).tolist()])
        where = f"“{text}”, epoch {epoch}"
        return Answer(
            [
                _result(text, snapshot, subject.reference(text)),
                _least_sure(steps, logits),
                _looked_at(snapshot, steps, heads[-1]),
            ],
            [
                self._candidates(where, steps, logits, words),
                self._logits(where, steps, logits, words),
                _attention(where, snapshot, steps, heads),
            ],
        )

    def _candidates(
        self, where: str, steps: list[str], logits: Tensor, words: tuple[str, ...]
    ) -> Table:
        best = logits.topk(min(self.candidates, len(words)))
        probabilities = logits.softmax(-1)
        rows: list[tuple[Cell, ...]] = [
            (step, rank, words[index], float(probabilities[t, index]), float(logits[t, index]))
            for t, step in enumerate(steps)
            for rank, index in enumerate(best.indices[t].tolist(), start=1)
        ]
        columns = ("step", "rank", "word", "probability", "logit")
        return Table("candidates", f"The likeliest words at each step: {where}", columns, rows)

    def _logits(
        self, where: str, steps: list[str], logits: Tensor, words: tuple[str, ...]
    ) -> Table:
        largest = logits.amax(0).topk(min(self.most_words, len(words))).indices.tolist()
        shown = f", the {len(largest)} likeliest" if len(largest) < len(words) else ""
        return Table(
            "logits",
            f"Logits of the {len(words)} target words{shown}: {where}",
            ("step", "word number", "word", "logit"),
            [
                (step, index, words[index], float(logits[t, index]))
                for t, step in enumerate(steps)
                for index in sorted(largest)
            ],
            Heatmap(
                row="step",
                column="word number",
                column_label="word",
                column_title="target word",
                value="logit",
                scale="number",
            ),
        )


def _translated(subject: Subject, text: str, epoch: int, heads: list[Head]) -> Snapshot:
    """A translation as the model of that epoch makes it: it is given what it chose itself."""
    chosen = subject.translate([text], epoch=epoch)[0].target
    source, target = subject.trained.source, subject.trained.target
    patterns = ["logits", *weights.taps([CROSS], heads)]
    probe = Probe(subject.tokens(text), chosen or None)
    return observe(subject.model(epoch), [probe], source, target, epoch, 0, *patterns)


def _attention(where: str, snapshot: Snapshot, steps: list[str], heads: list[Head]) -> Table:
    keys = snapshot.sentences[0].source
    return Table(
        "attention",
        f"Cross-attention: {where}",
        ("layer", "head", *weights.COLUMNS),
        [
            (*head, *row)
            for head in heads
            for row in weights.rows(weights.weights(snapshot, CROSS, head), steps, keys)
        ],
        weights.picture("layer", "head"),
    )


def _result(text: str, snapshot: Snapshot, reference: list[str] | None) -> str:
    translation = snapshot.sentences[0].translation
    made = f"“{' '.join(translation)}”" if translation else "nothing"
    verdict = "the corpus has none to compare"
    if reference:
        theirs = "the same" if translation == reference else f"“{' '.join(reference)}”"
        verdict = f"the corpus has {theirs}"
    return f"“{text}” becomes {made}; {verdict}."


def _least_sure(steps: list[str], logits: Tensor) -> str:
    sure, step = logits.softmax(-1).amax(-1).min(0)
    return f"The least certain step is “{steps[int(step)]}”, with probability {float(sure):.3f}."


def _looked_at(snapshot: Snapshot, steps: list[str], head: Head) -> str:
    keys = snapshot.sentences[0].source
    best = weights.best(weights.weights(snapshot, CROSS, head), keys)
    looked = [f"“{step}” at {key} ({w:.2f})" for step, (key, w) in zip(steps, best, strict=True)]
    return f"In layer {head[0]}, head {head[1]}, steps look most at: {', '.join(looked)}."
