"""Where the model computes, and with how many threads."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from qkvtrace.errors import UserError
from qkvtrace.model.device import SMALL, THREADS, choose_device, choose_threads

needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("parameters", "threads"), [(SMALL - 1, 1), (SMALL, THREADS)])
def test_only_a_small_model_keeps_to_one_thread(parameters: int, threads: int) -> None:
    choose_threads(nn.Linear(parameters, 1, bias=False))
    assert torch.get_num_threads() == threads


def test_cpu_is_the_cpu_and_auto_is_a_gpu_where_there_is_one() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@needs_no_gpu
def test_a_missing_gpu_is_an_error() -> None:
    with pytest.raises(UserError, match=r"expected a CUDA device, found none"):
        choose_device("cuda")
