"""Translate sentences with a trained run: make translate TEXT="we can eat apple".

ARGS="attention=uniform", ARGS="skip=decoder" and the like translate with a part of it changed.

Sentences come from the environment variable TEXT, else from file=..., else from stdin, one a line.
Never from an override: Hydra would trip over their commas. One translation a line on stdout.
"""

import os
import sys

from omegaconf import DictConfig

from qkvtrace.command import command, heavy_imports, plain
from qkvtrace.conversion import from_config
from qkvtrace.settings import TranslateSettings


@command("translate")
def main(config: DictConfig) -> None:
    """Translate each line of the input."""
    settings = from_config(TranslateSettings, plain(config))

    with heavy_imports():
        from qkvtrace.model.device import choose_device
        from qkvtrace.model.stored import load_trained
        from qkvtrace.runs.folder import Run
        from qkvtrace.snapshots.alignment import alignment
        from qkvtrace.snapshots.interventions import changed
        from qkvtrace.translation.input import batched, input_lines
        from qkvtrace.translation.translator import Translator
        from qkvtrace.views.terminal import print_alignment, print_steps

    run = Run.open(settings.run)
    trained = load_trained(run, settings.checkpoint, choose_device(settings.device))
    translator = Translator(
        trained,
        max_length=settings.max_length,
        candidates=settings.candidates if settings.details else 1,
    )
    lines = input_lines(os.environ.get("TEXT"), settings.file)
    warned: set[str] = set()
    with changed(trained.model, settings):
        for sentences in batched(lines, settings.batch_size):
            translations = translator.translate(sentences)
            unknown = {word: None for t in translations for word in t.unknown if word not in warned}
            if unknown:
                print("unknown words, read as <unk>:", *map(repr, unknown), file=sys.stderr)
                warned |= unknown.keys()
            for translation in translations:
                print(translation, flush=True)
                if settings.details and translation.source:
                    print_steps(translation)
                    if settings.cross_attends:
                        print_alignment(translation, alignment(trained, translation))


if __name__ == "__main__":
    main()
