"""Put the article's questions to a run: make study, or make study ARGS="study=word_order".

Tables on stdout; all of them, as CSV and JSON, in the run's folder `studies/`.
"""

import sys

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from qkvtrace.command import command, composed, heavy_imports, plain
from qkvtrace.conversion import from_config
from qkvtrace.errors import UserError
from qkvtrace.settings import StudySettings


@command("study")
def main(config: DictConfig) -> None:
    """Answer one study, or each in turn, though one of them cannot be answered."""
    settings = plain(config)
    chosen = settings.pop("study", {})
    where = from_config(StudySettings, settings)
    hydra = HydraConfig.get()
    name = hydra.runtime.choices.get("study")
    if name is None:
        raise UserError("study: expected all, or one; configs/study/ lists them")
    given = {override.partition("=")[0].rpartition(".")[2] for override in hydra.overrides.task}

    with heavy_imports():
        from qkvtrace.model.device import choose_device
        from qkvtrace.runs.folder import Run
        from qkvtrace.studies.catalogue import STUDIES
        from qkvtrace.studies.kept import keep
        from qkvtrace.studies.study import ask
        from qkvtrace.studies.subject import Subject
        from qkvtrace.views.answers import print_answer

    if name == "all":
        wanted = {each: composed("study", f"study={each}")["study"] for each in STUDIES}
    else:
        wanted = {name: chosen}
    studies = {each: from_config(STUDIES[each], wanted[each], "study") for each in wanted}
    run = Run.open(where.run)
    subject = Subject(run, choose_device(where.device), given)
    failed = []
    for each, study in studies.items():
        try:
            answer = ask(study, subject)
        except UserError as error:
            if name != "all":
                raise
            failed.append(each)
            print(f"{each}: {error}", file=sys.stderr)
            continue
        keep(run.studies, each, study, answer)
        print_answer(study, answer, f"{run}/studies/{each}")
    if failed:
        raise UserError(f"not answered: {', '.join(failed)}")


if __name__ == "__main__":
    main()
