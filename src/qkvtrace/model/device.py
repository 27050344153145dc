"""Which device computes."""

from typing import Literal

import torch

from qkvtrace.errors import UserError


def choose_device(wanted: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """The device for `wanted`; auto is CUDA where there is one. Raises UserError if it is absent."""
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise UserError(
            "training.device: expected a CUDA device, found none that this PyTorch "
            f"({torch.__version__}) can use; auto and cpu work"
        )
    return torch.device("cuda" if wanted != "cpu" and available else "cpu")
