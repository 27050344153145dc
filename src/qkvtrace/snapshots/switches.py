"""Switches: parts of the decoder skipped, or given another input, by hooks on its modules.

What is skipped still computes, so that its taps can be watched and the cache grows; nothing of it
goes on. Shapes: B sentences, S source and T target positions, D model width.
"""

from collections.abc import Callable, Iterator
from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from qkvtrace.errors import UserError
from qkvtrace.model.layers import DecoderLayer
from qkvtrace.model.transformer import Cache, Embedding, Encoder, Transformer
from qkvtrace.settings import InterventionSettings

Handles = Iterator[RemovableHandle]


def switch(model: Transformer, settings: InterventionSettings) -> Handles:
    """Register the hooks for what the settings say of the decoder's input and parts.

    Raises UserError if the decoder's input shall be positions, and the model has none.
    """
    if settings.decoder_input:
        yield from decoder_input(model, settings.decoder_input)
    if settings.skip:
        yield from skip(model, settings.skip)
    if settings.only:
        yield from only_cross_attention(model)


def skip(model: Transformer, part: str) -> Handles:
    """Leave a part out of each decoder layer, one of settings.SKIPS.

    decoder: the layer passes its input on; a pre-norm model's final norm stays.
    decoder_self_attention, cross_attention, feed_forward: that part, its residual and its norm
        pass their input on.
    cross_attention_keep_norm: cross-attention's x4 is 0; its residual and norm stay.
    """
    for layer in _layers(model):
        if part == "decoder":
            yield from _skip_layer(layer)
        elif part == "cross_attention_keep_norm":
            yield _replace(layer.cross_attention.x4, torch.zeros_like)
        else:
            name = part.removeprefix("decoder_")
            yield _skip_residual(layer.get_submodule(f"after_{name}"))


def only_cross_attention(model: Transformer) -> Handles:
    """Make the output of each decoder layer its cross-attention's x4 alone.

    Neither self-attention nor feed-forward, no residual and no norm, save that a pre-norm layer
    gives its cross-attention norm(x); the final norm of a pre-norm model stays.
    """
    for layer in _layers(model):
        yield _skip_residual(layer.after_self_attention)
        yield from _skip_sum(layer)
        yield _skip_residual(layer.after_feed_forward)


def decoder_input(model: Transformer, kind: str) -> Handles:
    """Give the decoder another input than its embedding, one of settings.DECODER_INPUTS.

    tokens_unscaled: token vectors without positions, not scaled by sqrt(D).
    tokens: token vectors, scaled, without positions.
    positions: position vectors alone. Raises UserError for a model that has none.
    encoder_output: at target position t the encoder's output at source position t, and beyond the
        source's end that of its <eos>. Decode what was encoded last, else RuntimeError.
    """
    embed = model.decoder.embed
    if kind == "encoder_output":
        yield from _encoder_output(model)
    elif kind == "positions":
        if embed.limit is None:
            raise UserError("decoder_input: expected a model with positions, found positions=none")
        yield _embed(embed, lambda ids, start: embed.positions[start : start + ids.shape[1]])
    else:
        scale = embed.scale if kind == "tokens" else 1.0
        yield _embed(embed, lambda ids, _start: embed.tokens(ids) * scale)


def _layers(model: Transformer) -> Iterator[DecoderLayer]:
    return cast(Iterator[DecoderLayer], iter(model.decoder.layers))


def _replace(module: nn.Module, function: Callable[[Tensor], Tensor]) -> RemovableHandle:
    return module.register_forward_hook(lambda _module, _inputs, value: function(value))


def _skip_residual(residual: nn.Module) -> RemovableHandle:
    return residual.register_forward_hook(lambda _module, inputs, _output: inputs[0])


def _skip_layer(layer: DecoderLayer) -> Handles:
    # At the output tap, so that it shows what goes on; the layer's own output has the cache's too.
    entered: list[Tensor] = []

    def enter(_layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        entered[:] = inputs[:1]

    yield layer.register_forward_pre_hook(enter)
    yield _replace(layer.output, lambda _value: entered.pop())


def _skip_sum(layer: DecoderLayer) -> Handles:
    """Cross-attention without the sum and the norm around it."""
    x4: list[Tensor] = []

    def attended(_attention: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        x4[:] = [output]

    yield layer.cross_attention.register_forward_hook(attended)
    yield _replace(layer.after_cross_attention, lambda _value: x4.pop())


def _embed(embed: Embedding, function: Callable[[Tensor, int], Tensor]) -> RemovableHandle:
    """Put function(ids (B, T), start), which broadcasts to (B, T, D), in place of an embedding."""

    def hook(_embed: nn.Module, inputs: tuple[Tensor, int], value: Tensor) -> Tensor:
        ids, start = inputs
        dropped: Tensor = embed.dropout(function(ids, start).expand_as(value))
        return dropped

    return embed.register_forward_hook(hook)


def _encoder_output(model: Transformer) -> Handles:
    latest: list[Tensor] = []  # output (B, S, D), mask (B, 1, 1, S)

    def encoded(_encoder: Encoder, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        latest[:] = output, inputs[1]

    def check(_decoder: nn.Module, inputs: tuple[Tensor, Cache]) -> None:
        if not latest or inputs[1].source_mask is not latest[1]:
            raise RuntimeError("decoder_input=encoder_output: decode what was encoded last")

    def at_same_position(ids: Tensor, start: int) -> Tensor:
        output, mask = latest
        position = torch.arange(start, start + ids.shape[1], device=ids.device)  # (T,)
        last = mask.sum(-1)[:, 0] - 1  # (B, 1)
        index = position.minimum(last)  # (B, T)
        return output.gather(1, index[..., None].expand(-1, -1, output.shape[-1]))

    yield model.encoder.register_forward_hook(encoded)
    yield model.decoder.register_forward_pre_hook(check)
    yield _embed(model.decoder.embed, at_same_position)
