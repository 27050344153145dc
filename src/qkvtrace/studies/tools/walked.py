"""A sentence's walk through one head of a run's model: by hand, and as the model goes it."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import cast

from torch import Tensor, nn

from qkvtrace.errors import UserError
from qkvtrace.model.attention import Attention
from qkvtrace.snapshots.sites import Site
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.by_hand import Given, Step, steps
from qkvtrace.studies.tools.weights import Head

TAPS = ("q", "k", "v", "scores", "weights", "x1", "x4")


@dataclass(frozen=True)
class Walked:
    """One head's steps by name, in order, and what the model made of the same sentence."""

    epoch: int
    steps: dict[str, Step]
    taps: dict[str, Tensor]  # by Step.tap, two-dimensional
    queries: list[str]  # what stands beside each query
    keys: list[str]

    def side(self, step: str) -> list[str]:
        """What stands beside the rows of a step that has a row a position."""
        return self.keys if step in ("K", "V", "X encoder") else self.queries


def walked(subject: Subject, text: str, epoch: int, site: Site, head: Head) -> Walked:
    """Walk through a head of the model of an epoch, for one sentence.

    Raises UserError if there are no numbers on the way.
    """
    layer, number = head
    attention = cast(
        Attention, subject.trained.model.get_submodule(site.module.format(layer=layer))
    )
    entered: dict[str, Tensor] = {}

    def enter(name: str, _linear: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        entered[name] = inputs[0][0].cpu()  # of the first and only sentence

    with ExitStack() as scope:
        for name, linear in (("queries", attention.query), ("keys", attention.key)):
            scope.enter_context(linear.register_forward_pre_hook(partial(enter, name)))
        snapshot = subject.observe([text], epoch, [site.tap(layer, tap) for tap in TAPS])
    if site.queries == site.keys:
        entered["keys"] = entered["queries"]
    given = Given(entered["queries"], entered["keys"], site.name == "decoder_self")
    way = steps(attention, given, number)
    if not all(step.finite.numel() for step in way.values()):
        raise UserError(f"no number is finite at epoch {epoch}: the training has diverged")
    sentence = snapshot.sentences[0]
    values = {tap: snapshot.values[site.tap(layer, tap)][0] for tap in TAPS}
    return Walked(
        epoch,
        way,
        {tap: value if tap == "x4" else value[number] for tap, value in values.items()},
        weights.queries(site, sentence),
        site.tokens(sentence, "key"),
    )


def difference(step: Step, taps: Mapping[str, Tensor]) -> float | None:
    """The largest difference of a step's numbers from the model's; None if no tap shows them."""
    if step.tap is None:
        return None
    finite = step.value.isfinite()
    return float((step.value - taps[step.tap])[finite].abs().max())
