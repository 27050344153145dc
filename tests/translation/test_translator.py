"""Sentences in, sentences out."""

from collections.abc import Callable

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.model.stored import Trained, load_trained
from qkvtrace.training.saving import Saver
from qkvtrace.translation.search import greedy
from qkvtrace.translation.translator import Translator


@pytest.fixture
def trained(saver: Callable[..., Saver]) -> Trained:
    saved = saver()
    saved.save()
    return load_trained(saved.run, "latest", torch.device("cpu"))


def test_each_sentence_is_translated_as_it_is_alone(trained: Trained) -> None:
    translator = Translator(trained)
    sentences = ["We eat bread", "", "it", "  ", "i drink water"]
    together = translator.translate(sentences)
    assert [t.target for t in together] == [translator.translate([s])[0].target for s in sentences]
    ids = torch.tensor([trained.source.ids(["we", "eat", "bread"])])
    assert together[0].target == trained.target.words(greedy(trained.model, ids).ids[0].tolist())
    assert str(together[0]) == " ".join(together[0].target)


def test_text_is_tokenised_as_the_corpus_was(trained: Trained) -> None:
    (translation,) = Translator(trained).translate(["We can't  EAT."])
    assert translation.source == ["we", "ca", "n't", "eat", "."]
    assert translation.unknown == ["ca", "n't", "."]


def test_an_empty_sentence_has_an_empty_translation(trained: Trained) -> None:
    for translation in Translator(trained).translate(["", " \t "]):
        assert (str(translation), translation.source) == ("", [])
        assert (translation.steps, translation.ids) == ([], [])


def test_steps_say_what_each_was_chosen_from(trained: Trained) -> None:
    (translation,) = Translator(trained, candidates=3, max_length=4).translate(["we eat"])
    assert 1 <= len(translation.steps) <= 4
    chosen = [step[0][0] for step in translation.steps]
    assert chosen == [trained.target[index] for index in translation.ids]
    assert chosen[: len(translation.target)] == translation.target
    for step in translation.steps:
        probabilities = [probability for _, probability in step]
        assert len(step) == 3
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 < sum(probabilities) < 1


def test_a_sentence_longer_than_the_positions_is_an_error(trained: Trained) -> None:
    translator = Translator(trained)
    assert len(translator.translate(["eat " * 21])[0].source) == 21
    with pytest.raises(UserError, match="at most 21 tokens, which the model's 23 positions hold"):
        translator.translate(["we", "eat " * 22])
