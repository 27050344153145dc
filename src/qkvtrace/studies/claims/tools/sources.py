"""The sentences that claims look at."""

from itertools import islice

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.errors import UserError

COUNT = 36  # all of the default corpus


def sources(corpus: Corpus, count: int = COUNT) -> list[list[str]]:
    """The first different sources of the validation split whose words are all known.

    Raises UserError if there is none.
    """
    known = (words for words, _ in corpus.splits["valid"] if not corpus.source.unknown(words))
    found = [list(words) for words in islice(dict.fromkeys(map(tuple, known)), count)]
    if not found:
        raise UserError("data.valid: expected a sentence whose words are all known, found none")
    return found
