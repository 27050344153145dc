"""Recording: copies of what passes, and everything else as it was."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batch, Batches
from qkvtrace.corpus.prepared import Corpus
from qkvtrace.model.taps import taps
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import TrainingSettings
from qkvtrace.snapshots.probes import observe, probes
from qkvtrace.snapshots.recording import Recording, recording
from qkvtrace.snapshots.sites import SITES
from qkvtrace.training.trainer import Trainer

Build = Callable[..., Transformer]


@pytest.fixture
def batch(random_batch: Callable[..., Batch]) -> Batch:
    return random_batch([4, 7, 2], [5, 3, 6])


def record_all(model: Transformer, batch: Batch) -> Recording:
    with recording(model, "*") as record:
        model(batch.source, batch.target)
    return record


@pytest.mark.parametrize(("scaled", "scale"), [(True, 11**-0.5), (False, 1.0)])
def test_recorded_values_fit_together_as_the_paper_says(
    transformer: Build, batch: Batch, scaled: bool, scale: float
) -> None:
    model = transformer(scaled_scores=scaled)
    values = {name: value for name, (value,) in record_all(model, batch).items()}
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    words = (batch.source != model.pad)[:, None, None]
    masks = {"encoder_self": words, "decoder_self": causal, "cross": words}
    for site in SITES:
        for layer in range(2):
            q, k, v, scores, weights, x1, x4 = (
                values[site.tap(layer, name)]
                for name in ("q", "k", "v", "scores", "weights", "x1", "x4")
            )
            products = torch.einsum("bhtd,bhsd->bhts", q, k) * scale
            masked = products.masked_fill(~masks[site.name], -torch.inf)
            assert_close(scores, masked)
            assert_close(weights, scores.exp() / scores.exp().sum(-1, keepdim=True))
            assert_close(x1, torch.einsum("bhts,bhsd->bhtd", weights, v))
            output = f"{site.module.format(layer=layer)}.output"
            parameters = model.get_submodule(output).state_dict()
            joined = torch.cat([x1[:, 0], x1[:, 1]], -1)
            assert_close(x4, joined @ parameters["weight"].T + parameters["bias"])
    expected = values["decoder.output"] @ model.vocabulary.weight.T + model.vocabulary.bias
    assert_close(values["logits"], expected)


@pytest.mark.parametrize("attention", ["explicit", "fused"])
def test_recording_changes_no_result(transformer: Build, batch: Batch, attention: str) -> None:
    model = transformer(attention=attention)
    unseen = model(batch.source, batch.target)
    assert_close(record_all(model, batch)["logits"][0], unseen, atol=1e-5, rtol=0)
    assert torch.equal(model(batch.source, batch.target), unseen)


def test_recorded_values_are_copies(transformer: Build, batch: Batch) -> None:
    model = transformer()
    model.logits.register_forward_hook(lambda _tap, _inputs, value: value)
    passed: list[Tensor] = []
    with recording(model, "*") as record:
        passed.append(model(batch.source, batch.target))
    before = {name: value.clone() for name, (value,) in record.items()}
    with torch.no_grad():
        passed[0].zero_()
        for parameter in model.parameters():
            parameter.zero_()
    assert record["logits"][0].count_nonzero() > 0
    assert all(torch.equal(value, before[name]) for name, (value,) in record.items())
    assert not any(value.requires_grad for (value,) in record.values())


def test_a_name_holds_one_tensor_for_each_pass(transformer: Build, batch: Batch) -> None:
    model = transformer()
    with recording(model, "*coder.output") as record:
        cache = model.encode(batch.source)
        for part in batch.target.split(2, dim=1):
            model.decode(part, cache)
    lengths = {name: [value.shape[1] for value in values] for name, values in record.items()}
    assert lengths == {"encoder.output": [7], "decoder.output": [2, 2, 2]}


@pytest.mark.parametrize("failing", [False, True])
def test_modes_gradients_and_hooks_are_put_back(
    transformer: Build, batch: Batch, failing: bool
) -> None:
    model = transformer(dropout=0.3).train()
    model.decoder.layers[1].eval()
    modes = {name: module.training for name, module in model.named_modules()}
    try:
        with recording(model, "*"):
            assert not any(module.training for module in model.modules())
            assert not torch.is_grad_enabled()
            assert all(tap.watched for tap in taps(model).values())
            model(batch.source, batch.target)
            if failing:
                raise InterruptedError
    except InterruptedError:
        assert failing
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert torch.is_grad_enabled()
    assert not any(tap.watched for tap in taps(model).values())


def test_a_tap_that_nothing_passes_is_an_error_that_names_it(
    transformer: Build, batch: Batch
) -> None:
    model, other = transformer(), transformer()

    def record() -> None:
        with recording(model, "*coder.output", "decoder.embedding"):
            model.encode(batch.source)
            other(batch.source, batch.target)

    with pytest.raises(RuntimeError, match=r"nothing passed decoder\.embedding, decoder\.output "):
        record()


def test_a_mistyped_name_is_an_error_and_leaves_no_hook(transformer: Build) -> None:
    model = transformer()
    with pytest.raises(KeyError, match="no tap matches 'logit'"), recording(model, "*", "logit"):
        pass
    assert not any(tap.watched for tap in taps(model).values())


def test_an_error_in_the_scope_is_not_hidden_by_taps_that_nothing_passed(
    transformer: Build,
) -> None:
    with pytest.raises(InterruptedError), recording(transformer(), "*"):
        raise InterruptedError


def test_observing_leaves_a_training_bit_identical(
    transformer: Build,
    training_settings: Callable[..., TrainingSettings],
    batches: Callable[..., Batches],
    corpus: Corpus,
) -> None:
    def trained(observing: bool) -> dict[str, Any]:
        trainer = Trainer(transformer(dropout=0.3), training_settings(), last_step=8)
        torch.manual_seed(3)
        for epoch in (1, 2):
            for batch in batches().shuffled(seed=0, epoch=epoch):
                trainer.train_step(batch)
                if observing:
                    observe(
                        trainer.model, probes(corpus)[0], corpus.source, corpus.target, epoch, 0
                    )
        return trainer.model_tensors() | trainer.training_tensors()

    alone, observed = trained(observing=False), trained(observing=True)
    assert alone.keys() == observed.keys()
    assert [name for name in alone if not torch.equal(alone[name], observed[name])] == []
