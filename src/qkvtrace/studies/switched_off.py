"""Item 7: parts of the decoder switched off, or given another input."""

from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.settings import InterventionSettings, at_least
from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.changes import Effect, Trial
from qkvtrace.studies.tools.parts import Switch, dropping, switches

Effects = list[tuple[Switch, Effect]]  # the first: nothing is changed


@dataclass(frozen=True, kw_only=True)
class SwitchedOff:
    """The trained model without one of its decoder's parts."""

    title: ClassVar = "Parts switched off"
    question: ClassVar = "Which parts of the decoder does a translation need?"
    look: ClassVar = (
        "The parts that are left were trained together with the one that is missing: a broken "
        "translation shows what this model relies on, not what a model could learn without it. "
        "Where all sentences have one translation, nothing of the source comes through."
    )

    sentences: tuple[str, ...]
    limit: int
    dropout_seed: int

    def answer(self, subject: Subject) -> Answer:
        """Translate under each switch."""
        at_least("study.limit", self.limit, 1)
        at_least("study.dropout_seed", self.dropout_seed, 0)
        trial = Trial(subject, self.sentences, self.limit)
        learned = trial.under()
        effects = [(Switch(InterventionSettings(), ""), learned)]
        positions = subject.trained.settings.model.positions != "none"
        for switch in switches(positions):
            with dropping(subject.trained.model, self.dropout_seed, switch.dropout):
                effects.append((switch, trial.under(switch.change)))
        return Answer(
            _says(effects, trial),
            [_translations(trial.sentences, effects), _exact(effects, trial)],
            [] if positions else ["decoder input of positions alone: the model has none"],
        )


def _translations(sentences: list[str], effects: Effects) -> Table:
    learned = effects[0][1]
    return Table(
        "translations",
        "Translations with a part switched off",
        ("change", "sentence", "translation", "as learned"),
        [row for switch, effect in effects for row in effect.rows(sentences, learned, str(switch))],
    )


def _exact(effects: Effects, trial: Trial) -> Table:
    count = len(trial.pairs)
    rows: list[tuple[Cell, ...]] = [
        (str(switch), switch.setting, effect.exact, count, effect.exact / count, effect.different)
        for switch, effect in effects
    ]
    return Table(
        "exact_matches",
        f"How many are translated exactly of {trial.name}",
        (
            "change",
            "setting of make translate",
            "exact",
            "sentences",
            "share",
            "different translations",
        ),
        rows,
    )


def _says(effects: Effects, trial: Trial) -> list[str]:
    (_, learned), *others = effects
    ranked = sorted(others, key=lambda pair: -pair[1].exact)
    some = [f"{switch} {effect.exact}" for switch, effect in ranked if effect.exact]
    none = [str(switch) for switch, effect in ranked if not effect.exact]
    return [
        f"As learned, {learned.exact} are translated exactly of {trial.name}.",
        *([f"With a part changed: {'; '.join(some)}."] if some else []),
        *([f"None with a part changed: {'; '.join(none)}."] if none else []),
    ]
