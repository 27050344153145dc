"""What every study is: a question with settings, put to a run."""

from dataclasses import replace
from typing import ClassVar, Protocol

from qkvtrace.studies.answer import Answer
from qkvtrace.studies.subject import Subject


class Study(Protocol):
    """A frozen dataclass whose fields are its settings; `configs/study/` has their defaults."""

    title: ClassVar[str]
    question: ClassVar[str]
    look: ClassVar[str]  # what to look for in its pictures

    def answer(self, subject: Subject) -> Answer:
        """Look into the run's model; raises UserError where the settings do not fit it."""
        ...


def ask(study: Study, subject: Subject) -> Answer:
    """A study's answer, with the notes on what had to differ from what it asked for."""
    subject.told()
    answer = study.answer(subject)
    return replace(answer, notes=[*answer.notes, *subject.told()])
