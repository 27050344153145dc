"""The embedding spaces."""

from collections.abc import Callable
from typing import cast

import pytest
import torch
from torch.nn.functional import cosine_similarity

from qkvtrace.errors import UserError
from qkvtrace.studies.answer import Answer, Cell, Cloud, Table
from qkvtrace.studies.points import COMPONENTS
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Cell]]]
Named = Callable[[Answer, str], Table]
Build = Callable[..., Study]


@pytest.fixture(scope="module")
def answer(subject: Subject, study: Build) -> Answer:
    return ask(study("embeddings"), subject)


def vector(subject: Subject, side: str, word: str) -> torch.Tensor:
    vocabulary = getattr(subject.trained, side)
    table = {"source": "encoder", "target": "decoder"}[side]
    weight = subject.store.parameters(3)[f"{table}.embed.tokens.weight"]
    return weight[vocabulary.tokens.index(word)]


def test_all_words_are_drawn_without_the_special_ones(
    answer: Answer, subject: Subject, rows: Rows, named: Named
) -> None:
    pairs = subject.corpus.splits["train"]
    for index, side in enumerate(("source", "target")):
        table = named(answer, f"{side}_words")
        words = [cast(str, row["token"]) for row in rows(table)]
        assert sorted(words) == sorted({word for pair in pairs for word in pair[index]})
        x = torch.stack([vector(subject, side, word) for word in words]).double()
        x = x - x.mean(0)
        axes = torch.linalg.svd(x, full_matrices=False).Vh[:3]
        at = torch.tensor([[cast(float, row[axis]) for axis in COMPONENTS] for row in rows(table)])
        torch.testing.assert_close(at.abs(), (x @ axes.mT).abs().float(), rtol=0, atol=1e-5)
        assert len(cast(Cloud, table.picture).explained) == 3


@pytest.mark.parametrize("sides", ["source_source", "source_target", "target_target"])
def test_cosines_are_those_of_the_parameters(
    answer: Answer, subject: Subject, rows: Rows, named: Named, sides: str
) -> None:
    one, other = sides.split("_")
    for row in rows(named(answer, sides)):
        vectors = (
            vector(subject, one, cast(str, row["word"])),
            vector(subject, other, cast(str, row["other word"])),
        )
        expected = float(cosine_similarity(*vectors, dim=0))
        assert row["cosine"] == pytest.approx(expected, abs=1e-5)
        if one == other and row["word"] == row["other word"]:
            assert row["cosine"] == pytest.approx(1)


def test_neighbours_are_the_most_alike_other_words(
    answer: Answer, rows: Rows, named: Named
) -> None:
    for side in ("source", "target"):
        alike: dict[str, dict[str, float]] = {}
        for row in rows(named(answer, f"{side}_{side}")):
            if row["word"] != row["other word"]:
                of_word = alike.setdefault(cast(str, row["word"]), {})
                of_word[cast(str, row["other word"])] = cast(float, row["cosine"])
        found = [row for row in rows(named(answer, "neighbours")) if row["side"] == side]
        for word, others in alike.items():
            mine = [row for row in found if row["word"] == word]
            assert [row["rank"] for row in mine] == [1, 2]
            best = sorted(others.values(), reverse=True)[:2]
            assert [row["cosine"] for row in mine] == pytest.approx(best)
            assert [others[cast(str, row["neighbour"])] for row in mine] == pytest.approx(best)
        nearest = {word: max(others, key=others.__getitem__) for word, others in alike.items()}
        mutual = [
            f"{word} and {other} ({alike[word][other]:.2f})"
            for word, other in nearest.items()
            if nearest[other] == word and word < other
        ]
        said = answer.says[("source", "target").index(side)]
        pairs = said.split("nearest are ")[1].split(". The mean")[0].split("; ")
        assert set(pairs) <= set(mutual)
        assert len(pairs) == min(4, len(mutual))


def test_large_vocabularies_are_cut_to_the_most_frequent(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    answer = ask(study("embeddings", drawn=5, compared=3, neighbours=9), subject)
    first = list(subject.trained.source.tokens[4:])
    assert [row["token"] for row in rows(named(answer, "source_words"))] == first[:5]
    assert [row["word"] for row in rows(named(answer, "source_source"))][::3] == first[:3]
    assert len(named(answer, "source_target").rows) == 9
    assert len(named(answer, "neighbours").rows) == 2 * 3 * 2


def test_a_single_word_has_no_neighbour(subject: Subject, study: Build) -> None:
    answer = ask(study("embeddings", compared=1), subject)
    assert answer.says[0] == "There is one source word only."


def test_a_number_below_1_is_told(subject: Subject, study: Build) -> None:
    with pytest.raises(UserError, match=r"study.compared: expected 1 or more, found 0"):
        ask(study("embeddings", compared=0), subject)
