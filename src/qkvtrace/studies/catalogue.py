"""Every study there is, in the order of the article: what `make study` runs, and pages show."""

from qkvtrace.studies.attention_heads import AttentionHeads
from qkvtrace.studies.attention_over_training import AttentionOverTraining
from qkvtrace.studies.decoder_trajectories import DecoderTrajectories
from qkvtrace.studies.decoder_vectors import DecoderVectors
from qkvtrace.studies.dot_products import DotProducts
from qkvtrace.studies.embeddings import Embeddings
from qkvtrace.studies.encoder_trajectories import EncoderTrajectories
from qkvtrace.studies.five_sentences import FiveSentences
from qkvtrace.studies.measures import Measures
from qkvtrace.studies.one_number import OneNumber
from qkvtrace.studies.replaced_attention import ReplacedAttention
from qkvtrace.studies.sentence_pairs import SentencePairs
from qkvtrace.studies.similarity_over_training import SimilarityOverTraining
from qkvtrace.studies.singular_values import SingularValues
from qkvtrace.studies.study import Study
from qkvtrace.studies.switched_off import SwitchedOff
from qkvtrace.studies.translation_steps import TranslationSteps
from qkvtrace.studies.walk import Walk
from qkvtrace.studies.word_order import WordOrder

STUDIES: dict[str, type[Study]] = {
    "dot_products": DotProducts,
    "encoder_trajectories": EncoderTrajectories,
    "decoder_trajectories": DecoderTrajectories,
    "translation_steps": TranslationSteps,
    "attention_over_training": AttentionOverTraining,
    "replaced_attention": ReplacedAttention,
    "switched_off": SwitchedOff,
    "decoder_vectors": DecoderVectors,
    "five_sentences": FiveSentences,
    "word_order": WordOrder,
    "sentence_pairs": SentencePairs,
    "one_number": OneNumber,
    "embeddings": Embeddings,
    "attention_heads": AttentionHeads,
    "walk": Walk,
    "measures": Measures,
    "singular_values": SingularValues,
    "similarity_over_training": SimilarityOverTraining,
}
