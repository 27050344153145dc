"""Interventions: other values in place of those that pass the taps, within a scope.

Shapes: B sentences, H heads, T query and S key positions.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from qkvtrace.errors import UserError
from qkvtrace.model.taps import Tap, matching
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.sites import SITES
from qkvtrace.snapshots.switches import switched

Change = Callable[[Tensor], Tensor]


@contextmanager
def changed(model: Transformer, settings: InterventionSettings) -> Iterator[None]:
    """Change a model as the settings say.

        with changed(model, InterventionSettings(attention="uniform", site="cross")):
            model(source, target)

    Each query's weight goes, where attention is
        uniform: to all positions that it may look at, in equal shares;
        first<n>: to the first n of these, in equal shares;
        last: to the last of these;
        hard: to the one with the highest score, the first of equals.
    `switched` describes the other changes. Leaving, also by an exception, puts everything back.

    Raises UserError if the model has no such layer or head, or no positions to give its decoder.
    """
    with intervening(model, _attention(model, settings)), switched(model, settings):
        yield


@contextmanager
def intervening(model: nn.Module, replacements: Mapping[str, Change]) -> Iterator[None]:
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


def _replace(name: str, function: Change):  # type: ignore[no-untyped-def]
    def hook(_tap: Tap, _inputs: tuple[Tensor, ...], value: Tensor) -> Tensor:
        other = function(value)
        if other.shape != value.shape:
            raise ValueError(
                f"an intervention at {name} expected shape {tuple(value.shape)}, "
                f"found {tuple(other.shape)}"
            )
        return other

    return hook


def _attention(model: Transformer, settings: InterventionSettings) -> dict[str, Change]:
    """What changes the scores, by tap: there a masked position is known by its -inf."""
    for name, count in (("layer", model.settings.layers), ("head", model.settings.heads)):
        value = getattr(settings, name)
        if value is not None and value >= count:
            raise UserError(f"{name}: expected 0 to {count - 1}, found {value}")
    if settings.attention == "learned":
        return {}
    choice = partial(_first, settings.first) if settings.first else CHOICES[settings.attention]
    layers = range(model.settings.layers) if settings.layer is None else [settings.layer]
    return {
        site.tap(layer, "scores"): partial(_attend, choice, settings.head)
        for site in SITES
        if settings.site in (None, site.name)
        for layer in layers
    }


def _attend(choice: Change, head: int | None, scores: Tensor) -> Tensor:
    """Equal scores where `choice` is True, -inf elsewhere; head: in that one alone."""
    equal = torch.zeros_like(scores).where(choice(scores), -torch.inf)
    if head is None:
        return equal
    other = scores.clone()
    other[:, head] = equal[:, head]
    return other


# Choices: scores (B, H, T, S) -> True at the positions that share the weight.


def _allowed(scores: Tensor) -> Tensor:
    return scores > -torch.inf


def _first(n: int, scores: Tensor) -> Tensor:
    allowed = _allowed(scores)
    return allowed & (allowed.cumsum(-1) <= n)


def _last(scores: Tensor) -> Tensor:
    count = _allowed(scores).cumsum(-1)
    return _allowed(scores) & (count == count[..., -1:])


def _best(scores: Tensor) -> Tensor:
    best = scores.argmax(-1, keepdim=True)
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True)


CHOICES = {"uniform": _allowed, "last": _last, "hard": _best}
