"""Seeds that are trained some at a time are judged together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import pytest

from qkvtrace.errors import UserError
from qkvtrace.studies.evidence.claim import Claim, Measured, Part
from qkvtrace.studies.evidence.laboratory import Laboratory
from qkvtrace.studies.evidence.testing import chunks, verdicts

PART = Part(name="only", says="It is so.", measure="m", unit="u", least=0.0)


@dataclass
class Seeds:
    """Stands where a laboratory would."""

    seeds: list[int]


@dataclass
class Counted:
    """A claim whose numbers are the seeds; it cannot be measured where a seed is too large."""

    letter: ClassVar = "z"
    title: ClassVar = "Counted"
    sentence: ClassVar = "Seeds are numbers."
    source: ClassVar = "nowhere"
    parts: ClassVar = (PART,)

    largest: int
    asked: list[list[int]] = field(default_factory=list)

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        self.asked.append(laboratory.seeds)
        if max(laboratory.seeds) > self.largest:
            raise UserError("too large")
        effect = [float(seed) for seed in laboratory.seeds]
        return {"only": Measured(effect, {"less": [value - 1 for value in effect]})}


def laboratories(*chunks: list[int]) -> list[Laboratory]:
    return cast(list[Laboratory], [Seeds(chunk) for chunk in chunks])


def named(**claims: Any) -> dict[str, Claim]:
    return claims


def test_the_seeds_of_all_laboratories_count() -> None:
    chunks = laboratories([0, 1, 2], [3, 4, 5], [6, 7])
    (result,), failed = verdicts(named(counted=Counted(9)), chunks)
    assert not failed
    assert result.findings[0].values == [0, 1, 2, 3, 4, 5, 6, 7]
    assert result.findings[0].controls[0].values == [-1, 0, 1, 2, 3, 4, 5, 6]
    (once,), _ = verdicts(named(counted=Counted(9)), laboratories(list(range(8))))
    assert once == result


def test_a_claim_that_cannot_be_measured_leaves_the_others() -> None:
    bad, good = Counted(3), Counted(9)
    results, failed = verdicts(named(bad=bad, good=good), laboratories([0, 1], [4], [5]))
    assert [result.name for result in results] == ["good"]
    assert failed == {"bad": "too large"}
    assert bad.asked == [[0, 1], [4]]  # and is not asked again


def test_one_laboratory_is_asked_by_all_claims_before_the_next() -> None:
    order: list[list[int]] = []
    first, second = Counted(9, order), Counted(9, order)
    verdicts(named(first=first, second=second), laboratories([0], [1]))
    assert order == [[0], [0], [1], [1]]


@pytest.mark.parametrize(
    ("seeds", "most", "sizes"),
    [(32, 32, [32]), (33, 32, [16, 17]), (9, 8, [4, 5]), (1, 8, [1]), (1000, 32, None)],
)
def test_seeds_are_shared_out_evenly(seeds: int, most: int, sizes: list[int] | None) -> None:
    found = chunks(range(seeds), most)
    assert [seed for each in found for seed in each] == list(range(seeds))
    assert max(map(len, found)) <= most
    assert min(map(len, found)) >= min(4, seeds)
    assert sizes is None or [*map(len, found)] == sizes
