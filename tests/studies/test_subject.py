"""The subject of studies: the right model at the right epoch, and sentences that fit the run."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from qkvtrace.errors import UserError
from qkvtrace.runs import checkpoints
from qkvtrace.runs.folder import Run
from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.store import Store
from qkvtrace.studies.answer import Answer
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

SENTENCE = "we want to eat apple"


@pytest.fixture
def own(run: Run, tmp_path: Path) -> Callable[[], Subject]:
    """A subject on a copy of the run, which a test may spoil before."""
    shutil.copytree(run.folder, tmp_path / "run", symlinks=True)
    return lambda: Subject(Run.open(tmp_path / "run"), torch.device("cpu"))


def test_a_model_makes_what_was_recorded_at_its_epoch(subject: Subject, run: Run) -> None:
    store = Store(run.snapshots)
    assert subject.epochs == store.epochs() == [0, 1, 2, 3]
    for epoch in (3, 0, 2):
        recorded = store.load(epoch)
        texts = [" ".join(sentence.source[1:-1]) for sentence in recorded.sentences]
        known = [i for i, sentence in enumerate(recorded.sentences) if sentence.reference]
        seen = subject.observe([texts[i] for i in known], epoch)
        for tap, values in recorded.values.items():
            if "scores" in tap or "weights" in tap or "decoder" in tap or tap == "logits":
                continue  # as wide as the longest sentence, which is another here
            for i, sentence in enumerate(known):
                length = len(recorded.sentences[sentence].source)
                at = (..., slice(length), slice(None))
                assert_close(seen.values[tap][i][at], values[sentence][at], atol=1e-5, rtol=1e-4)


def test_the_last_model_is_the_checkpoints(subject: Subject, run: Run) -> None:
    stored = checkpoints.load(run.checkpoints, "latest").model
    subject.model(0)
    for name, parameter in subject.model().named_parameters():
        assert torch.equal(parameter, stored[name])


def test_only_the_taps_asked_for_are_recorded(subject: Subject) -> None:
    assert list(subject.observe([SENTENCE], 1, ["logits"]).values) == ["logits"]


def test_a_run_whose_models_were_not_kept_is_studied_at_its_last_epoch(
    own: Callable[[], Subject], tmp_path: Path
) -> None:
    for path in (tmp_path / "run" / "snapshots").glob("model-*"):
        path.unlink()
    subject = own()
    assert subject.epochs == subject.landmarks == [3]
    assert len(subject.observe([SENTENCE]).sentences) == 1
    with pytest.raises(UserError, match=r"study.epochs: expected some of 3, found 1"):
        subject.chosen([1])


def test_epochs_are_all_that_are_kept_or_those_asked_for_ascending(subject: Subject) -> None:
    assert subject.chosen(None) == [0, 1, 2, 3]
    assert subject.chosen([3, 1, 3]) == [1, 3]
    with pytest.raises(UserError, match=r"study.epochs: expected some of 0, 1, 2, 3, found 15"):
        subject.chosen([1, 15])


def test_a_damaged_model_is_named(own: Callable[[], Subject], tmp_path: Path) -> None:
    path = tmp_path / "run" / "snapshots" / "model-0001.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"damaged file: .*model-0001.safetensors"):
        own().model(1)


def test_sentences_with_unknown_words_are_left_out_and_it_is_told(subject: Subject) -> None:
    subject.told()
    assert subject.sentences([SENTENCE, "we eat soup"]) == [SENTENCE]
    assert subject.told() == ["left out for words that the run does not know: we eat soup"]
    assert subject.told() == []


def test_another_corpus_sentences_give_way_to_the_runs_probes(subject: Subject) -> None:
    subject.told()
    assert subject.sentences(["two dogs run"]) == [SENTENCE]
    assert subject.told() == [
        "the run does not know two, dogs, run (“two dogs run”): sentences of its own instead"
    ]


def test_words_that_stand_nowhere_give_way_to_the_longest_shared_one(subject: Subject) -> None:
    tokens = [["<sos>", "we", "want", "newspaper", "<eos>"], ["<sos>", "i", "want", "<eos>"]]
    assert subject.words(["want", "soup"], tokens) == ["want"]
    assert subject.words(["soup"], tokens) == ["want"]
    assert subject.words(["soup"], tokens[:1]) == ["newspaper"]


@pytest.mark.parametrize("wanted", [[], [""]])
def test_a_wish_for_no_word_is_told(subject: Subject, wanted: list[str]) -> None:
    with pytest.raises(UserError, match=r"study.words: expected one or more, found none"):
        subject.words(wanted, [["<sos>", "we", "<eos>"]])


def test_a_sentence_longer_than_the_positions_is_named(subject: Subject) -> None:
    long = " ".join(["eat"] * 98)
    assert subject.sentences([long]) == [long]
    with pytest.raises(UserError, match=r"at most 98 tokens, .*100 positions hold, found 99: “eat"):
        subject.sentences([SENTENCE, f"{long} apple"])


def test_the_decoder_is_given_the_corpus_translation_or_else_the_last_models(
    subject: Subject,
) -> None:
    unusual = "apple eat can we"
    last = subject.translate([unusual])[0].target
    for epoch in (0, 3):
        known, own = subject.observe([SENTENCE, unusual], epoch, ["logits"]).sentences
        assert known.target == ["<sos>", "wir", "mochten", "apfel", "essen"]
        assert own.target == ["<sos>", *last]


def test_an_intervention_lasts_for_its_translation_alone(subject: Subject) -> None:
    before = str(subject.translate([SENTENCE])[0])
    changed = str(subject.translate([SENTENCE], InterventionSettings(skip="decoder"))[0])
    assert str(subject.translate([SENTENCE])[0]) == before != changed


def test_an_answer_carries_what_had_to_differ(
    subject: Subject, study: Callable[..., Study]
) -> None:
    answer: Answer = ask(study("word_order", sentences=[SENTENCE, "soup"]), subject)
    assert answer.notes == ["left out for words that the run does not know: soup"]


def test_what_a_person_chose_is_not_replaced(run: Run) -> None:
    chosen = Subject(run, torch.device("cpu"), {"sentences", "words"})
    with pytest.raises(UserError, match="expected words that the run knows, found dogs: we dogs"):
        chosen.sentences(["we dogs"])
    with pytest.raises(UserError, match=r"study\.words: expected some of eat, we, found soup"):
        chosen.words(["soup"], [["we", "eat"]])
