"""What training makes small: the cross-entropy of each next target token."""

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import cross_entropy

from qkvtrace.corpus.batches import Batch
from qkvtrace.corpus.vocabulary import PAD


def loss_sum(
    model: Callable[[Tensor, Tensor], Tensor], batch: Batch, label_smoothing: float = 0.0
) -> Tensor:
    """Summed over the batch's target tokens, in nats; padding counts nothing.

    `model` is a Transformer, or a function of source and target ids that does what one does. The
    decoder is given the reference up to a token and is asked for that token (teacher forcing).
    """
    logits = model(batch.source, batch.target[:, :-1])  # (B, T - 1, V)
    return cross_entropy(
        logits.flatten(0, 1),
        batch.target[:, 1:].flatten(),
        ignore_index=PAD,
        label_smoothing=label_smoothing,
        reduction="sum",
    )
