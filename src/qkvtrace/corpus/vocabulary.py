"""A vocabulary: tokens and their ids, stored as a JSON list whose index is the id."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from qkvtrace.errors import UserError
from qkvtrace.runs import files

UNK, PAD, SOS, EOS = range(4)
SPECIALS = ("<unk>", "<pad>", "<sos>", "<eos>")


class Vocabulary(Sequence[str]):
    """The tokens of one language; `vocabulary[id]` is a token."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = tuple(tokens)
        if self.tokens[: len(SPECIALS)] != SPECIALS:
            raise ValueError(f"a vocabulary starts with {SPECIALS}")
        # A text that spells out "<eos>" gets an unknown word, not the end of its sentence.
        self._ids = {token: i for i, token in enumerate(self.tokens) if i >= len(SPECIALS)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # int or slice, as a tuple's
        return self.tokens[index]

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """<sos>, the tokens' ids (UNK for an unknown one), <eos>."""
        return [SOS, *(self._ids.get(token, UNK) for token in tokens), EOS]

    def words(self, ids: Iterable[int]) -> list[str]:
        """The tokens of `ids`, without a leading <sos>, up to the first <eos>."""
        words = [self.tokens[index] for index in takewhile(EOS.__ne__, ids)]
        return words[1:] if words[:1] == [SPECIALS[SOS]] else words

    def unknown(self, tokens: Iterable[str]) -> list[str]:
        """Those of `tokens` that are not in the vocabulary, each once, in order."""
        return [token for token in dict.fromkeys(tokens) if token not in self._ids]

    @cached_property
    def sha256(self) -> str:
        """Tells vocabularies apart."""
        return hashlib.sha256("\n".join(self.tokens).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write the token list."""
        files.write_json(path, list(self.tokens))

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read a token list; raises UserError if the file is missing or is none."""
        tokens = files.read_json(path)
        try:
            return cls(tokens)
        except (TypeError, ValueError):
            raise UserError(
                f"expected a list of tokens that starts with {', '.join(SPECIALS)}: {path}"
            ) from None
