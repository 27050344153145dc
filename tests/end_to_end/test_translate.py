"""make translate: sentences in, one translation a line out."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Script = Callable[..., CompletedProcess[str]]

APPLE, APFEL = "we can eat apple", "wir konnen apfel essen"
ODD = """we, can's (eat) = "apple" $HOME $$ $(shell echo no) ${x} `x` # \\ ; & | * % é ü 苹果"""


@pytest.fixture(scope="module")
def run(script: Script, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default recipe, with less to look at."""
    outputs = tmp_path_factory.mktemp("outputs")
    watched = ("snapshots.every=0", "snapshots.epochs=[30]", "snapshots.tensorboard=false")
    done = script("train", f"outputs={outputs}", *watched)
    assert done.returncode == 0, done.stderr
    return (outputs / "latest").resolve()


@pytest.fixture(scope="module")
def translate(script: Script, run: Path) -> Script:
    """Translate with that run, or with another one."""

    def translate(
        *arguments: str, text: str | None = None, stdin: str = "", of: Path = run
    ) -> CompletedProcess[str]:
        environment = {} if text is None else {"TEXT": text}
        return script("translate", f"run={of}", *arguments, stdin=stdin, environment=environment)

    return translate


def outcome(done: CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


def assert_one_line(done: CompletedProcess[str], words: str) -> None:
    """The script failed with nothing but one line on stderr, which has these words."""
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    missing = [word for word in words.split() if word not in line]
    assert not missing, line


def test_text_is_translated_to_exactly_one_line(translate: Script) -> None:
    assert outcome(translate(text=APPLE)) == (0, f"{APFEL}\n", "")


def test_each_line_of_stdin_becomes_one_line(translate: Script) -> None:
    """Blank lines, CRLF, more lines than a batch has, and a last one without an end included."""
    done = translate(
        stdin=f"{APPLE}\n\n \r\n{APPLE.upper()}\r\n" + 130 * f"{APPLE}\n" + "i can read book"
    )
    out = f"{APFEL}\n\n\n{APFEL}\n" + 130 * f"{APFEL}\n" + "ich konnen buch lesen\n"
    assert outcome(done) == (0, out, "")


def test_each_line_of_a_file_becomes_one_line(translate: Script, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"{APPLE}\n\n{APPLE}", encoding="utf-8")
    done = translate(f"file={tmp_path}/in.txt")
    assert outcome(done) == (0, f"{APFEL}\n\n{APFEL}\n", "")


def test_empty_text_is_an_empty_line(translate: Script) -> None:
    assert outcome(translate(text="")) == (0, "\n", "")


def test_unknown_words_are_named_in_one_line_on_stderr(translate: Script) -> None:
    done = translate(stdin=f"{APPLE}\nwe can eat zebra\nyak can eat zebra\n")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr == "unknown words, read as <unk>: 'zebra' 'yak'\n"


def test_the_latest_checkpoint_translates_as_the_best_does(translate: Script) -> None:
    assert outcome(translate("checkpoint=latest", text=APPLE)) == (0, f"{APFEL}\n", "")


def tables(lines: list[str]) -> list[list[list[str]]]:
    """The rows of each table in printed lines, cell by cell."""
    found: list[list[list[str]]] = []
    for line in lines:
        if line.startswith("┏"):
            found.append([])
        elif line.startswith("│"):
            found[-1].append([cell.strip() for cell in line.split("│")[1:-1]])
    return found


def test_details_show_what_each_step_chose_from_and_looked_at(translate: Script) -> None:
    done = translate("details=true", stdin=f"{APPLE}\n\n")
    first, *printed, last = done.stdout.splitlines()
    assert (done.returncode, first, last, done.stderr) == (0, APFEL, "", "")
    steps, looks = tables(printed)
    assert [row[0] for row in steps] == ["1", "2", "3", "4", "5"]
    chosen = [row[1].split() for row in steps]
    assert [token for token, _ in chosen] == [*APFEL.split(), "<eos>"]
    assert all(0.5 < float(probability) <= 1 for _, probability in chosen)
    assert all(len(row) == 1 + 5 for row in steps)
    (header,) = [line for line in printed if "apple" in line and "┃" in line]
    assert header.replace("┃", " ").split() == ["step", "<sos>", *APPLE.split(), "<eos>"]
    labels, *columns = zip(*looks, strict=True)
    assert labels[:2] == ("1) <sos> -> wir", "2) wir -> konnen")
    assert labels[4:] == ("5) essen -> <eos>",)
    weights = [[float(weight) for weight in row] for row in zip(*columns, strict=True)]
    assert all(abs(sum(row) - 1) < 0.04 for row in weights)
    assert max(map(max, weights)) > 0.25


def test_details_show_the_weights_under_an_intervention(translate: Script) -> None:
    done = translate("details=true", "attention=uniform", "site=cross", text="we eat [red]x[/red]")
    assert done.returncode == 0
    _, rows = tables(done.stdout.splitlines())
    assert "┃  [   ┃red]x[/red┃  ]   ┃" in done.stdout
    share = {f"{1 / (len(row) - 1):.2f}" for row in rows}
    assert len(share) == 1
    assert {weight for row in rows for weight in row[1:]} == share


def test_without_cross_attention_all_sentences_are_alike_and_nothing_is_looked_at(
    translate: Script,
) -> None:
    done = translate("skip=cross_attention", "details=true", stdin=f"{APPLE}\ni can read book\n")
    assert done.returncode == 0
    one, other = tables(done.stdout.splitlines())
    assert one == other


def test_changes_can_be_combined(translate: Script) -> None:
    changes = ("attention='first(2)'", "decoder_input=encoder_output", "only=cross_attention")
    done = translate(*changes, "max_length=7", stdin=f"{APPLE}\n\n{APPLE}\n")
    one, empty, other = done.stdout.splitlines()
    assert (done.returncode, done.stderr, empty) == (0, "", "")
    assert one == other != APFEL


def test_a_reader_that_has_seen_enough_ends_it_quietly(root: Path, run: Path) -> None:
    done = subprocess.run(
        f"'{sys.executable}' scripts/translate.py run='{run}' batch_size=1 | head -n 1",
        shell=True,
        cwd=root,
        input=f"{APPLE}\n" * 100,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome(done) == (0, f"{APFEL}\n", "")


@pytest.mark.parametrize(
    ("text", "stdin", "words"),
    [
        ("we " * 99, "", "at most 98 tokens 100 positions found 99: we we"),
        (None, f"{APPLE}\nwe \udcff\n", "UTF-8 stdin:2"),
        ("we\nwe \udcff", "", "UTF-8 TEXT:2"),
    ],
    ids=["too long", "no UTF-8 on stdin", "no UTF-8 in TEXT"],
)
def test_a_sentence_that_cannot_be_translated_is_told_in_one_line(
    translate: Script, text: str | None, stdin: str, words: str
) -> None:
    assert_one_line(translate(text=text, stdin=stdin), words)


@pytest.mark.parametrize(
    ("argument", "text", "words"),
    [
        ("file={f}/none.txt", None, "text file found none: {f}/none.txt"),
        ("file={f}/some.txt", "we", "TEXT or file= found both: 'we' '{f}/some.txt'"),
        ("run={f}", APPLE, "run folder make train found none: {f}"),
        ("run={f}/latest", APPLE, "run folder make train found none: {f}/latest"),
        ("checkpoint=newest", APPLE, "checkpoint one of best, latest 'newest'"),
        ("colour=red", APPLE, "colour no such setting"),
        ("attention=unfirm", APPLE, "attention learned, uniform, found 'unfirm'"),
        ("layer=1", APPLE, "layer attention is replaced found layer=1 attention=learned"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    translate: Script, tmp_path: Path, argument: str, text: str | None, words: str
) -> None:
    (tmp_path / "some.txt").write_text(APPLE)
    assert_one_line(translate(argument.format(f=tmp_path), text=text), words.format(f=tmp_path))


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def reverse_the_words(path: Path) -> None:
    tokens = json.loads(path.read_text())
    path.write_text(json.dumps(tokens[:4] + tokens[:3:-1]))


@pytest.mark.parametrize(
    ("damage", "file", "words"),
    [
        (flip_a_byte, "checkpoints/best/model.safetensors", "SHA-256 damaged model.safetensors"),
        (Path.unlink, "checkpoints/best/SHA256SUMS", "expected a checkpoint SHA256SUMS"),
        (shutil.rmtree, "checkpoints", "expected a checkpoint found none: checkpoints/best"),
        (reverse_the_words, "vocabulary.target.json", "vocabulary found another: target.json"),
        (Path.unlink, ".hydra/config.yaml", "configuration found none: .hydra/config.yaml"),
    ],
)
def test_a_damaged_run_is_told_in_one_line(
    translate: Script,
    run: Path,
    tmp_path: Path,
    damage: Callable[[Path], None],
    file: str,
    words: str,
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy", symlinks=True)
    damage(copy / file)
    assert_one_line(translate(text=APPLE, of=copy), words)


@pytest.fixture
def make(root: Path, run: Path, tmp_path: Path) -> Callable[..., CompletedProcess[str]]:
    """Run `make` where it finds everything set up: it must not install anything in a test."""
    if shutil.which("make") is None:
        pytest.skip("make is not here")
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "scripts", "configs"):
        (tmp_path / name).symlink_to(root / name)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python").chmod(0o755)
    (tools / ".ready").touch()

    def make(
        *arguments: str, stdin: str = "", environment: Mapping[str, str] = os.environ
    ) -> CompletedProcess[str]:
        # As from a person's shell: a make under `make test` would announce its folder on stdout.
        outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        return subprocess.run(
            ["make", *arguments, f"ARGS=run={run}"],
            cwd=tmp_path,
            env={name: value for name, value in environment.items() if name not in outer},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return make


@pytest.fixture(scope="module")
def odd(translate: Script) -> CompletedProcess[str]:
    return translate(text=ODD)


def test_odd_characters_in_text_do_no_harm(odd: CompletedProcess[str]) -> None:
    assert odd.returncode == 0
    assert len(odd.stdout.splitlines()) == 1
    (warning,) = odd.stderr.splitlines()
    assert all(repr(word) in warning for word in ("(", "=", '"', "$", "%", "é", "ü", "苹果"))


def test_make_translate_hands_text_on_untouched(
    make: Callable[..., CompletedProcess[str]], odd: CompletedProcess[str]
) -> None:
    assert outcome(make("translate", f"TEXT={ODD}")) == outcome(odd)
    assert outcome(make("translate", environment=os.environ | {"TEXT": ODD})) == outcome(odd)


def test_make_translate_takes_empty_text_for_an_empty_line(
    make: Callable[..., CompletedProcess[str]],
) -> None:
    assert outcome(make("translate", "TEXT=", stdin=APPLE)) == (0, "\n", "")


def test_make_translate_without_text_reads_stdin(
    make: Callable[..., CompletedProcess[str]],
) -> None:
    done = make("translate", stdin=f"{APPLE}\n\n{APPLE}\n")
    assert outcome(done) == (0, f"{APFEL}\n\n{APFEL}\n", "")
