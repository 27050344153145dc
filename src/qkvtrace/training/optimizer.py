"""Adam and AdamW over all parameters as one vector.

`torch.optim.Adam` imports PyTorch's compiler when it is made, which takes as long as importing
PyTorch itself: most of a short training. The function underneath needs none of that. And small
models spend their time on calls, not on numbers: one vector is one call, not one a parameter.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from qkvtrace.settings import TrainingSettings

EPSILON = 1e-8


class Adam:
    """Adam (Kingma and Ba 2015), or AdamW (Loshchilov and Hutter 2019) with decoupled decay."""

    def __init__(self, vector: Tensor, settings: TrainingSettings) -> None:
        """vector: all parameters, in any shape; its `grad` holds the gradients of each step."""
        self.settings = settings
        self.vector = vector
        self.mean = torch.zeros_like(vector)
        self.square = torch.zeros_like(vector)
        self.steps = torch.zeros((), device=vector.device)

    @property
    def gradient(self) -> Tensor:
        """All gradients, (parameters)."""
        assert self.vector.grad is not None
        return self.vector.grad

    def step(self, rate: float) -> None:
        """Move the parameters along their gradients, at learning rate `rate`."""
        beta1, beta2 = self.settings.betas
        adam(
            [self.vector],
            [self.gradient],
            [self.mean],
            [self.square],
            [],
            [self.steps],
            fused=True,
            decoupled_weight_decay=self.settings.optimizer == "adamw",
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=rate,
            weight_decay=self.settings.weight_decay,
            eps=EPSILON,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, besides parameters and gradients."""
        return {"mean": self.mean, "square": self.square, "steps": self.steps}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `state` gave."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


def as_vector(model: nn.Module) -> Tensor:
    """Make the parameters of `model`, and their gradients, views of one vector each.

    The model must be on its final device. Returns (parameters), with its `grad`.
    """
    parameters = list(model.parameters())
    vector = torch.cat([p.detach().flatten() for p in parameters])
    vector.grad = torch.zeros_like(vector)
    sizes = [p.numel() for p in parameters]
    values, gradients = vector.split(sizes), vector.grad.split(sizes)
    for parameter, value, gradient in zip(parameters, values, gradients, strict=True):
        parameter.data = value.view_as(parameter)
        parameter.grad = gradient.view_as(parameter)
    return vector
