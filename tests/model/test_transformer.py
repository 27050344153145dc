"""The network: no look ahead, padding changes nothing, order matters only through positions."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import layer_norm
from torch.testing import assert_close

from qkvtrace.conversion import from_config
from qkvtrace.corpus.batches import Batch
from qkvtrace.model.layers import Residual
from qkvtrace.model.transformer import Transformer, causal_mask, sinusoids
from qkvtrace.settings import ModelSettings
from qkvtrace.snapshots.recording import recording

Build = Callable[..., Transformer]

ARTICLE = Path(__file__).parents[2] / "configs" / "model" / "article.yaml"
SHAPES = [
    {"positions": "learned", "norm": "post"},
    {"positions": "sinusoidal", "norm": "pre", "layers": 3},
    {"positions": "none", "norm": "post", "heads": 11},
    {"positions": "learned", "norm": "pre", "heads": 1, "layers": 1, "tied_embeddings": True},
    {"positions": "none", "norm": "pre", "scaled_scores": False},
    {"positions": "sinusoidal", "norm": "post", "attention": "fused"},
]
shapes = pytest.mark.parametrize(
    "shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values()))
)
SOURCES, TARGETS = [4, 7, 2], [5, 3, 6]


def test_the_article_s_network_has_99857_parameters() -> None:
    article = from_config(ModelSettings, yaml.safe_load(ARTICLE.read_text(encoding="utf-8")))
    model = Transformer(article, source_vocabulary=18, target_vocabulary=17, pad=1)
    assert sum(p.numel() for p in model.parameters()) == 99_857


@shapes
@pytest.mark.parametrize("changed", range(1, 6))
def test_later_target_tokens_change_no_earlier_logits(
    transformer: Build, random_batch: Callable[..., Batch], shape: dict[str, object], changed: int
) -> None:
    model, batch = transformer(**shape), random_batch(SOURCES, [6, 6, 6])
    other = batch.target.clone()
    other[:, changed:] = (other[:, changed:] + 5) % 13
    before, after = model(batch.source, batch.target), model(batch.source, other)
    assert_close(after[:, :changed], before[:, :changed], atol=1e-6, rtol=0)
    assert (after[:, changed] - before[:, changed]).abs().amax(-1).min() > 1e-3


def compare_alone_and_in_batch(model: Transformer, batch: Batch) -> None:
    watched = ("encoder.output", "logits", "*.weights")
    with recording(model, *watched) as together:
        model(batch.source, batch.target)
    for index in range(len(batch.source)):
        source = batch.source[index][batch.source[index] != model.pad][None]
        target = batch.target[index][batch.target[index] != model.pad][None]
        words, steps = source.shape[1], target.shape[1]
        with recording(model, *watched) as alone:
            model(source, target)
        for name, (expected,) in alone.items():
            value = together[name][0][index]
            if name.endswith("weights"):
                rows = words if name.startswith("encoder") else steps
                assert value[:, :rows, expected.shape[-1] :].count_nonzero() == 0
                assert_close(value.sum(-1), torch.ones(value.shape[:-1]), atol=1e-6, rtol=0)
                value = value[:, :rows, : expected.shape[-1]]
            else:
                value = value[: expected.shape[1]]
            assert_close(value, expected[0], atol=1e-5, rtol=0)


@shapes
def test_padding_and_batching_change_nothing(
    transformer: Build, random_batch: Callable[..., Batch], shape: dict[str, object]
) -> None:
    compare_alone_and_in_batch(transformer(**shape), random_batch(SOURCES, TARGETS))


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(2, 11), st.integers(2, 11)), min_size=1, max_size=5))
def test_padding_changes_nothing_whatever_the_lengths(
    transformer: Build, random_batch: Callable[..., Batch], lengths: list[tuple[int, int]]
) -> None:
    compare_alone_and_in_batch(transformer(), random_batch(*zip(*lengths, strict=True)))


def test_no_position_attends_to_padding_keys(
    transformer: Build, random_batch: Callable[..., Batch]
) -> None:
    model, batch = transformer(), random_batch(SOURCES, TARGETS)
    with recording(model, "encoder.*.weights", "*.cross_attention.weights") as record:
        model(batch.source, batch.target)
    padding = (batch.source == model.pad)[:, None, None]
    for (weights,) in record.values():
        assert weights.masked_select(padding).count_nonzero() == 0
        assert weights.masked_select(~padding).min() > 0


def test_without_positions_the_encoder_is_permuted_as_its_words_are(
    transformer: Build, random_batch: Callable[..., Batch]
) -> None:
    source, order = random_batch([7, 7], [2, 2]).source, torch.tensor([4, 0, 6, 2, 5, 1, 3])

    def encoded(positions: str, ids: torch.Tensor) -> torch.Tensor:
        model = transformer(positions=positions)
        with recording(model, "encoder.output") as record:
            model.encode(ids)
        return record["encoder.output"][0]

    assert_close(encoded("none", source[:, order]), encoded("none", source)[:, order])
    for positions in ("learned", "sinusoidal"):
        moved, kept = encoded(positions, source[:, order]), encoded(positions, source)[:, order]
        assert not torch.allclose(moved, kept, atol=1e-2)


def test_decoding_with_a_cache_gives_the_logits_of_decoding_at_once(
    transformer: Build, random_batch: Callable[..., Batch]
) -> None:
    model, batch = transformer(), random_batch(SOURCES, [5, 5, 5])
    cache = model.encode(batch.source)
    parts = [model.decode(part, cache) for part in batch.target.split([2, 1, 2], dim=1)]
    assert cache.length == 5
    assert_close(torch.cat(parts, 1), model(batch.source, batch.target), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("new", "past", "expected"),
    [
        (3, 0, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        (2, 2, [[1, 1, 1, 0], [1, 1, 1, 1]]),
        (1, 4, None),
    ],
)
def test_causal_mask_allows_a_position_itself_and_those_before(
    new: int, past: int, expected: list[list[int]] | None
) -> None:
    mask = causal_mask(new, past, torch.device("cpu"))
    assert (None if mask is None else mask[0, 0].int().tolist()) == expected


def test_sinusoids_have_the_paper_s_values() -> None:
    # sin and cos of position * 1 and of position * 10000 ** (-2 / 4) = position / 100.
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.8414710, 0.5403023, 0.0099998, 0.9999500],
        [0.9092974, -0.4161468, 0.0199987, 0.9998000],
    ]
    assert_close(sinusoids(3, 4), torch.tensor(expected), atol=1e-6, rtol=0)


def test_an_embedding_is_the_scaled_token_vector_plus_the_position_s(transformer: Build) -> None:
    model = transformer(width=4, heads=1)
    embed = model.encoder.embed
    with torch.no_grad():
        embed.tokens.weight[7] = torch.tensor([1.0, 2.0, 3.0, 4.0])
        embed.positions[3] = torch.tensor([0.5, 0.0, -0.5, 1.0])
    x = embed(torch.tensor([[7]]), start=3)
    assert x.tolist() == [[[2.5, 4.0, 5.5, 9.0]]]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_residual_adds_the_part_and_normalises_where_it_says(
    model_settings: Callable[..., ModelSettings], norm: str
) -> None:
    x = torch.randn(3, 5, 22, generator=torch.Generator().manual_seed(0))
    out = Residual(model_settings(norm=norm)).eval()(x, lambda y: 2 * y)
    normalised = lambda y: layer_norm(y, (22,))  # noqa: E731
    assert_close(out, x + 2 * normalised(x) if norm == "pre" else normalised(x + 2 * x))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_encoder_and_decoder_give_normalised_vectors(
    transformer: Build, random_batch: Callable[..., Batch], norm: str
) -> None:
    model, batch = transformer(norm=norm), random_batch(SOURCES, TARGETS)
    with recording(model, "encoder.output", "decoder.output") as record:
        model(batch.source, batch.target)
    for (value,) in record.values():
        assert_close(value.mean(-1), torch.zeros(value.shape[:-1]), atol=1e-6, rtol=0)
        assert_close(value.var(-1, correction=0), torch.ones(value.shape[:-1]), atol=1e-3, rtol=0)


def test_tied_embeddings_are_one_tensor_that_both_ends_train(
    transformer: Build, random_batch: Callable[..., Batch]
) -> None:
    tied, untied = transformer(tied_embeddings=True), transformer()
    assert tied.vocabulary.weight is tied.decoder.embed.tokens.weight
    assert untied.vocabulary.weight is not untied.decoder.embed.tokens.weight
    counts = [sum(p.numel() for p in model.parameters()) for model in (untied, tied)]
    assert counts[0] - counts[1] == 13 * 22


@pytest.mark.parametrize("tied", [False, True])
def test_matrices_fill_their_xavier_bounds(transformer: Build, tied: bool) -> None:
    for name, parameter in transformer(tied_embeddings=tied).named_parameters():
        if parameter.dim() > 1:
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert 0.9 * bound < parameter.abs().max().item() <= bound, name


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_positions_beyond_the_table_are_a_programmer_s_mistake(
    transformer: Build, positions: str
) -> None:
    model = transformer(positions=positions, max_positions=5)
    words = torch.full((1, 6), 4)
    with pytest.raises(AssertionError, match="6 positions, but the table has 5"):
        model.encode(words)
    cache = model.encode(words[:, :5])
    model.decode(words[:, :5], cache)
    with pytest.raises(AssertionError, match="6 positions, but the table has 5"):
        model.decode(words[:, :1], cache)


@pytest.mark.parametrize(
    ("positions", "limit"), [("learned", 5), ("sinusoidal", 5), ("none", None)]
)
def test_only_a_table_of_positions_limits_the_length(
    transformer: Build, positions: str, limit: int | None
) -> None:
    model = transformer(positions=positions, max_positions=5)
    assert model.max_positions == limit
    if limit is None:
        assert model(torch.full((1, 29), 4), torch.full((1, 31), 4)).shape == (1, 31, 13)
