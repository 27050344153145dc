"""The tab's routes over HTTP: data where there is some, a sentence where something is wrong."""

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client, TestResponse

from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.store import Store
from qkvtrace.views.plugin import FILES, QKVPlugin

Get = Callable[..., TestResponse]
Write = Callable[..., Run]
HERE = {"run": "run", "site": "encoder_self", "layer": "1", "head": "1"}
PAIR = {"a": "0", "b": "1"}
CLOUD = {**HERE, **PAIR, "vectors": "q,x1", "sentences": "pair"}
NEIGHBOURS = {**CLOUD, "vector": "q", "sentence": "0", "position": "1", "epoch": "1"}


def client(logdir: Path | None) -> Client:
    """TensorBoard's own application with no other plugin."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that it brings along
        from tensorboard.backend.application import TensorBoardWSGI
    plugin = QKVPlugin(TBContext(logdir=str(logdir) if logdir else None))
    return Client(TensorBoardWSGI([plugin]))


def asker(logdir: Path | None) -> Get:
    served = client(logdir)

    def get(route: str, **asked: str) -> TestResponse:
        return served.get(f"/data/plugin/qkv/{route}?{urlencode(asked)}")

    return get


@pytest.fixture
def get(tmp_path: Path, write_run: Write) -> Get:
    write_run()
    return asker(tmp_path / "runs")


def sentence(answer: TestResponse, code: int) -> str:
    """What an answer says is wrong: one sentence in JSON, no traceback."""
    assert answer.status_code == code
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.json is not None
    error = answer.json["error"]
    assert answer.json.keys() == {"error"}
    assert "Traceback" not in error
    assert "\n" not in error
    return str(error)


def test_it_is_registered_with_tensorboard_as_a_tab() -> None:
    (registered,) = entry_points(group="tensorboard_plugins", name="qkv")
    plugin = registered.load()(TBContext(logdir="runs"))
    assert plugin.plugin_name == "qkv"
    assert plugin.frontend_metadata().tab_name == "Q/K/V"
    assert plugin.frontend_metadata().es_module_path in plugin.get_plugin_apps()
    assert plugin.is_active()


def test_importing_it_is_cheap() -> None:
    """TensorBoard imports every plugin when it starts."""
    heavy = "{'torch', 'spacy', 'matplotlib', 'plotly', 'safetensors'}"
    code = f"import sys, qkvtrace.views.plugin as p; print({heavy} & {{*sys.modules}})"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("route", "asked", "keys"),
    [
        ("runs", {}, {"runs"}),
        ("state", {"run": "run"}, {"version"}),
        ("run", {"run": "run"}, {"name", "version", "vocabulary", "sites", "sentences", "words"}),
        ("cloud", CLOUD, {"epochs", "points", "at", "explained", "width", "same", "left_out"}),
        ("attention", {**HERE, "sentence": "1"}, {"epochs", "tables"}),
        ("alike", {**HERE, **PAIR, "vector": "x4"}, {"epochs", "tables"}),
        ("curves", HERE, {"epochs", "entropy", "uniform", "norms", "low", "high"}),
        ("neighbours", NEIGHBOURS, {"nearest"}),
    ],
)
def test_each_route_answers_in_json(
    get: Get, route: str, asked: dict[str, str], keys: set[str]
) -> None:
    answer = get(route, **asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.json is not None
    assert answer.json.keys() >= keys
    json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_the_selection_is_what_was_asked_for(get: Get, snapshots: list[Snapshot]) -> None:
    found = get("cloud", **CLOUD, words='["eat"]').json
    assert found is not None
    assert {(p["vector"], p["token"]) for p in found["points"]} == {("q", "eat"), ("x1", "eat")}
    found = get("attention", **HERE | {"head": "0"}, sentence="1").json
    assert found is not None
    length = len(snapshots[1].sentences[1].source)
    weights = snapshots[1].values["encoder.layers.1.self_attention.weights"]
    np.testing.assert_allclose(
        found["tables"][1]["values"], weights[1, 0, :length, :length].numpy(), atol=1e-4
    )
    nearest = get("neighbours", **NEIGHBOURS).json
    assert nearest is not None
    assert len(nearest["nearest"]) == 3
    assert {near["vector"] for near in nearest["nearest"]} <= {"q", "x1"}


def test_one_sentence_alone(get: Get) -> None:
    asked = {name: value for name, value in CLOUD.items() if name != "b"}
    found = get("cloud", **asked).json
    assert found is not None
    assert {point["sentence"] for point in found["points"]} == {0}


def test_the_view_may_load_from_its_own_server_alone(get: Get) -> None:
    answer = get("view")
    policy = dict(
        part.strip().split(" ", maxsplit=1)
        for part in answer.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    sources = {source for part in policy.values() for source in part.split()}
    assert sources == {"'none'", "'self'", "data:", "blob:", "'unsafe-inline'"}
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    served = set(FILES)
    for name in served:
        found = get(name)
        assert found.status_code == 200
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert "http" not in found.text.replace("http://www.w3.org/2000/svg", "")
    asked = {part.split('"')[0] for part in answer.text.split('src="')[1:]}
    assert asked - served == {"plotly.min.js"}
    plotly = get("plotly.min.js")
    assert "max-age" in plotly.headers["Cache-Control"]
    assert len(plotly.data) > 1_000_000


@pytest.mark.parametrize(
    ("route", "asked", "said"),
    [
        ("cloud", {**CLOUD, "site": "nowhere"}, "site: expected one of encoder_self,"),
        ("cloud", {**CLOUD, "layer": "2"}, "layer: expected a number from 0 to 1, found '2'"),
        ("cloud", {**CLOUD, "layer": "-1"}, "layer: expected a number from 0 to 1, found '-1'"),
        ("cloud", {**CLOUD, "head": "x"}, "head: expected a number from 0 to 1, found 'x'"),
        ("cloud", {**CLOUD, "head": "¹"}, "head: expected"),
        ("cloud", {**CLOUD, "head": "9" * 5000}, "head: expected"),
        ("cloud", {**CLOUD, "a": "7"}, "a: expected a number from 0 to 1"),
        ("cloud", {**CLOUD, "b": ""}, "b: expected a number from 0 to 1"),
        ("cloud", {**CLOUD, "vectors": "q,w"}, "vectors: expected one of q, k, v, x1, x4, output"),
        ("cloud", {**CLOUD, "vectors": ""}, "vectors: expected one of"),
        ("cloud", {**CLOUD, "vectors": "q,x4"}, "vectors: expected those of one width"),
        ("cloud", {**CLOUD, "words": "eat"}, "words: expected a list of strings in JSON"),
        ("cloud", {**CLOUD, "words": "[1]"}, "words: expected a list of strings in JSON"),
        ("cloud", {**CLOUD, "words": "[" * 9999}, "words: expected a list of strings in JSON"),
        ("cloud", {**CLOUD, "words": "[]"}, "no word is chosen"),
        ("attention", {**HERE, "sentence": "2"}, "sentence: expected a number from 0 to 1"),
        ("attention", HERE, "sentence: expected a number from 0 to 1, found None"),
        ("alike", {**HERE, **PAIR, "vector": "scores"}, "vector: expected one of q, k,"),
        ("alike", {**HERE, "a": "0", "vector": "q"}, "b: expected a number"),
        ("neighbours", {**NEIGHBOURS, "position": "99"}, "position: expected a number from 0"),
        ("neighbours", {**NEIGHBOURS, "vector": "k"}, "vector: expected one of q, x1"),
        ("curves", {"run": "run"}, "site: expected one of"),
    ],
)
def test_a_wrong_parameter_is_said_in_a_sentence(
    get: Get, route: str, asked: dict[str, str], said: str
) -> None:
    assert said in sentence(get(route, **asked), 400)
    assert get("curves", **HERE).status_code == 200, "the server goes on"


def test_an_epoch_that_is_not_there(get: Get) -> None:
    answer = get("neighbours", **NEIGHBOURS | {"epoch": "2"})
    assert "epoch: expected one that can be read, found 2" in sentence(answer, 404)


@pytest.mark.parametrize(
    "name", ["", "other", "..", "../../etc", "/etc", "run/..", "run/snapshots", "run\0", "%2e%2e"]
)
@pytest.mark.parametrize("route", ["run", "state", "cloud"])
def test_a_run_that_is_not_there(get: Get, route: str, name: str) -> None:
    assert "no run is named" in sentence(get(route, **CLOUD | {"run": name}), 404)


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "web/../plugin.py",
        "view/../../../../etc/passwd",
        "page.py",
        "explorer.css/../../plugin.py",
    ],
)
def test_no_path_leads_out_of_the_routes(tmp_path: Path, write_run: Write, path: str) -> None:
    write_run()
    answer = client(tmp_path / "runs").get(f"/data/plugin/qkv/{path}")
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert "QKVPlugin" not in answer.text


def names(get: Get) -> list[str]:
    answer = get("runs").json
    assert answer is not None
    return [run["name"] for run in answer["runs"]]


def test_runs_are_found_wherever_the_logdir_is(tmp_path: Path, write_run: Write) -> None:
    write_run("train/day")
    for number in ("0", "1"):
        write_run(f"train/sweep/{number}")
    runs = tmp_path / "runs"
    (runs / "latest").symlink_to("train/day")
    assert names(asker(runs)) == ["train/sweep/1", "train/sweep/0", "train/day"]
    assert names(asker(runs / "train")) == ["sweep/1", "sweep/0", "day"]
    assert names(asker(runs / "train" / "day")) == ["day"]
    assert names(asker(runs / "latest")) == ["day"]
    for logdir, name in ((runs, "train/sweep/1"), (runs / "latest", "day")):
        assert asker(logdir)("curves", **HERE | {"run": name}).status_code == 200


def test_a_link_out_of_the_logdir_is_no_run(
    tmp_path: Path, write_run: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write_run()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "manifest.json").write_text("{}", encoding="utf-8")
    (tmp_path / "runs" / "link").symlink_to(elsewhere)
    (tmp_path / "runs" / "round").symlink_to(tmp_path / "runs")
    (tmp_path / "runs" / "broken").symlink_to("nowhere")
    assert names(asker(tmp_path / "runs")) == ["run"]


def test_a_vocabulary_outside_the_logdir_is_not_read(
    tmp_path: Path, write_run: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = write_run()
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.json"
    secret.write_text('["<unk>", "<pad>", "<sos>", "<eos>", "secret"]', encoding="utf-8")
    for side in ("source", "target"):
        run.vocabulary(side).symlink_to(secret)
    answer = asker(tmp_path / "runs")("run", run="run")
    assert answer.status_code == 200
    assert "secret" not in answer.text


@pytest.mark.parametrize("logdir", [None, "nowhere", "empty", "file"])
def test_a_logdir_without_a_run_says_so(tmp_path: Path, logdir: str | None) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    get = asker(tmp_path / logdir if logdir else None)
    said = sentence(get("runs"), 404)
    assert ("no run in" in said) or ("expected a folder of runs, found none" in said)
    sentence(get("run", run="run"), 404)


def test_a_run_appears_when_it_is_written(tmp_path: Path, write_run: Write) -> None:
    (tmp_path / "runs").mkdir()
    get = asker(tmp_path / "runs")
    sentence(get("runs"), 404)
    write_run()
    assert names(get) == ["run"]


def test_a_run_without_snapshots_says_so(tmp_path: Path, write_run: Write) -> None:
    write_run(recorded=[])
    get = asker(tmp_path / "runs")
    assert get("runs").json == {"runs": [{"name": "run", "recorded": False}]}
    assert "no snapshots in this run yet" in sentence(get("run", run="run"), 400)
    assert "no snapshots in this run yet" in sentence(get("cloud", **CLOUD), 400)


def test_a_damaged_epoch_hides_no_other_and_is_named(tmp_path: Path, write_run: Write) -> None:
    run = write_run()
    path = Store(run.snapshots).path(1)
    path.write_bytes(path.read_bytes()[:100])
    found = asker(tmp_path / "runs")("cloud", **CLOUD).json
    assert found is not None
    assert found["epochs"] == [0, 3]
    (left_out,) = found["left_out"]
    assert left_out["epoch"] == 1
    assert "epoch-0001" in left_out["reason"]


def test_a_damaged_index_says_so(tmp_path: Path, write_run: Write) -> None:
    run = write_run()
    (run.snapshots / "index.json").write_text("{", encoding="utf-8")
    for route in ("state", "run", "cloud"):
        said = sentence(asker(tmp_path / "runs")(route, **CLOUD), 400)
        assert "damaged file" in said


def test_a_new_snapshot_is_served_without_a_restart(
    tmp_path: Path,
    write_run: Write,
    observed: Callable[..., Snapshot],
    axes: dict[str, tuple[str, ...]],
) -> None:
    run = write_run()
    get = asker(tmp_path / "runs")

    def asked() -> tuple[Any, Any, Any]:
        state, about, curves = get("state", run="run"), get("run", run="run"), get("curves", **HERE)
        assert state.json
        assert about.json
        assert curves.json
        return state.json["version"], about.json["version"], curves.json["epochs"]

    before = asked()
    assert before == (before[0], before[0], [0, 1, 3])
    Store(run.snapshots).save(observed(4, seed=4), axes)
    after = asked()
    assert after[0] == after[1] != before[0]
    assert after[2] == [0, 1, 3, 4]


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level("CRITICAL", logger="tensorboard"):
        yield caplog


@pytest.mark.usefixtures("quiet")
def test_what_nobody_foresaw_is_a_sentence_too(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("unforeseen")

    with monkeypatch.context() as patch:
        patch.setattr("qkvtrace.views.scene.curves", fail)
        assert "RuntimeError, unforeseen" in sentence(get("curves", **HERE), 500)
    assert get("curves", **HERE).status_code == 200
