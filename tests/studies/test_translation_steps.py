"""A translation, step by step: logits, candidates and what was looked at."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from qkvtrace.corpus.vocabulary import EOS, SOS
from qkvtrace.errors import UserError
from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.alignment import alignment
from qkvtrace.snapshots.store import Store
from qkvtrace.studies.answer import Heatmap, Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject
from qkvtrace.translation.translator import Translator

Rows = Callable[[Table], list[dict[str, Any]]]

SENTENCE = "we can eat apple"


def test_steps_are_those_of_the_models_own_translation(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    candidates, _, _ = ask(study("translation_steps"), subject).tables
    subject.model()
    (translation,) = Translator(subject.trained, candidates=4).translate([SENTENCE])
    chosen = [step[0][0] for step in translation.steps]
    given = ["<sos>", *chosen[:-1]]
    found: dict[str, list[tuple[str, float]]] = {}
    for row in rows(candidates):
        found.setdefault(row["step"], []).append((row["word"], row["probability"]))
    assert list(found) == [
        f"{n}) {g} → {c}" for n, (g, c) in enumerate(zip(given, chosen, strict=True), start=1)
    ]
    for step, expected in zip(found.values(), translation.steps, strict=True):
        assert [word for word, _ in step] == [word for word, _ in expected]
        assert [p for _, p in step] == pytest.approx([p for _, p in expected], abs=1e-5)


def test_logits_are_of_all_words_unless_there_are_too_many(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("translation_steps"), subject)
    logits = rows(answer.tables[1])
    words = list(subject.trained.target.tokens)
    first = [row for row in logits if row["step"].startswith("1)")]
    assert [row["word"] for row in first] == words
    model = subject.model()
    source = torch.tensor([subject.trained.source.ids(SENTENCE.split())])
    with torch.no_grad():
        expected = model(source, torch.tensor([[SOS]]))[0, 0]
    torch.testing.assert_close(torch.tensor([row["logit"] for row in first]), expected)

    few = rows(ask(study("translation_steps", most_words=3), subject).tables[1])
    best = {word: max(r["logit"] for r in logits if r["word"] == word) for word in words}
    assert {row["word"] for row in few} == set(sorted(words, key=lambda w: -best[w])[:3])


def test_attention_is_what_the_translation_looked_at(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    table = ask(study("translation_steps"), subject).tables[2]
    (translation,) = subject.translate([SENTENCE])
    expected = alignment(subject.trained, translation)  # (layer, head, step, source)
    found = rows(table)
    assert len(found) == expected.numel()
    for row in found:
        at = row["layer"], row["head"], row["query position"], row["key position"]
        assert row["weight"] == pytest.approx(float(expected[at]), abs=1e-5)
    assert [row["key"] for row in found[:6]] == ["<sos>", *SENTENCE.split(), "<eos>"]
    assert isinstance(table.picture, Heatmap)
    assert {*table.picture.panels, table.picture.value} <= set(table.columns)
    one = rows(ask(study("translation_steps", layer=1, head=0), subject).tables[2])
    assert one == [row for row in found if (row["layer"], row["head"]) == (1, 0)]


def test_the_reference_is_compared(subject: Subject, study: Callable[..., Study]) -> None:
    said = ask(study("translation_steps"), subject).says[0]
    (translation,) = subject.translate([SENTENCE])
    theirs = subject.reference(SENTENCE)
    assert theirs is not None
    same = translation.target == theirs
    assert said == (
        f"“{SENTENCE}” becomes “{translation}”; the corpus has "
        f"{'the same' if same else '“' + ' '.join(theirs) + '”'}."
    )
    assert (
        "none to compare" in ask(study("translation_steps", sentence="apple eat"), subject).says[0]
    )


def test_an_untrained_model_is_shown_too(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("translation_steps", epoch=0, candidates=1), subject)
    (translation,) = subject.translate([SENTENCE], epoch=0)
    steps = [row["word"] for row in rows(answer.tables[0])]
    ids = [index for index in translation.ids if index != EOS]
    assert steps[: len(ids)] == [subject.trained.target[index] for index in ids]
    assert "epoch 0" in answer.tables[0].title


@pytest.mark.parametrize("name", ["candidates", "most_words"])
def test_counts_start_at_1(subject: Subject, study: Callable[..., Study], name: str) -> None:
    with pytest.raises(UserError, match=f"study.{name}: expected 1 or more, found 0"):
        ask(study("translation_steps", **{name: 0}), subject)


def test_an_empty_translation_is_a_step_too(
    run: Run, study: Callable[..., Study], rows: Rows
) -> None:
    subject = Subject(run, torch.device("cpu"))
    bias = subject._latest["vocabulary.bias"]  # of the last model, which is then not read anew
    bias[EOS] = 100.0
    subject.store = Store(run.folder / "none")
    answer = ask(study("translation_steps", candidates=1), subject)
    assert [row["step"] for row in rows(answer.tables[0])] == ["1) <sos> → <eos>"]
    assert f"“{SENTENCE}” becomes nothing; the corpus has “wir konnen" in answer.says[0]
