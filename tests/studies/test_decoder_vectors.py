"""The decoder's last vectors, with learned attention and with another."""

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch.nn.functional import cosine_similarity

from qkvtrace.errors import UserError
from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.interventions import changed
from qkvtrace.studies.answer import Answer, Cell, Cloud, Table
from qkvtrace.studies.decoder_vectors import Vectors
from qkvtrace.studies.points import COMPONENTS
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Cell]]]
Build = Callable[..., Study]

WORDS = {
    "subjects": {"ich", "wir"},
    "modals": {"mochten", "konnen"},
    "objects": {"brot", "apfel", "wasser", "bier", "buch", "zeitung"},
    "verbs": {"essen", "trinken", "lesen"},
    "end of sentence": {"<eos>"},
}


@pytest.fixture(scope="module")
def answer(subject: Subject, study: Build) -> Answer:
    return ask(study("decoder_vectors"), subject)


def test_each_target_position_of_all_sentences_has_its_part(answer: Answer, rows: Rows) -> None:
    (table,) = answer.tables
    found = rows(table)
    assert cast(Cloud, table.picture).panels == ("attention",)
    assert {row["sentence"] for row in found} >= {"i want to eat bread", "we read newspaper"}
    for attention in ("learned", "uniform"):
        parts = Counter(row["part"] for row in found if row["attention"] == attention)
        assert parts == {
            "subjects": 36,
            "modals": 24,
            "objects": 36,
            "verbs": 36,
            "end of sentence": 36,
        }
    for row in found:
        assert row["next word"] in WORDS[cast(str, row["part"])]
        assert cast(str, row["step"]).endswith(f"→ {row['next word']}")
    assert answer.notes == []


def test_both_kinds_share_one_space(answer: Answer, subject: Subject, rows: Rows) -> None:
    """A rotation and projection shortens distances, by the same rule in both pictures."""
    (table,) = answer.tables
    at = torch.tensor([[cast(float, row[axis]) for axis in COMPONENTS] for row in rows(table)])
    texts = list(dict.fromkeys(cast(str, row["sentence"]) for row in rows(table)))

    def recorded() -> list[torch.Tensor]:
        snapshot = subject.observe(texts, None, ["decoder.output"])
        values = snapshot.values["decoder.output"]
        return [v[: len(s.target)] for v, s in zip(values, snapshot.sentences, strict=True)]

    vectors = recorded()
    with changed(subject.model(), InterventionSettings(attention="uniform")):
        vectors += recorded()
    x = torch.cat(vectors).double()
    x = x - x.mean(0)
    axes = torch.linalg.svd(x, full_matrices=False).Vh[:3]
    torch.testing.assert_close(at.abs(), (x @ axes.mT).abs().float(), rtol=0, atol=1e-4)


def test_what_it_says_is_counted(answer: Answer, subject: Subject) -> None:
    texts = [" ".join(source) for source, _ in subject.corpus.splits["valid"]]
    snapshot = subject.observe(texts, None, ["decoder.output", "logits"])
    right, words, sentence, vectors = 0, [], [], []
    for i, s in enumerate(snapshot.sentences):
        following = [*s.target[1:], "<eos>"]
        likeliest = snapshot.values["logits"][i, : len(following)].argmax(-1).tolist()
        right += sum(
            subject.trained.target[k] == w for k, w in zip(likeliest, following, strict=True)
        )
        words += following
        sentence += [i] * len(following)
        vectors += list(snapshot.values["decoder.output"][i, : len(following)])
    same = 0
    for n, vector in enumerate(vectors):
        others = [m for m in range(len(vectors)) if sentence[m] != sentence[n]]
        cosine = cosine_similarity(vector[None], torch.stack([vectors[m] for m in others]))
        same += words[others[int(cosine.argmax())]] == words[n]
    assert len(words) == 168
    assert answer.says[0] == (
        f"With learned attention the right next word is the likeliest at {right / 168:.0%} of 168 "
        "positions; the most alike vector of another sentence leads to the same word for "
        f"{same / 168:.0%}."
    ).replace("%", " %")


def test_the_most_alike_vector_is_looked_for_in_other_sentences() -> None:
    places = [(0, "1)", "a"), (0, "2)", "b"), (1, "1)", "a"), (1, "2)", "b")]
    vectors = torch.tensor([[1.0, 0], [1.0, 0.1], [0.6, 1], [0.5, 1]])
    # Of the first two, the third is nearest in the other sentence; of the others, the second.
    assert Vectors(places, vectors, 1.0).alike() == 0.5


def test_words_without_a_part_are_coloured_by_themselves(
    subject: Subject, study: Build, rows: Rows
) -> None:
    parts = [{"part": "subjects", "words": ["ich", "wir"]}]
    answer = ask(study("decoder_vectors", parts=parts, limit=4), subject)
    assert answer.notes[0].startswith("study.parts lacks words of this corpus (mochten, ")
    for row in rows(answer.tables[0]):
        assert row["part"] in (row["next word"], "other words")


def test_limit_and_attention_are_settings(subject: Subject, study: Build, rows: Rows) -> None:
    answer = ask(study("decoder_vectors", limit=3, attention="first1"), subject)
    found = rows(answer.tables[0])
    assert len({row["sentence"] for row in found}) == 3
    assert {row["attention"] for row in found} == {"learned", "first1"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"limit": 1}, "study.limit: expected 2 or more"),
        ({"attention": "best"}, "attention: expected one of learned, uniform"),
        ({"split": "all"}, "study.split: expected one of train, valid, test"),
    ],
)
def test_settings_that_do_not_fit_are_told(
    subject: Subject, study: Build, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask(study("decoder_vectors", **wrong), subject)
