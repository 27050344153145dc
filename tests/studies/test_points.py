"""Words as points."""

import torch
from torch.testing import assert_close

from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.sites import SITES
from qkvtrace.studies.points import Point, label, points, standing, trails, values

ENCODER, _, CROSS = SITES
SENTENCES = [
    Sentence(["<sos>", "we", "eat", "we", "<eos>"], ["<sos>", "wir", "essen"], [], None),
    Sentence(["<sos>", "eat", "<eos>"], ["<sos>", "wir"], [], None),
]


def test_queries_stand_at_target_words_and_keys_at_source_words() -> None:
    found = points(SENTENCES, CROSS, ["q", "k", "x4"], ["we", "wir"])
    assert found == [
        Point("q", 0, 1, "wir"),
        Point("q", 1, 1, "wir"),
        Point("k", 0, 1, "we"),
        Point("k", 0, 3, "we"),
        Point("x4", 0, 1, "wir"),
        Point("x4", 1, 1, "wir"),
    ]
    assert len(points(SENTENCES, CROSS, ["v"])) == 8


def test_a_word_stands_first_where_it_stands_first() -> None:
    assert standing(SENTENCES, ENCODER, ["v", "q"], {"query": "we", "key": "eat"}) == [
        Point("v", 0, 2, "eat"),
        Point("v", 1, 1, "eat"),
        Point("q", 0, 1, "we"),
    ]


def test_labels_are_the_articles() -> None:
    assert [label("eat", vector, 30) for vector in ("q", "k", "x1")] == [
        "eat@Q@30",
        "eat@K@30",
        "eat@x1@30",
    ]


def test_values_are_those_of_the_head_at_the_position() -> None:
    q, k = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 5, 4)
    taps = {"decoder.layers.1.cross_attention.q": q, "decoder.layers.1.cross_attention.k": k}
    chosen = [Point("k", 0, 3, "we"), Point("q", 1, 1, "wir")]
    found = values(Snapshot(0, 0, SENTENCES, taps), CROSS, 1, 1, chosen)
    assert_close(found, torch.stack([k[0, 1, 3], q[1, 1, 1]]))


def test_all_epochs_share_one_space() -> None:
    epochs = torch.randn(4, 7, 6)
    space, ways = trails(epochs)
    assert_close(ways[2], space.project(epochs[2]))
    assert_close(ways.flatten(0, 1).mean(0), torch.zeros(3), rtol=0, atol=1e-5)
