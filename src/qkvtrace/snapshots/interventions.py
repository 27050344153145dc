"""Interventions: other values in place of those that pass the taps, within a scope."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor, nn

from qkvtrace.model.taps import Tap, matching


@contextmanager
def intervening(
    model: nn.Module, replacements: Mapping[str, Callable[[Tensor], Tensor]]
) -> Iterator[None]:
    """Replace what passes the taps matching each pattern by a function of it.

        with intervening(model, {"decoder.layers.*.cross_attention.weights": uniform}):
            model(source, target)

    A recording within the scope sees what is put in place; one around it, what was there before.

    Raises:
        KeyError: if a pattern matches no tap; the message lists all taps.
        ValueError: when a function changes a value's shape; the message names the tap.
    """
    matched = [
        (name, tap, function)
        for pattern, function in replacements.items()
        for name, tap in matching(model, pattern).items()
    ]
    handles = [tap.register_forward_hook(_replace(name, f)) for name, tap, f in matched]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _replace(name: str, function: Callable[[Tensor], Tensor]):  # type: ignore[no-untyped-def]
    def hook(_tap: Tap, _inputs: tuple[Tensor, ...], value: Tensor) -> Tensor:
        other = function(value)
        if other.shape != value.shape:
            raise ValueError(
                f"an intervention at {name} expected shape {tuple(value.shape)}, "
                f"found {tuple(other.shape)}"
            )
        return other

    return hook
