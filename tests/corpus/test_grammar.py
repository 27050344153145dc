"""The generated corpora: the committed files, what is held out, and German as it is spoken."""

from collections import Counter
from pathlib import Path

import pytest

from qkvtrace.corpus.grammar import VERB_PHRASES, Verb, eat_drink_read, grammatical, main
from qkvtrace.corpus.pairs import Pair

DATA = Path(__file__).parents[2] / "data"
FILES = (
    "eat_drink_read.tsv",
    "grammatical.train.tsv",
    "grammatical.valid.tsv",
    "grammatical.test.tsv",
)

SPLITS = grammatical()
PAIRS = [pair for split in SPLITS.values() for pair in split]
ENGLISH = [english for english, _ in PAIRS]


def words(text: str) -> set[str]:
    """Return the words of a line; it keeps the lists below readable."""
    return set(text.split())


# The tests know their own German, apart from the tables that they test.
INFINITIVES = words("essen trinken lesen kaufen kochen schreiben singen bestellen")
FIRST = words("esse trinke lese kaufe koche schreibe singe bestelle")
SECOND = words("isst trinkst liest kaufst kochst schreibst singst bestellst")
THIRD = words("isst trinkt liest kauft kocht schreibt singt bestellt")
VERB_FORMS = {
    "I": FIRST,
    "you": SECOND,
    "he": THIRD,
    "she": THIRD,
    "we": INFINITIVES,
    "they": INFINITIVES,
}
MODAL_FORMS = {
    "I": words("möchte kann muss darf"),
    "you": words("möchtest kannst musst darfst"),
    "he": words("möchte kann muss darf"),
    "she": words("möchte kann muss darf"),
    "we": words("möchten können müssen dürfen"),
    "they": words("möchten können müssen dürfen"),
}
PRONOUNS = {"I": "ich", "you": "du", "he": "er", "she": "sie", "we": "wir", "they": "sie"}

MASCULINE = words("Apfel Brief Fisch Kaffee Käse Reis Saft Salat Tee")
FEMININE = words("Birne Geschichte Milch Suppe Zeitung")
NEUTER = words("Bier Brot Buch Ei Gedicht Gemüse Lied Wasser")
PLURAL = words("Blumen Kartoffeln")
NOUNS_AFTER = {
    "einen": MASCULINE,
    "keinen": MASCULINE,
    "den": MASCULINE,
    "ein": NEUTER,
    "kein": NEUTER,
    "das": NEUTER,
    "eine": FEMININE,
    "keine": FEMININE | PLURAL,
    "die": FEMININE | PLURAL,
    "jeden": {"Tag"},
}


def forms_of(verb: Verb) -> tuple[str, str, str]:
    """Return the English forms that stand for a verb."""
    return verb.english, verb.third_person, verb.participle


def subject_and_phrase(english: str) -> tuple[str, tuple[str, str]]:
    """Return who does what in an English sentence: the subject, and the verb with its object."""
    subject, *rest = english.split()
    verbs = {form: v.english for v, _ in VERB_PHRASES for form in forms_of(v)}
    (verb,) = (verbs[word] for word in rest if word in verbs)
    objects = {thing for v, thing in VERB_PHRASES if v.english == verb and thing}
    said = [thing for thing in objects if f" {thing} " in f" {english} "]
    assert len(said) <= 1, english
    return subject, (verb, said[0] if said else "")


def words_of(pairs: list[Pair], side: int) -> Counter[str]:
    """Return the lower-cased words of one side, 0 English or 1 German, with their counts."""
    return Counter(word for pair in pairs for word in pair[side].lower().split())


# --- files ----------------------------------------------------------------------------------------


def test_main_regenerates_the_committed_files_byte_for_byte(tmp_path: Path) -> None:
    main([str(tmp_path / "new")])
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(FILES)
    for name in FILES:
        assert (tmp_path / "new" / name).read_bytes() == (DATA / name).read_bytes(), name


def test_main_says_in_one_line_where_it_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path / "taken")])
    assert stopped.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert str(tmp_path / "taken") in printed.err


# --- the article's corpus -------------------------------------------------------------------------


def test_eat_drink_read_is_the_article_s_corpus_in_its_order() -> None:
    pairs = eat_drink_read()
    assert len(pairs) == len(set(pairs)) == 36
    assert pairs[0] == ("i want to eat bread", "ich mochten brot essen")
    assert pairs[5] == ("i want to read newspaper", "ich mochten zeitung lesen")
    assert pairs[6] == ("i can eat bread", "ich konnen brot essen")
    assert pairs[12] == ("we want to eat bread", "wir mochten brot essen")
    assert pairs[19] == ("we can eat apple", "wir konnen apfel essen")
    assert pairs[24] == ("i eat bread", "ich essen brot")
    assert pairs[27] == ("i drink beer", "ich trinken bier")
    assert pairs[35] == ("we read newspaper", "wir lesen zeitung")


# --- the grammatical corpus: splits ---------------------------------------------------------------


def test_sentences_are_many_and_unique() -> None:
    assert len(PAIRS) >= 2000
    assert len({english.lower() for english in ENGLISH}) == len(PAIRS)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_held_out_splits_are_about_a_tenth(split: str) -> None:
    assert 0.09 < len(SPLITS[split]) / len(PAIRS) < 0.12


