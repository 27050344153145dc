"""A walk through one head: each step by hand is what the model does."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from qkvtrace.errors import UserError
from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.sites import site_named
from qkvtrace.studies.answer import Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.walked import walked

Rows = Callable[[Table], list[dict[str, Any]]]

SENTENCE = "we can eat apple"
TAPS = {"Q": "q", "K": "k", "V": "v", "scores": "scores", "weights": "weights", "x1": "x1"}


def matrix(found: list[dict[str, Any]], name: str, column: str) -> Tensor:
    """A matrix put together again from a table's rows, by position."""
    cells = [row for row in found if row.get("matrix", name) == name]
    keys = [key for key in cells[0] if key.endswith("position") or key.endswith("dimension")]
    shape = [max(row[key] for row in cells) + 1 for key in keys]
    value = torch.full(shape, torch.nan)
    for row in cells:
        value[tuple(row[key] for key in keys)] = row[column]
    assert not value.isnan().any()
    return value


@pytest.mark.parametrize("site", ["encoder_self", "decoder_self", "cross"])
@pytest.mark.parametrize("layer", [0, 1])
def test_each_step_is_the_taps_value(subject: Subject, site: str, layer: int) -> None:
    place = site_named(site)
    walk = walked(subject, SENTENCE, 3, place, (layer, 1))
    snapshot = subject.observe([SENTENCE], 3)
    for step, tap in TAPS.items():
        expected = snapshot.values[place.tap(layer, tap)][0, 1]
        torch.testing.assert_close(walk.steps[step].value, expected, atol=1e-5, rtol=1e-4)
    x4 = snapshot.values[place.tap(layer, "x4")][0]
    torch.testing.assert_close(walk.steps["x4"].value, x4, atol=1e-5, rtol=1e-4)


def test_the_tables_numbers_follow_from_each_other_and_from_the_parameters(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("walk", head=1, dimensions=32), subject)
    tables = {table.name: rows(table) for table in answer.tables}
    parameters = dict(subject.model().named_parameters())
    path = "encoder.layers.0.self_attention"
    x = subject.observe([SENTENCE], 3, ["encoder.embedding"]).values["encoder.embedding"][0]
    torch.testing.assert_close(matrix(tables["vectors"], "X", "value"), x)
    made = {}
    for name, long in (("Q", "query"), ("K", "key"), ("V", "value")):
        weight = parameters[f"{path}.{long}.weight"][16:].detach()  # the second head of 16
        bias = parameters[f"{path}.{long}.bias"][16:].detach()
        torch.testing.assert_close(matrix(tables["projections"], f"W_{name}", "value"), weight.T)
        made[name] = matrix(tables["vectors"], name, "value")
        torch.testing.assert_close(made[name], x @ weight.T + bias, atol=1e-5, rtol=1e-4)
    products = matrix(tables["scores"], "Q Kᵀ", "score")
    torch.testing.assert_close(products, made["Q"] @ made["K"].T, atol=1e-4, rtol=1e-4)
    scores = matrix(tables["scores"], "scores", "score")
    torch.testing.assert_close(scores, products / 4)  # sqrt(16)
    weights = matrix(tables["weights"], "", "weight")
    torch.testing.assert_close(weights, scores.softmax(-1))
    torch.testing.assert_close(weights.sum(-1), torch.ones(6))
    x1 = matrix(tables["outputs"], "x1", "value")
    torch.testing.assert_close(x1, weights @ made["V"], atol=1e-5, rtol=1e-4)
    joined = matrix(tables["outputs"], "joined", "value")
    torch.testing.assert_close(joined[:, 16:], x1)
    out = joined @ matrix(tables["projections"], "W_O", "value")
    out = out + parameters[f"{path}.output.bias"].detach()
    x4 = matrix(tables["outputs"], "x4", "value")
    torch.testing.assert_close(x4, out, atol=1e-5, rtol=1e-4)


def test_the_steps_have_shapes_and_statistics(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("walk", dimensions=32), subject)
    tables = {table.name: rows(table) for table in answer.tables}
    steps = {row["name"]: row for row in tables["steps"]}
    assert {name: row["shape"] for name, row in steps.items()} == {
        "X": "6 × 32",
        **dict.fromkeys(("W_Q", "W_K", "W_V"), "32 × 16"),
        **dict.fromkeys(("Q", "K", "V"), "6 × 16"),
        **dict.fromkeys(("Q Kᵀ", "scores", "weights"), "6 × 6"),
        "x1": "6 × 16",
        "joined": "6 × 32",
        "W_O": "32 × 32",
        "x4": "6 × 32",
    }
    k = matrix(tables["vectors"], "K", "value")
    assert steps["K"]["mean"] == pytest.approx(float(k.mean()), abs=1e-6)
    assert steps["K"]["standard deviation"] == pytest.approx(float(k.std(correction=0)), abs=1e-6)
    assert (steps["K"]["smallest"], steps["K"]["largest"]) == (float(k.min()), float(k.max()))
    assert 0 <= steps["weights"]["largest difference from the model"] < 1e-5
    untrained = rows(ask(study("walk", epoch=0), subject).tables[0])
    assert [row["standard deviation at epoch 0"] for row in steps.values()] == [
        row["standard deviation"] for row in untrained
    ]
    assert "√16" in answer.says[1]


def test_a_query_of_the_decoder_does_not_look_ahead(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("walk", site="decoder_self", layer=1), subject)
    tables = {table.name: rows(table) for table in answer.tables}
    ahead = [r for r in tables["scores"] if r["key position"] > r["query position"]]
    assert {r["score"] for r in ahead if r["matrix"] == "scores"} == {-torch.inf}
    assert all(abs(r["score"]) < torch.inf for r in ahead if r["matrix"] == "Q Kᵀ")
    assert all(abs(r["mean"]) < torch.inf for r in tables["steps"])
    vectors = [row for row in tables["vectors"] if row["dimension"] == 0]
    assert [row["word"] for row in vectors if row["matrix"] == "V"][:2] == ["<sos>", "wir"]
    assert vectors[0]["word"] == "1) <sos> → wir"


def test_cross_attention_takes_keys_from_the_encoder(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("walk", site="cross", dimensions=32), subject)
    vectors = next(rows(table) for table in answer.tables if table.name == "vectors")
    encoded = subject.observe([SENTENCE], 3, ["encoder.output"]).values["encoder.output"][0]
    torch.testing.assert_close(matrix(vectors, "X encoder", "value"), encoded)
    assert "5 positions attend to 6" in answer.says[0]


def test_no_more_dimensions_than_asked_for(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    tables = {t.name: rows(t) for t in ask(study("walk", dimensions=3), subject).tables}
    assert matrix(tables["vectors"], "Q", "value").shape == (6, 3)
    assert matrix(tables["projections"], "W_O", "value").shape == (3, 3)
    assert matrix(tables["weights"], "", "weight").shape == (6, 6)


def test_the_model_is_left_without_hooks(run: Run) -> None:
    subject = Subject(run, torch.device("cpu"))
    walked(subject, SENTENCE, 3, site_named("cross"), (0, 0))
    for module in subject.trained.model.modules():
        assert not module._forward_pre_hooks
        assert not module._forward_hooks


def test_what_does_not_fit_is_told(subject: Subject, study: Callable[..., Study]) -> None:
    for changed in ({"site": "x"}, {"layer": 2}, {"head": -1}, {"epoch": 4}, {"dimensions": 0}):
        with pytest.raises(UserError, match=f"study.{next(iter(changed))}: expected"):
            ask(study("walk", **changed), subject)
