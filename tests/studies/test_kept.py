"""Answers on disk."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.studies.answer import Answer, Heatmap, Table
from qkvtrace.studies.kept import keep, kept
from qkvtrace.studies.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Asked:
    title: ClassVar = "A title"
    question: ClassVar = "Why “so”?"
    look: ClassVar = "Look here."

    sentences: tuple[str, ...] = ("a b", "größer")
    layer: int | None = None

    def answer(self, subject: Subject) -> Answer:
        raise NotImplementedError


ROWS: list[tuple[str | int | float | None, ...]] = [
    ('comma, "quote"', 1, 1 / 3),
    ("größer", 2, float("nan")),
    ("<eos>", 3, float("-inf")),
    ("none", 4, None),
]
PICTURE = Heatmap(row="word", column="n", value="x", scale="number")
ANSWER = Answer(
    ["It is so."],
    [
        Table("cosines", "Cosines", ("word", "n", "x"), ROWS, PICTURE),
        Table("bare", "Bare", ("word",), [("a",)]),
    ],
    ["not all of it"],
)


def test_an_answer_comes_back_whole(tmp_path: Path) -> None:
    keep(tmp_path, "asked", Asked(), ANSWER)
    found = kept(tmp_path, "asked")
    assert found is not None
    assert found["title"] == "A title"
    assert (found["question"], found["look"]) == ("Why “so”?", "Look here.")
    assert found["settings"] == {"sentences": ["a b", "größer"], "layer": None}
    assert (found["says"], found["notes"]) == (["It is so."], ["not all of it"])
    cosines, bare = found["tables"]
    assert cosines["columns"] == ["word", "n", "x"]
    assert (cosines["picture"]["kind"], cosines["picture"]["value"]) == ("heatmap", "x")
    assert bare["picture"] is None
    assert cosines["rows"] == [
        ['comma, "quote"', 1, 0.3333333],
        ["größer", 2, None],
        ["<eos>", 3, None],
        ["none", 4, None],
    ]


def test_json_is_what_any_program_reads(tmp_path: Path) -> None:
    keep(tmp_path, "asked", Asked(), ANSWER)
    text = (tmp_path / "asked" / "study.json").read_text(encoding="utf-8")

    def refuse(constant: str) -> Any:
        raise ValueError(constant)  # NaN and Infinity are no JSON

    json.loads(text, parse_constant=refuse)
    assert "größer" in text


def test_each_table_is_a_csv_file(tmp_path: Path) -> None:
    keep(tmp_path, "asked", Asked(), ANSWER)
    with (tmp_path / "asked" / "cosines.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["word", "n", "x"],
        ['comma, "quote"', "1", "0.3333333"],
        ["größer", "2", ""],
        ["<eos>", "3", ""],
        ["none", "4", ""],
    ]
    assert (tmp_path / "asked" / "bare.csv").read_text(encoding="utf-8") == "word\na\n"


def test_a_new_answer_takes_the_place_of_the_old(tmp_path: Path) -> None:
    keep(tmp_path, "asked", Asked(), ANSWER)
    keep(tmp_path, "asked", Asked(layer=1), Answer(["Other."], []))
    found = kept(tmp_path, "asked")
    assert found is not None
    assert (found["says"], found["settings"]["layer"]) == (["Other."], 1)
    assert [path.name for path in (tmp_path / "asked").iterdir()] == ["study.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["asked"]


def test_the_old_answer_stays_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, "asked", Asked(), ANSWER)

    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(files, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        keep(tmp_path, "asked", Asked(), Answer(["Other."], []))
    found = kept(tmp_path, "asked")
    assert found is not None
    assert found["says"] == ["It is so."]


def test_what_is_not_there_is_none_and_what_is_damaged_an_error(tmp_path: Path) -> None:
    assert kept(tmp_path, "asked") is None
    keep(tmp_path, "asked", Asked(), ANSWER)
    path = tmp_path / "asked" / "study.json"
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(UserError, match=r"damaged.*study\.json"):
        kept(tmp_path, "asked")


@pytest.mark.parametrize("text", ["[1]", "3", "{}", '{"format": 2}'])
def test_another_programs_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    keep(tmp_path, "asked", Asked(), ANSWER)
    (tmp_path / "asked" / "study.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"expected a study of format 1.*study\.json"):
        kept(tmp_path, "asked")
