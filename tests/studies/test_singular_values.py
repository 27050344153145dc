"""The singular values of W_QᵀW_K."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.model.transformer import Transformer
from qkvtrace.snapshots.recording import recording
from qkvtrace.snapshots.sites import SITES, Site
from qkvtrace.studies.answer import Answer, Cell, Lines, Table
from qkvtrace.studies.singular_values import singular_values
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Cell]]]
Named = Callable[[Answer, str], Table]
Build = Callable[..., Study]


def form(model: Transformer, site: Site, layer: int, head: int) -> Tensor:
    """W_QᵀW_K as a matrix, (D, D), from the parameters by hand."""
    module = site.module.format(layer=layer)
    weights = dict(model.named_parameters())
    width = model.settings.width // model.settings.heads
    rows = slice(head * width, (head + 1) * width)
    query, key = (weights[f"{module}.{name}.weight"][rows] for name in ("query", "key"))
    return query.detach().T.double() @ key.detach().double()


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_they_are_those_of_the_whole_matrix(
    transformer: Callable[..., Transformer], site: Site, scaled: bool
) -> None:
    model = transformer(scaled_scores=scaled)
    for layer, head in ((0, 0), (1, 1)):
        expected = torch.linalg.svdvals(form(model, site, layer, head))
        found = singular_values(model, site, (layer, head))
        assert len(found) == 11  # K; the matrix has rank K, and D = 22 rows
        assert_close(found, expected[:11] / (math.sqrt(11) if scaled else 1))
        assert_close(expected[11:], torch.zeros(11).double(), rtol=0, atol=1e-12)


def test_without_biases_the_form_makes_the_scores(
    transformer: Callable[..., Transformer],
) -> None:
    model = transformer()
    for name, parameter in model.named_parameters():
        if "self_attention" in name and name.endswith("bias"):
            parameter.data.zero_()
    with recording(model, "encoder.embedding", "encoder.layers.0.self_attention.scores") as record:
        model(torch.tensor([[2, 5, 6, 7, 3]]), torch.tensor([[2, 5]]))
    x = record["encoder.embedding"][0][0].double()
    scores = record["encoder.layers.0.self_attention.scores"][0][0, 1].double()
    expected = x @ form(model, SITES[0], 0, 1) @ x.T / math.sqrt(11)
    assert_close(scores, expected, rtol=0, atol=1e-5)


def test_a_tables_rows_are_those_of_each_epochs_parameters(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    answer = ask(study("singular_values"), subject)
    assert [len(table.rows) for table in answer.tables[:2]] == [3 * 4 * 4] * 2
    spectrum = rows(named(answer, "spectrum"))
    ranks = {tuple(row[:4]): row[4] for row in named(answer, "effective_rank").rows}
    for row in named(answer, "largest").rows:
        site = next(site for site in SITES if site.name == row[0])
        layer, head, epoch = cast(tuple[int, int, int], row[1:4])
        values = torch.linalg.svdvals(form(subject.model(epoch), site, layer, head))[:16] / 4
        assert row[4] == pytest.approx(float(values[0]), rel=1e-5)
        shares = values / values.sum()
        rank = float(torch.exp(-(shares * shares.log()).sum()))
        assert ranks[tuple(row[:4])] == pytest.approx(rank, rel=1e-5)
        mine = [
            cast(float, each["singular value"])
            for each in spectrum
            if (each["site"], each["layer"], each["head"], each["epoch"]) == tuple(row[:4])
        ]
        assert mine == pytest.approx(values.tolist(), rel=1e-4, abs=1e-7)
    assert len(answer.says) == 3


def test_the_spectrum_is_drawn_over_the_values_number(subject: Subject, study: Build) -> None:
    answer = ask(study("singular_values", epochs=[2], site="cross", layer=0, head=1), subject)
    picture = cast(Lines, answer.tables[2].picture)
    assert (picture.x, picture.y, picture.colour) == ("number", "singular value", "epoch")
    assert [len(table.rows) for table in answer.tables] == [1, 1, 16]


def test_titles_divide_only_where_the_model_does(
    subject: Subject, study: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, last = ask(study("singular_values", epochs=[2]), subject).tables
    assert "√K" in first.title
    assert "√K" in last.title
    settings = subject.trained.settings
    unscaled = replace(settings, model=replace(settings.model, scaled_scores=False))
    monkeypatch.setattr(subject, "trained", replace(subject.trained, settings=unscaled))
    titles = [table.title for table in ask(study("singular_values", epochs=[2]), subject).tables]
    assert not any("√K" in title for title in titles)
