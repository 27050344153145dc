"""Interventions: other values pass a tap within a scope, and nothing stays behind."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batch
from qkvtrace.errors import UserError
from qkvtrace.model.taps import taps
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.interventions import changed, intervening
from qkvtrace.snapshots.recording import recording
from qkvtrace.snapshots.sites import SITES, Site
from qkvtrace.translation.search import greedy

Build = Callable[..., Transformer]

LENGTHS = [4, 7, 2]
TARGETS = [5, 3, 6]
CROSS = "decoder.layers.*.cross_attention"
EVERY = [
    InterventionSettings(**{name: value})  # type: ignore[arg-type]
    for name, values in {
        "attention": ["learned", "uniform", "first2", "last", "hard"],
        "decoder_input": ["tokens_unscaled", "tokens", "positions", "encoder_output"],
        "skip": [
            "decoder",
            "decoder_self_attention",
            "cross_attention",
            "cross_attention_keep_norm",
            "feed_forward",
        ],
        "only": ["cross_attention"],
    }.items()
    for value in values
] + [
    InterventionSettings(attention="uniform", site="decoder_self", layer=1, head=0),
    InterventionSettings(attention="last", decoder_input="positions", skip="feed_forward"),
    InterventionSettings(attention="hard", decoder_input="encoder_output", only="cross_attention"),
]
every = pytest.mark.parametrize("settings", EVERY, ids=str)
norms = pytest.mark.parametrize("norm", ["post", "pre"])


@pytest.fixture
def batch(random_batch: Callable[..., Batch]) -> Batch:
    return random_batch(LENGTHS, TARGETS)


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
        logits = model(batch.source, batch.target)
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
    assert (logits - model(batch.source, batch.target)).abs().max() > 1e-2


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


def allowed(site: Site, sentence: int, query: int) -> int:
    """How many positions a query may look at; they come first."""
    return query + 1 if site.name == "decoder_self" else LENGTHS[sentence]


def chosen(attention: str, scores: Tensor) -> list[int]:
    """Which positions share the weight; scores: those of the allowed positions, (S,)."""
    positions = list(range(len(scores)))
    if attention == "hard":
        return [max(positions, key=scores.tolist().__getitem__)]
    return {"uniform": positions, "first3": positions[:3], "last": positions[-1:]}[attention]


@pytest.mark.parametrize("implementation", ["explicit", "fused"])
@pytest.mark.parametrize("attention", ["uniform", "first3", "last", "hard"])
def test_x1_is_the_mean_of_the_chosen_values_at_every_site(
    transformer: Build, batch: Batch, attention: str, implementation: str
) -> None:
    model = transformer(attention=implementation)
    with (
        changed(model, InterventionSettings(attention=attention)),
        recording(model, "*.q", "*.k", "*.v", "*.x1", "*.weights") as record,
    ):
        model(batch.source, batch.target)
    for site in SITES:
        lengths = TARGETS if site.queries == "target" else LENGTHS
        for layer in range(2):
            q, k, v, x1, weights = (
                record[site.tap(layer, name)][0] for name in ("q", "k", "v", "x1", "weights")
            )
            for sentence, length in enumerate(lengths):
                for head in range(2):
                    for query in range(length):
                        keys = k[sentence, head, : allowed(site, sentence, query)]
                        positions = chosen(attention, keys @ q[sentence, head, query])
                        mean = sum(v[sentence, head, p] for p in positions) / len(positions)
                        assert_close(x1[sentence, head, query], mean, atol=1e-5, rtol=1e-5)
                        share = torch.zeros_like(weights[sentence, head, query])
                        share[positions] = 1 / len(positions)
                        assert_close(weights[sentence, head, query], share)


def test_masks_are_known_by_the_scores_not_by_weights_that_have_shrunk_to_nothing(
    transformer: Build, batch: Batch
) -> None:
    model = transformer()
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.cross_attention.key.weight *= 1e4  # type: ignore[union-attr, operator]
    with recording(model, f"{CROSS}.weights") as learned:
        model(batch.source, batch.target)
    assert all((w[1] == 0).any() for (w,) in learned.values())  # nothing is masked there
    with (
        changed(model, InterventionSettings(attention="uniform")),
        recording(model, f"{CROSS}.weights") as record,
    ):
        model(batch.source, batch.target)
    for (weights,) in record.values():
        assert_close(weights[1], torch.full((2, 6, 7), 1 / 7))


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_one_head_changes_and_all_before_it_and_beside_it_is_bit_identical(
    transformer: Build, batch: Batch, site: Site
) -> None:
    model = transformer()
    one = InterventionSettings(attention="uniform", site=site.name, layer=1, head=0)
    with recording(model, "*.scores", "*.weights", "*.x1", "*.layers.0.*") as learned:
        model(batch.source, batch.target)
    with changed(model, one):
        assert watched(model) == [site.tap(1, "scores")]
        with recording(model, "*.scores", "*.weights", "*.x1", "*.layers.0.*") as record:
            model(batch.source, batch.target)
    same = {name for name, (value,) in record.items() if torch.equal(value, learned[name][0])}
    side = site.module.partition(".")[0]
    assert same >= {name for name in record if name.startswith(f"{side}.layers.0.")}
    for name in ("scores", "weights", "x1"):
        (before,), (after,) = learned[site.tap(1, name)], record[site.tap(1, name)]
        assert torch.equal(before[:, 1], after[:, 1])
        assert not torch.allclose(before[:, 0], after[:, 0], atol=1e-3)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, [site.tap(layer, "scores") for site in SITES for layer in range(2)]),
        ({"site": "cross"}, [SITES[2].tap(layer, "scores") for layer in range(2)]),
        ({"layer": 0, "head": 1}, [site.tap(0, "scores") for site in SITES]),
        ({"site": "encoder_self", "layer": 1}, [SITES[0].tap(1, "scores")]),
    ],
    ids=str,
)
def test_attention_is_replaced_where_the_settings_say(
    transformer: Build, where: dict[str, object], expected: list[str]
) -> None:
    model = transformer()
    with changed(model, InterventionSettings(attention="hard", **where)):  # type: ignore[arg-type]
        assert sorted(watched(model)) == sorted(expected)


@every
@norms
def test_the_cache_changes_nothing(
    transformer: Build, batch: Batch, settings: InterventionSettings, norm: str
) -> None:
    model = transformer(norm=norm)
    with changed(model, settings):
        expected = model(batch.source, batch.target)
        for sizes in ([1] * 6, [2, 1, 3]):
            cache = model.encode(batch.source)
            ends = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
            parts = [model.decode(batch.target[:, a:b], cache) for a, b in pairwise(ends)]
            assert_close(torch.cat(parts, 1), expected, atol=1e-5, rtol=1e-5)
        one, other = (greedy(model, batch.source, cached=cached) for cached in (True, False))
    assert torch.equal(one.ids, other.ids)


@every
@norms
def test_padding_and_other_sentences_change_nothing(
    transformer: Build, batch: Batch, settings: InterventionSettings, norm: str
) -> None:
    model = transformer(norm=norm)
    with changed(model, settings):
        together = model(batch.source, batch.target)
        for index, (source, target) in enumerate(zip(LENGTHS, TARGETS, strict=True)):
            one = slice(index, index + 1)
            alone = model(batch.source[one, :source], batch.target[one, :target])
            assert_close(together[one, :target], alone, atol=1e-5, rtol=1e-5)


@every
def test_each_intervention_acts_in_its_scope_alone_and_every_tap_is_passed_once(
    transformer: Build, batch: Batch, settings: InterventionSettings
) -> None:
    model = transformer()
    expected = model(batch.source, batch.target)
    with changed(model, settings), recording(model, "*") as record:
        logits = model(batch.source, batch.target)
    assert torch.equal(logits, expected) == (settings == InterventionSettings())
    assert {name: len(values) for name, values in record.items()} == dict.fromkeys(taps(model), 1)
    assert hooks(model) == []
    assert torch.equal(model(batch.source, batch.target), expected)
    with pytest.raises(InterruptedError), changed(model, settings):
        raise InterruptedError
    assert hooks(model) == []


def hooks(model: Transformer) -> list[str]:
    return [n for n, m in model.named_modules() if m._forward_hooks or m._forward_pre_hooks]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": "last", "layer": 2}, "layer: expected 0 to 1, found 2"),
        ({"attention": "last", "head": 2, "layer": 1}, "head: expected 0 to 1, found 2"),
        (
            {"attention": "last", "decoder_input": "positions"},
            "decoder_input: expected a model with positions, found model.positions=none",
        ),
    ],
)
def test_what_the_model_does_not_have_is_an_error_that_leaves_no_hook(
    transformer: Build, settings: dict[str, object], message: str
) -> None:
    model = transformer(positions="none")
    with (
        pytest.raises(UserError, match=f"^{message}$"),
        changed(model, InterventionSettings(**settings)),  # type: ignore[arg-type]
    ):
        pass
    assert hooks(model) == []
