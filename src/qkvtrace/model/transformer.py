"""The encoder-decoder Transformer.

"Attention Is All You Need" (Vaswani et al. 2017) in the layout of the public tutorial
bentrevett/pytorch-seq2seq: learned positions, dropout after the embedding, norms after residuals.
Shapes: B sentences, S source and T target positions, D model width, V target vocabulary.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor, nn

from qkvtrace.model.attention import KeysValues
from qkvtrace.model.layers import DecoderLayer, EncoderLayer
from qkvtrace.model.taps import Tap
from qkvtrace.settings import ModelSettings


class Embedding(nn.Module):
    """Token vectors scaled by sqrt(D), plus position vectors."""

    positions: Tensor  # (max_positions, D)

    def __init__(self, vocabulary: int, settings: ModelSettings) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, settings.width)
        self.scale = math.sqrt(settings.width)
        self.limit = None if settings.positions == "none" else settings.max_positions
        self.dropout = nn.Dropout(settings.dropout)
        if settings.positions == "learned":
            self.positions = nn.Parameter(torch.empty(settings.max_positions, settings.width))
        elif settings.positions == "sinusoidal":
            table = sinusoids(settings.max_positions, settings.width)
            self.register_buffer("positions", table, persistent=False)

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """ids (B, T), the first at position `start` -> (B, T, D)."""
        x = self.tokens(ids) * self.scale
        if self.limit is not None:
            end = start + ids.shape[1]
            assert end <= self.limit, f"{end} positions, but the table has {self.limit}"
            x = x + self.positions[start:end]
        dropped: Tensor = self.dropout(x)
        return dropped


def sinusoids(positions: int, width: int) -> Tensor:
    """The paper's fixed position vectors (section 3.5), (positions, width)."""
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angle = torch.arange(positions)[:, None] * rate  # (positions, width / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


class Encoder(nn.Module):
    """Source tokens to vectors that know their sentence."""

    def __init__(self, vocabulary: int, settings: ModelSettings) -> None:
        super().__init__()
        self.embed = Embedding(vocabulary, settings)
        self.embedding = Tap("sentence", "position", "d_model")
        self.layers = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.layers))
        self.norm = final_norm(settings)
        self.output = Tap("sentence", "position", "d_model")

    def forward(self, source: Tensor, mask: Tensor) -> Tensor:
        """source (B, S), mask (B, 1, 1, S) True at words -> (B, S, D)."""
        x = self.embedding(self.embed(source))
        for layer in self.layers:
            x = layer(x, mask)
        return self.output(self.norm(x))


@dataclass
class Cache:
    """What decoding remembers of a source and of the target positions so far, for each layer."""

    source_mask: Tensor  # (B, 1, 1, S), True at words
    source: list[KeysValues]
    past: list[KeysValues] = field(default_factory=list)

    @property
    def length(self) -> int:
        """How many target positions were decoded."""
        return self.past[0].k.shape[2] if self.past else 0


class Decoder(nn.Module):
    """Target tokens so far, and the source, to vectors from which the next tokens are read."""

    def __init__(self, vocabulary: int, settings: ModelSettings) -> None:
        super().__init__()
        self.embed = Embedding(vocabulary, settings)
        self.embedding = Tap("sentence", "position", "d_model")
        self.layers = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.layers))
        self.norm = final_norm(settings)
        self.output = Tap("sentence", "position", "d_model")

    def keys_values(self, encoded: Tensor) -> list[KeysValues]:
        """encoded (B, S, D) -> what each layer's cross-attention attends to."""
        layers = cast(Iterable[DecoderLayer], self.layers)
        return [layer.cross_attention.keys_values(encoded) for layer in layers]

    def forward(self, target: Tensor, cache: Cache) -> Tensor:
        """target (B, T), the tokens that follow those in `cache`, which grows -> (B, T, D)."""
        start = cache.length
        x = self.embedding(self.embed(target, start))
        mask = causal_mask(target.shape[1], start, target.device)
        past, cache.past = cache.past, []
        for index, layer in enumerate(self.layers):
            before = past[index] if past else None
            x, so_far = layer(x, mask, cache.source[index], cache.source_mask, before)
            cache.past.append(so_far)
        return self.output(self.norm(x))


class Transformer(nn.Module):
    """Source and target tokens to the logits of each next target token."""

    def __init__(
        self, settings: ModelSettings, *, source_vocabulary: int, target_vocabulary: int, pad: int
    ) -> None:
        """source_vocabulary, target_vocabulary: how many tokens; pad: padding's id in both."""
        super().__init__()
        self.settings = settings
        self.pad = pad
        self.encoder = Encoder(source_vocabulary, settings)
        self.decoder = Decoder(target_vocabulary, settings)
        self.vocabulary = nn.Linear(settings.width, target_vocabulary)
        self.logits = Tap("sentence", "position", "vocabulary")
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        if settings.tied_embeddings:
            self.vocabulary.weight = self.decoder.embed.tokens.weight

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) from <sos> on -> logits (B, T, V) of the tokens after."""
        return self.decode(target, self.encode(source))

    def encode(self, source: Tensor) -> Cache:
        """source (B, S) -> what decoding needs of it."""
        mask = (source != self.pad)[:, None, None, :]
        encoded = self.encoder(source, mask)
        return Cache(mask, self.decoder.keys_values(encoded))

    def decode(self, target: Tensor, cache: Cache) -> Tensor:
        """target (B, T), the tokens that follow those in `cache`, which grows -> (B, T, V)."""
        return self.logits(self.vocabulary(self.decoder(target, cache)))

    def load_parameters(self, tensors: Mapping[str, Tensor]) -> None:
        """Take the values of `tensors`, by parameter name.

        Raises ValueError if they are another model's.
        """
        own = dict(self.named_parameters())
        if {name: p.shape for name, p in own.items()} != {n: t.shape for n, t in tensors.items()}:
            raise ValueError("expected the parameters of this model, found others")
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(tensors[name])

    @property
    def max_positions(self) -> int | None:
        """The longest source and target, in tokens with <sos> and <eos>; None: no limit."""
        return self.encoder.embed.limit


def causal_mask(new: int, past: int, device: torch.device) -> Tensor | None:
    """(1, 1, new, past + new), True where a position may look: at itself and before.

    Padding stands at the end, so that no word looks at it, and needs no mask of its own. A single
    new position sees everything: None.
    """
    if new == 1:
        return None
    allowed = torch.ones(new, past + new, dtype=torch.bool, device=device)
    return allowed.tril(past)[None, None]


def final_norm(settings: ModelSettings) -> nn.Module:
    """Pre-norm layers leave their sum unnormalised; post-norm layers do not."""
    return nn.LayerNorm(settings.width) if settings.norm == "pre" else nn.Identity()
