"""The manifest: what made a run."""

import json
from datetime import datetime, timedelta
from importlib.metadata import version

from qkvtrace.runs.manifest import manifest


def test_a_manifest_names_what_made_the_run() -> None:
    content = manifest(seed=7, device="cpu", corpus="c" * 64, parameters=99_857)
    assert json.loads(json.dumps(content)) == content
    expected = {"seed": 7, "device": "cpu", "corpus": "c" * 64, "parameters": 99_857}
    assert expected.items() <= content.items()
    started = datetime.fromisoformat(content["started"])
    assert timedelta() <= datetime.now(started.tzinfo) - started < timedelta(minutes=1)
    assert content["versions"]["torch"] == version("torch")
    assert {"python", "qkvtrace", "torchtext", "spacy", "hydra-core"} <= content["versions"].keys()
    assert content["git_revision"] is None or len(content["git_revision"].split("-")[0]) == 40
