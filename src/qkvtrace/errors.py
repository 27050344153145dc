"""What ends a command early: a person's mistake, or a person's wish."""

import signal


class UserError(Exception):
    """A mistake that the person at the keyboard can mend.

    The message is one sentence: what was expected, what was found and where. A command prints it
    without a traceback and exits with status 1.
    """


class Interrupted(Exception):
    """Training was asked to stop by a signal, and has saved what it had.

    The command exits with status 128 + signal, as a shell would: 130 for SIGINT, 143 for SIGTERM.
    """

    def __init__(self, received: signal.Signals, message: str) -> None:
        super().__init__(message)
        self.exit_status = 128 + received
