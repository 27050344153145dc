"""Claim d: five sentences that begin alike."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import mean

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Sentence
from qkvtrace.studies.claims.five_sentences import FiveSentences, common
from qkvtrace.studies.claims.tools.shared_words import SharedWords, deviation, gap
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory
from qkvtrace.studies.evidence.verdict import Result

Judge = Callable[..., Result]
Values = Callable[[int, int, list[Sentence]], Mapping[str, Tensor]]

LAYER = "encoder.layers.0.self_attention"
TEXTS = ("i can eat apple", "i can eat bread", "i can eat apple book")
SCATTER = {"x1": f"{LAYER}.x1", "x4": f"{LAYER}.x4", "output": "encoder.output"}
WIDTH = 16


def test_distance_and_deviation_by_hand() -> None:
    values = torch.zeros(2, 2, 3, 2)  # sentence, head, position, width
    values[0, :, 1] = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    values[1, :, 2] = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    values[0, :, 2] = values[1, :, 1] = torch.tensor([3.0, 4.0])
    shared = SharedWords.at([(0, 1, 1, 2), (0, 2, 1, 1)])
    assert shared.distance(values).tolist() == pytest.approx([0.5, 0])  # of 1 and 0; 0 and 0
    assert shared.distance(values[:, 0]).tolist() == pytest.approx(0.5)
    assert shared.deviation(values) == pytest.approx(math.sqrt(2))
    assert shared.deviation(values[:, 1]) == 0
    values[0, 1, 1] *= 2  # |4 - 2| / |4|
    assert shared.deviation(values[:, 1]) == pytest.approx(0.5)


def test_gap_is_taken_from_the_largest_of_a_head() -> None:
    def turned(*cosines: float) -> Tensor:
        """A vector a head, (1, 0) in the one sentence and of a cosine with it in the other."""
        other = torch.tensor([[c, math.sqrt(1 - c * c)] for c in cosines])
        one = torch.tensor([[1.0, 0.0]]).expand_as(other)
        return torch.stack([one, other])[:, :, None]  # (sentence, head, position, width)

    q, k, v = turned(1, 0), turned(0.5, 1), turned(1, 1)
    x1, x4 = turned(0, -1), turned(-1)[:, 0]
    taps = {f"{LAYER}.{n}": t for n, t in zip("qkv", (q, k, v), strict=True)}
    values = {**taps, f"{LAYER}.x1": x1, f"{LAYER}.x4": x4}
    shared = SharedWords.at([(0, 0, 1, 0)])
    assert gap(values, shared, 0, f"{LAYER}.x1") == pytest.approx(((1 - 0.5) + (2 - 1)) / 2)
    assert gap(values, shared, 0, f"{LAYER}.x4") == pytest.approx(((2 - 0.5) + (2 - 1)) / 2)
    assert deviation(values, shared, ["v", "k"]) == pytest.approx(1)
    assert deviation(values, shared, ["v"]) == 0


def listed(shared: SharedWords) -> list[tuple[int, ...]]:
    columns = (indices.tolist() for indices in (*shared.one, *shared.other))
    return list(zip(*columns, strict=True))


def test_common_words_stand_in_all_sentences() -> None:
    sentences = [text.split() for text in ("i can eat apple", "can i eat", "we can eat apple can")]
    assert listed(common(sentences, in_place=False)) == [
        (0, 2, 1, 1),  # can
        (0, 3, 1, 3),  # eat
        (0, 2, 2, 2),
        (0, 3, 2, 3),
        (1, 1, 2, 2),
        (1, 3, 2, 3),
    ]
    assert listed(common(sentences, in_place=True)) == [
        (0, 3, 1, 3),
        (0, 2, 2, 2),
        (0, 3, 2, 3),
        (1, 3, 2, 3),
    ]


def planted(
    scatter: Mapping[str, float] = dict.fromkeys(SCATTER, 0.5), noise: float = 0, moved: float = 0
) -> Values:
    """Vectors of which each two sentences' are as far apart as `scatter` says, give or take noise.

    q, k and v are those of word and position; `moved`: by how much k deviates in one sentence
    before training. Nothing else differs then.
    """

    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        words = torch.randn(3, 1, 1, 8, WIDTH, generator=generator)
        qkv = words.repeat(1, len(sentences), 1, 1, 1)  # the words in common come first
        if epoch == UNTRAINED:
            qkv[1, 2] *= 1 + moved
        found = {f"{LAYER}.{name}": each for name, each in zip("qkv", qkv, strict=True)}
        for name, tap in SCATTER.items():
            apart = (scatter[name] + (-1) ** seed * noise) * (epoch == LAST)
            value = torch.zeros(len(sentences), 1, 8, WIDTH)
            value[..., 0] = math.sqrt(1 - apart)
            for index in range(len(sentences)):
                value[index, ..., index + 1] = math.sqrt(apart)
            found[tap] = value if name == "x1" else value[:, 0]
        for index, sentence in enumerate(sentences):  # nobody is to see padding
            for each in found.values():
                each[index, ..., len(sentence.source) :, :] = math.nan
        return found

    return values


def test_what_is_planted_is_found(judge: Judge) -> None:
    result = judge(FiveSentences(sentences=TEXTS), values=planted())
    assert result.verdict == "holds"
    alike, *scatter = result.findings
    assert alike.verdict == "true by construction"
    assert alike.values == [0] * 12
    assert alike.controls[0].values == pytest.approx([1] * 12)  # at a cosine of 1/2
    for finding in scatter:
        assert finding.verdict == "holds"
        assert finding.values == pytest.approx([0.5] * 12)
        (untrained,) = finding.controls
        assert untrained.values == pytest.approx([0] * 12)
        assert untrained.exceeded


@pytest.mark.parametrize("part", SCATTER)
@pytest.mark.parametrize(
    ("apart", "noise", "verdict"),
    [(0.0, 0, "does not hold"), (0.1, 0.05, "undecided"), (0.2, 0.05, "holds")],
)
def test_each_part_can_fail(
    judge: Judge, part: str, apart: float, noise: float, verdict: str
) -> None:
    scatter = dict.fromkeys(SCATTER, 0.5) | {part: apart}
    result = judge(FiveSentences(sentences=TEXTS), values=planted(scatter, noise))
    verdicts = {each.part.name: each.verdict for each in result.findings}
    expected = dict.fromkeys(SCATTER, "holds") | {part: verdict, "alike": "true by construction"}
    assert verdicts == expected
    assert result.verdict == verdict


@pytest.mark.parametrize(("moved", "holds"), [(2e-5, False), (2e-6, True)])
def test_first_layers_that_know_their_sentence_are_found(
    judge: Judge, moved: float, holds: bool
) -> None:
    result = judge(FiveSentences(sentences=TEXTS), values=planted(moved=moved))
    assert result.findings[0].verdict == ("true by construction" if holds else "does not hold")
    assert result.verdict == ("holds" if holds else "does not hold")


@pytest.mark.parametrize(
    "texts", [(), ("i can eat",), ("i can", "we eat"), ("can i", "i can"), ("i eat", "i eat")]
)
def test_sentences_that_do_not_fit_are_told(judge: Judge, texts: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"five_sentences.sentences: expected .*, found"):
        judge(FiveSentences(sentences=texts), values=planted())


def test_a_trained_model_is_measured_in_all_layers_and_heads(trained: Laboratory) -> None:
    texts = ("i can eat apple", "i can eat bread", "i can eat book", "can i eat apple book")
    words = ("i", "can", "eat")
    measured = FiveSentences(sentences=texts).measure(trained)
    assert max(measured["alike"].effect) < 1e-5
    assert min(measured["alike"].controls["x1"]) > 0.1
    members = trained.members(trained.base)
    for epoch, control in ((LAST, None), (UNTRAINED, "untrained")):
        snapshot = members[1].observe(texts, [], epoch)
        tokens = [sentence.source for sentence in snapshot.sentences]

        def distance(values: Tensor, tokens: Sequence[list[str]] = tokens) -> float:
            return mean(
                1
                - float(cosine_similarity(values[i, one.index(w)], values[j, two.index(w)], dim=0))
                for (i, one), (j, two) in combinations(enumerate(tokens), 2)
                for w in words
            )

        found: dict[str, list[float]] = {name: [] for name in SCATTER}
        for layer in range(2):
            of = {
                name: snapshot.values[f"encoder.layers.{layer}.self_attention.{name}"]
                for name in ("q", "k", "v", "x1", "x4")
            }
            for head in range(2):
                largest = max(distance(of[name][:, head]) for name in "qkv")
                found["x1"].append(distance(of["x1"][:, head]) - largest)
                found["x4"].append(distance(of["x4"]) - largest)
                found["output"].append(distance(snapshot.values["encoder.output"]) - largest)
        for name, gaps in found.items():
            seen = measured[name].controls[control] if control else measured[name].effect
            assert seen[1] == pytest.approx(mean(gaps), abs=1e-6)
