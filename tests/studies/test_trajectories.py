"""The trajectories of words' vectors, in the encoder and in the decoder."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, cast

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.testing import assert_close

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Probe
from qkvtrace.studies.answer import Answer, Cell, Cloud, Table
from qkvtrace.studies.points import COMPONENTS
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Cell]]]
Build = Callable[..., Study]
Named = Callable[[Answer, str], Table]
APPLE, BREAD = "we want to eat apple", "we want to eat bread"


def recorded(subject: Subject, epoch: int, texts: list[str], tap: str) -> Tensor:
    return subject.observe(texts, epoch, [tap]).values[tap]


def test_the_encoders_are_those_of_the_article(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    answer = ask(study("encoder_trajectories"), subject)
    table = named(answer, "trajectories")
    found = rows(table)
    assert {(row["sentence"], row["token"], row["position"]) for row in found} == {
        (APPLE, "eat", 4),
        (BREAD, "eat", 4),
    }
    assert len(found) == 2 * 4 * 4  # sentences, vectors, epochs
    assert {row["label"] for row in found} >= {"eat@Q@0", "eat@K@1", "eat@V@2", "eat@x1@3"}
    picture = cast(Cloud, table.picture)
    assert (picture.colour, picture.symbol, picture.along) == ("vector", "sentence", "epoch")
    assert picture.marked == (0, 1, 2, 3)
    assert answer.notes == []


def test_all_points_lie_in_one_space(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    """Distances between points of any epochs are those of the vectors, as far as the axes go."""
    table = named(ask(study("encoder_trajectories"), subject), "trajectories")
    vectors, at = [], []
    for row in rows(table):
        tap = f"encoder.layers.0.self_attention.{row['vector']}"
        values = recorded(subject, cast(int, row["epoch"]), [cast(str, row["sentence"])], tap)
        vectors.append(values[0, 0, 4])
        at.append([cast(float, row[axis]) for axis in COMPONENTS])
    x = torch.stack(vectors).double()
    x = x - x.mean(0)
    _, lengths, axes = torch.linalg.svd(x, full_matrices=False)
    assert_close(torch.tensor(at).abs(), (x @ axes[:3].mT).abs().float(), rtol=0, atol=1e-4)
    explained = cast(Cloud, table.picture).explained
    assert_close(torch.tensor(explained), (lengths[:3] ** 2 / (lengths**2).sum()).float())


def test_cosines_are_those_of_the_two_sentences(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    table = named(ask(study("encoder_trajectories", layer=1, head=1), subject), "cosines")
    found = rows(table)
    assert len(found) == 4 * 4
    for row in found:
        tap = f"encoder.layers.1.self_attention.{row['vector']}"
        values = recorded(subject, cast(int, row["epoch"]), [APPLE, BREAD], tap)[:, 1, 4]
        assert row["cosine"] == pytest.approx(
            float(cosine_similarity(values[0], values[1], dim=0)), abs=1e-5
        )
        assert -1 <= cast(float, row["cosine"]) < 0.99999  # the second layer knows its sentence


def test_q_k_and_v_of_the_first_layer_are_the_same_and_the_answer_says_so(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    answer = ask(study("encoder_trajectories"), subject)
    for row in rows(named(answer, "cosines")):
        same = row["vector"] != "x1"
        assert (row["cosine"] == pytest.approx(1, abs=1e-6)) == same
    assert any("q, k and v never differ" in line for line in answer.says)
    later = ask(study("encoder_trajectories", layer=1), subject)
    assert not any("never differ" in line for line in later.says)


def test_each_two_sentences_are_compared(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    texts = [APPLE, BREAD, "i eat bread"]
    changed: dict[str, Any] = {"sentences": texts, "epochs": [3], "vectors": ["x1"]}
    answer = ask(study("encoder_trajectories", **changed), subject)
    pairs = {f"{one} / {other}" for one, other in combinations(texts, 2)}
    assert {row["sentences"] for row in rows(named(answer, "cosines"))} == pairs
    alone = ask(study("encoder_trajectories", sentences=[APPLE]), subject)
    assert [table.name for table in alone.tables] == ["trajectories"]


def test_in_cross_attention_queries_are_target_words_and_keys_source_words(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    answer = ask(study("decoder_trajectories"), subject)
    found = rows(named(answer, "trajectories"))
    assert {(row["word"], row["vector"], row["token"], row["position"]) for row in found} == {
        *(("essen, eat", vector, "essen", 4) for vector in ("q", "x1")),
        *(("essen, eat", vector, "eat", 3) for vector in ("k", "v")),
        *(("wir, we", vector, "wir", 1) for vector in ("q", "x1")),
        *(("wir, we", vector, "we", 1) for vector in ("k", "v")),
    }
    for row in rows(named(answer, "cosines")):
        tap = f"decoder.layers.0.cross_attention.{row['vector']}"
        position = {"essen": 4, "eat": 3, "wir": 1, "we": 1}[cast(str, row["token"])]
        texts = ["we can eat apple", "we can eat bread"]
        values = recorded(subject, cast(int, row["epoch"]), texts, tap)[:, 0, position]
        assert row["cosine"] == pytest.approx(
            float(cosine_similarity(values[0], values[1], dim=0)), abs=1e-5
        )
    assert answer.notes == []


def test_in_the_decoders_self_attention_all_are_target_words(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    answer = ask(study("decoder_trajectories", site="decoder_self"), subject)
    table = named(answer, "trajectories")
    assert {row["token"] for row in rows(table)} == {"essen", "wir"}
    assert cast(Cloud, table.picture).panels == ("word",)


def test_what_never_differs_is_said_of_what_the_first_layer_makes_alone(
    subject: Subject, study: Build
) -> None:
    """x1 of "wir" is the same in both too: it looks at <sos> and itself."""
    words = [{"target": "wir", "source": "we"}]
    answer = ask(study("decoder_trajectories", site="decoder_self", words=words), subject)
    assert "x1 1.00" in answer.says[1]
    assert answer.says[2].startswith("Between the sentences q, k and v never differ")


def test_words_that_do_not_stand_there_are_replaced_by_some_that_do(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    words = [{"target": "singen", "source": "sing"}]
    answer = ask(study("decoder_trajectories", words=words), subject)
    assert {row["word"] for row in rows(named(answer, "trajectories"))} == {"konnen, can"}
    assert len(answer.notes) == 2
    unknown = ask(study("encoder_trajectories", sentences=["he sings", "he reads"]), subject)
    assert "sentences of its own instead" in unknown.notes[0]
    assert {row["sentence"] for row in rows(unknown.tables[0])} == {APPLE, BREAD}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"layer": 2}, "study.layer: expected 0 to 1, found 2"),
        ({"head": -1}, "study.head: expected 0 to 1, found -1"),
        ({"epochs": [7]}, "study.epochs: expected some of 0, 1, 2, 3, found 7"),
        ({"vectors": []}, "study.vectors: expected one or more, found none"),
        ({"vectors": ["x4"]}, "study.vectors: expected one of q, k, v, x1, found 'x4'"),
        ({"sentences": []}, "study.sentences: expected one or more, found none"),
    ],
)
def test_settings_that_do_not_fit_are_told(
    subject: Subject, study: Build, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as error:
        ask(study("encoder_trajectories", **changed), subject)
    assert str(error.value) == message


def test_where_there_is_no_word_the_start_is_followed(
    subject: Subject,
    study: Build,
    rows: Rows,
    named: Named,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A badly trained model translates what it never saw by nothing."""
    nothing = {text: Probe(text.split(), []) for text in ("bread can", "apple can")}
    monkeypatch.setattr(subject, "_probes", nothing)
    answer = ask(study("decoder_trajectories", sentences=list(nothing)), subject)
    found = rows(named(answer, "trajectories"))
    assert {row["word"] for row in found} == {"<sos>, can"}
    assert len(found) == 2 * 4 * 4
