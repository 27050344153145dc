"""Greedy search: the cache, the batch and the model's mode change nothing; limits are kept."""

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batch
from qkvtrace.corpus.vocabulary import EOS, SOS
from qkvtrace.model.transformer import Transformer
from qkvtrace.translation.search import Found, greedy

Build = Callable[..., Transformer]

LENGTHS = [4, 7, 2, 9, 3, 5]
SHAPES = [
    {"norm": "post"},
    {"norm": "pre"},
    {"norm": "post", "layers": 1, "heads": 1, "positions": "none"},
    {"norm": "pre", "layers": 3, "heads": 11, "positions": "sinusoidal"},
    {"norm": "post", "attention": "fused", "tied_embeddings": True},
]
shapes = pytest.mark.parametrize(
    "shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values()))
)


@pytest.fixture
def source(random_batch: Callable[..., Batch]) -> torch.Tensor:
    return random_batch(LENGTHS, [2] * len(LENGTHS)).source


@pytest.fixture
def ending(transformer: Build) -> Build:
    """Build a model that ends sentences after different numbers of words."""

    def build(bias: float = 1.0, **changed: object) -> Transformer:
        model = transformer(**changed)
        with torch.no_grad():
            model.vocabulary.bias[EOS] += bias
        return model

    return build


@shapes
def test_the_cache_changes_nothing(
    ending: Build, source: torch.Tensor, shape: dict[str, object]
) -> None:
    model = ending(**shape)
    one, other = (greedy(model, source, candidates=5, cached=cached) for cached in (True, False))
    assert torch.equal(one.ids, other.ids)
    assert torch.equal(one.lengths, other.lengths)
    assert_close(one.probabilities, other.probabilities, atol=1e-5, rtol=0)


@shapes
def test_a_batch_is_translated_as_its_sentences_are_one_by_one(
    ending: Build, source: torch.Tensor, shape: dict[str, object]
) -> None:
    model = ending(**shape)
    together = greedy(model, source, candidates=3)
    for index, length in enumerate(LENGTHS):
        alone = greedy(model, source[index : index + 1, :length], candidates=3)
        steps = int(alone.lengths[0])
        assert together.lengths[index] == steps
        assert torch.equal(together.ids[index, :steps], alone.ids[0])
        assert_close(
            together.probabilities[index, :steps], alone.probabilities[0], atol=1e-5, rtol=0
        )


@shapes
def test_each_choice_is_the_likeliest_after_what_was_chosen_before(
    ending: Build, source: torch.Tensor, shape: dict[str, object]
) -> None:
    model = ending(**shape)
    found = greedy(model, source, candidates=13)
    given = torch.cat([torch.full((len(source), 1), SOS), found.ids[:, :-1]], 1)
    expected = model(source, given).softmax(-1).sort(descending=True).values
    assert_close(found.probabilities, expected, atol=1e-5, rtol=0)
    assert_close(found.probabilities.sum(-1), torch.ones(found.ids.shape), atol=1e-5, rtol=0)


def running(found: Found) -> torch.Tensor:
    """(B, T), True at the steps before a sentence's end and at its end."""
    return torch.arange(found.ids.shape[1]) < found.lengths[:, None]


def test_candidates_come_likeliest_first_and_the_first_is_chosen(
    ending: Build, source: torch.Tensor
) -> None:
    found = greedy(ending(), source, candidates=4)
    assert found.candidates.shape == found.probabilities.shape == (*found.ids.shape, 4)
    assert (found.probabilities.diff(dim=-1) <= 0).all()
    assert torch.equal(found.candidates[..., 0][running(found)], found.ids[running(found)])


def test_there_are_no_more_candidates_than_tokens(ending: Build, source: torch.Tensor) -> None:
    assert greedy(ending(), source, candidates=99).candidates.shape[-1] == 13


def test_an_ended_sentence_holds_only_eos(ending: Build, source: torch.Tensor) -> None:
    found = greedy(ending(), source)
    assert len(set(found.lengths.tolist())) > 2
    assert (found.ids[~running(found)] == EOS).all()
    lasts = found.ids.gather(1, found.lengths[:, None] - 1)[:, 0]
    assert set(found.lengths[lasts != EOS].tolist()) <= {min(2 * n + 10, 23) for n in LENGTHS}
    assert (found.ids[running(found)] == EOS).sum() == (lasts == EOS).sum()


@pytest.mark.parametrize("max_length", [1, 2, 5])
def test_max_length_ends_sentences(ending: Build, source: torch.Tensor, max_length: int) -> None:
    found = greedy(ending(bias=-99.0), source, max_length=max_length)
    assert found.ids.shape == (6, max_length)
    assert found.lengths.tolist() == [max_length] * 6


def test_by_default_a_sentence_ends_at_twice_its_own_tokens_plus_10(
    ending: Build, source: torch.Tensor
) -> None:
    found = greedy(ending(bias=-99.0, max_positions=97), source)
    assert found.lengths.tolist() == [2 * length + 10 for length in LENGTHS]


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
@pytest.mark.parametrize("max_length", [None, 50])
def test_the_table_of_positions_limits_the_length(
    ending: Build, source: torch.Tensor, positions: str, max_length: int | None
) -> None:
    model = ending(bias=-99.0, positions=positions, max_positions=11)
    assert greedy(model, source, max_length=max_length).lengths.tolist() == [11] * 6


def test_without_positions_only_max_length_limits(ending: Build, source: torch.Tensor) -> None:
    model = ending(bias=-99.0, positions="none", max_positions=11)
    assert greedy(model, source, max_length=29).lengths.tolist() == [29] * 6


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_eval_within_and_put_back(
    ending: Build, source: torch.Tensor, training: bool
) -> None:
    model = ending(dropout=0.5).train(training)
    model.encoder.layers[0].train(not training)
    modes = [module.training for module in model.modules()]
    first, second = greedy(model, source), greedy(model, source)
    assert torch.equal(first.probabilities, second.probabilities)
    assert not first.probabilities.requires_grad
    assert [module.training for module in model.modules()] == modes


def test_the_mode_is_put_back_on_an_exception(ending: Build, source: torch.Tensor) -> None:
    model = ending(max_positions=5).train()
    with pytest.raises(AssertionError, match="9 positions, but the table has 5"):
        greedy(model, source)
    assert all(module.training for module in model.modules())
