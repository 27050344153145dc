"""Switches: each gives what the same model gives that is written out by hand without the part."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batch
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import DECODER_INPUTS, ONLY, SITE_NAMES, SKIPS, InterventionSettings
from qkvtrace.snapshots.interventions import changed
from qkvtrace.snapshots.recording import recording
from qkvtrace.snapshots.sites import SITES

Build = Callable[..., Transformer]

HEADS, WIDTH = 2, 22


class ByHand:
    """The network for one sentence, in plain functions of its parameters, with switches."""

    def __init__(self, model: Transformer, *, pre: bool, switch: str) -> None:
        self.p = dict(model.named_parameters())
        self.pre = pre
        self.switch = switch

    def __call__(self, source: Tensor, target: Tensor) -> Tensor:
        """source (S,), target (T,) -> logits (T, V)."""
        encoded = self.encode(source)
        x = self.decoder_input(target, encoded)
        for layer in ("decoder.layers.0", "decoder.layers.1"):
            x = self.decoder_layer(layer, x, encoded)
        return self.linear("vocabulary", self.norm("decoder.norm", x) if self.pre else x)

    def encode(self, source: Tensor) -> Tensor:
        x = self.embedding("encoder", source)
        for layer in ("encoder.layers.0", "encoder.layers.1"):
            x = self.feed_forward(layer, self.self_attention(layer, x))
        return self.norm("encoder.norm", x) if self.pre else x

    def embedding(self, side: str, ids: Tensor) -> Tensor:
        positions = self.p[f"{side}.embed.positions"][: len(ids)]
        return self.p[f"{side}.embed.tokens.weight"][ids] * math.sqrt(WIDTH) + positions

    def decoder_input(self, target: Tensor, encoded: Tensor) -> Tensor:
        tokens = self.p["decoder.embed.tokens.weight"][target]
        if self.switch == "tokens_unscaled":
            return tokens
        if self.switch == "tokens":
            return tokens * math.sqrt(WIDTH)
        if self.switch == "positions":
            return self.p["decoder.embed.positions"][: len(target)]
        if self.switch == "encoder_output":
            return torch.stack([encoded[min(t, len(encoded) - 1)] for t in range(len(target))])
        return self.embedding("decoder", target)

    def decoder_layer(self, layer: str, x: Tensor, encoded: Tensor) -> Tensor:
        def cross_attention(y: Tensor) -> Tensor:
            return self.attention(f"{layer}.cross_attention", y, encoded)

        if self.switch == "decoder":
            return x
        if self.switch == "only_cross_attention":
            return cross_attention(self.norm(f"{layer}.after_cross_attention.norm", x, self.pre))
        if self.switch != "decoder_self_attention":
            x = self.self_attention(layer, x, causal=True)
        if self.switch == "cross_attention_keep_norm":
            x = self.residual(f"{layer}.after_cross_attention", x, torch.zeros_like)
        elif self.switch != "cross_attention":
            x = self.residual(f"{layer}.after_cross_attention", x, cross_attention)
        return x if self.switch == "feed_forward" else self.feed_forward(layer, x)

    def self_attention(self, layer: str, x: Tensor, causal: bool = False) -> Tensor:
        def attend(y: Tensor) -> Tensor:
            return self.attention(f"{layer}.self_attention", y, y, causal)

        return self.residual(f"{layer}.after_self_attention", x, attend)

    def feed_forward(self, layer: str, x: Tensor) -> Tensor:
        return self.residual(
            f"{layer}.after_feed_forward",
            x,
            lambda y: self.linear(
                f"{layer}.feed_forward.3",
                self.linear(f"{layer}.feed_forward.0", y).clamp(min=0),
            ),
        )

    def residual(self, name: str, x: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre:
            return x + part(self.norm(f"{name}.norm", x))
        return self.norm(f"{name}.norm", x + part(x))

    def attention(self, name: str, x: Tensor, y: Tensor, causal: bool = False) -> Tensor:
        heads = []
        for head in range(HEADS):
            part = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)
            q = self.linear(f"{name}.query", x)[:, part]
            k = self.linear(f"{name}.key", y)[:, part]
            v = self.linear(f"{name}.value", y)[:, part]
            powers = (q @ k.T / math.sqrt(WIDTH / HEADS)).exp()
            powers = powers.tril() if causal else powers
            heads.append(powers / powers.sum(1, keepdim=True) @ v)
        return self.linear(f"{name}.output", torch.cat(heads, 1))

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.p[f"{name}.weight"].T + self.p[f"{name}.bias"]

    def norm(self, name: str, x: Tensor, applied: bool = True) -> Tensor:
        if not applied:
            return x
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return scaled * self.p[f"{name}.weight"] + self.p[f"{name}.bias"]


@pytest.fixture
def build(transformer: Build) -> Build:
    """Build models in which no bias is 0 and no norm trivial."""

    def build(**changed: object) -> Transformer:
        model = transformer(**changed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        return model

    return build


@pytest.fixture
def batch(random_batch: Callable[..., Batch]) -> Batch:
    """A target shorter than its source, and one longer."""
    return random_batch([7, 4], [5, 9])


SWITCHES = [
    ("none", InterventionSettings()),
    *((name, InterventionSettings(decoder_input=name)) for name in DECODER_INPUTS),
    *((name, InterventionSettings(skip=name)) for name in SKIPS),
    *((f"only_{name}", InterventionSettings(only=name)) for name in ONLY),
]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("name", "settings"), SWITCHES, ids=[name for name, _ in SWITCHES])
def test_a_switch_gives_what_the_model_written_out_by_hand_gives(
    build: Build, batch: Batch, norm: str, name: str, settings: InterventionSettings
) -> None:
    model = build(norm=norm)
    by_hand = ByHand(model, pre=norm == "pre", switch=name)
    with changed(model, settings):
        logits = model(batch.source, batch.target)
    for index, (source, target) in enumerate([(7, 5), (4, 9)]):
        expected = by_hand(batch.source[index, :source], batch.target[index, :target])
        assert_close(logits[index, :target], expected, atol=1e-4, rtol=1e-4)


def test_the_names_of_sites_are_those_that_the_settings_know() -> None:
    assert tuple(site.name for site in SITES) == SITE_NAMES


def test_a_recording_shows_what_goes_on_behind_a_skipped_layer(build: Build, batch: Batch) -> None:
    model = build()
    with (
        changed(model, InterventionSettings(skip="decoder")),
        recording(model, "decoder.embedding", "decoder.layers.*.output") as record,
    ):
        model(batch.source, batch.target)
    embedding, *outputs = (values[0] for values in record.values())
    assert len(outputs) == 2
    assert all(torch.equal(output, embedding) for output in outputs)


def test_an_intervention_at_x4_is_what_only_cross_attention_gives_on(
    build: Build, batch: Batch
) -> None:
    """A hook that comes later than the switch is heard, too."""
    model = build()
    with changed(model, InterventionSettings(only="cross_attention")):
        handle = model.decoder.layers[1].cross_attention.x4.register_forward_hook(  # type: ignore[union-attr]
            lambda _tap, _inputs, value: torch.ones_like(value)
        )
        with recording(model, "decoder.output") as record:
            model(batch.source, batch.target)
        handle.remove()
    assert (record["decoder.output"][0] == 1).all()


@pytest.mark.parametrize("positions", ["sinusoidal", "none"])
def test_token_vectors_alone_need_no_positions(build: Build, batch: Batch, positions: str) -> None:
    model = build(positions=positions)
    with (
        changed(model, InterventionSettings(decoder_input="tokens")),
        recording(model, "decoder.embedding") as record,
    ):
        model(batch.source, batch.target)
    expected = model.decoder.embed.tokens.weight[batch.target] * math.sqrt(WIDTH)
    assert_close(record["decoder.embedding"][0], expected)


def test_another_encoder_output_than_the_last_is_an_error(build: Build, batch: Batch) -> None:
    model = build()
    before = model.encode(batch.source)
    with changed(model, InterventionSettings(decoder_input="encoder_output")):
        with pytest.raises(RuntimeError, match="decode what was encoded last"):
            model.decode(batch.target, before)
        first, second = model.encode(batch.source), model.encode(batch.source)
        model.decode(batch.target, second)
        with pytest.raises(RuntimeError, match="decode what was encoded last"):
            model.decode(batch.target, first)
