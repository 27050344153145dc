"""Put the article's questions to a run: make study, or make study ARGS="study=word_order".

Tables on stdout; all of them, as CSV and JSON, in the run's folder `studies/`.
"""

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from qkvtrace.command import command, composed, heavy_imports, plain
from qkvtrace.conversion import from_config
from qkvtrace.settings import StudySettings


@command("study")
def main(config: DictConfig) -> None:
    """Answer one study, or each in turn."""
    settings = plain(config)
    chosen = settings.pop("study", {})
    where = from_config(StudySettings, settings)
    name = HydraConfig.get().runtime.choices["study"]

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
    subject = Subject(run, choose_device(where.device))
    for each, study in studies.items():
        answer = ask(study, subject)
        keep(run.studies, each, study, answer)
        print_answer(study, answer, f"{run}/studies/{each}")


if __name__ == "__main__":
    main()
