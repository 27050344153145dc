"""Which device computes, and with how many threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import nn

from qkvtrace.errors import UserError

SMALL = 1_000_000  # parameters
THREADS = torch.get_num_threads()  # PyTorch's own choice


def choose_threads(model: nn.Module) -> None:
    """Let a small model compute in one thread."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    torch.set_num_threads(_threads(parameters))


@contextmanager
def threads_for(parameters: int) -> Iterator[None]:
    """Within the scope, as many threads as that many parameters together are worth."""
    before = torch.get_num_threads()
    torch.set_num_threads(_threads(parameters))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _threads(parameters: int) -> int:
    return 1 if parameters < SMALL else THREADS


def one_thread() -> None:
    """Compute in one thread from now on, where tensors are small.

    Their operations are too short to share: a second thread gains nothing on an idle machine, and
    on a busy one the two wait for each other (seen: 30 times slower).
    """
    torch.set_num_threads(1)


def choose_device(wanted: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """The device for `wanted`; auto is CUDA if there is one. Raises UserError if it is absent."""
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise UserError(
            "expected a CUDA device, found none that this PyTorch "
            f"({torch.__version__}) can use; auto and cpu work"
        )
    return torch.device("cuda" if wanted != "cpu" and available else "cpu")
