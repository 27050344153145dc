"""Taps: each documented name exists, and passes a value of the documented shape."""

from collections.abc import Callable

import pytest
import torch

from qkvtrace.corpus.batches import Batch
from qkvtrace.model.taps import Tap, matching, taps
from qkvtrace.model.transformer import Transformer
from qkvtrace.snapshots.recording import recording

Build = Callable[..., Transformer]

B, S, T, H, K, D, V = 3, 7, 5, 2, 11, 22, 13


def attention_shapes(site: str, queries: int, keys: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{site}.q": (B, H, queries, K),
        f"{site}.k": (B, H, keys, K),
        f"{site}.v": (B, H, keys, K),
        f"{site}.scores": (B, H, queries, keys),
        f"{site}.weights": (B, H, queries, keys),
        f"{site}.x1": (B, H, queries, K),
        f"{site}.x4": (B, queries, D),
    }


DOCUMENTED = {
    "encoder.embedding": (B, S, D),
    **attention_shapes("encoder.layers.0.self_attention", S, S),
    "encoder.layers.0.output": (B, S, D),
    **attention_shapes("encoder.layers.1.self_attention", S, S),
    "encoder.layers.1.output": (B, S, D),
    "encoder.output": (B, S, D),
    "decoder.embedding": (B, T, D),
    **attention_shapes("decoder.layers.0.self_attention", T, T),
    **attention_shapes("decoder.layers.0.cross_attention", T, S),
    "decoder.layers.0.output": (B, T, D),
    **attention_shapes("decoder.layers.1.self_attention", T, T),
    **attention_shapes("decoder.layers.1.cross_attention", T, S),
    "decoder.layers.1.output": (B, T, D),
    "decoder.output": (B, T, D),
    "logits": (B, T, V),
}


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("attention", ["explicit", "fused"])
def test_the_documented_taps_pass_values_of_the_documented_shapes(
    transformer: Build, random_batch: Callable[..., Batch], norm: str, attention: str
) -> None:
    model, batch = transformer(norm=norm, attention=attention), random_batch([4, S, 2], [T, 3, 2])
    with recording(model, "*") as record:
        model(batch.source, batch.target)
    assert {name: tuple(value.shape) for name, (value,) in record.items()} == DOCUMENTED


def test_a_tap_names_each_dimension_of_its_value(transformer: Build) -> None:
    axes = {name: tap.axes for name, tap in taps(transformer()).items()}
    assert {name: len(a) for name, a in axes.items()} == {n: len(s) for n, s in DOCUMENTED.items()}
    sizes = {"sentence": {B}, "head": {H}, "query": {S, T}, "key": {S, T}, "position": {S, T}}
    sizes |= {"d_head": {K}, "d_model": {D}, "vocabulary": {V}}
    for name, shape in DOCUMENTED.items():
        assert all(size in sizes[axis] for axis, size in zip(axes[name], shape, strict=True)), name


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["logits"], ["logits"]),
        (
            ["encoder.layers.*.self_attention.q"],
            ["encoder.layers.0.self_attention.q", "encoder.layers.1.self_attention.q"],
        ),
        (
            ["*.1.cross_attention.x?", "*coder.embedding"],
            [
                "encoder.embedding",
                "decoder.embedding",
                "decoder.layers.1.cross_attention.x1",
                "decoder.layers.1.cross_attention.x4",
            ],
        ),
    ],
)
def test_patterns_pick_taps_each_once_in_the_order_of_the_network(
    transformer: Build, patterns: list[str], expected: list[str]
) -> None:
    assert list(matching(transformer(), *patterns, *patterns)) == expected


def test_a_star_picks_all_taps(transformer: Build) -> None:
    assert set(matching(transformer(), "*")) == set(DOCUMENTED)


def test_a_pattern_that_picks_nothing_is_an_error_that_lists_all_taps(transformer: Build) -> None:
    with pytest.raises(KeyError, match=r"no tap matches 'encoder\.layer\.\*'") as raised:
        matching(transformer(), "logits", "encoder.layer.*")
    assert all(name in str(raised.value) for name in DOCUMENTED)


def test_a_tap_is_an_identity_that_knows_whether_it_is_watched() -> None:
    tap, value = Tap("sentence"), torch.ones(3)
    assert tap(value) is value
    assert not tap.watched
    handle = tap.register_forward_hook(lambda *_: None)
    assert tap.watched
    handle.remove()
    assert not tap.watched
