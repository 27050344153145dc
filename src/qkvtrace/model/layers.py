"""The layers of encoder and decoder: attention and feed-forward, each with a residual and a norm.

Shapes: B sentences, S source and T target positions, D model width, F feed-forward width.
"""

from collections.abc import Callable

from torch import Tensor, nn

from qkvtrace.model.attention import Attention, KeysValues
from qkvtrace.model.taps import Tap
from qkvtrace.settings import ModelSettings


class FeedForward(nn.Sequential):
    """D -> F -> D at each position by itself, with ReLU between (section 3.3 of the paper)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(
            nn.Linear(settings.width, settings.feed_forward),
            nn.ReLU(),
            nn.Dropout(settings.dropout),
            nn.Linear(settings.feed_forward, settings.width),
        )


class Residual(nn.Module):
    """x + part(x), normalised after the sum (the paper's "post") or before the part ("pre")."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(settings.width)
        self.dropout = nn.Dropout(settings.dropout)
        self.pre = settings.norm == "pre"

    def forward(self, x: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if self.pre:
            return x + self.dropout(part(self.norm(x)))
        normalised: Tensor = self.norm(x + self.dropout(part(x)))
        return normalised


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.self_attention = attention(settings)
        self.after_self_attention = Residual(settings)
        self.feed_forward = FeedForward(settings)
        self.after_feed_forward = Residual(settings)
        self.output = Tap("sentence", "position", "d_model")

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, S, D), mask (B, 1, 1, S) True at words -> (B, S, D)."""

        def attend(y: Tensor) -> Tensor:
            out: Tensor = self.self_attention(y, self.self_attention.keys_values(y), mask)
            return out

        x = self.after_self_attention(x, attend)
        x = self.after_feed_forward(x, self.feed_forward)
        return self.output(x)


class DecoderLayer(nn.Module):
    """Self-attention over the words so far, attention to the source, then feed-forward."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.self_attention = attention(settings)
        self.after_self_attention = Residual(settings)
        self.cross_attention = attention(settings)
        self.after_cross_attention = Residual(settings)
        self.feed_forward = FeedForward(settings)
        self.after_feed_forward = Residual(settings)
        self.output = Tap("sentence", "position", "d_model")

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        source: KeysValues,
        source_mask: Tensor,
        past: KeysValues | None = None,
    ) -> tuple[Tensor, KeysValues]:
        """One layer over T new positions.

        Args:
            x: (B, T, D), the new positions.
            mask: (1, 1, T, positions so far), True where attending is allowed; None: everywhere.
            source: the encoder's output as this layer's cross-attention projects it.
            source_mask: (B, 1, 1, S), True at words.
            past: k and v of the positions before x, when they were decoded earlier.

        Returns:
            (B, T, D), and k and v of all positions so far.
        """
        so_far: list[KeysValues] = []

        def attend(y: Tensor) -> Tensor:
            so_far.append(self.self_attention.keys_values(y).after(past))
            out: Tensor = self.self_attention(y, so_far[0], mask)
            return out

        x = self.after_self_attention(x, attend)
        x = self.after_cross_attention(x, lambda y: self.cross_attention(y, source, source_mask))
        x = self.after_feed_forward(x, self.feed_forward)
        return self.output(x), so_far[0]


def attention(settings: ModelSettings) -> Attention:
    """An attention as the settings want it."""
    return Attention(
        settings.width,
        settings.heads,
        dropout=settings.dropout,
        scaled=settings.scaled_scores,
        projections=settings.projections,
        implementation=settings.attention,
    )
