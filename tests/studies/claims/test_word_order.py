"""Claim c: the same words in another order."""

import math
from collections.abc import Callable, Mapping
from itertools import product
from statistics import mean
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.studies.claims.word_order import WordOrder, alikeness, by_step, by_word, overlap
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory
from qkvtrace.studies.evidence.verdict import Result

Judge = Callable[..., Result]
Values = Callable[[int, int, list[Sentence]], Mapping[str, Tensor]]

CROSS = "decoder.layers.0.cross_attention"
PAIRS = (("we can eat apple", "apple eat can we"), ("i read book", "read book i"))
PARTS = ("q", "k", "v", "x4", "weights")
WIDTH = 24
RIGHT, UP, LEFT = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]


def test_by_step_is_the_diagonal_against_the_rest() -> None:
    one, other = torch.tensor([[RIGHT, UP]]), torch.tensor([[RIGHT, RIGHT, LEFT]])
    # The same step: 1 and 0; different ones: 1, -1, 0 and 0.
    assert float(by_step(one, other)) == pytest.approx(0.5 - (1 - 1 + 0 + 0) / 4)
    both = torch.tensor([[RIGHT, UP], [UP, UP]])
    assert float(by_step(both, both)) == pytest.approx(1 - (0 + 1) / 2)  # of two heads


def test_of_one_step_there_is_no_other() -> None:
    assert math.isnan(float(by_step(torch.ones(1, 1, 2), torch.ones(1, 1, 2))))


def test_by_word_leaves_out_the_same_word_at_the_same_position() -> None:
    words, others = ["we", "eat", "apple"], ["we", "apple", "eat"]
    one = torch.tensor([[RIGHT, UP, LEFT]])
    other = torch.tensor([[RIGHT, LEFT, [0.6, 0.8]]])
    # Elsewhere: eat 0.8, apple 1; others: we-apple -1, we-eat 0.6, eat-we 0, eat-apple 0, apple-we
    # -1, apple-eat -0.6.
    assert float(by_word(one, other, words, others)) == pytest.approx(
        0.9 - (-1 + 0.6 - 1 - 0.6) / 6
    )


def test_overlap_by_word_against_overlap_by_position() -> None:
    words, others = ["we", "eat", "we"], ["eat", "we", "we"]
    one = torch.tensor([[[0.5, 0.25, 0.25]]])
    other = torch.tensor([[[0.125, 0.5, 0.375]]])
    # By word, the first "we" with the first: 0.5, 0.125, 0.25; by position: 0.125, 0.25, 0.25.
    assert float(overlap(one, other, words, others)) == pytest.approx(0.875 - 0.625)
    assert float(overlap(one, one, words, words)) == 0


def planted(follows: str = "word", share: float = 1, noise: float = 0) -> Values:
    """Vectors and weights of the cross-attention that follow the word, or else the position.

    Of a `share`, give or take `noise`: the rest is alike everywhere, or rests on <sos>. q and x4
    follow the step if anything follows its word. Before training nothing follows anything.
    """

    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        own = (share + (-1) ** seed * noise) * (epoch == LAST)

        def vector(number: int) -> Tensor:
            """Of cosine 1 - own with one of another number."""
            found = torch.eye(WIDTH)[number + 1] * math.sqrt(own)
            found[0] = math.sqrt(1 - own)
            return found

        q, k = (torch.full((len(sentences), 1, 9, WIDTH), math.nan) for _ in range(2))
        weights = torch.full((len(sentences), 1, 9, 9), math.nan)
        for index, sentence in enumerate(sentences):
            words = sentence.source[1:-1]
            for step in range(len(sentence.target)):
                q[index, 0, step] = vector(step if follows == "word" else 0)
                weights[index, 0, step] = 0
                weights[index, 0, step, 0] = 1 - own
                place = step % len(words)
                if follows == "word":
                    place = words.index(sorted(words)[place])
                weights[index, 0, step, 1 + place] = own
            for place, word in enumerate(sentence.source):
                number = len(word) + ord(word[0]) % 7 if follows == "word" else place
                k[index, 0, place] = vector(number)
        return {f"{CROSS}.q": q, f"{CROSS}.x4": q[:, 0], f"{CROSS}.weights": weights} | {
            f"{CROSS}.{name}": k for name in ("k", "v")
        }

    return values


