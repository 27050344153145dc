"""Item 6: learned attention replaced."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.errors import UserError
from qkvtrace.settings import SITE_NAMES, InterventionSettings, at_least
from qkvtrace.studies.answer import Answer, Cell, Heatmap, Table
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.changes import Effect, Trial

ALL = "all three"
LEARNED = "learned"

Effects = dict[tuple[str, str], Effect]  # by site and kind of attention


@dataclass(frozen=True, kw_only=True)
class ReplacedAttention:
    """Weights that nobody learned, in place of those that the model computes."""

    title: ClassVar = "Attention replaced"
    question: ClassVar = "Does the model need the attention that it learned?"
    look: ClassVar = (
        "All else stays as it was trained. Compare the sites: where attention can be replaced "
        "without harm, what it learned to look at there matters little for these sentences. Hard "
        "attention keeps the position with the largest weight, and drops the rest."
    )

    sentences: tuple[str, ...]
    attention: tuple[str, ...]
    layer: int | None
    head: int | None
    limit: int

    def answer(self, subject: Subject) -> Answer:
        """Translate with each kind of attention at all sites together, then at each alone."""
        at_least("study.limit", self.limit, 1)
        weights.heads(subject, self.layer, self.head)
        kinds = [kind for kind in dict.fromkeys(self.attention) if kind != LEARNED]
        if not kinds:
            raise UserError("study.attention: expected one or more kinds, found none")
        changes = {
            (site, kind): self._change(None if site == ALL else site, kind)
            for site in (ALL, *SITE_NAMES)
            for kind in kinds
        }
        trial = Trial(subject, self.sentences, self.limit)
        learned = trial.under()
        effects = {place: trial.under(change) for place, change in changes.items()}
        where = self._where()
        return Answer(
            _says(trial, learned, effects),
            [
                _translations(where, trial.sentences, learned, effects),
                _exact(where, trial, learned, effects),
            ],
        )

    def _change(self, site: str | None, kind: str) -> InterventionSettings:
        return InterventionSettings(attention=kind, site=site, layer=self.layer, head=self.head)

    def _where(self) -> str:
        chosen = (("layer", self.layer), ("head", self.head))
        named = [f"{name} {value}" for name, value in chosen if value is not None]
        return f" in {', '.join(named)}" if named else ""


def _translations(where: str, sentences: list[str], learned: Effect, effects: Effects) -> Table:
    rows = learned.rows(sentences, learned, ALL, LEARNED)
    for place, effect in effects.items():
        rows += effect.rows(sentences, learned, *place)
    return Table(
        "translations",
        f"Translations with attention replaced{where}",
        ("replaced at", "attention", "sentence", "translation", "as learned"),
        rows,
    )


def _exact(where: str, trial: Trial, learned: Effect, effects: Effects) -> Table:
    count = len(trial.pairs)
    places: Mapping[tuple[str, str], Effect] = {
        **{(site, LEARNED): learned for site in (ALL, *SITE_NAMES)},
        **effects,
    }
    rows: list[tuple[Cell, ...]] = [
        (site, kind, effect.exact, count, effect.exact / count, effect.different)
        for (site, kind), effect in places.items()
    ]
    return Table(
        "exact_matches",
        f"Share of {trial.name} translated exactly, with attention replaced{where}",
        ("replaced at", "attention", "exact", "sentences", "share", "different translations"),
        rows,
        Heatmap(
            row="attention",
            column="replaced at",
            row_title="attention",
            column_title="replaced at",
            value="share",
            scale="weight",
        ),
    )


def _says(trial: Trial, learned: Effect, effects: Effects) -> list[str]:
    def listed(site: str) -> str:
        found = (f"{kind} {effect.exact}" for (at, kind), effect in effects.items() if at == site)
        return ", ".join(found)

    alone = "; ".join(f"{site}: {listed(site)}" for site in SITE_NAMES)
    return [
        f"As learned, {learned.exact} are translated exactly of {trial.name}.",
        f"With attention replaced at all three sites: {listed(ALL)}.",
        f"At one site alone: {alone}.",
    ]
