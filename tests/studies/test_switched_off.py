"""Translations with a part of the decoder switched off."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.runs.folder import Run
from qkvtrace.settings import DECODER_INPUTS, ONLY, SKIPS, InterventionSettings
from qkvtrace.studies.answer import Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.parts import dropping, switches

Rows = Callable[[Table], list[dict[str, Any]]]

SENTENCE = "we want to eat apple"


def test_every_switch_there_is(subject: Subject, study: Callable[..., Study], rows: Rows) -> None:
    translations, exact = ask(study("switched_off"), subject).tables
    settings = [row["setting of make translate"] for row in rows(exact)]
    assert {setting for setting in settings if setting} == {
        *(f"skip={part}" for part in SKIPS),
        *(f"only={part}" for part in ONLY),
        *(f"decoder_input={kind}" for kind in DECODER_INPUTS),
    }
    changes = [row["change"] for row in rows(exact)]
    assert changes[0] == "as learned"
    assert len(changes) == len(set(changes)) == len(SKIPS) + len(ONLY) + len(DECODER_INPUTS) + 3
    assert {row["change"] for row in rows(translations)} == set(changes)


def test_translations_are_those_under_the_intervention(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    translations, exact = ask(study("switched_off"), subject).tables
    found = {row["change"]: row for row in rows(translations) if row["sentence"] == SENTENCE}
    counts = {row["change"]: row for row in rows(exact)}
    pairs = subject.corpus.splits["valid"]
    for change in (
        InterventionSettings(skip="feed_forward"),
        InterventionSettings(only="cross_attention"),
        InterventionSettings(decoder_input="encoder_output"),
    ):
        made = [subject.translate([" ".join(source)], change)[0].target for source, _ in pairs]
        hits = sum(words == wanted for words, (_, wanted) in zip(made, pairs, strict=True))
        assert counts[str(change)]["exact"] == hits
        assert counts[str(change)]["different translations"] == len(set(map(tuple, made)))
        shown = " ".join(made[[" ".join(s) for s, _ in pairs].index(SENTENCE)])
        assert found[str(change)]["translation"].rstrip(" …") == " ".join(shown.split()[:12])


def test_without_cross_attention_all_sentences_have_one_translation(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    exact = {row["change"]: row for row in rows(ask(study("switched_off"), subject).tables[1])}
    assert exact["cross-attention skipped"]["different translations"] == 1
    assert exact["decoder skipped"]["different translations"] == 1
    assert exact["as learned"]["different translations"] > 1


def test_dropout_drops_the_same_for_the_same_seed_and_leaves_nothing_behind(
    subject: Subject, run: Run
) -> None:
    own = Subject(run, torch.device("cpu"))
    own.trained.model.decoder.embed.dropout.p = 0.5
    sentences = [" ".join(source) for source, _ in own.corpus.splits["valid"]]
    before = torch.random.get_rng_state()

    def translated(seed: int, wanted: bool) -> list[str]:
        with dropping(own.trained.model, seed, wanted):
            return [str(each) for each in own.translate(sentences)]

    plain = translated(0, False)
    assert translated(0, True) == translated(0, True) != plain
    assert translated(0, True) != translated(1, True)
    assert translated(0, False) == plain
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_model_without_positions_has_a_note_in_their_place(
    run: Run, study: Callable[..., Study], rows: Rows
) -> None:
    own = Subject(run, torch.device("cpu"))
    settings = own.trained.settings
    own.trained = replace(
        own.trained, settings=replace(settings, model=replace(settings.model, positions="none"))
    )
    answer = ask(study("switched_off", limit=3), own)
    assert not [row for row in rows(answer.tables[1]) if "position" in row["change"]]
    assert answer.notes == ["decoder input of positions alone: the model has none"]
    assert len(list(switches(True))) == len(list(switches(False))) + 1


def test_what_does_not_fit_is_told(subject: Subject, study: Callable[..., Study]) -> None:
    for name, least in (("limit", 1), ("dropout_seed", 0)):
        with pytest.raises(UserError, match=f"study.{name}: expected {least} or more"):
            ask(study("switched_off", **{name: least - 1}), subject)
