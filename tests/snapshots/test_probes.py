"""Probes: which sentences are looked at, and what a snapshot says of them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.corpus.vocabulary import PAD, SOS
from qkvtrace.model.transformer import Transformer
from qkvtrace.snapshots.probes import DEFAULT_COUNT, Probe, Snapshot, observe, probes

Build = Callable[..., Transformer]


def observed(model: Transformer, corpus: Corpus, looked_at: list[Probe]) -> Snapshot:
    return observe(model, looked_at, corpus.source, corpus.target, epoch=7, step=31)


def test_probes_with_unknown_words_are_left_out(corpus: Corpus) -> None:
    wanted = [["we", "drink", "tea"], ["we", "drink"], ["<eos>"]]
    chosen, left_out = probes(replace(corpus, probes=wanted))
    assert [probe.source for probe in chosen] == [["we", "drink"]]
    assert left_out == ["we drink tea", "<eos>"]


@pytest.mark.parametrize("wanted", [[], [["tea"]]])
def test_without_known_probes_the_first_validation_sentences_are_looked_at(
    corpus: Corpus, wanted: list[list[str]]
) -> None:
    valid = [([f"word{index}"], [f"wort{index}"]) for index in range(DEFAULT_COUNT + 1)]
    splits = corpus.splits | {"valid": valid}
    chosen, left_out = probes(replace(corpus, probes=wanted, splits=splits))
    assert chosen == [Probe(source, target) for source, target in valid[:DEFAULT_COUNT]]
    assert left_out == [" ".join(tokens) for tokens in wanted]


def test_references_are_found_in_any_split_and_the_first_counts(corpus: Corpus) -> None:
    splits = {
        "train": [(["i", "eat"], ["ich", "essen"])],
        "valid": [(["i", "eat"], ["es"]), (["we"], ["wir"])],
        "test": [(["it"], ["es"])],
    }
    wanted = [["it"], ["we"], ["i", "eat"], ["i"]]
    chosen, _ = probes(replace(corpus, probes=wanted, splits=splits))
    assert [probe.reference for probe in chosen] == [["es"], ["wir"], ["ich", "essen"], None]


def test_a_snapshot_holds_what_the_decoder_was_given(transformer: Build, corpus: Corpus) -> None:
    model = transformer()
    with_reference, without = probes(corpus)[0]
    snapshot = observed(model, corpus, [with_reference, without])
    assert (snapshot.epoch, snapshot.step) == (7, 31)
    first, second = snapshot.sentences
    assert with_reference.reference is not None
    assert first.source == ["<sos>", *with_reference.source, "<eos>"]
    assert first.target == ["<sos>", *with_reference.reference]
    assert second.reference is without.reference is None
    longest = max(len(sentence.source) for sentence in snapshot.sentences)
    assert second.target == ["<sos>", *second.translation][:longest]
    assert len(second.target) > 1
    assert set(snapshot.values) == {
        name for name, module in model.named_modules() if hasattr(module, "axes")
    }


@pytest.mark.parametrize("favourite", [PAD, SOS, 7])
def test_recorded_positions_are_those_of_the_tokens_that_name_them(
    transformer: Build, corpus: Corpus, favourite: int
) -> None:
    model = transformer()
    with torch.no_grad():
        model.vocabulary.bias[favourite] += 3.0
    snapshot = observed(model, corpus, probes(corpus)[0])
    for index, sentence in enumerate(snapshot.sentences):
        for side, tokens, vocabulary, embed in (
            ("encoder", sentence.source, corpus.source, model.encoder.embed),
            ("decoder", sentence.target, corpus.target, model.decoder.embed),
        ):
            ids = torch.tensor([[vocabulary.tokens.index(token) for token in tokens]])
            recorded = snapshot.values[f"{side}.embedding"][index, : len(tokens)]
            assert_close(recorded, embed(ids)[0].detach(), atol=1e-6, rtol=0)
    assert vocabulary[favourite] in snapshot.sentences[1].target[1:]


def test_observing_leaves_the_model_as_it_was(transformer: Build, corpus: Corpus) -> None:
    model = transformer(dropout=0.3).train()
    model.encoder.eval()
    modes = [module.training for module in model.modules()]
    random = torch.get_rng_state()
    observed(model, corpus, probes(corpus)[0])
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
