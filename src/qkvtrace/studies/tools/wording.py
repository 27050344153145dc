"""Numbers and lists as sentences have them."""

from collections.abc import Sequence


def listed(words: Sequence[str]) -> str:
    """As "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def then_and_now(now: str, then: str, first: int, last: int) -> str:
    """What is at the last epoch, and what was at the first if that is another."""
    return f"{now} at epoch {last}" + (f" ({then} at epoch {first})" if first != last else "")


def percent(share: float) -> str:
    """A share, 0 to 1, as "87 %"."""
    return f"{share:.0%}".replace("%", " %")
