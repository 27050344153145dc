"""Attention by itself: values worked out by hand, masks, and its two implementations."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.model.attention import Attention, KeysValues

B, T, S, H, K = 3, 5, 7, 2, 11
WIDTH = H * K

MASKS = {
    "everywhere": None,
    "words": (torch.arange(S) < torch.tensor([[7], [2], [5]]))[:, None, None],  # (B, 1, 1, S)
    "before": torch.ones(T, S, dtype=torch.bool).tril(S - T)[None, None],  # (1, 1, T, S)
}


def attention(implementation: str = "explicit", **options: Any) -> Attention:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"dropout": 0.0, "implementation": implementation} | options
    module = Attention(WIDTH, H, **settings)
    return module.eval()


@pytest.fixture
def queries() -> Tensor:
    return torch.randn(B, T, WIDTH, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def keys() -> Tensor:
    return torch.randn(B, S, WIDTH, generator=torch.Generator().manual_seed(2))


def identity_attention(**options: Any) -> Attention:
    """One head over width 2 whose four projections change nothing."""
    module = Attention(2, 1, dropout=0.0, implementation="explicit", **options)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.eye(2) if name.endswith("weight") else torch.zeros(2))
    return module


# x = [[1, 0], [0, 2]]: scores are [[1, 0], [0, 4]], divided by sqrt(2) where they are scaled.
# Softmax: e^.70711 = 2.02811 -> .66976, .33024 and e^2.82843 = 16.91883 -> .05581, .94419;
# unscaled e^1 = 2.71828 -> .73106, .26894 and e^4 = 54.59815 -> .01799, .98201.
@pytest.mark.parametrize(
    ("scaled", "causal", "expected"),
    [
        (True, False, [[0.66976, 2 * 0.33024], [0.05581, 2 * 0.94419]]),
        (False, False, [[0.73106, 2 * 0.26894], [0.01799, 2 * 0.98201]]),
        (True, True, [[1.0, 0.0], [0.05581, 2 * 0.94419]]),
    ],
)
def test_two_positions_attend_as_worked_out_by_hand(
    scaled: bool, causal: bool, expected: list[list[float]]
) -> None:
    module = identity_attention(scaled=scaled)
    x = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    mask = torch.tensor([[[[True, False], [True, True]]]]) if causal else None
    out = module(x, module.keys_values(x), mask)
    assert_close(out, torch.tensor([expected]), atol=3e-5, rtol=0)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("mask", MASKS)
def test_explicit_and_fused_attention_agree_in_values_and_gradients(
    queries: Tensor, keys: Tensor, scaled: bool, mask: str
) -> None:
    results = []
    for implementation in ("explicit", "fused"):
        module = attention(implementation, scaled=scaled)
        out = module(queries, module.keys_values(keys), MASKS[mask])
        out.square().sum().backward()
        results.append([out, *(parameter.grad for parameter in module.parameters())])
    assert_close(results[0][0], results[1][0], atol=1e-5, rtol=0)
    assert_close(results[0][1:], results[1][1:], atol=1e-4, rtol=1e-4)


def test_fused_attention_shows_neither_scores_nor_weights_unless_they_are_watched(
    queries: Tensor, keys: Tensor
) -> None:
    module = attention("fused")
    shown: list[str] = []
    module.q.register_forward_hook(lambda *_: shown.append("q"))
    module.x4.register_forward_hook(lambda *_: shown.append("x4"))
    assert not module.is_explicit(queries)
    unwatched = module(queries, module.keys_values(keys), None)
    assert shown == ["q", "x4"]
    module.scores.register_forward_hook(lambda *_: shown.append("scores"))
    module.weights.register_forward_hook(lambda *_: shown.append("weights"))
    watched = module(queries, module.keys_values(keys), None)
    assert shown == ["q", "x4", "q", "scores", "weights", "x4"]
    assert_close(watched, unwatched, atol=1e-5, rtol=0)


@pytest.mark.parametrize("tap", ["scores", "weights", "x1"])
def test_watching_any_value_that_the_kernel_hides_makes_a_fused_attention_explicit(
    queries: Tensor, tap: str
) -> None:
    module = attention("fused")
    handle = getattr(module, tap).register_forward_hook(lambda *_: None)
    assert module.is_explicit(queries)
    handle.remove()
    assert not module.is_explicit(queries)


def test_auto_is_explicit_on_a_cpu(queries: Tensor) -> None:
    assert attention("auto").is_explicit(queries)


def test_dropout_acts_behind_the_weights_tap(queries: Tensor, keys: Tensor) -> None:
    module = attention(dropout=0.5).train()
    passed: dict[str, Tensor] = {}
    for name in ("weights", "x1"):
        getattr(module, name).register_forward_hook(
            lambda _tap, _inputs, value, name=name: passed.update({name: value})
        )
    attended = module.keys_values(keys)
    module(queries, attended, None)
    assert_close(passed["weights"].sum(-1), torch.ones(B, H, T))
    assert not torch.allclose(passed["x1"], passed["weights"] @ attended.v, atol=1e-3)


def test_keys_and_values_go_behind_earlier_ones() -> None:
    earlier, later = (
        KeysValues(torch.full((1, 1, n, 2), n), torch.full((1, 1, n, 2), -n)) for n in (2, 3)
    )
    both = later.after(earlier)
    assert both.k[0, 0, :, 0].tolist() == [2, 2, 3, 3, 3]
    assert both.v[0, 0, :, 1].tolist() == [-2, -2, -3, -3, -3]
    assert later.after(None) is later


def test_a_head_sees_only_its_own_share_of_the_width(queries: Tensor, keys: Tensor) -> None:
    module = attention()
    x1: list[Tensor] = []
    module.x1.register_forward_hook(lambda _tap, _inputs, value: x1.append(value))
    module(queries, module.keys_values(keys), None)
    with torch.no_grad():
        module.query.weight[K:] += 1.0  # rows of the second head
    module(queries, module.keys_values(keys), None)
    assert torch.equal(x1[0][:, 0], x1[1][:, 0])
    assert not torch.allclose(x1[0][:, 1], x1[1][:, 1])


def test_a_shared_projection_makes_q_and_k_alike_also_after_a_step(queries: Tensor) -> None:
    module = attention(projections="shared")
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        module(queries, module.keys_values(queries), None).square().sum().backward()
        optimizer.step()
    q, k = (module.split(part(queries)) for part in (module.query, module.key))
    assert torch.equal(q, k)
    assert "key.weight" not in dict(module.named_parameters())
    separate = attention()
    assert not torch.equal(separate.query(queries), separate.key(queries))
