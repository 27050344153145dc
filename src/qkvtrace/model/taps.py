"""Taps: the named places at which the values inside the network can be watched or replaced."""

from fnmatch import fnmatchcase

from torch import Tensor, nn


class Tap(nn.Module):
    """An identity through which one value passes.

    Its place in the module tree is its name, such as `encoder.layers.0.self_attention.q`. To watch
    the value, register a forward hook; to replace it, one that returns another tensor of its shape.
    """

    def __init__(self, *axes: str) -> None:
        """axes: what each dimension of the value counts, in order."""
        super().__init__()
        self.axes = axes

    def forward(self, value: Tensor) -> Tensor:
        """The value itself."""
        return value

    @property
    def watched(self) -> bool:
        """Whether anybody looks at this tap, or replaces what passes."""
        return bool(self._forward_hooks)


def taps(model: nn.Module) -> dict[str, Tap]:
    """Every tap of `model` by name, in the order of the module tree."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Tap)}


def matching(model: nn.Module, *patterns: str) -> dict[str, Tap]:
    """The taps whose names match any of `patterns`, where `*` stands for any characters.

    Raises:
        KeyError: if a pattern matches no tap; the message lists all taps.
    """
    existing = taps(model)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in existing):
            raise KeyError(f"no tap matches {pattern!r}; the taps are {', '.join(existing)}")
    return {
        name: tap
        for name, tap in existing.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
