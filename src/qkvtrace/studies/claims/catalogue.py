"""Every claim there is, in the order of the texts."""

from qkvtrace.studies.claims.context import Context
from qkvtrace.studies.claims.dictionary import Dictionary
from qkvtrace.studies.claims.five_sentences import FiveSentences
from qkvtrace.studies.claims.heads import Heads
from qkvtrace.studies.claims.learned_attention import LearnedAttention
from qkvtrace.studies.claims.nonsense import Nonsense
from qkvtrace.studies.claims.positions import Positions
from qkvtrace.studies.claims.scaling import Scaling
from qkvtrace.studies.claims.shape import Shape
from qkvtrace.studies.claims.spread import Spread
from qkvtrace.studies.claims.symmetry import Symmetry
from qkvtrace.studies.claims.warmup import Warmup
from qkvtrace.studies.claims.word_order import WordOrder
from qkvtrace.studies.evidence.claim import Claim

CLAIMS: dict[str, type[Claim]] = {
    "context": Context,
    "spread": Spread,
    "word_order": WordOrder,
    "five_sentences": FiveSentences,
    "symmetry": Symmetry,
    "scaling": Scaling,
    "positions": Positions,
    "heads": Heads,
    "dictionary": Dictionary,
    "shape": Shape,
    "learned_attention": LearnedAttention,
    "warmup": Warmup,
    "nonsense": Nonsense,
}
