"""Probes: the sentences that pass through the model again and again, and what is seen of them."""

from dataclasses import dataclass
from itertools import takewhile

from torch import Tensor

from qkvtrace.corpus.batches import pad
from qkvtrace.corpus.prepared import Corpus
from qkvtrace.corpus.vocabulary import EOS, SOS, Vocabulary
from qkvtrace.model.transformer import Transformer
from qkvtrace.snapshots.recording import recording
from qkvtrace.translation.search import greedy

DEFAULT_COUNT = 12


@dataclass(frozen=True)
class Probe:
    """A sentence to look at, and its translation where the corpus has one."""

    source: list[str]
    reference: list[str] | None


@dataclass(frozen=True)
class Sentence:
    """A probe at one epoch. Positions of recorded vectors are those of these token lists."""

    source: list[str]  # <sos> ... <eos>
    target: list[str]  # <sos> ...: what the decoder was given
    translation: list[str]  # the model's own, greedy
    reference: list[str] | None


@dataclass(frozen=True)
class Snapshot:
    """What passed every tap at one epoch; 0 is the untrained model.

    The first axis of each value is the sentence. Axes over positions are as long as the longest
    sentence; what lies beyond a sentence's own tokens is padding's, and means nothing.
    """

    epoch: int
    step: int
    sentences: list[Sentence]
    values: dict[str, Tensor]


def probes(corpus: Corpus) -> tuple[list[Probe], list[str]]:
    """The probes of a corpus, and those sentences that were left out for an unknown word.

    They are the ones that its settings name, or else the first of its validation split.
    """
    references = corpus.references()
    known = [tokens for tokens in corpus.probes if not corpus.source.unknown(tokens)]
    left_out = [" ".join(tokens) for tokens in corpus.probes if tokens not in known]
    sources = known or [source for source, _ in corpus.splits["valid"][:DEFAULT_COUNT]]
    return [Probe(source, references.get(tuple(source))) for source in sources], left_out


def observe(
    model: Transformer,
    probes: list[Probe],
    source: Vocabulary,
    target: Vocabulary,
    epoch: int,
    step: int,
    *patterns: str,
) -> Snapshot:
    """Translate the probes, then record taps while the decoder is given each reference.

    A probe without a reference is given its own translation, up to the length of the longest
    source: an untrained model hardly ends its sentences. `patterns` are those of `recording`;
    without any, every tap is recorded. The model is left as it was.
    """
    device = next(model.parameters()).device
    sources = pad([source.ids(probe.source) for probe in probes]).to(device)
    translations = greedy(model, sources).ids.tolist()
    given = [
        target.ids(probe.reference)[:-1]
        if probe.reference is not None
        else [SOS, *takewhile(EOS.__ne__, ids)][: sources.shape[1]]
        for probe, ids in zip(probes, translations, strict=True)
    ]
    targets = pad(given).to(device)
    with recording(model, *(patterns or "*")) as record:
        model(sources, targets)
    sentences = [
        Sentence(
            [source[SOS], *probe.source, source[EOS]],
            [target[SOS], *_given(probe, ids, target)],
            target.words(translation),
            probe.reference,
        )
        for probe, ids, translation in zip(probes, given, translations, strict=True)
    ]
    return Snapshot(epoch, step, sentences, {name: values[0] for name, values in record.items()})


def _given(probe: Probe, ids: list[int], target: Vocabulary) -> list[str]:
    """The words that the decoder was given: a reference's own, also where they are unknown."""
    return target.words(ids) if probe.reference is None else probe.reference
