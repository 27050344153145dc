"""Recording: what passes the taps within a scope."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from qkvtrace.model.mode import evaluating
from qkvtrace.model.taps import Tap, matching, taps

Recording = dict[str, list[Tensor]]


@contextmanager
def recording(model: nn.Module, *patterns: str) -> Iterator[Recording]:
    """Keep a copy of each value that passes the taps matching `patterns`, on the CPU.

        with recording(model, "encoder.layers.*.self_attention.q") as record:
            model(source, target)
        q = record["encoder.layers.0.self_attention.q"][0]  # (sentence, head, position, d_head)

    Within the scope the model is in eval mode and makes no gradients; leaving it, also by an
    exception, puts everything back. A name holds one tensor for each time its tap was passed.

    Raises:
        KeyError: if a pattern matches no tap; the message lists all taps.
        RuntimeError: if a tap was never passed, as when the scope runs another model, or the
            compiled form of this one.
    """
    watched = matching(model, *patterns)
    record: Recording = {name: [] for name in watched}
    handles = [tap.register_forward_hook(_keep(record[name])) for name, tap in watched.items()]
    try:
        with evaluating(model):
            yield record
    finally:
        for handle in handles:
            handle.remove()
    silent = [name for name, values in record.items() if not values]
    if silent:
        raise RuntimeError(
            f"nothing passed {', '.join(silent)} while recording; the taps are "
            f"{', '.join(taps(model))}"
        )


def _keep(values: list[Tensor]):  # type: ignore[no-untyped-def]  # a forward hook of PyTorch's
    def hook(_tap: Tap, _inputs: tuple[Tensor, ...], value: Tensor) -> None:
        values.append(value.detach().to("cpu", copy=True))

    return hook
