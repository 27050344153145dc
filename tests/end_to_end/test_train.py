"""make train: what it prints, and what it leaves in the run folder."""

import csv
import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import safetensors
import yaml
from google.protobuf import text_format  # type: ignore[import-untyped]
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

from qkvtrace.corpus.vocabulary import SPECIALS, Vocabulary
from qkvtrace.model.stored import build_model
from qkvtrace.model.taps import taps
from qkvtrace.runs.folder import Run

Script = Callable[..., CompletedProcess[str]]

EPOCHS, SHOWN = 4, [0, 1, 2, 4]
KEYS = (
    "epoch",
    "step",
    "train_loss",
    "valid_loss",
    "valid_ppl",
    "exact_match",
    "learning_rate",
    "tokens_per_second",
    "seconds",
)
QUIET = ("snapshots.tensorboard=false", "snapshots.every=0", "snapshots.epochs=[]")
FOREIGN = {"spacy", "torchtext", "torch._dynamo", "matplotlib", "sacrebleu", "pandas", "plotly"}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture(scope="module")
def done(script: Script, outputs: Path) -> CompletedProcess[str]:
    """The default training, with fewer epochs."""
    return script("train", f"outputs={outputs}", f"training.epochs={EPOCHS}")


@pytest.fixture(scope="module")
def run(done: CompletedProcess[str], outputs: Path) -> Path:
    assert done.returncode == 0, done.stderr
    return (outputs / "latest").resolve()


@pytest.fixture(scope="module")
def events(run: Path) -> EventAccumulator:
    return EventAccumulator(str(run), size_guidance={"images": 0, "tensors": 0}).Reload()


def metrics(run: Path, *without: str) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in without} for line in lines]


def learned(run: Path) -> tuple[list[dict[str, Any]], bytes]:
    """All that a training came to: metrics but for the timing, and the parameters."""
    return (
        metrics(run, "seconds", "tokens_per_second"),
        (run / "checkpoints" / "latest" / "model.safetensors").read_bytes(),
    )


