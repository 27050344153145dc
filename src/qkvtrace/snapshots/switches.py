"""Switches: parts of the decoder skipped, or given another input, by hooks on its modules.

What is skipped still computes, so that its taps can be watched and the cache grows; nothing of it
goes on. Shapes: B sentences, S source and T target positions, D model width.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from qkvtrace.errors import UserError
from qkvtrace.model.layers import DecoderLayer
from qkvtrace.model.transformer import Cache, Embedding, Encoder, Transformer
from qkvtrace.settings import InterventionSettings

Handles = Iterator[RemovableHandle]


@contextmanager
def switched(model: Transformer, settings: InterventionSettings) -> Iterator[None]:
    """Switch parts of the decoder within a scope; a pre-norm model's final norm always stays.

    decoder_input, in place of the decoder's embedding:
        tokens_unscaled: token vectors without positions, not scaled by sqrt(D).
        tokens: token vectors, scaled, without positions.
        positions: position vectors alone.
        encoder_output: at target position t the encoder's output at source position t; beyond the
            source's end, that of its <eos>.
    skip, in each decoder layer:
        decoder: all of it; a layer passes its input on.
        decoder_self_attention, cross_attention, feed_forward: that part, its residual and its
            norm; they pass their input on.
        cross_attention_keep_norm: what cross-attention adds, its x4, is 0; residual and norm stay.
    only, in each decoder layer:
        cross_attention: the output is its x4 alone. Neither self-attention nor feed-forward, no
            residual and no norm, but that a pre-norm layer attends from norm(x).

    Raises:
        UserError: for positions, if the model has none.
        RuntimeError: for encoder_output, when another source is decoded than was encoded last.
    """
    with ExitStack() as scope:
        for handle in _handles(model, settings):
            scope.enter_context(handle)  # removes its hook on leaving
        yield


def _handles(model: Transformer, settings: InterventionSettings) -> Handles:
    if settings.decoder_input:
        yield from _give(model, settings.decoder_input)
    for layer in cast(Iterator[DecoderLayer], iter(model.decoder.layers)):
        if settings.skip:
            yield from _skip(layer, settings.skip)
        if settings.only:
            yield from _only_cross_attention(layer)


def _give(model: Transformer, kind: str) -> Handles:
    embed = model.decoder.embed
    if kind == "encoder_output":
        yield from _give_encoder_output(model)
    elif kind == "positions":
        if embed.limit is None:
            raise UserError(
                "decoder_input: expected a model with positions, found model.positions=none"
            )
        yield _embed(embed, lambda ids, start: embed.positions[start : start + ids.shape[1]])
    else:
        scale = embed.scale if kind == "tokens" else 1.0
        yield _embed(embed, lambda ids, _start: embed.tokens(ids) * scale)


def _give_encoder_output(model: Transformer) -> Handles:
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
        index = position.minimum(last)[..., None]  # (B, T, 1)
        return output.gather(1, index.expand(-1, -1, output.shape[-1]))

    yield model.encoder.register_forward_hook(encoded)
    yield model.decoder.register_forward_pre_hook(check)
    yield _embed(model.decoder.embed, at_same_position)


def _embed(embed: Embedding, function: Callable[[Tensor, int], Tensor]) -> RemovableHandle:
    """Put function(ids (B, T), start), which broadcasts to (B, T, D), in place of an embedding."""

    def hook(_embed: nn.Module, inputs: tuple[Tensor, int], value: Tensor) -> Tensor:
        ids, start = inputs
        dropped: Tensor = embed.dropout(function(ids, start).expand_as(value))
        return dropped

    return embed.register_forward_hook(hook)


def _skip(layer: DecoderLayer, part: str) -> Handles:
    if part == "decoder":
        yield from _skip_all(layer)
    elif part == "cross_attention_keep_norm":
        yield _replace(layer.cross_attention.x4, torch.zeros_like)
    else:
        name = part.removeprefix("decoder_")
        yield _pass_on(layer.get_submodule(f"after_{name}"))


def _skip_all(layer: DecoderLayer) -> Handles:
    # At the output tap, so that it shows what goes on; the layer returns the cache's part, too.
    entered: list[Tensor] = []

    def enter(_layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        entered[:] = inputs[:1]

    yield layer.register_forward_pre_hook(enter)
    yield _replace(layer.output, lambda _value: entered.pop())


def _only_cross_attention(layer: DecoderLayer) -> Handles:
    x4: list[Tensor] = []

    def attended(_attention: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        x4[:] = [output]

    yield _pass_on(layer.after_self_attention)
    yield layer.cross_attention.register_forward_hook(attended)
    yield _replace(layer.after_cross_attention, lambda _value: x4.pop())
    yield _pass_on(layer.after_feed_forward)


def _pass_on(residual: nn.Module) -> RemovableHandle:
    return residual.register_forward_hook(lambda _module, inputs, _output: inputs[0])


def _replace(module: nn.Module, function: Callable[[Tensor], Tensor]) -> RemovableHandle:
    return module.register_forward_hook(lambda _module, _inputs, value: function(value))
