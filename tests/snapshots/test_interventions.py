"""Interventions: other values pass a tap within a scope, and nothing stays behind."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batch
from qkvtrace.model.taps import taps
from qkvtrace.model.transformer import Transformer
from qkvtrace.snapshots.interventions import intervening
from qkvtrace.snapshots.recording import recording

Build = Callable[..., Transformer]

LENGTHS = [4, 7, 2]
CROSS = "decoder.layers.*.cross_attention"


@pytest.fixture
def batch(random_batch: Callable[..., Batch]) -> Batch:
    return random_batch(LENGTHS, [5, 3, 6])


def uniform(weights: Tensor) -> Tensor:
    allowed = (weights > 0).float()
    return allowed / allowed.sum(-1, keepdim=True)


def watched(model: Transformer) -> list[str]:
    return [name for name, tap in taps(model).items() if tap.watched]


@pytest.mark.parametrize("attention", ["explicit", "fused"])
def test_uniform_weights_make_x1_the_mean_of_the_allowed_values(
    transformer: Build, batch: Batch, attention: str
) -> None:
    model = transformer(attention=attention)
    with (
        intervening(model, {f"{CROSS}.weights": uniform}),
        recording(model, f"{CROSS}.v", f"{CROSS}.x1", f"{CROSS}.weights") as record,
    ):
        changed = model(batch.source, batch.target)
    for layer in range(2):
        v, x1, weights = (
            record[f"decoder.layers.{layer}.cross_attention.{name}"][0]
            for name in ("v", "x1", "weights")
        )
        for sentence, length in enumerate(LENGTHS):
            mean = v[sentence, :, :length].sum(1) / length  # (H, K)
            assert_close(x1[sentence], mean[:, None].expand(2, 6, 11), atol=1e-6, rtol=1e-5)
            share = torch.full((2, 6, length), 1 / length)
            assert_close(weights[sentence, :, :, :length], share)
    assert (changed - model(batch.source, batch.target)).abs().max() > 1e-2


def test_replacing_a_value_by_itself_changes_nothing(transformer: Build, batch: Batch) -> None:
    model = transformer()
    expected = model(batch.source, batch.target)
    with intervening(model, {"*": torch.clone}):
        assert torch.equal(model(batch.source, batch.target), expected)


def test_what_replaces_a_value_goes_on_through_the_network(
    transformer: Build, batch: Batch
) -> None:
    model = transformer()
    with intervening(model, {"decoder.output": torch.zeros_like}):
        logits = model(batch.source, batch.target)
    assert torch.equal(logits, model.vocabulary.bias.expand_as(logits))


def test_a_changed_shape_is_an_error_that_names_the_tap_and_both_shapes(
    transformer: Build, batch: Batch
) -> None:
    model = transformer()
    expected = (
        r"an intervention at encoder\.layers\.1\.self_attention\.q expected shape "
        r"\(3, 2, 7, 11\), found \(3, 2, 6, 11\)"
    )
    with (
        pytest.raises(ValueError, match=expected),
        intervening(model, {"encoder.layers.1.self_attention.q": lambda q: q[:, :, :-1]}),
    ):
        model(batch.source, batch.target)
    assert watched(model) == []


def test_hooks_are_removed_on_leaving_and_on_exceptions(transformer: Build) -> None:
    model = transformer()
    with intervening(model, {"*.q": torch.zeros_like, "logits": torch.zeros_like}):
        assert len(watched(model)) == 7
    assert watched(model) == []
    with pytest.raises(InterruptedError), intervening(model, {"*": torch.zeros_like}):
        raise InterruptedError
    assert watched(model) == []


def test_a_mistyped_name_among_good_ones_is_an_error_and_leaves_no_hook(
    transformer: Build,
) -> None:
    model = transformer()
    with (
        pytest.raises(KeyError, match=r"no tap matches 'logit'; the taps are encoder.embedding, "),
        intervening(model, {"*.q": torch.zeros_like, "logit": torch.zeros_like}),
    ):
        pass
    assert watched(model) == []
