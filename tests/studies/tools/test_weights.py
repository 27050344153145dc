"""Attention weights as rows of tables."""

import math

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Sentence
from qkvtrace.snapshots.sites import SITES, site_named
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights

ENCODER, DECODER, CROSS = SITES


def test_heads_are_those_asked_for_or_all(subject: Subject) -> None:
    assert weights.heads(subject, None, None) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert weights.heads(subject, 1, None) == [(1, 0), (1, 1)]
    assert weights.heads(subject, None, 0) == [(0, 0), (1, 0)]


@pytest.mark.parametrize(("layer", "head", "name"), [(2, 0, "layer"), (0, 2, "head"), (-1, 0, "l")])
def test_a_head_that_is_not_there_is_told(
    subject: Subject, layer: int, head: int, name: str
) -> None:
    with pytest.raises(UserError, match=rf"study\.{name}.*: expected 0 to 1, found (2|-1)"):
        weights.heads(subject, layer, head)


def test_a_site_or_an_epoch_that_is_not_there_is_told(subject: Subject) -> None:
    with pytest.raises(UserError, match=r"study\.site: expected one of encoder_self.*'middle'"):
        weights.site("middle")
    with pytest.raises(UserError, match=r"study\.epoch: expected one of 0, 1, 2, 3, found 4"):
        weights.at_epoch(subject, 4)
    assert (weights.at_epoch(subject, None), weights.at_epoch(subject, 0)) == (3, 0)


def test_queries_of_the_decoder_are_its_steps() -> None:
    sentence = Sentence(["<sos>", "we", "eat", "<eos>"], ["<sos>", "wir", "wir"], [], None)
    assert weights.queries(ENCODER, sentence) == ["<sos>", "we", "eat", "<eos>"]
    expected = ["1) <sos> → wir", "2) wir → wir", "3) wir → <eos>"]
    assert weights.queries(DECODER, sentence) == weights.queries(CROSS, sentence) == expected


def test_rows_have_a_cell_each() -> None:
    found = list(weights.rows(torch.tensor([[0.25, 0.75]]), ["q"], ["a", "a"]))
    assert found == [(0, "q", 0, "a", 0.25), (0, "q", 1, "a", 0.75)]
    assert len(weights.COLUMNS) == len(found[0])


def test_spread_is_0_for_one_position_and_1_for_all_that_may_be_looked_at() -> None:
    one, equal = torch.eye(4), torch.full((4, 4), 0.25)
    causal = torch.ones(4, 4).tril() / torch.arange(1, 5)[:, None]
    assert weights.spread(one, ENCODER) == weights.spread(one, DECODER) == 0
    assert weights.spread(equal, ENCODER) == pytest.approx(1)
    assert weights.spread(causal, DECODER) == pytest.approx(1)
    halves = torch.tensor([[0.5, 0.5, 0, 0], [1, 0, 0, 0]])
    assert weights.spread(halves, CROSS) == pytest.approx(math.log(2) / math.log(4) / 2)
    assert math.isnan(weights.spread(torch.ones(1, 1), DECODER))


def test_the_weights_of_a_shorter_sentence_have_no_padding(subject: Subject) -> None:
    texts = ["we eat apple", "we want to eat apple"]
    for site in map(site_named, ("encoder_self", "decoder_self", "cross")):
        snapshot = subject.observe(texts, 3, weights.taps([site], [(1, 0)]))
        together = weights.weights(snapshot, site, (1, 0), 0)
        alone = subject.observe(texts[:1], 3, weights.taps([site], [(1, 0)]))
        torch.testing.assert_close(together, weights.weights(alone, site, (1, 0)))
        torch.testing.assert_close(together.sum(-1), torch.ones(len(together)))


def test_the_best_key_of_each_query() -> None:
    found = weights.best(torch.tensor([[0.25, 0.75], [0.5, 0.5]]), ["a", "b"])
    assert found == [("b", 0.75), ("a", 0.5)]
