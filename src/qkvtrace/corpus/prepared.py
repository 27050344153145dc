"""A corpus that was tokenised once, and is read from a cache from then on.

The cache is one JSON file, named by a hash of the texts and of the settings that shape it: another
text or another setting is another file, so a stale one is never read.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from qkvtrace.corpus.pairs import Pair, read_pairs
from qkvtrace.corpus.vocabulary import SPECIALS, Vocabulary
from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.settings import DataSettings

FORMAT = 1
SPLITS = ("train", "valid", "test")

TokenPair = tuple[list[str], list[str]]


@dataclass(frozen=True)
class Corpus:
    """Tokenised sentence pairs a split, and the vocabularies of the training split."""

    fingerprint: str
    splits: dict[str, list[TokenPair]]
    source: Vocabulary
    target: Vocabulary
    probes: list[list[str]]  # the sentences to look at, where the settings name some

    def check_lengths(self, limit: int | None) -> None:
        """Raise UserError if a sentence, with <sos> and <eos>, has more than `limit` tokens."""
        pairs = [pair for split in SPLITS for pair in self.splits[split]]
        longest = max((side for pair in [*pairs, self.probes] for side in pair), key=len)
        if limit is not None and len(longest) + 2 > limit:
            raise UserError(
                f"model.max_positions: expected room for {len(longest)} tokens, <sos> and <eos>, "
                f"found {limit} (data.max_length leaves long pairs out): "
                f"{' '.join(longest[:8])} ..."
            )

    def references(self) -> dict[tuple[str, ...], list[str]]:
        """Target tokens by source tokens, over all splits; the first translation counts."""
        found: dict[tuple[str, ...], list[str]] = {}
        for split in SPLITS:
            for source, target in self.splits[split]:
                found.setdefault(tuple(source), target)
        return found


def prepare(settings: DataSettings, cache: Path) -> Corpus:
    """The corpus of `settings`, from `cache` if it is there, else tokenised and kept in it.

    Raises:
        UserError: for bad input (see `read_pairs`), or if no pair is left after filtering.
        OSError: if the cache cannot be written.
    """
    texts = _read(settings)
    fingerprint = _fingerprint(settings, texts)
    path = cache / f"{settings.name}-{fingerprint[:16]}.json"
    corpus = _load(path, fingerprint)
    if corpus is None:
        corpus = _tokenise(settings, texts, fingerprint)
        cache.mkdir(parents=True, exist_ok=True)
        _save(path, corpus)
    return corpus


def _read(settings: DataSettings) -> dict[str, list[Pair]]:
    """The pairs of each split that has files of its own; valid and test default to train."""
    named = {split: getattr(settings, split) for split in SPLITS}
    return {
        split: read_pairs(_in_folder(settings.folder, paths))
        for split, paths in named.items()
        if paths is not None
    }


def _in_folder(folder: str | None, paths: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if folder is None:
        return paths
    if isinstance(paths, str):
        return str(Path(folder) / paths)
    return tuple(str(Path(folder) / path) for path in paths)


def _fingerprint(settings: DataSettings, texts: dict[str, list[Pair]]) -> str:
    shaping = (
        FORMAT,
        settings.source_language,
        settings.target_language,
        settings.lowercase,
        settings.min_frequency,
        settings.max_length,
        settings.limit,
        settings.probes,
    )
    return hashlib.sha256(json.dumps([shaping, texts]).encode()).hexdigest()


def _tokenise(settings: DataSettings, texts: dict[str, list[Pair]], fingerprint: str) -> Corpus:
    from qkvtrace.corpus.tokens import Tokenizer

    source = Tokenizer(settings.source_language, lowercase=settings.lowercase)
    target = Tokenizer(settings.target_language, lowercase=settings.lowercase)
    splits: dict[str, list[TokenPair]] = {}
    for split, pairs in texts.items():
        splits[split] = list(_kept(((source(s), target(t)) for s, t in pairs), settings.max_length))
        if not splits[split]:
            raise UserError(
                f"data.max_length: expected a length that keeps some pairs, found "
                f"{settings.max_length}, which filters out all {len(pairs)} of data.{split}"
            )
    splits["train"] = _spread(splits["train"], settings.limit)
    for split in SPLITS:
        splits.setdefault(split, splits["train"])
    sources, targets = zip(*splits["train"], strict=True)
    least = settings.min_frequency
    known = source.vocabulary(sources, min_frequency=least)
    wanted = target.vocabulary(targets, min_frequency=least)
    if min(len(known), len(wanted)) == len(SPECIALS):
        raise UserError(
            f"data.min_frequency: expected a frequency that some words reach, found "
            f"{settings.min_frequency}, which none does"
        )
    probes = [source(sentence) for sentence in settings.probes or ()]
    return Corpus(fingerprint, splits, known, wanted, probes)


def _kept(pairs: Iterator[TokenPair], max_length: int | None) -> Iterator[TokenPair]:
    for source, target in pairs:
        if max_length is None or max(len(source), len(target)) <= max_length:
            yield source, target


def _spread(pairs: list[TokenPair], limit: int | None) -> list[TokenPair]:
    """At most `limit` of them, evenly spaced: files may be in some order."""
    if limit is None or limit >= len(pairs):
        return pairs
    return [pairs[number * len(pairs) // limit] for number in range(limit)]


def _save(path: Path, corpus: Corpus) -> None:
    own = {
        split: pairs
        for split, pairs in corpus.splits.items()
        if split == "train" or pairs is not corpus.splits["train"]
    }
    content = {
        "fingerprint": corpus.fingerprint,
        "source": corpus.source.tokens,
        "target": corpus.target.tokens,
        "probes": corpus.probes,
        "splits": own,
    }
    files.write_text(path, json.dumps(content, ensure_ascii=False))


def _load(path: Path, fingerprint: str) -> Corpus | None:
    """The cached corpus, or None if there is no valid one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        splits = {split: [(s, t) for s, t in pairs] for split, pairs in content["splits"].items()}
        if content["fingerprint"] != fingerprint:
            return None
        for split in SPLITS:
            splits.setdefault(split, splits["train"])
        return Corpus(
            fingerprint,
            splits,
            Vocabulary(content["source"]),
            Vocabulary(content["target"]),
            content["probes"],
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
