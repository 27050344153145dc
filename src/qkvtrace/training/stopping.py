"""Stopping by a signal: the step that runs is finished and saved first."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from qkvtrace.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stoppable(save: Callable[[], str]) -> Iterator[Callable[[], None]]:
    """Within the scope Ctrl-C and SIGTERM only set a mark; the yielded function acts on it.

    Call it after each step: when a signal has come it calls `save`, which returns what to tell the
    person, and raises Interrupted. A second signal ends the process at once, as without this scope.
    """
    received: list[signal.Signals] = []
    previous = {number: signal.getsignal(number) for number in SIGNALS}

    def mark(number: int, _frame: FrameType | None) -> None:
        received.append(signal.Signals(number))
        restore()

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def check() -> None:
        if received:
            raise Interrupted(received[0], save())

    for number in SIGNALS:
        signal.signal(number, mark)
    try:
        yield check
    finally:
        restore()