def imported(stderr: str) -> set[str]:
    """The modules that `python -X importtime` lists."""
    lines = (line for line in stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def test_stdout_is_one_line_that_names_the_run(
    done: CompletedProcess[str], run: Path, root: Path
) -> None:
    last = metrics(run)[-1]
    folder, _, reached = done.stdout.partition(": ")
    assert (root / folder).resolve() == run
    assert reached == (
        f"epoch {EPOCHS}, exact_match {last['exact_match']:.3f}, "
        f"valid_loss {last['valid_loss']:.3f}\n"
    )


def test_stderr_is_the_progress_a_line_an_epoch(done: CompletedProcess[str], run: Path) -> None:
    assert [line.split()[:2] for line in done.stderr.splitlines()] == [
        ["epoch", str(epoch)] for epoch in range(1, EPOCHS + 1)
    ]


def test_the_run_folder_holds_what_the_design_lists_and_no_temporary_files(run: Path) -> None:
    kept = {(run / "checkpoints" / link).readlink().name for link in ("latest", "best")}
    found = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    (event_file,) = (name for name in found if name.startswith("events.out.tfevents."))
    assert found == {
        event_file,
        ".hydra/config.yaml",
        "manifest.json",
        "metrics.jsonl",
        "vocabulary.source.json",
        "vocabulary.target.json",
        "projector_config.pbtxt",
        "snapshots/index.json",
        *(
            f"snapshots/{what}-{epoch:04d}.safetensors"
            for what in ("epoch", "model")
            for epoch in range(EPOCHS + 1)
        ),
        *(
            f"projector/{name}_vectors.{end}"
            for name in ("head", "model")
            for end in ("bytes", "tsv")
        ),
        *(
            f"checkpoints/{folder}/{file}"
            for folder in kept
            for file in ("model.safetensors", "training.safetensors", "state.json", "SHA256SUMS")
        ),
    }


def test_latest_points_to_the_run(run: Path, outputs: Path) -> None:
    assert (outputs / "latest").readlink() == Path("train", run.name)


def test_outputs_hold_the_run_and_the_prepared_corpus_alone(run: Path, outputs: Path) -> None:
    assert {path.name for path in outputs.iterdir()} == {"latest", "prepared", "train"}
    (prepared,) = (outputs / "prepared").iterdir()
    assert prepared.suffix == ".json"


def test_the_manifest_says_what_the_run_is(run: Path, root: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    assert manifest["versions"].keys() >= {"python", "torch", "torchtext", "spacy", "hydra-core"}
    assert manifest["seed"] == 0
    assert len(manifest["corpus"]) == 64
    assert manifest["parameters"] == 99_857
    if head.returncode == 0:
        assert manifest["git_revision"].removesuffix("-dirty") == head.stdout.strip()


def test_the_stored_configuration_is_the_composed_one(run: Path) -> None:
    settings = Run.open(run).settings()
    assert (settings.training.epochs, settings.model.width) == (EPOCHS, 64)


def test_metrics_have_the_contracts_keys_and_count_epochs_from_1(run: Path) -> None:
    assert [tuple(line) for line in metrics(run)] == [KEYS] * EPOCHS
    assert [line["epoch"] for line in metrics(run)] == [1, 2, 3, 4]
    assert [line["step"] for line in metrics(run)] == [
        5,
        10,
        15,
        20,
    ]  # 36 sentences in batches of 8


@pytest.mark.parametrize("side", ["source", "target"])
def test_vocabularies_are_lists_that_start_with_the_specials(run: Path, side: str) -> None:
    tokens = json.loads((run / f"vocabulary.{side}.json").read_text())
    assert tuple(tokens[:4]) == SPECIALS == ("<unk>", "<pad>", "<sos>", "<eos>")
    assert len(tokens) == len(set(tokens)) > 4


@pytest.mark.parametrize("link", ["latest", "best"])
def test_sha256sum_accepts_the_checkpoint(run: Path, link: str) -> None:
    check = ["sha256sum", "--strict", "-c", "SHA256SUMS"]
    folder = run / "checkpoints" / link
    checked = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=True)
    assert checked.stdout.count(": OK\n") == 3


def test_snapshots_hold_every_tap(run: Path) -> None:
    index = json.loads((run / "snapshots" / "index.json").read_text())
    assert index["epochs"] == list(range(EPOCHS + 1))
    opened = Run.open(run)
    vocabularies = [Vocabulary.load(opened.vocabulary(side)) for side in ("source", "target")]
    names = set(taps(build_model(opened.settings(), *vocabularies)))
    assert set(index["taps"]) == names
    for epoch in index["epochs"]:
        path = run / "snapshots" / f"epoch-{epoch:04d}.safetensors"
        with safetensors.safe_open(path, framework="pt") as file:
            assert set(file.keys()) == names


@pytest.mark.parametrize("number", [0, 1])
def test_the_projector_has_a_label_for_each_vector_of_each_epoch_shown(
    run: Path, number: int
) -> None:
    text = (run / "projector_config.pbtxt").read_text()
    embedding = text_format.Parse(text, ProjectorConfig()).embeddings[number]
    count, width = embedding.tensor_shape
    assert (run / embedding.tensor_path).stat().st_size == 4 * count * width
    with (run / embedding.metadata_path).open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) == count
    assert {int(row["epoch"]) for row in rows} == set(SHOWN)


def test_tensorboard_has_curves_whose_steps_are_the_epochs(events: EventAccumulator) -> None:
    curves = {"loss/train", "loss/valid", "quality/perplexity", "quality/exact_match"}
    curves |= {"training/learning_rate", "training/tokens_per_second", "training/gradient_norm"}
    assert set(events.Tags()["scalars"]) == curves
    for tag in curves:
        assert [event.step for event in events.Scalars(tag)] == [1, 2, 3, 4]


def test_tensorboard_has_the_translations_of_each_epoch_shown(events: EventAccumulator) -> None:
    shown = events.Tensors("translations/text_summary")
    assert [event.step for event in shown] == SHOWN
    assert b"we can eat apple" in shown[-1].tensor_proto.string_val[0]


@pytest.mark.parametrize("site", ["encoder_self", "decoder_self", "cross"])
def test_tensorboard_has_a_picture_of_each_epoch_shown(events: EventAccumulator, site: str) -> None:
    pictures = events.Images(f"attention_{site}/layer_0_head_0")
    assert [event.step for event in pictures] == SHOWN


def test_tensorboard_has_the_hyper_parameters_beside_what_was_reached(
    events: EventAccumulator,
) -> None:
    content = events.summary_metadata
    assert {tag for tag in content if content[tag].plugin_data.plugin_name == "hparams"} == {
        "_hparams_/experiment",
        "_hparams_/session_start_info",
        "_hparams_/session_end_info",
    }


@pytest.fixture(scope="module")
def sweep(script: Script, tmp_path_factory: pytest.TempPathFactory) -> CompletedProcess[str]:
    """As `done`, and the same with another seed."""
    seeds, epochs = "training.seed=0,1", f"training.epochs={EPOCHS}"
    folder = tmp_path_factory.mktemp("sweep")
    return script("train", "-m", seeds, epochs, f"outputs={folder}", *QUIET)


