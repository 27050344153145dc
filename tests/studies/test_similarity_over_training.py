"""Similarity between epochs."""

import math
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.snapshots.sites import SITES
from qkvtrace.studies import similarity_over_training
from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.geometry import debiased_cka, structure
from qkvtrace.studies.similarity_over_training import spread
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.arrangement import Compared, different

Rows = Callable[[Table], list[dict[str, Cell]]]
Named = Callable[[Answer, str], Table]
Build = Callable[..., Study]


def cka(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(debiased_cka(structure(one)[None], structure(other)[None]))


@pytest.fixture(scope="module")
def answer(subject: Subject, study: Build) -> Answer:
    return ask(study("similarity_over_training"), subject)


def test_each_two_epochs_are_compared_alike_in_both_directions(answer: Answer, rows: Rows) -> None:
    found = {
        (r["site"], r["vector"], r["epoch"], r["other epoch"]): cast(float, r["similarity"])
        for r in rows(answer.tables[0])
    }
    assert len(found) == 3 * 4 * 4 * 4
    for (site, vector, epoch, other), similarity in found.items():
        assert similarity == pytest.approx(found[site, vector, other, epoch], abs=1e-9)
        assert similarity <= 1 + 1e-9
        if epoch == other:
            assert similarity == pytest.approx(1)


def test_a_token_that_is_the_same_in_all_sentences_counts_once(
    answer: Answer, subject: Subject, rows: Rows
) -> None:
    """In the first layer, q knows the word and its position alone."""
    tap = "encoder.layers.0.self_attention.q"
    kept: list[torch.Tensor] = []
    for epoch in (1, 3):
        snapshot = subject.observe(subject.own_sentences, epoch, [tap])
        vectors = {
            (position, token): snapshot.values[tap][i, 0, position]
            for i, sentence in enumerate(snapshot.sentences)
            for position, token in enumerate(sentence.source)
        }
        kept.append(torch.stack(list(vectors.values())))
    (row,) = (
        row
        for row in rows(answer.tables[0])
        if (row["site"], row["vector"], row["epoch"], row["other epoch"])
        == ("encoder_self", "q", 1, 3)
    )
    assert row["similarity"] == pytest.approx(cka(*kept), abs=1e-4)
    assert f"{len(vectors)} of q" in answer.says[0]


def test_shuffled_tokens_are_hardly_alike(answer: Answer, rows: Rows) -> None:
    found = rows(answer.tables[1])
    shuffled = [cast(float, r["similarity"]) for r in found if r["tokens"] == "shuffled, mean"]
    ordered = [r for r in found if r["tokens"] == "as they are"]
    assert len(shuffled) == len(ordered) == 3 * 4 * 4
    assert max(map(abs, shuffled)) < 0.2
    matrix = {tuple(row[:4]): row[4] for row in answer.tables[0].rows}
    for row in ordered:
        assert row["similarity"] == matrix[row["site"], row["vector"], 3, row["epoch"]]


def test_the_control_shuffles_the_tokens_of_the_last_epoch() -> None:
    found = torch.randn(3, 9, 4)
    compared = Compared.of(SITES[0], "q", found, shuffles=2)
    generator = torch.Generator().manual_seed(0)
    for line in compared.shuffled:
        last = found[-1][torch.randperm(9, generator=generator)]
        assert line.tolist() == pytest.approx([cka(last, each) for each in found])


def test_only_what_is_the_same_at_every_epoch_is_the_same() -> None:
    vectors = torch.randn(3, 6, 5)
    vectors[:, 4] = vectors[:, 1]
    vectors[:2, 5] = vectors[:2, 0]
    assert torch.equal(different(vectors), vectors[:, [0, 1, 2, 3, 5]])


def test_epochs_are_evenly_spaced_from_the_first_to_the_last() -> None:
    assert spread(list(range(31)), 16) == list(range(0, 31, 2))
    assert spread([0, 1, 5], 16) == [0, 1, 5]
    assert spread([4], 16) == [4]


def test_few_and_many_tokens_are_told(
    subject: Subject, study: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similarity_over_training, "MOST_TOKENS", 5)
    changed: dict[str, Any] = {"site": "encoder_self", "vectors": ["q"]}
    answer = ask(study("similarity_over_training", **changed), subject)
    assert answer.notes == ["encoder_self q: the first 5 of 30 tokens"]
    monkeypatch.setattr(similarity_over_training, "FEWEST", 50)
    answer = ask(study("similarity_over_training", **changed), subject)
    assert answer.notes == ["encoder_self q: 30 different tokens are too few"]
    assert (answer.says, answer.tables[0].rows) == ([], [])


def test_a_single_epoch_has_nothing_to_be_compared_with(subject: Subject, study: Build) -> None:
    answer = ask(study("similarity_over_training", epochs=[2]), subject)
    assert answer.says == ["Epoch 2 is the only one: there is nothing to compare it with."]
    assert not any(math.isnan(cast(float, row[-1])) for row in answer.tables[0].rows)


def test_settings_that_do_not_fit_are_told(subject: Subject, study: Build) -> None:
    with pytest.raises(UserError, match=r"study.vectors: expected one or more, found none"):
        ask(study("similarity_over_training", vectors=[]), subject)
    with pytest.raises(UserError, match=r"study.shuffles: expected 1 or more, found 0"):
        ask(study("similarity_over_training", shuffles=0), subject)
