"""The project's own two corpora, English and German, generated from small tables.

`eat_drink_read` is the corpus of the article "Understanding Q, K, V in Transformer (self
attention)": 36 sentences in simplified German, which serve as training, validation and test set.

`grammatical` follows the same idea in correct English and German. A sentence combines a subject, a
modal verb or none, a verb with its object, an adverb or none, and perhaps a negation. `you` is one
person who is addressed informally (`du`).

What is held out: subjects and verb phrases (a verb with its object) are numbered from 0 in the
order of their tables. A subject and a verb phrase whose numbers add up to a multiple of 9 meet in
the test set alone, those that leave a remainder of 4 in the validation set alone, whatever the
modal, adverb and negation. Training so never says that `I` `drink beer`, but lets `I` drink other
things and others drink beer: to have learned the parts is enough, to have learned sentences by
heart is not.

    python -m qkvtrace.corpus.grammar [folder]

writes both corpora as text, one pair a line, English TAB German.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from qkvtrace.corpus.german import Article, Object, Person, clause
from qkvtrace.corpus.pairs import Pair
from qkvtrace.runs.files import write_text

# --- the article's corpus -------------------------------------------------------------------------

ARTICLE_SUBJECTS = (("i", "ich"), ("we", "wir"))
ARTICLE_MODALS = (("want to", "mochten"), ("can", "konnen"))
# English verb and object, German verb and object
ARTICLE_PHRASES = (
    ("eat", "bread", "essen", "brot"),
    ("eat", "apple", "essen", "apfel"),
    ("drink", "water", "trinken", "wasser"),
    ("drink", "beer", "trinken", "bier"),
    ("read", "book", "lesen", "buch"),
    ("read", "newspaper", "lesen", "zeitung"),
)


def eat_drink_read() -> list[Pair]:
    """Return the article's 36 (English, German) pairs in the article's order.

    The German is simplified as there: no umlauts, no articles, and verbs that do not agree.
    """
    with_modal = [
        (f"{i} {can} {eat} {bread}", f"{ich} {konnen} {brot} {essen}")
        for (i, ich), (can, konnen) in product(ARTICLE_SUBJECTS, ARTICLE_MODALS)
        for eat, bread, essen, brot in ARTICLE_PHRASES
    ]
    without_modal = [
        (f"{i} {eat} {bread}", f"{ich} {essen} {brot}")
        for i, ich in ARTICLE_SUBJECTS
        for eat, bread, essen, brot in ARTICLE_PHRASES
    ]
    return with_modal + without_modal


# --- the grammatical corpus: its words ------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A pronoun in both languages."""

    english: str
    german: str
    person: Person


@dataclass(frozen=True)
class Verb:
    """A verb in both languages; English with the forms that its predicates need."""

    english: str
    third_person: str
    participle: str
    german: str


@dataclass(frozen=True)
class Predicate:
    """A pattern for the English verb, affirmed and denied, and the German modal verb, if any.

    The patterns name the subject's forms of `be` and `do`, and the verb's: `eat`, `eats`, `eating`.
    """

    affirmed: str
    denied: str
    german_modal: str = ""


@dataclass(frozen=True)
class Adverb:
    """When or how often, in both languages, and what English says with it if there is no modal."""

    english: str
    german: str
    predicate: Predicate


SUBJECTS = (
    Subject("I", "ich", Person.FIRST),
    Subject("you", "du", Person.SECOND),
    Subject("he", "er", Person.THIRD),
    Subject("she", "sie", Person.THIRD),
    Subject("we", "wir", Person.PLURAL),
    Subject("they", "sie", Person.PLURAL),
)
BE = {Person.FIRST: "am", Person.SECOND: "are", Person.THIRD: "is", Person.PLURAL: "are"}
DO = {Person.FIRST: "do", Person.SECOND: "do", Person.THIRD: "does", Person.PLURAL: "do"}

VERBS = (
    Verb("eat", "eats", "eating", "essen"),
    Verb("drink", "drinks", "drinking", "trinken"),
    Verb("read", "reads", "reading", "lesen"),
    Verb("buy", "buys", "buying", "kaufen"),
    Verb("cook", "cooks", "cooking", "kochen"),
    Verb("write", "writes", "writing", "schreiben"),
    Verb("sing", "sings", "singing", "singen"),
    Verb("order", "orders", "ordering", "bestellen"),
)

# What each verb takes; "" is the verb without an object.
OBJECTS = {
    "eat": ("", "bread", "cheese", "an apple", "a pear", "an egg", "the soup"),
    "drink": ("water", "milk", "beer", "tea", "coffee", "the juice"),
    "read": ("", "a book", "a letter", "a story", "the book", "the newspaper"),
    "buy": ("bread", "flowers", "a book", "a newspaper", "the newspaper"),
    "cook": ("", "rice", "potatoes", "vegetables", "the soup"),
    "write": ("", "a letter", "a poem", "a story"),
    "sing": ("", "a song", "the song"),
    "order": ("a beer", "a coffee", "a salad", "the fish"),
}

NOUNS = {
    "apple": "Apfel",
    "beer": "Bier",
    "book": "Buch",
    "bread": "Brot",
    "cheese": "Käse",
    "coffee": "Kaffee",
    "egg": "Ei",
    "fish": "Fisch",
    "flowers": "Blumen",
    "juice": "Saft",
    "letter": "Brief",
    "milk": "Milch",
    "newspaper": "Zeitung",
    "pear": "Birne",
    "poem": "Gedicht",
    "potatoes": "Kartoffeln",
    "rice": "Reis",
    "salad": "Salat",
    "song": "Lied",
    "soup": "Suppe",
    "story": "Geschichte",
    "tea": "Tee",
    "vegetables": "Gemüse",
    "water": "Wasser",
}

