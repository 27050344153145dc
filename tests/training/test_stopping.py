"""Stopping by a signal: the step is finished, what there is is saved, handlers are put back."""

import os
import signal

import pytest

from qkvtrace.errors import Interrupted
from qkvtrace.training.stopping import SIGNALS, stoppable


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in SIGNALS]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_acted_on_at_the_next_check(number: signal.Signals, status: int) -> None:
    before, steps, saved = handlers(), [1], []

    def save() -> str:
        saved.append(len(steps))
        return "resume=here"

    def train() -> None:
        with stoppable(save) as check:
            check()
            os.kill(os.getpid(), number)
            steps.append(2)
            check()

    with pytest.raises(Interrupted, match="resume=here") as raised:
        train()
    assert saved == [2]
    assert raised.value.exit_status == status
    assert handlers() == before


def test_a_second_ctrl_c_ends_at_once() -> None:
    def train() -> None:
        with stoppable(lambda: "never"):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train()


@pytest.mark.parametrize("failing", [False, True])
def test_handlers_are_put_back_without_a_signal(failing: bool) -> None:
    before = handlers()
    try:
        with stoppable(lambda: "never") as check:
            check()
            assert handlers() != before
            if failing:
                raise InterruptedError
    except InterruptedError:
        assert failing
    assert handlers() == before
