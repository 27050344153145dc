"""Members are what `make train` makes of their seeds, and show what a run would."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batches
from qkvtrace.errors import UserError
from qkvtrace.model.stored import build_model
from qkvtrace.settings import InterventionSettings, Recipe
from qkvtrace.snapshots.probes import Probe, observe
from qkvtrace.studies.evidence.laboratory import UNTRAINED, Laboratory, Member
from qkvtrace.training.trainer import Trainer
from qkvtrace.translation.quality import exact_match

TEXTS = ["we can eat apple", "apple eat can we"]  # the corpus translates the first alone


@pytest.fixture(scope="module")
def member(trained: Laboratory) -> Member:
    return trained.members(trained.base)[1]


@pytest.fixture(scope="module")
def ordinary(trained: Laboratory, member: Member) -> Trainer:
    """The same seed, by the ordinary loop."""
    base, corpus = trained.base, member.corpus
    torch.manual_seed(member.seed)
    batches = Batches(
        corpus.splits["train"],
        corpus.source,
        corpus.target,
        size=base.training.batch_size,
        device=torch.device("cpu"),
    )
    model = build_model(base, corpus.source, corpus.target)
    trainer = Trainer(model, base.training, base.training.epochs * len(batches))
    for epoch in range(1, base.training.epochs + 1):
        for batch in batches.shuffled(member.seed, epoch):
            trainer.train_step(batch)
    return trainer


def test_a_member_shows_what_the_ordinary_run_of_its_seed_would(
    member: Member, ordinary: Trainer
) -> None:
    corpus = member.corpus
    found = member.observe(TEXTS, ["*.x1", "*.weights", "logits"])
    references = [sentence.target[1:] for sentence in found.sentences]
    probes = [Probe(text.split(), given) for text, given in zip(TEXTS, references, strict=True)]
    wanted = observe(
        ordinary.model, probes, corpus.source, corpus.target, 1, 0, "*.x1", "*.weights", "logits"
    )
    assert [each.translation for each in found.sentences] == [
        each.translation for each in wanted.sentences
    ]
    for name, value in wanted.values.items():
        assert_close(found.values[name], value, rtol=0, atol=1e-4)


def test_before_training_it_is_the_seed_s_new_model(trained: Laboratory, member: Member) -> None:
    torch.manual_seed(member.seed)
    new = build_model(trained.base, member.corpus.source, member.corpus.target)
    for (name, value), (other, wanted) in zip(
        member.model(UNTRAINED).named_parameters(), new.named_parameters(), strict=True
    ):
        assert name == other
        assert torch.equal(value, wanted)


def test_both_epochs_are_given_the_same_tokens(member: Member) -> None:
    before, after = (member.observe(TEXTS, ["logits"], epoch) for epoch in (UNTRAINED, -1))
    assert [each.target for each in before.sentences] == [each.target for each in after.sentences]
    assert after.sentences[0].target == ["<sos>", "wir", "konnen", "apfel", "essen"]
    assert after.sentences[1].target[1:] == member.translate([TEXTS[1].split()])[0]
    assert not torch.equal(before.values["logits"], after.values["logits"])


def test_translations_and_exact_matches_are_the_model_s(member: Member) -> None:
    pairs = member.corpus.splits["valid"]
    corpus = member.corpus
    batches = Batches(pairs, corpus.source, corpus.target, size=5, device=torch.device("cpu"))
    wanted = exact_match(member.model(), batches, pairs, corpus.target)
    assert member.exact_match() == wanted
    assert member.exact_match(split="train") == wanted  # the default corpus validates on them
    hidden = InterventionSettings(skip="decoder")
    sources = [source for source, _ in pairs]
    assert member.translate(sources, hidden) != member.translate(sources)


def test_each_recipe_is_trained_once(recipe: Callable[..., Recipe], trained: Laboratory) -> None:
    told: list[Recipe] = []
    laboratory = Laboratory(
        trained.base,
        trained.base,
        [1],
        torch.device("cpu"),
        lambda recipe, step, last_step: told.append(recipe) if step == last_step else None,
    )
    shared = replace(trained.base, model=replace(trained.base.model, projections="shared"))
    for wanted in (trained.base, shared, trained.base, shared):
        (member,) = laboratory.members(wanted)
        assert member.recipe == wanted
    assert told == [trained.base, shared]


def test_an_unknown_word_is_an_error_that_names_it(member: Member) -> None:
    with pytest.raises(UserError, match=r"found unicorn in “we eat unicorn”"):
        member.words("we eat unicorn")
    with pytest.raises(UserError, match=r"found none in “”"):
        member.words("")


def test_a_corpus_that_the_positions_cannot_hold_is_an_error(
    trained: Laboratory, tmp_path: Path
) -> None:
    short = replace(trained.base, model=replace(trained.base.model, max_positions=4))
    with pytest.raises(UserError, match=r"model.max_positions: .* found 4"):
        Laboratory(short, short, [0], torch.device("cpu")).members(short)
