"""make claims: all of them, the same numbers twice, and mistakes in what is asked."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from qkvtrace.studies.claims.catalogue import CLAIMS
from qkvtrace.studies.evidence.interval import FEWEST

Script = Callable[..., CompletedProcess[str]]

QUICK = (  # a few steps of small models, which learn hardly anything
    f"seeds={FEWEST}",
    "training.epochs=2",
    "training.device=cpu",
    "model.layers=2",
    "model.heads=2",
    "model.width=16",
    "model.feed_forward=16",
    "held_out.data.limit=40",
    "held_out.training.epochs=1",
)


def claims_of(outputs: Path) -> dict[str, Any]:
    (path,) = outputs.glob("claims/*/claims.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def done(
    script: Script, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, CompletedProcess[str]]:
    outputs = tmp_path_factory.mktemp("claims")
    return outputs, script("claims", f"outputs={outputs}", *QUICK)


def test_every_claim_is_tested_and_told(done: tuple[Path, CompletedProcess[str]]) -> None:
    outputs, process = done
    assert process.returncode == 0, process.stderr
    results = claims_of(outputs)["results"]
    assert [result["name"] for result in results] == list(CLAIMS)
    assert "".join(result["letter"] for result in results) == "abcdefghijklm"
    for result in results:
        assert f"{result['letter']}. {result['title']}: {result['verdict']}" in process.stdout
        for finding in result["findings"]:
            assert len(finding["values"]) == FEWEST
            for control in finding["controls"]:
                assert len(control["values"]) == FEWEST
    by_construction = {
        (result["name"], finding["part"]["name"])
        for result in results
        for finding in result["findings"]
        if finding["verdict"] == "true by construction"
    }
    assert by_construction == {
        ("context", "same"),
        ("five_sentences", "alike"),
        ("symmetry", "shared"),
        ("positions", "equivariant"),
        ("dictionary", "limit"),
        ("shape", "shape"),
    }


def test_progress_names_each_ensemble(done: tuple[Path, CompletedProcess[str]]) -> None:
    _, process = done
    lines = process.stderr.splitlines()
    assert re.fullmatch(r"trained eat_drink_read: 10 steps, [\d.]+ s", lines[0])
    assert all(line.startswith("trained ") for line in lines)
    assert any("model.positions=none" in line for line in lines)


def test_two_runs_give_the_same_numbers(
    done: tuple[Path, CompletedProcess[str]], script: Script, tmp_path: Path
) -> None:
    asked = "claims=[context,scaling,warmup]"
    assert script("claims", f"outputs={tmp_path}", *QUICK, asked).returncode == 0
    again = claims_of(tmp_path)["results"]
    assert [result["name"] for result in again] == ["context", "scaling", "warmup"]
    before = {result["name"]: result for result in claims_of(done[0])["results"]}
    assert again == [before[result["name"]] for result in again]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("claims=[symmetry,wings]", "claims: expected some of context, .*, found wings"),
        ("seeds=0", "seeds: expected 1 or more, found 0"),
        ("members=7", "members: expected 8 or more, found 7"),
        ("word_order.pears=[]", "word_order.pears: no such setting"),
        ("data@held_out.data=eat_drink_read", "held_out.data.valid: expected other pairs"),
        ("held_out.data.train=nowhere.tsv", "expected a text file, found none: data/nowhere.tsv"),
        ("held_out.data.limit=-1", "data.limit: expected 1 or more, found -1"),
        ("data@held_out.data=nowhere", "data=nowhere: no such choice; there are .*grammatical.*"),
        ("training.seed=nine", "training.seed: expected a whole number, found 'nine'"),
    ],
)
def test_a_mistake_is_told_in_one_line_before_anything_is_trained(
    script: Script, tmp_path: Path, given: str, said: str
) -> None:
    process = script("claims", f"outputs={tmp_path}", given)
    assert (process.returncode, process.stdout) == (1, "")
    (line,) = process.stderr.splitlines()
    assert re.match(said, line)
    assert not list(tmp_path.rglob("claims.json"))


def test_a_claim_whose_words_are_unknown_leaves_the_others(script: Script, tmp_path: Path) -> None:
    sentences = "nonsense.sentences=[i can eat unicorn]"
    asked = "claims=[nonsense,shape]"
    process = script("claims", f"outputs={tmp_path}", *QUICK, asked, sentences)
    assert process.returncode == 1
    *_, why, last = process.stderr.splitlines()
    assert re.match(r"nonsense: expected words of the corpus .* found unicorn", why)
    assert last == "not tested: nonsense"
    assert [result["name"] for result in claims_of(tmp_path)["results"]] == ["shape"]


def test_where_no_claim_can_be_tested_nothing_is_written(script: Script, tmp_path: Path) -> None:
    asked = ("claims=[nonsense]", "nonsense.sentences=[]")
    process = script("claims", f"outputs={tmp_path}", *QUICK, *asked)
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr.splitlines()[-1] == "no claim could be tested"
    assert not list(tmp_path.rglob("claims.json"))


def test_models_that_diverge_are_no_evidence(script: Script, tmp_path: Path) -> None:
    rate = ("training.learning_rate=1e9", "claims=[context,spread,dictionary]")
    process = script("claims", f"outputs={tmp_path}", *QUICK, *rate)
    assert (process.returncode, "Traceback" in process.stderr) == (0, False)
    learned = {
        finding["part"]["name"]: finding["verdict"]
        for result in claims_of(tmp_path)["results"]
        for finding in result["findings"]
        if finding["part"]["name"] in ("clusters", "contexts", "same", "distance", "sharp")
    }
    assert set(learned.values()) == {"undecided"}, learned
