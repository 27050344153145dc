"""Settings that name several things."""

from collections.abc import Iterable
from typing import TypeVar

from qkvtrace.errors import UserError

T = TypeVar("T")


def some(setting: str, values: Iterable[T]) -> list[T]:
    """The values, each once; raises UserError if there is none."""
    found = list(dict.fromkeys(values))
    if not found:
        raise UserError(f"study.{setting}: expected one or more, found none")
    return found