ARTICLES = {
    "": Article.NONE,
    "a": Article.INDEFINITE,
    "an": Article.INDEFINITE,
    "the": Article.DEFINITE,
}

# `must not` forbids, which is `nicht dürfen`; `nicht müssen` only lifts a duty: `do not have to`.
MODALS = (
    Predicate("would like to {eat}", "would not like to {eat}", "möchten"),
    Predicate("can {eat}", "cannot {eat}", "können"),
    Predicate("must {eat}", "{do} not have to {eat}", "müssen"),
    Predicate("{be} allowed to {eat}", "must not {eat}", "dürfen"),
)

# One German present tense is three in English: `er isst abends, jetzt, morgen` is `he eats in the
# evening`, `he is eating now`, `he will eat tomorrow`.
SIMPLE = Predicate("{eats}", "{do} not {eat}")
OFTEN = Predicate("often {eats}", "{do} not often {eat}")
PROGRESSIVE = Predicate("{be} {eating}", "{be} not {eating}")
FUTURE = Predicate("will {eat}", "will not {eat}")

ADVERBS = (
    Adverb("", "", SIMPLE),
    Adverb("now", "jetzt", PROGRESSIVE),
    Adverb("today", "heute", PROGRESSIVE),
    Adverb("tomorrow", "morgen", FUTURE),
    Adverb("in the morning", "morgens", SIMPLE),
    Adverb("in the evening", "abends", SIMPLE),
    Adverb("every day", "jeden Tag", SIMPLE),
)
# `he can often eat` leaves open whether he often can or may eat often, so this one takes no modal.
OFTEN_ADVERB = Adverb("", "oft", OFTEN)


# --- the grammatical corpus: its sentences --------------------------------------------------------

VERB_PHRASES = tuple((verb, thing) for verb in VERBS for thing in OBJECTS[verb.english])

# Every way to say something of a subject and a verb phrase, before it is affirmed or denied.
FRAMES = (
    *product(MODALS, ADVERBS),
    *((adverb.predicate, adverb) for adverb in (*ADVERBS, OFTEN_ADVERB)),
)

HELD_OUT_MODULUS = 9
HELD_OUT = {0: "test", 4: "valid"}
# All sentences would be more than a small model needs. Counting subjects, verb phrases and frames
# together keeps every fifth, so that each of them still meets nearly all of the others.
KEEP_ONE_IN = 5


def english(
    subject: Subject, verb: Verb, thing: str, predicate: Predicate, *, adverb: str, negated: bool
) -> str:
    """Return the English sentence without punctuation: `he does not eat bread every day`."""
    pattern = predicate.denied if negated else predicate.affirmed
    said = pattern.format(
        be=BE[subject.person],
        do=DO[subject.person],
        eat=verb.english,
        eats=verb.third_person if subject.person is Person.THIRD else verb.english,
        eating=verb.participle,
    )
    return " ".join(part for part in (subject.english, said, thing, adverb) if part)


def german_object(thing: str) -> Object | None:
    """Return the German object for an English one like `an apple`, or None for ""."""
    article, _, noun = thing.rpartition(" ")
    return Object(NOUNS[noun], ARTICLES[article]) if noun else None


def sentences() -> Iterator[tuple[str, Pair]]:
    """Yield each pair of the grammatical corpus with the name of the split that it belongs to."""
    for (s, subject), (p, (verb, thing)) in product(enumerate(SUBJECTS), enumerate(VERB_PHRASES)):
        split = HELD_OUT.get((s + p) % HELD_OUT_MODULUS, "train")
        for (f, (predicate, adverb)), negated in product(enumerate(FRAMES), (False, True)):
            if (s + p + f + 2 * negated) % KEEP_ONE_IN:
                continue
            source = english(
                subject, verb, thing, predicate, adverb=adverb.english, negated=negated
            )
            target = clause(
                subject.german,
                subject.person,
                verb.german,
                german_object(thing),
                modal=predicate.german_modal,
                adverb=adverb.german,
                negated=negated,
            )
            yield split, (source, target)


def grammatical() -> dict[str, list[Pair]]:
    """Return the (English, German) pairs of the splits "train", "valid" and "test".

    English sentences are unique over all three, and test and validation combine subjects and verb
    phrases that no other split combines.
    """
    splits: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for split, pair in sentences():
        splits[split].append(pair)
    return splits


# --- files ----------------------------------------------------------------------------------------


def tsv(pairs: Sequence[Pair]) -> str:
    """Return the pairs as text, one a line, English TAB German."""
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write both corpora into the folder named on the command line and print what was written."""
    parser = argparse.ArgumentParser(
        prog="python -m qkvtrace.corpus.grammar",
        description="Write the eat/drink/read and the grammatical corpus.",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path("data"))
    folder: Path = parser.parse_args(arguments).folder

    files = {"eat_drink_read.tsv": eat_drink_read()}
    files |= {f"grammatical.{split}.tsv": pairs for split, pairs in grammatical().items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, pairs in files.items():
            write_text(folder / name, tsv(pairs))
            print(f"{folder / name}: {len(pairs)} pairs")
    except OSError as error:
        parser.exit(1, f"cannot write the corpora into {folder}: {error.strerror}\n")


if __name__ == "__main__":
    main()
