"""Answers on disk, in the run that they are about.

studies/word_order/study.json      everything: question, settings, sentences, tables, pictures
studies/word_order/<table>.csv     each table by itself, for other programs
"""

import csv
import io
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.study import Study

FORMAT = 1


def keep(folder: Path, name: str, study: Study, answer: Answer) -> None:
    """Write a study's answer to `folder/name`, in place of an earlier one.

    Raises OSError if the disk is full or not writable; the earlier answer then stays.
    """
    content = {
        "format": FORMAT,
        "name": name,
        "title": study.title,
        "question": study.question,
        "look": study.look,
        "settings": asdict(study),  # type: ignore[call-overload]  # every study is a dataclass
        "says": answer.says,
        "notes": answer.notes,
        "tables": [_plain(table) for table in answer.tables],
    }
    with files.new_folder(folder / name) as temporary:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        files.write_text(temporary / "study.json", text + "\n")
        for table in answer.tables:
            files.write_text(temporary / f"{table.name}.csv", _csv(table))


def kept(folder: Path, name: str) -> dict[str, Any] | None:
    """A study's stored answer, or None; raises UserError if its file is damaged or not ours."""
    path = folder / name / "study.json"
    if not path.exists():
        return None
    content = files.read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"expected a study of format {FORMAT}, found something else: {path}")
    return content


def _plain(table: Table) -> dict[str, Any]:
    rows = [[_finite(cell) for cell in row] for row in table.rows]
    return asdict(replace(table, rows=())) | {"rows": rows}  # asdict would copy each cell, slowly


def _finite(cell: Cell) -> Cell:
    """JSON has no infinity and no NaN; numbers are cut to what a float32 holds."""
    if isinstance(cell, float):
        return float(f"{cell:.7g}") if math.isfinite(cell) else None
    return cell


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_finite(cell) for cell in row] for row in table.rows)
    return text.getvalue()
