"""Item 15: a walk through one head, with its numbers and shapes."""

from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.settings import at_least
from qkvtrace.studies.answer import Answer
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import walk_tables, weights
from qkvtrace.studies.tools.walked import Walked, difference, walked

BEFORE = ("X", "X encoder", "Q", "K", "V")
AFTER = ("x1", "joined", "x4")


@dataclass(frozen=True, kw_only=True)
class Walk:
    """Each step of one head for one sentence, computed by hand."""

    title: ClassVar = "A walk through one head"
    question: ClassVar = "What does one head of attention compute, step by step?"
    look: ClassVar = (
        "Follow the shapes: a row a word, from the vectors that come in to those that go on, and "
        "in between Q Kᵀ, with a row and a column a word. Row i of the weights says how much word "
        "i looks at each word, and sums to 1."
    )

    sentence: str
    site: str
    layer: int
    head: int
    epoch: int | None
    dimensions: int

    def answer(self, subject: Subject) -> Answer:
        """Compute each step from the parameters, and compare it with what the model does."""
        at_least("study.dimensions", self.dimensions, 1)
        (head,), site = weights.heads(subject, self.layer, self.head), weights.site(self.site)
        epoch, n = weights.at_epoch(subject, self.epoch), self.dimensions
        text = subject.sentences([self.sentence])[0]
        before = walked(subject, text, subject.epochs[0], site, head)
        walk = walked(subject, text, epoch, site, head)
        where = f"{site.title}, layer {head[0]}, head {head[1]}, epoch {epoch}, “{text}”"
        into = f"What comes in, Q, K and V, at most {n} dimensions. {where}"
        out = f"What goes on, at most {n} dimensions. {where}"
        learned = f"The learned projections, at most {n} dimensions. {where}"
        return Answer(
            [_shapes(subject, walk), *_division(subject, walk, before), _largest(walk)],
            [
                walk_tables.steps(where, walk, before),
                walk_tables.vectors("vectors", into, walk, BEFORE, n),
                walk_tables.scores(where, walk),
                walk_tables.weights(where, walk),
                walk_tables.vectors("outputs", out, walk, AFTER, n),
                walk_tables.projections(learned, walk, n),
            ],
        )


def _shapes(subject: Subject, walk: Walked) -> str:
    model = subject.trained.settings.model
    (queries, keys), k = walk.steps["Q Kᵀ"].value.shape, walk.steps["Q"].value.shape[1]
    return (
        f"{queries} positions attend to {keys}, with d = {model.width} and {model.heads} "
        f"head{'s' if model.heads > 1 else ''} of {k}: Q is {queries} × {k}, K and V are "
        f"{keys} × {k}, and Q Kᵀ and the weights {queries} × {keys}, whatever d is."
    )


def _division(subject: Subject, walk: Walked, before: Walked) -> list[str]:
    """What dividing by the square root of the head's width does."""
    if not subject.trained.settings.model.scaled_scores:
        return []
    k = walk.steps["Q"].value.shape[1]
    with_, without = (
        float((walk.steps["scores"].value * factor).softmax(-1).amax(-1).mean())
        for factor in (1.0, k**0.5)
    )
    products, scores = (walk.steps[name].deviation for name in ("Q Kᵀ", "scores"))
    return [
        f"Dividing by √{k} makes the scores' standard deviation {scores:.2f} in place of "
        f"{products:.2f} (at epoch {before.epoch}: {before.steps['scores'].deviation:.2f} in place "
        f"of {before.steps['Q Kᵀ'].deviation:.2f}), and a row's largest weight {with_:.2f} on "
        f"average in place of {without:.2f}."
    ]


def _largest(walk: Walked) -> str:
    best = weights.best(walk.steps["weights"].value, walk.keys)
    at, (key, weight) = max(enumerate(best), key=lambda item: item[1][1])
    apart = [difference(step, walk.taps) for step in walk.steps.values()]
    furthest = max(value for value in apart if value is not None)
    return (
        f"The largest weight is that of “{walk.queries[at]}” on “{key}”, {weight:.2f}. A number "
        f"computed by hand differs from the model's by {furthest:.1e} at most."
    )
