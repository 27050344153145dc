"""German main clauses about everyday things: agreement, case, negation and word order.

What is particular about German, and done here:

- the verb agrees with its subject (`ich esse`, `du isst`) and stands second;
- after a modal verb the main verb is an infinitive at the very end (`ich kann Brot essen`);
- the article of an object shows its gender and the accusative case (`einen Apfel`, `eine Zeitung`);
- `kein` denies an object without a definite article, `nicht` everything else, and what is denied
  decides where `nicht` stands (`er liest das Buch heute nicht`, but `er liest nicht jeden Tag`).
"""

from dataclasses import dataclass
from enum import Enum, auto


class Person(Enum):
    """The subjects that English or German verbs tell apart; all plural subjects share one form."""

    FIRST = auto()
    SECOND = auto()
    THIRD = auto()
    PLURAL = auto()


class Gender(Enum):
    """What an article agrees with; the plural behaves like a fourth gender."""

    MASCULINE = auto()
    NEUTER = auto()
    FEMININE = auto()
    PLURAL = auto()


class Article(Enum):
    """The article before a noun: none, `ein` or `der`."""

    NONE = auto()
    INDEFINITE = auto()
    DEFINITE = auto()


@dataclass(frozen=True)
class Object:
    """The accusative object of a verb: a noun of `GENDERS` and the article it carries."""

    noun: str
    article: Article


# infinitive: ich, du, er or sie. The plural equals the infinitive for every verb here.
PRESENT = {
    "essen": ("esse", "isst", "isst"),
    "trinken": ("trinke", "trinkst", "trinkt"),
    "lesen": ("lese", "liest", "liest"),
    "kaufen": ("kaufe", "kaufst", "kauft"),
    "kochen": ("koche", "kochst", "kocht"),
    "schreiben": ("schreibe", "schreibst", "schreibt"),
    "singen": ("singe", "singst", "singt"),
    "bestellen": ("bestelle", "bestellst", "bestellt"),
    "möchten": ("möchte", "möchtest", "möchte"),
    "können": ("kann", "kannst", "kann"),
    "müssen": ("muss", "musst", "muss"),
    "dürfen": ("darf", "darfst", "darf"),
}

GENDERS = {
    "Apfel": Gender.MASCULINE,
    "Bier": Gender.NEUTER,
    "Birne": Gender.FEMININE,
    "Blumen": Gender.PLURAL,
    "Brief": Gender.MASCULINE,
    "Brot": Gender.NEUTER,
    "Buch": Gender.NEUTER,
    "Ei": Gender.NEUTER,
    "Fisch": Gender.MASCULINE,
    "Gedicht": Gender.NEUTER,
    "Gemüse": Gender.NEUTER,
    "Geschichte": Gender.FEMININE,
    "Kaffee": Gender.MASCULINE,
    "Kartoffeln": Gender.PLURAL,
    "Käse": Gender.MASCULINE,
    "Lied": Gender.NEUTER,
    "Milch": Gender.FEMININE,
    "Reis": Gender.MASCULINE,
    "Saft": Gender.MASCULINE,
    "Salat": Gender.MASCULINE,
    "Suppe": Gender.FEMININE,
    "Tee": Gender.MASCULINE,
    "Wasser": Gender.NEUTER,
    "Zeitung": Gender.FEMININE,
}

# The accusative endings of `ein` and `kein`. `ein` itself has no plural.
EIN_ENDINGS = {
    Gender.MASCULINE: "en",
    Gender.NEUTER: "",
    Gender.FEMININE: "e",
    Gender.PLURAL: "e",
}

DEFINITE_ARTICLES = {
    Gender.MASCULINE: "den",
    Gender.NEUTER: "das",
    Gender.FEMININE: "die",
    Gender.PLURAL: "die",
}

HOW_OFTEN = ("oft", "jeden Tag")


def finite(infinitive: str, person: Person) -> str:
    """Return the present tense of a verb of `PRESENT`: `isst` for `essen` in the second person."""
    first, second, third = PRESENT[infinitive]
    forms = {
        Person.FIRST: first,
        Person.SECOND: second,
        Person.THIRD: third,
        Person.PLURAL: infinitive,
    }
    return forms[person]


def accusative(thing: Object) -> str:
    """Return the object with its article: `einen Apfel`, `die Zeitung`, `Brot`."""
    gender = GENDERS[thing.noun]
    match thing.article:
        case Article.NONE:
            return thing.noun
        case Article.INDEFINITE:
            return f"ein{EIN_ENDINGS[gender]} {thing.noun}"
        case Article.DEFINITE:
            return f"{DEFINITE_ARTICLES[gender]} {thing.noun}"


def denied(thing: Object) -> str:
    """Return the object under `kein`: `keinen Apfel`, `kein Brot`, `keine Blumen`."""
    return f"kein{EIN_ENDINGS[GENDERS[thing.noun]]} {thing.noun}"


def middle(thing: Object | None, adverb: str, negated: bool) -> list[str]:
    """Return what stands between the finite verb and the end of the clause, in order.

    An adverb goes before the object. A negation changes that in three ways:

    - an adverb that says how often is itself what is denied: `nicht oft`, `nicht jeden Tag`;
    - a definite object is known already and moves to the front: `das Buch heute nicht`;
    - any other object is denied by `kein`, unless `nicht` has denied the adverb.
    """
    anything = [] if thing is None else [accusative(thing)]
    when = [adverb] if adverb else []
    if not negated:
        return when + anything

    known = thing is not None and thing.article is Article.DEFINITE
    if adverb in HOW_OFTEN:
        return [*anything, "nicht", adverb] if known else ["nicht", adverb, *anything]
    if thing is None or known:
        return [*anything, *when, "nicht"]
    return [*when, denied(thing)]


def clause(
    subject: str,
    person: Person,
    verb: str,
    thing: Object | None = None,
    *,
    modal: str = "",
    adverb: str = "",
    negated: bool = False,
) -> str:
    """Return a German main clause without punctuation.

    Args:
        subject: the pronoun that opens the clause.
        person: the form of the verb that the subject asks for (`sie` alone does not tell).
        verb: infinitive of the main verb, from `PRESENT`.
        thing: the accusative object, or None for a verb used without one.
        modal: infinitive of the modal verb, from `PRESENT`, or "" for none.
        adverb: when or how often, or "".
        negated: whether the clause is denied.
    """
    words = [subject, finite(modal or verb, person), *middle(thing, adverb, negated)]
    if modal:
        words.append(verb)
    return " ".join(words)