def test_no_split_shares_a_combination_of_subject_and_verb_phrase() -> None:
    combinations = {
        name: {subject_and_phrase(english) for english, _ in pairs}
        for name, pairs in SPLITS.items()
    }
    assert not combinations["train"] & combinations["test"]
    assert not combinations["train"] & combinations["valid"]
    assert not combinations["valid"] & combinations["test"]
    assert sum(map(len, combinations.values())) == 6 * len(VERB_PHRASES)


@pytest.mark.parametrize("side", [0, 1], ids=["english", "german"])
def test_every_held_out_word_is_in_training_at_least_twice(side: int) -> None:
    training = words_of(SPLITS["train"], side)
    held_out = words_of(SPLITS["valid"] + SPLITS["test"], side)
    assert {word for word in held_out if training[word] < 2} == set()


def test_the_example_in_the_docstring_holds() -> None:
    training = {subject_and_phrase(english) for english, _ in SPLITS["train"]}
    assert ("I", ("drink", "beer")) not in training
    assert ("I", ("drink", "water")) in training
    assert ("they", ("drink", "beer")) in training


# --- the grammatical corpus: language -------------------------------------------------------------


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("he eats an egg", "er isst ein Ei"),
        ("I eat an apple in the morning", "ich esse morgens einen Apfel"),
        ("she reads the newspaper every day", "sie liest jeden Tag die Zeitung"),
        ("they are cooking potatoes now", "sie kochen jetzt Kartoffeln"),
        ("he will order a coffee tomorrow", "er bestellt morgen einen Kaffee"),
        ("he will not sing the song tomorrow", "er singt das Lied morgen nicht"),
        ("I am not eating an apple today", "ich esse heute keinen Apfel"),
        ("I am not drinking milk today", "ich trinke heute keine Milch"),
        ("I am not writing now", "ich schreibe jetzt nicht"),
        ("he does not read", "er liest nicht"),
        ("he does not often eat bread", "er isst nicht oft Brot"),
        ("he does not read the book every day", "er liest das Buch nicht jeden Tag"),
        ("I cannot eat bread", "ich kann kein Brot essen"),
        ("I would like to order the fish now", "ich möchte jetzt den Fisch bestellen"),
        ("I would not like to read the newspaper", "ich möchte die Zeitung nicht lesen"),
        ("she must not sing a song", "sie darf kein Lied singen"),
        ("she does not have to sing a song today", "sie muss heute kein Lied singen"),
        ("she must sing the song tomorrow", "sie muss morgen das Lied singen"),
        ("they are allowed to buy bread", "sie dürfen Brot kaufen"),
    ],
)
def test_a_hand_written_pair_is_in_the_corpus(english: str, german: str) -> None:
    assert (english, german) in PAIRS


def test_the_finite_verb_stands_second_and_agrees_with_the_subject() -> None:
    for english, german in PAIRS:
        subject = english.split()[0]
        pronoun, verb, *_ = german.split()
        assert pronoun == PRONOUNS[subject], german
        assert verb in MODAL_FORMS[subject] | VERB_FORMS[subject], german


def test_an_infinitive_ends_the_sentence_after_a_modal_and_only_then() -> None:
    for english, german in PAIRS:
        verb, *rest = german.split()[1:]
        if verb in MODAL_FORMS[english.split()[0]]:
            assert rest[-1] in INFINITIVES, german
            rest.pop()
        assert not INFINITIVES & set(rest), german


def test_articles_agree_with_the_gender_of_the_noun_that_follows() -> None:
    for _, german in PAIRS:
        sentence = german.split()
        for word, following in zip(sentence, [*sentence[1:], ""], strict=True):
            if word in NOUNS_AFTER:
                assert following in NOUNS_AFTER[word], german


def test_only_nouns_are_capitalised() -> None:
    nouns = MASCULINE | FEMININE | NEUTER | PLURAL | {"Tag"}
    for _, german in PAIRS:
        capitalised = {word for word in words(german) if word[0].isupper()}
        assert capitalised == nouns & words(german), german


def test_both_languages_deny_once_or_not_at_all() -> None:
    for english, german in PAIRS:
        denials = [w for w in german.split() if w == "nicht" or w.startswith("kein")]
        assert len(denials) == len({"not", "cannot"} & set(english.split())), german


def test_nicht_stands_before_how_often_or_last_but_for_an_infinitive() -> None:
    for _, german in PAIRS:
        _, _, after = german.partition(" nicht")
        assert words(after) <= INFINITIVES or after.startswith((" oft", " jeden Tag")), german


def test_kein_takes_the_place_of_nicht_with_an_indefinite_object() -> None:
    indefinite = words("ein einen eine")
    for english, german in PAIRS:
        denied = words("not cannot") & words(english)
        if denied and indefinite & words(german):
            assert "nicht oft" in german or "nicht jeden Tag" in german, german


def test_english_agrees_with_its_subject() -> None:
    forms = {"I": {"am", "do"}, "he": {"is", "does"}, "she": {"is", "does"}}
    auxiliaries = {"am", "are", "is", "do", "does"}
    third_person = {verb.third_person for verb, _ in VERB_PHRASES}
    for english, _ in PAIRS:
        subject, *rest = english.split()
        assert auxiliaries & set(rest) <= forms.get(subject, {"are", "do"}), english
        if third_person & set(rest):
            assert subject in ("he", "she"), english
            assert "not" not in rest, english


def test_english_says_an_before_a_vowel_and_a_before_a_consonant() -> None:
    for english in ENGLISH:
        sentence = english.split()
        for word, following in zip(sentence, [*sentence[1:], ""], strict=True):
            if word in ("a", "an"):
                assert (word == "an") == (following[0] in "aeiou"), english
