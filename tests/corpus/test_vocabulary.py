"""Vocabularies: ids and words, unknown ones, and the file they are kept in."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvtrace.corpus.vocabulary import EOS, PAD, SOS, SPECIALS, UNK, Vocabulary
from qkvtrace.errors import UserError

WORDS = ("wir", "für", "apfel", "\u2028", '"', "z.B.", "é")
VOCABULARY = Vocabulary((*SPECIALS, *WORDS))


def test_specials_come_first_in_the_documented_order() -> None:
    assert SPECIALS == ("<unk>", "<pad>", "<sos>", "<eos>")
    assert (UNK, PAD, SOS, EOS) == (0, 1, 2, 3)
    assert VOCABULARY[:5] == (*SPECIALS, "wir")
    assert len(VOCABULARY) == 11


@given(st.lists(st.sampled_from(WORDS)))
def test_known_words_come_back_from_their_ids(words: list[str]) -> None:
    ids = VOCABULARY.ids(words)
    assert (ids[0], ids[-1], len(ids)) == (SOS, EOS, len(words) + 2)
    assert VOCABULARY.words(ids) == words


@given(st.lists(st.text()))
def test_unknown_words_get_one_id_and_do_not_grow_the_vocabulary(words: list[str]) -> None:
    ids = VOCABULARY.ids(words)[1:-1]
    assert ids == [VOCABULARY.tokens.index(w) if w in WORDS else UNK for w in words]
    assert set(VOCABULARY.unknown(words)) == set(words) - set(WORDS)
    assert VOCABULARY.tokens == (*SPECIALS, *WORDS)


def test_a_text_that_spells_out_a_special_token_gets_an_unknown_word() -> None:
    assert VOCABULARY.ids([*SPECIALS, "wir"]) == [SOS, UNK, UNK, UNK, UNK, 4, EOS]
    assert VOCABULARY.unknown(["wir", "<eos>", "tee", "<eos>"]) == ["<eos>", "tee"]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([SOS, 4, 5, EOS, 6, EOS], ["wir", "für"]),
        ([4, 5], ["wir", "für"]),
        ([4, SOS, PAD, UNK, 5], ["wir", "<sos>", "<pad>", "<unk>", "für"]),
        ([SOS, SOS, 4], ["<sos>", "wir"]),
        ([SOS, EOS], []),
        ([EOS, 4], []),
        ([], []),
    ],
)
def test_words_end_at_the_first_eos_and_drop_only_a_leading_sos(
    ids: list[int], words: list[str]
) -> None:
    assert VOCABULARY.words(ids) == words


def test_a_vocabulary_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    VOCABULARY.save(path)
    assert json.loads(path.read_text(encoding="utf-8")) == [*SPECIALS, *WORDS]
    loaded = Vocabulary.load(path)
    assert (loaded.tokens, loaded.sha256) == (VOCABULARY.tokens, VOCABULARY.sha256)


@pytest.mark.parametrize("tokens", [WORDS[::-1], WORDS[1:], (*WORDS, "x")])
def test_other_tokens_or_another_order_have_another_hash(tokens: tuple[str, ...]) -> None:
    assert Vocabulary((*SPECIALS, *tokens)).sha256 != VOCABULARY.sha256


@pytest.mark.parametrize(
    "content", ['["<unk>", "<pad>", "<eos>", "<sos>"]', "[]", "7", "null", '"<unk>"', "{}", "[[]]"]
)
def test_a_file_with_something_else_is_an_error_that_names_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(
        UserError, match=r"expected a list of tokens that starts .*vocabulary\.json"
    ):
        Vocabulary.load(path)


@pytest.mark.parametrize("content", [b'["<unk>", "<p', b"", b"\xff\xfe"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"expected JSON, found a damaged file .*vocabulary\.json"):
        Vocabulary.load(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a file, found none: .*vocabulary\.json"):
        Vocabulary.load(tmp_path / "vocabulary.json")
