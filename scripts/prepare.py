"""Tokenise a corpus once, so that training need not: python scripts/prepare.py data=grammatical.

Training does the same where it is needed; this is for doing it ahead, and for a look at the result.
"""

from pathlib import Path

from omegaconf import DictConfig

from qkvtrace.command import command, plain
from qkvtrace.conversion import from_config
from qkvtrace.settings import PrepareSettings


@command("prepare")
def main(config: DictConfig) -> None:
    """Prepare the corpus that the configuration describes, and print what it holds."""
    settings = from_config(PrepareSettings, plain(config))

    from qkvtrace.corpus.prepared import prepare

    corpus = prepare(settings.data, Path(settings.outputs) / "prepared")
    for split, pairs in corpus.splits.items():
        print(f"{split}: {len(pairs)} pairs")
    for side, vocabulary in (("source", corpus.source), ("target", corpus.target)):
        print(f"{side} vocabulary: {len(vocabulary)} tokens, specials included")


if __name__ == "__main__":
    main()
