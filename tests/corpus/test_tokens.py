"""The tokenizer: German as spaCy cuts it, no whitespace tokens, and its vocabulary."""

import pytest

from qkvtrace.corpus.tokens import Tokenizer
from qkvtrace.corpus.vocabulary import SPECIALS
from qkvtrace.errors import UserError


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("z.B. Äpfel", ["z.B.", "Äpfel"]),
        ("3,5 Kilo", ["3,5", "Kilo"]),
        ("ein T-Shirt-Träger!", ["ein", "T-Shirt-Träger", "!"]),
        ("  zwei \t Wörter\u00a0\u2028da \n", ["zwei", "Wörter", "da"]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_german_is_cut_into_words_without_whitespace(text: str, tokens: list[str]) -> None:
    assert Tokenizer("de", lowercase=False)(text) == tokens


def test_english_contractions_are_cut() -> None:
    assert Tokenizer("en", lowercase=False)("We can't.") == ["We", "ca", "n't", "."]


@pytest.mark.parametrize(
    ("lowercase", "tokens"), [(True, ["straße", "über"]), (False, ["Straße", "Über"])]
)
def test_case_is_dropped_only_if_asked(lowercase: bool, tokens: list[str]) -> None:
    assert Tokenizer("de", lowercase=lowercase)("Straße Über") == tokens


@pytest.mark.parametrize("language", ["xx-none", "", "german"])
def test_an_unknown_language_is_an_error_that_shows_it(language: str) -> None:
    with pytest.raises(UserError, match=f"expected a language code .* found '{language}'"):
        Tokenizer(language, lowercase=True)


SENTENCES = [["c", "b", "<eos>"], ["b", "a", "c"], ["d", "<unk>", "b"], ["Z", "ä", "Z", "ä"]]


@pytest.mark.parametrize(
    ("min_frequency", "tokens"),
    [(1, ["b", "Z", "c", "ä", "a", "d"]), (2, ["b", "Z", "c", "ä"]), (3, ["b"]), (4, [])],
)
def test_a_vocabulary_is_specials_then_frequent_tokens_ties_in_code_point_order(
    min_frequency: int, tokens: list[str]
) -> None:
    vocabulary = Tokenizer("en", lowercase=True).vocabulary(SENTENCES, min_frequency=min_frequency)
    assert vocabulary.tokens == (*SPECIALS, *tokens)
