"""Adam over one vector takes the steps of PyTorch's own."""

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batch
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import TrainingSettings
from qkvtrace.training.objective import loss_sum
from qkvtrace.training.optimizer import Adam, as_vector

Build = Callable[..., Transformer]
Settings = Callable[..., TrainingSettings]

PEERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
RATES = [0.01, 0.03, 0.02, 0.005, 0.001, 0.04, 0.01]


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("tied", [False, True])
def test_seven_steps_are_pytorch_s_over_separate_parameters_within_1e_7(
    transformer: Build,
    training_settings: Settings,
    random_batch: Callable[..., Batch],
    name: str,
    decay: float,
    tied: bool,
) -> None:
    own, peer = transformer(tied_embeddings=tied), transformer(tied_embeddings=tied)
    optimizer = Adam(as_vector(own), training_settings(optimizer=name, weight_decay=decay))
    reference = PEERS[name](
        peer.parameters(), betas=(0.9, 0.98), weight_decay=decay, eps=1e-8, fused=True
    )
    for seed, rate in enumerate(RATES):
        optimizer.gradient.zero_()
        loss_sum(own, random_batch([4, 7, 2], [5, 3, 6], seed)).backward()
        for parameter, same in zip(peer.parameters(), own.parameters(), strict=True):
            assert same.grad is not None
            parameter.grad = same.grad.clone()
        reference.param_groups[0]["lr"] = rate
        reference.step()
        optimizer.step(rate)
    for parameter, expected in zip(own.parameters(), peer.parameters(), strict=True):
        assert_close(parameter, expected, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("name", PEERS)
def test_seven_steps_are_bit_equal_to_pytorch_s_over_one_vector(
    transformer: Build, training_settings: Settings, name: str
) -> None:
    optimizer = Adam(as_vector(transformer()), training_settings(optimizer=name, weight_decay=0.1))
    vector = optimizer.vector.clone().requires_grad_()
    reference = PEERS[name]([vector], betas=(0.9, 0.98), weight_decay=0.1, fused=True)
    for rate in RATES:
        optimizer.gradient.normal_()
        vector.grad = optimizer.gradient.clone()
        reference.param_groups[0]["lr"] = rate
        reference.step()
        optimizer.step(rate)
        assert torch.equal(optimizer.vector, vector)


def test_the_first_step_by_hand(training_settings: Settings) -> None:
    # Bias-corrected mean and root mean square are g and |g|: each number moves by the rate.
    model = torch.nn.Linear(3, 1, bias=False)
    model.weight.data = torch.tensor([[1.0, 2.0, 3.0]])
    optimizer = Adam(as_vector(model), training_settings())
    optimizer.gradient.copy_(torch.tensor([5.0, -0.01, 0.0]))
    optimizer.step(0.25)
    assert_close(model.weight.detach(), torch.tensor([[0.75, 2.25, 3.0]]), atol=1e-6, rtol=0)


def test_parameters_and_gradients_are_views_of_one_vector(
    transformer: Build, training_settings: Settings, random_batch: Callable[..., Batch]
) -> None:
    model, same = transformer(tied_embeddings=True), transformer(tied_embeddings=True)
    optimizer = Adam(as_vector(model), training_settings())
    batch = random_batch([4, 7, 2], [5, 3, 6])
    for each in (model, same):
        loss_sum(each, batch).backward()
    for name, vector in (("data", optimizer.vector), ("grad", optimizer.gradient)):
        expected = [getattr(parameter, name).flatten() for parameter in same.parameters()]
        assert_close(vector, torch.cat(expected))
    optimizer.vector.fill_(7.0)
    assert all((parameter == 7.0).all() for parameter in model.parameters())
    optimizer.gradient.zero_()
    assert all((parameter.grad == 0).all() for parameter in model.parameters())  # type: ignore[union-attr]


def test_a_restored_state_goes_on_as_the_original(
    transformer: Build, training_settings: Settings
) -> None:
    one, other = (Adam(as_vector(transformer()), training_settings()) for _ in range(2))
    for _ in range(3):
        one.gradient.normal_()
        one.step(0.01)
    other.load_state(one.state())
    other.vector.copy_(one.vector)
    for optimizer in (one, other):
        optimizer.gradient.fill_(0.3)
        optimizer.step(0.01)
    assert torch.equal(one.vector, other.vector)
