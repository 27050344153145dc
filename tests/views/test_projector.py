"""The Projector's files: a row for each recorded vector, and a line that says what it is."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from google.protobuf import text_format  # type: ignore[import-untyped]
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.model.transformer import Transformer
from qkvtrace.snapshots.probes import Probe, Snapshot, observe
from qkvtrace.snapshots.sites import SITES
from qkvtrace.views import projector
from qkvtrace.views.projector import COLUMNS, write_projector

WIDTHS = {"head_vectors": 11, "model_vectors": 22}
PROBES = [
    Probe(["we", "eat", "bread"], ["wir", "essen", "brot"]),  # 5 source and 4 target positions
    Probe(["it"], ["es", "essen", "es", "essen", "brot"]),  # 3 and 6
]
# An epoch, for 2 layers of 2 heads: q, k, v, x1 on the source, on the target, and q and x1 on the
# target with k and v on the source make 6 times 5 + 4 and 6 times 3 + 6; times 4: 432. And x4 on
# the source and twice on the target, outputs on the source and once on the target: 2 times source
# and 3 times target, 22 and 24; times 2 layers: 92.
ROWS = {"head_vectors": 432, "model_vectors": 92}


@pytest.fixture(scope="module")
def snapshots(transformer: Callable[..., Transformer], corpus: Corpus) -> list[Snapshot]:
    return [
        observe(transformer(seed), PROBES, corpus.source, corpus.target, epoch, 10 * epoch)
        for seed, epoch in enumerate((0, 30))
    ]


def lines(folder: Path, name: str) -> list[dict[str, str]]:
    text = (folder / "projector" / f"{name}.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE))


def vectors(folder: Path, name: str) -> torch.Tensor:
    content = (folder / "projector" / f"{name}.bytes").read_bytes()
    return torch.from_numpy(np.frombuffer(content, "<f4").reshape(-1, WIDTHS[name]).copy())


@pytest.mark.parametrize("name", ROWS)
def test_there_is_a_row_and_a_line_for_each_point_counted_by_hand(
    tmp_path: Path, snapshots: list[Snapshot], name: str
) -> None:
    write_projector(tmp_path, snapshots)
    rows = 2 * ROWS[name]
    assert (tmp_path / "projector" / f"{name}.bytes").stat().st_size == rows * WIDTHS[name] * 4
    text = (tmp_path / "projector" / f"{name}.tsv").read_text(encoding="utf-8")
    assert len(text.split("\n")) == 1 + rows
    assert text.split("\n")[0].split("\t") == list(COLUMNS)
    assert {line.count("\t") for line in text.split("\n")} == {len(COLUMNS) - 1}


def test_the_configuration_says_where_the_files_lie_and_how_long_they_are(
    tmp_path: Path, snapshots: list[Snapshot]
) -> None:
    write_projector(tmp_path, snapshots)
    text = (tmp_path / "projector_config.pbtxt").read_text(encoding="utf-8")
    config = text_format.Parse(text, ProjectorConfig())
    assert [e.tensor_name for e in config.embeddings] == list(ROWS)
    for embedding in config.embeddings:
        name = embedding.tensor_name
        assert list(embedding.tensor_shape) == [2 * ROWS[name], WIDTHS[name]]
        assert (tmp_path / embedding.tensor_path).is_file()
        assert (tmp_path / embedding.metadata_path).is_file()


def test_each_line_describes_the_vector_in_its_row(
    tmp_path: Path, snapshots: list[Snapshot]
) -> None:
    write_projector(tmp_path, snapshots)
    epochs = {snapshot.epoch: snapshot for snapshot in snapshots}
    names = [" ".join(probe.source) for probe in PROBES]
    modules = {site.name: site.module for site in SITES}
    for name in ROWS:
        for line, vector in zip(lines(tmp_path, name), vectors(tmp_path, name), strict=True):
            snapshot = epochs[int(line["epoch"])]
            sentence, position = names.index(line["sentence"]), int(line["position"])
            if line["vector"] == "output":
                tap = f"{line['site']}.layers.{line['layer']}.output"
            else:
                tap = modules[line["site"]].format(layer=line["layer"]) + "." + line["vector"]
            value = snapshot.values[tap][sentence]
            if line["head"] != "all":
                value = value[int(line["head"])]
            assert torch.equal(value[position], vector)
            on_source = line["site"].startswith("encoder") or (
                line["site"] == "cross" and line["vector"] in ("k", "v")
            )
            told = snapshot.sentences[sentence]
            assert line["token"] == (told.source if on_source else told.target)[position]


def test_no_point_comes_twice(tmp_path: Path, snapshots: list[Snapshot]) -> None:
    write_projector(tmp_path, snapshots)
    for name in ROWS:
        found = [tuple(line.values()) for line in lines(tmp_path, name)]
        assert len(set(found)) == len(found)


def test_labels_are_token_vector_and_epoch(tmp_path: Path, snapshots: list[Snapshot]) -> None:
    write_projector(tmp_path, snapshots)
    labels = {name: {line["label"] for line in lines(tmp_path, name)} for name in ROWS}
    assert {"eat@K@30", "eat@Q@0", "bread@V@30", "wir@x1@0"} <= labels["head_vectors"]
    assert {"eat@x4@30", "essen@output@0"} <= labels["model_vectors"]


# The first sentence has 6 * 9 * 4 = 216 of the head vectors an epoch, and 44 of the others.
@pytest.mark.parametrize(
    ("most", "rows"), [(864, 864), (863, 432), (432, 432), (431, 432), (1, 432)]
)
def test_sentences_are_left_out_from_the_end_to_stay_below_the_most_points_but_for_the_first(
    tmp_path: Path,
    snapshots: list[Snapshot],
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    rows: int,
) -> None:
    monkeypatch.setattr(projector, "MOST_POINTS", most)
    write_projector(tmp_path, snapshots)
    found = lines(tmp_path, "head_vectors")
    assert len(found) == len(vectors(tmp_path, "head_vectors")) == rows
    assert [line["sentence"] for line in found].count("we eat bread") == 432


def test_files_are_replaced_when_there_are_more_snapshots(
    tmp_path: Path, snapshots: list[Snapshot]
) -> None:
    write_projector(tmp_path, snapshots[:1])
    write_projector(tmp_path, snapshots)
    assert {line["epoch"] for line in lines(tmp_path, "model_vectors")} == {"0", "30"}
    assert len(list((tmp_path / "projector").iterdir())) == 4
