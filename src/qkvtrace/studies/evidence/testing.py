"""Testing claims: measured in one laboratory after the other, judged over all seeds together."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from qkvtrace.errors import UserError
from qkvtrace.studies.evidence.claim import Claim, Measured
from qkvtrace.studies.evidence.laboratory import Laboratory
from qkvtrace.studies.evidence.verdict import Result, judged

Parts = Mapping[str, Measured]


def verdicts(
    claims: Mapping[str, Claim], laboratories: Iterable[Laboratory]
) -> tuple[list[Result], dict[str, str]]:
    """The results of claims by name, in their order; and why others could not be measured.

    Each laboratory has some of the seeds. One is let go before the next trains, so that memory is
    needed for its seeds alone.
    """
    gathered: dict[str, list[Parts]] = {name: [] for name in claims}
    failed: dict[str, str] = {}
    for laboratory in laboratories:
        for name, claim in claims.items():
            if name not in failed:
                try:
                    gathered[name].append(claim.measure(laboratory))
                except UserError as error:
                    failed[name] = str(error)
    results = [
        judged(name, claim, joined(gathered[name]))
        for name, claim in claims.items()
        if name not in failed
    ]
    return results, failed


def chunks(seeds: Sequence[int], most: int) -> list[Sequence[int]]:
    """At most so many together, and groups as equal as can be: some controls compare neighbours."""
    count = -(-len(seeds) // most)
    ends = [len(seeds) * number // count for number in range(count + 1)]
    return [seeds[start:end] for start, end in itertools.pairwise(ends)]


def joined(chunks: Sequence[Parts]) -> dict[str, Measured]:
    """The numbers of some seeds, then those of others."""
    return {
        name: Measured(
            [value for parts in chunks for value in parts[name].effect],
            {
                control: [value for parts in chunks for value in parts[name].controls[control]]
                for control in chunks[0][name].controls
            },
        )
        for name in chunks[0]
    }
