"""Claim m, where it is known what nonsense is mapped to."""

from collections.abc import Callable, Sequence

import pytest
import torch

from qkvtrace.corpus.prepared import Corpus, TokenPair
from qkvtrace.corpus.vocabulary import SPECIALS, Vocabulary
from qkvtrace.errors import UserError
from qkvtrace.settings import InterventionSettings
from qkvtrace.studies.claims.nonsense import Nonsense, distance, nearest
from qkvtrace.studies.evidence.laboratory import UNTRAINED, Laboratory
from qkvtrace.studies.evidence.verdict import Result, judged

Judge = Callable[..., Result]
Translate = Callable[[int, int, InterventionSettings, Sequence[str]], list[str]]

PAIRS: list[TokenPair] = [
    (source.split(), target.split())
    for source, target in (
        ("i eat bread", "ich essen brot"),
        ("i eat apple", "ich essen apfel"),
        ("we read book", "wir lesen buch"),
        ("we drink water", "wir trinken wasser"),
    )
]
NEAREST = {
    "i eat book": {"ich essen brot", "ich essen apfel"},
    "we read water": {"wir lesen buch", "wir trinken wasser"},
}
CLAIM = Nonsense(sentences=tuple(NEAREST))


@pytest.fixture(scope="module")
def four_pairs() -> Corpus:
    source, target = (
        Vocabulary((*SPECIALS, *sorted({word for pair in PAIRS for word in pair[side]})))
        for side in (0, 1)
    )
    return Corpus("f" * 64, dict.fromkeys(("train", "valid", "test"), PAIRS), source, target, [])


def saying(text: dict[str, str]) -> Translate:
    """Say this when trained, and nothing before."""

    def translate(
        seed: int, epoch: int, change: InterventionSettings, words: Sequence[str]
    ) -> list[str]:
        return [] if epoch == UNTRAINED else text[" ".join(words)].split()

    return translate


@pytest.mark.parametrize(
    ("first", "second", "known", "near"),
    [
        ("ich essen brot", "wir lesen buch", 1.0, 1.0),
        ("ich essen apfel", "wir trinken wasser", 1.0, 1.0),
        ("wir lesen buch", "ich essen apfel", 1.0, 0.0),  # sentences, but each the other's
        ("ich essen buch", "wir lesen wasser", 0.0, 0.0),  # word for word
    ],
)
def test_what_is_planted_is_found(
    judge: Judge, four_pairs: Corpus, first: str, second: str, known: float, near: float
) -> None:
    said = saying({"i eat book": first, "we read water": second})
    result = judge(CLAIM, four_pairs, translation=said)
    assert [each.interval.mean for each in result.findings] == [known, near]
    verdicts = ["holds" if share else "does not hold" for share in (known, near)]
    assert [each.verdict for each in result.findings] == verdicts
    untrained, *_ = result.findings[1].controls
    assert untrained.interval.mean == 0


def test_seeds_that_do_not_agree_are_undecided(judge: Judge, four_pairs: Corpus) -> None:
    right = {"i eat book": ["ich", "essen", "brot"], "we read water": ["wir", "lesen", "buch"]}

    def translate(
        seed: int, epoch: int, change: InterventionSettings, words: Sequence[str]
    ) -> list[str]:
        return right[" ".join(words)] if seed % 2 else ["ich"]

    assert judge(CLAIM, four_pairs, translation=translate).verdict == "undecided"


def test_a_model_that_heeds_no_source_is_not_above_its_control(
    judge: Judge, four_pairs: Corpus
) -> None:
    always = saying(dict.fromkeys(NEAREST, "ich essen brot"))
    _, near = judge(CLAIM, four_pairs, translation=always).findings
    other = next(control for control in near.controls if control.name == "other sentences")
    assert near.interval.mean == other.interval.mean == 0.5
    assert not other.exceeded


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        ("i eat bread", "i eat bread", 0),
        ("i eat bread", "i eat", 1),
        ("i eat bread", "we eat bread", 1),
        ("a b c d", "b c d a", 2),  # one out, one in
        ("", "a b c", 3),
        ("k i t t e n", "s i t t i n g", 3),
    ],
)
def test_distance_counts_words_to_be_changed(one: str, other: str, far: int) -> None:
    assert distance(one.split(), other.split()) == far
    assert distance(other.split(), one.split()) == far


def test_nearest_are_all_at_the_smallest_distance() -> None:
    for text, wanted in NEAREST.items():
        assert {" ".join(found) for found in nearest(text.split(), PAIRS)} == wanted


def test_a_sentence_of_training_is_no_nonsense(judge: Judge, four_pairs: Corpus) -> None:
    with pytest.raises(UserError, match=r"nonsense.sentences: .* found i eat bread"):
        judge(Nonsense(sentences=("i eat book", "i eat bread")), four_pairs)


def test_a_single_sentence_has_no_control(judge: Judge, four_pairs: Corpus) -> None:
    with pytest.raises(UserError, match=r"nonsense.sentences: expected two or more, found 1"):
        judge(Nonsense(sentences=("i eat book",)), four_pairs)


def test_on_real_members(trained: Laboratory) -> None:
    claim = Nonsense(sentences=("i can eat book", "we beer can read"))
    result = judged("nonsense", claim, dict(claim.measure(trained)))
    for each in result.findings:
        assert set(each.values) <= {0.0, 0.5, 1.0}
    assert torch.tensor(result.findings[0].values).mean() >= result.findings[1].interval.mean


def test_a_word_that_the_corpus_does_not_have_is_an_error(trained: Laboratory) -> None:
    with pytest.raises(UserError, match=r"expected words .* found unicorn in .*i eat unicorn"):
        Nonsense(sentences=("i eat unicorn", "we eat")).measure(trained)