def test_what_is_planted_is_found(judge: Judge) -> None:
    result = judge(WordOrder(pairs=PAIRS), values=planted())
    assert result.verdict == "holds"
    assert [finding.part.name for finding in result.findings] == list(PARTS)
    for finding in result.findings:
        assert finding.values == pytest.approx([1] * 12)
        untrained, shuffled = finding.controls
        assert untrained.values == pytest.approx([0] * 12)
        assert untrained.exceeded
        assert shuffled.exceeded
        assert abs(shuffled.interval.mean) < 0.4
        assert len(set(shuffled.values)) > 3


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"follows": "position"}, "does not hold"),
        ({"share": 0.0}, "does not hold"),
        ({"share": 0.1, "noise": 0.05}, "undecided"),
        ({"share": 0.2, "noise": 0.05}, "holds"),
    ],
)
def test_each_part_can_fail(judge: Judge, changed: dict[str, Any], verdict: str) -> None:
    result = judge(WordOrder(pairs=PAIRS), values=planted(**changed))
    assert [finding.verdict for finding in result.findings] == [verdict] * 5
    assert result.verdict == verdict


@pytest.mark.parametrize("part", PARTS)
def test_parts_are_of_their_own_vectors(judge: Judge, part: str) -> None:
    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        true, false = (planted(follows)(seed, epoch, sentences) for follows in ("word", "position"))
        return {**true, f"{CROSS}.{part}": false[f"{CROSS}.{part}"]}

    result = judge(WordOrder(pairs=PAIRS), values=values)
    failed = [each.part.name for each in result.findings if each.verdict == "does not hold"]
    assert failed == [part]


def test_a_pair_of_empty_translations_is_left_out(judge: Judge) -> None:
    sentences = [Sentence(["<sos>", "we", "eat", "<eos>"], ["<sos>"], [], None)] * 2
    snapshot = Snapshot(LAST, 0, sentences, {f"{CROSS}.q": torch.ones(2, 1, 4, 4)})
    assert math.isnan(float(alikeness(snapshot, (0, 1), 0, "q")))

    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        found = dict(planted()(seed, epoch, sentences))
        found[f"{CROSS}.q"][2:] = math.nan  # of the second pair
        return found

    result = judge(WordOrder(pairs=PAIRS), values=values)
    assert result.findings[0].values == pytest.approx([1] * 12)


@pytest.mark.parametrize(
    "pairs",
    [
        (),
        (("we eat", "we read"),),
        (("we eat", "eat we"), ("we eat", "we eat")),
        (("we eat",),),
        (("we eat", "eat we", "eat we"),),
    ],
)
def test_pairs_that_do_not_fit_are_told(judge: Judge, pairs: tuple[tuple[str, ...], ...]) -> None:
    with pytest.raises(UserError, match=r"word_order.pairs: expected .*, found"):
        judge(WordOrder(pairs=pairs), values=planted())


def test_a_trained_model_is_measured_in_all_layers_and_heads(trained: Laboratory) -> None:
    pairs = (("we can eat apple", "apple eat can we"), ("i read book", "book i read"))
    measured = WordOrder(pairs=pairs).measure(trained)
    members = trained.members(trained.base)
    for epoch, control in ((LAST, None), (UNTRAINED, "untrained")):
        snapshot = members[0].observe([text for pair in pairs for text in pair], [], epoch)
        for part in PARTS:
            found: list[float] = []
            for pair, layer in product((0, 2), range(2)):
                one, other = snapshot.sentences[pair : pair + 2]
                a, b = snapshot.values[f"decoder.layers.{layer}.cross_attention.{part}"][
                    pair : pair + 2
                ]
                if part == "x4":
                    a, b = a[None], b[None]
                for head in range(len(a)):
                    found.append(slowly(part, a[head], b[head], one, other))
            seen = measured[part].controls[control] if control else measured[part].effect
            expected = mean(each for each in found if not math.isnan(each))
            assert seen[0] == pytest.approx(expected, abs=1e-6)


def slowly(part: str, a: Tensor, b: Tensor, one: Sentence, other: Sentence) -> float:
    """The number of one head, cell by cell."""
    n, words, others = len(one.source) - 1, one.source, other.source
    if part == "weights":
        steps = range(min(len(one.target), len(other.target)))
        place = {i: others.index(words[i]) for i in range(1, n)}
        by_word = mean(sum(float(min(a[t, i], b[t, place[i]])) for i in place) for t in steps)
        return by_word - mean(sum(float(min(a[t, i], b[t, i])) for i in place) for t in steps)
    cells: dict[bool, list[float]] = {True: [], False: []}
    if part in ("k", "v"):
        for i, j in product(range(1, n), repeat=2):
            if words[i] != others[j] or i != j:
                cosine = float(cosine_similarity(a[i], b[j], dim=0))
                cells[words[i] == others[j]].append(cosine)
    else:
        for i, j in product(range(len(one.target)), range(len(other.target))):
            cells[i == j].append(float(cosine_similarity(a[i], b[j], dim=0)))
    return mean(cells[True]) - mean(cells[False]) if cells[False] else math.nan