@pytest.fixture(scope="module")
def swept(sweep: CompletedProcess[str], root: Path) -> list[Path]:
    assert sweep.returncode == 0, sweep.stderr
    return [root / line.partition(": ")[0] for line in sweep.stdout.splitlines()]


def test_a_multirun_makes_a_folder_for_each_job(swept: list[Path]) -> None:
    assert [folder.name for folder in swept] == ["0", "1"]
    assert swept[0].parent == swept[1].parent
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in swept]
    assert [manifest["seed"] for manifest in manifests] == [0, 1]


def test_the_same_seed_gives_the_same_bits_watched_or_not(run: Path, swept: list[Path]) -> None:
    assert learned(swept[0]) == learned(run)


def test_another_seed_gives_other_metrics_and_parameters(swept: list[Path]) -> None:
    same, other = map(learned, swept)
    assert same[0] != other[0]
    assert same[1] != other[1]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a corpus of one's own, once as TSV and once as two compressed files."""
    pairs = [(f"the {noun} sleeps", f"es schläft: {noun}") for noun in "abcdefghijk"]
    (tmp_path / "my.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    for name, side in (("my.en.gz", 0), ("my.de.gz", 1)):
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:
            file.writelines(f"{pair[side]}\n" for pair in pairs)
    return tmp_path


@pytest.mark.parametrize("files", ["{own}/my.tsv", "[{own}/my.en.gz,{own}/my.de.gz]"])
def test_a_corpus_of_ones_own_is_learned(script: Script, own: Path, files: str) -> None:
    train = f"data.train={files.format(own=own)}"
    done = script(
        "train", train, "data.probes=null", f"outputs={own}/o", "training.epochs=2", *QUIET
    )
    assert done.returncode == 0, done.stderr
    assert [line["step"] for line in metrics(own / "o" / "latest")] == [2, 4]
    tokens = json.loads((own / "o" / "latest" / "vocabulary.target.json").read_text())
    assert {"es", "schläft", ":"} <= set(tokens)


@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        ("data=grammatical training.steps=3", [3]),
        ("model=tiny training.epochs=3 training.steps=7", [5, 7]),
        ("data=multi30k data.folder=../shared/data/multi30k model=tiny training.steps=2", [2]),
    ],
)
def test_it_trains_until_its_epochs_or_steps_are_done(
    script: Script, root: Path, tmp_path: Path, overrides: str, steps: list[int]
) -> None:
    if "multi30k" in overrides and not (root / "../shared/data/multi30k").is_dir():
        pytest.skip("../shared/data/multi30k is not here")
    done = script("train", *overrides.split(), f"outputs={tmp_path}", *QUIET)
    assert done.returncode == 0, done.stderr
    assert [line["step"] for line in metrics(tmp_path / "latest")] == steps


def test_the_articles_experiment_is_the_articles_optimiser(script: Script, tmp_path: Path) -> None:
    done = script("train", "experiment=article", f"outputs={tmp_path}", "training.epochs=1", *QUIET)
    assert done.returncode == 0, done.stderr
    stored = yaml.safe_load((tmp_path / "latest" / ".hydra" / "config.yaml").read_text())
    assert stored["training"] == stored["training"] | {
        "optimizer": "adam",
        "learning_rate": 5e-4,
        "betas": [0.9, 0.999],
        "weight_decay": 0,
        "schedule": "constant",
        "warmup_steps": 0,
        "label_smoothing": 0,
    }


def test_a_prepared_corpus_is_trained_on_without_heavy_imports(
    script: Script, run: Path, outputs: Path
) -> None:
    done = script(
        "train", f"outputs={outputs}", "training.steps=1", "snapshots.epochs=[0,1]",
        python=("-X", "importtime"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = imported(done.stderr)
    assert "torch" in names
    assert not names & FOREIGN


def test_showing_the_configuration_does_not_import_torch(script: Script) -> None:
    done = script("train", "--cfg", "job", python=("-X", "importtime"))
    assert yaml.safe_load(done.stdout)["model"]["width"] == 64
    assert "hydra" in imported(done.stderr)
    assert "torch" not in imported(done.stderr)


def test_preparing_prints_what_the_corpus_holds_and_does_it_once(
    script: Script, run: Path, outputs: Path
) -> None:
    (prepared,) = (outputs / "prepared").iterdir()
    before = prepared.stat().st_mtime_ns
    done = script("prepare", f"outputs={outputs}")
    assert done.stdout.splitlines()[:3] == [f"{s}: 36 pairs" for s in ("train", "valid", "test")]
    assert done.stderr == ""
    assert list((outputs / "prepared").iterdir()) == [prepared]
    assert prepared.stat().st_mtime_ns == before
