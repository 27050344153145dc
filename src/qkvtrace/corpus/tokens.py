"""Text to tokens, tokens to vocabularies: the one module that knows spaCy and torchtext.

spaCy's blank tokenizers need no download. torchtext is 0.6.0, its last release in plain Python
(the later ones load a compiled extension that PyTorch above 2.3 refuses). Both are imported when a
Tokenizer is made, not before: spaCy alone costs as much as the rest of start-up.
"""

from collections.abc import Iterable

from qkvtrace.corpus.vocabulary import EOS, PAD, SOS, SPECIALS, UNK, Vocabulary
from qkvtrace.errors import UserError


class Tokenizer:
    """Splits sentences of one language, and collects their vocabulary."""

    def __init__(self, language: str, *, lowercase: bool) -> None:
        """Raises UserError if spaCy has no tokenizer for `language` (a code such as "en")."""
        import spacy
        from torchtext.data import Field

        try:
            split = spacy.blank(language).tokenizer
        except ImportError:
            raise UserError(
                f"expected a language code that spaCy knows (en, de, fr, ...), found {language!r}"
            ) from None
        self._field = Field(
            tokenize=lambda text: [token.text for token in split(text) if not token.is_space],
            lower=lowercase,
            init_token=SPECIALS[SOS],
            eos_token=SPECIALS[EOS],
            pad_token=SPECIALS[PAD],
            unk_token=SPECIALS[UNK],
        )

    def __call__(self, text: str) -> list[str]:
        """The tokens of one sentence; special tokens are not added."""
        tokens: list[str] = self._field.preprocess(text)
        return tokens

    def vocabulary(self, sentences: Iterable[list[str]], *, min_frequency: int) -> Vocabulary:
        """Specials, then the tokens seen `min_frequency` times or more, most frequent first."""
        self._field.build_vocab(sentences, min_freq=min_frequency)
        return Vocabulary(self._field.vocab.itos)
