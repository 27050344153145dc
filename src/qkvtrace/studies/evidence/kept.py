"""What came out for the claims, on disk: claims/<date>_<time>/claims.json in the outputs folder."""

import json
import math
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.runs.folder import Run, nested
from qkvtrace.studies.evidence.verdict import Result

FORMAT = 1
NAME = "claims.json"
OF_NO_MATTER = ("seed", "device", "checkpoint_every")  # of a training, to what it comes to


@dataclass(frozen=True)
class HeldOut:
    """What generalisation was measured with."""

    corpus: str
    epochs: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """What claims were tested on, and what came out."""

    made: str  # date and time, UTC, ISO 8601
    versions: dict[str, str]
    git_revision: str | None
    corpus: str
    fingerprint: str  # of the corpus, as in a run's manifest
    model: dict[str, Any]  # settings, as are `training`'s
    training: dict[str, Any]
    held_out: HeldOut
    asked: dict[str, Any]  # the whole configuration, with the claims' own settings
    seeds: list[int]
    epochs: int  # of each training
    seconds: float  # that all of it took
    results: list[Result]


def keep(folder: Path, report: Report) -> None:
    """Write `folder`/claims.json, in place of an earlier one.

    Raises OSError if the disk is full or not writable; the earlier one then stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT} | _plain(asdict(report))
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    files.write_text(folder / NAME, text + "\n")


def load(path: Path) -> dict[str, Any]:
    """A report as nested dicts and lists, with None where a number is not finite.

    Raises UserError if the file is missing, damaged or not ours.
    """
    content = files.read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"expected claims of format {FORMAT}, found something else: {path}")
    if not _fits(Report, content):
        raise UserError(f"expected claims, found a damaged file: {path}")
    return content


def about(run: Run) -> tuple[dict[str, Any] | None, list[str]]:
    """The report on models like a run's, if there is one; and why others cannot be read.

    Of several, the newest of those that have the most claims.

    Like the run's is a model with its settings, of whatever seed, trained as it was on its corpus.
    Looked for are reports in the outputs folder that the run lies in: settings and links that lead
    elsewhere are not followed, since a run may have come from another person.
    """
    settings = run.settings()
    outputs = Path(settings.outputs).resolve()
    unreadable: list[str] = []
    if outputs not in run.folder.resolve().parents:
        return None, unreadable
    found: list[dict[str, Any]] = []
    wanted = _kind(files.read_json(run.manifest)["corpus"], _plain(nested(settings)))
    for path in sorted(outputs.glob(f"claims/**/{NAME}"), reverse=True):
        if not path.resolve().is_relative_to(outputs):
            continue
        try:
            report = load(path)
        except (UserError, OSError) as error:
            unreadable.append(f"without these claims: {error}")
            continue
        if _kind(report["fingerprint"], report) == wanted:
            found.append(report)
    return max(found, key=lambda report: len(report["results"]), default=None), unreadable


def _kind(fingerprint: str, settings: dict[str, Any]) -> tuple[Any, ...]:
    """What makes models alike but for their seed."""
    training = {
        name: value for name, value in settings["training"].items() if name not in OF_NO_MATTER
    }
    return fingerprint, settings["model"], training


def _plain(value: Any) -> Any:
    """As JSON has it: no infinity and no NaN; numbers are cut to what a float32 holds."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value from JSON is what `_plain` makes of one of this kind."""
    inner = get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return isinstance(value, dict) and all(
            name in value and _fits(hint, value[name]) for name, hint in hints.items()
        )
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(inner[0], item) for item in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict)
    if get_origin(kind) is UnionType:
        return any(_fits(choice, value) for choice in inner)
    if get_origin(kind) is Literal:
        return value in inner
    if kind is float:
        return value is None or isinstance(value, int | float)
    return isinstance(value, kind)
