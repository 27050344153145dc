"""Every study there is, in the order of the article: what `make study` runs, and pages show."""

from qkvtrace.studies.study import Study
from qkvtrace.studies.word_order import WordOrder

STUDIES: dict[str, type[Study]] = {
    "word_order": WordOrder,
}
