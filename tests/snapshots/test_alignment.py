"""Alignment: the weights with which a translation was made."""

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from qkvtrace.corpus.vocabulary import EOS, PAD, SOS
from qkvtrace.model.stored import Trained, load_trained
from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.alignment import alignment
from qkvtrace.snapshots.interventions import changed
from qkvtrace.snapshots.recording import recording
from qkvtrace.training.saving import Saver
from qkvtrace.translation.translator import Translator


@pytest.fixture
def trained(saver: Callable[..., Saver]) -> Trained:
    saved = saver()
    saved.save()
    return load_trained(saved.run, "latest", torch.device("cpu"))


@pytest.mark.parametrize("favourite", [None, EOS, SOS, PAD])
@pytest.mark.parametrize("attention", ["learned", "first2"])
def test_weights_are_those_of_the_search_step_by_step(
    trained: Trained, attention: str, favourite: int | None
) -> None:
    """Also where the model chooses what no sentence holds, such as <sos> or padding."""
    if favourite is not None:
        with torch.no_grad():
            trained.model.vocabulary.bias[favourite] += 2
    translator = Translator(trained, max_length=5)
    with (
        changed(trained.model, InterventionSettings(attention=attention)),
        recording(trained.model, "decoder.layers.*.cross_attention.weights") as record,
    ):
        (translation,) = translator.translate(["we eat unseen bread"])
        searched = torch.cat([torch.cat(steps, 2) for steps in record.values()])
    with changed(trained.model, InterventionSettings(attention=attention)):
        weights = alignment(trained, translation)
    assert weights.shape == (2, 2, len(translation.ids), 6)
    assert_close(weights, searched, atol=1e-6, rtol=1e-5)
    assert favourite is None or favourite in translation.ids
    assert (weights[..., 2:] == 0).all() == (attention == "first2")
