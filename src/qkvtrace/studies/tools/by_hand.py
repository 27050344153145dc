"""One head of attention computed by hand, from its parameters and what it is given.

Shapes: T query and S key positions, D model width, K head width.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qkvtrace.model.attention import Attention


@dataclass(frozen=True)
class Given:
    """What one attention of a model gets for one sentence, on the CPU."""

    queries: Tensor  # (T, D)
    keys: Tensor  # (S, D), the same in self-attention
    causal: bool  # whether a query may look at itself and what is before alone


@dataclass(frozen=True)
class Step:
    """A matrix on the way, and the tap that shows the same in the model, if there is one."""

    name: str
    formula: str
    value: Tensor  # two-dimensional
    tap: str | None = None

    @property
    def finite(self) -> Tensor:
        """Its numbers without those that are masked."""
        return self.value[self.value.isfinite()]

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        return float(self.finite.std(correction=0))


@torch.no_grad()
def steps(attention: Attention, given: Given, head: int) -> dict[str, Step]:
    """All that one head does, and how its layer joins it to the others, by name and in order."""
    x = [Step("X", "the vectors that come in", given.queries)]
    if given.keys is not given.queries:
        x = [
            Step("X", "the decoder's vectors", given.queries),
            Step("X encoder", "the encoder's output", given.keys),
        ]
    way = _one_head(attention, given, head, x[-1].name)
    others = [_one_head(attention, given, each, "X")["x1"].value for each in range(attention.heads)]
    joined = torch.cat(others, -1)  # (T, D)
    weight, bias = _parameters(attention.output)
    after = [
        Step("joined", "x1 of all heads, side by side", joined),
        Step("W_O", "the output projection", weight.T),
        Step("x4", "joined W_O + b_O", joined @ weight.T + bias, "x4"),
    ]
    return {step.name: step for step in (*x, *way.values(), *after)}


def _one_head(attention: Attention, given: Given, head: int, keys: str) -> dict[str, Step]:
    found: list[Step] = []
    projections = (
        ("Q", attention.query, given.queries, "X"),
        ("K", attention.key, given.keys, keys),
        ("V", attention.value, given.keys, keys),
    )
    for name, linear, _, _ in projections:
        weight = _of_head(_parameters(linear)[0], head, attention.heads)  # (K, D), as it is stored
        found.append(Step(f"W_{name}", f"the head's part of the {name} projection", weight.T))
    for name, linear, x, source in projections:
        weight, bias = (_of_head(each, head, attention.heads) for each in _parameters(linear))
        formula = f"{source} W_{name} + b_{name}"
        found.append(Step(name, formula, x @ weight.T + bias, name.lower()))
    q, k, v = (step.value for step in found[3:])
    products = q @ k.T  # (T, S)
    width = q.shape[1]
    scaled = attention.scale != 1.0
    scores = products / math.sqrt(width) if scaled else products
    formula = f"Q Kᵀ / √{width}" if scaled else "Q Kᵀ, which this model does not divide"
    if given.causal:
        scores = scores.where(torch.ones_like(scores).tril().bool(), -torch.inf)
        formula += ", -inf at positions to come"
    shares = (scores - scores.amax(-1, keepdim=True)).exp()  # a softmax that cannot overflow
    weights = shares / shares.sum(-1, keepdim=True)
    found += [
        Step("Q Kᵀ", "each query times each key", products),
        Step("scores", formula, scores, "scores"),
        Step("weights", "softmax of each row of scores", weights, "weights"),
        Step("x1", "weights V", weights @ v, "x1"),
    ]
    return {step.name: step for step in found}


def _parameters(linear: nn.Linear) -> tuple[Tensor, Tensor]:
    """weight (out, in) and bias (out,), on the CPU, as copies: the model takes others later."""
    return linear.weight.to("cpu", copy=True), linear.bias.to("cpu", copy=True)


def _of_head(parameter: Tensor, head: int, heads: int) -> Tensor:
    """A head's share of a projection's outputs."""
    return parameter.chunk(heads)[head]
