"""A prepared corpus: tokenised once, kept, and never read when it is stale or damaged."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from qkvtrace.corpus.prepared import Corpus, prepare
from qkvtrace.corpus.vocabulary import SPECIALS
from qkvtrace.errors import UserError
from qkvtrace.settings import DataSettings

TRAIN = "We eat.\tWir essen.\nI eat z.B. bread\tIch esse z.B. Brot\nwe eat\twir essen\n"


@pytest.fixture
def settings(tmp_path: Path, data_settings: Callable[..., DataSettings]) -> DataSettings:
    (tmp_path / "train.tsv").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("it eats\tes isst\n", encoding="utf-8")
    return data_settings(
        folder=str(tmp_path), valid="valid.tsv", min_frequency=2, probes=("We eat it.",)
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "new" / "prepared"


def content(corpus: Corpus) -> dict[str, Any]:
    tokens = {"source": corpus.source.tokens, "target": corpus.target.tokens}
    return {name: getattr(corpus, name) for name in ("fingerprint", "splits", "probes")} | tokens


def cached(cache: Path) -> list[Path]:
    return sorted(cache.iterdir())


def test_texts_become_tokens_and_the_training_split_s_vocabularies(
    settings: DataSettings, cache: Path
) -> None:
    corpus = prepare(settings, cache)
    assert corpus.splits["train"] == [
        (["we", "eat", "."], ["wir", "essen", "."]),
        (["i", "eat", "z.", "b.", "bread"], ["ich", "esse", "z.b.", "brot"]),
        (["we", "eat"], ["wir", "essen"]),
    ]
    assert corpus.splits["valid"] == [(["it", "eats"], ["es", "isst"])]
    assert corpus.splits["test"] == corpus.splits["train"]
    assert corpus.source.tokens == (*SPECIALS, "eat", "we")
    assert corpus.target.tokens == (*SPECIALS, "essen", "wir")
    assert corpus.probes == [["we", "eat", "it", "."]]


def test_the_second_call_gives_the_same_corpus_from_the_cache(
    settings: DataSettings, cache: Path
) -> None:
    first = prepare(settings, cache)
    (path,) = cached(cache)
    assert path.name == f"small-{first.fingerprint[:16]}.json"
    modified = path.stat().st_mtime_ns
    second = prepare(settings, cache)
    assert content(second) == content(first)
    assert path.stat().st_mtime_ns == modified


def test_reading_the_cache_imports_neither_spacy_nor_torchtext(
    settings: DataSettings, cache: Path
) -> None:
    code = (
        "import json, sys; from pathlib import Path\n"
        "from qkvtrace.corpus.prepared import prepare\n"
        "from qkvtrace.conversion import from_config\n"
        "from qkvtrace.settings import DataSettings\n"
        "prepare(from_config(DataSettings, json.loads(sys.argv[1])), Path(sys.argv[2]))\n"
        "print([name for name in ('spacy', 'torchtext', 'torch') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", code, json.dumps(asdict(settings)), str(cache)]
    prepare(settings, cache)
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "changed",
    [
        {"source_language": "de"},
        {"target_language": "en"},
        {"lowercase": False},
        {"min_frequency": 1},
        {"max_length": 4},
        {"limit": 3},
        {"probes": None},
        {"valid": None},
        {"test": "valid.tsv"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_setting_is_another_file(
    settings: DataSettings,
    cache: Path,
    data_settings: Callable[..., DataSettings],
    changed: dict[str, object],
) -> None:
    prepare(settings, cache)
    prepare(data_settings(**asdict(settings) | changed), cache)
    assert len(cached(cache)) == 2


def test_another_text_is_another_file_and_another_corpus(
    settings: DataSettings, cache: Path, tmp_path: Path
) -> None:
    first = prepare(settings, cache)
    (tmp_path / "train.tsv").write_text(TRAIN.replace("bread", "apple"), encoding="utf-8")
    second = prepare(settings, cache)
    assert "apple" in second.splits["train"][1][0]
    assert first.fingerprint != second.fingerprint
    assert len(cached(cache)) == 2


def test_the_same_text_elsewhere_is_the_same_file(
    settings: DataSettings, cache: Path, data_settings: Callable[..., DataSettings], tmp_path: Path
) -> None:
    prepare(settings, cache)
    (tmp_path / "train.tsv").rename(tmp_path / "moved.tsv")
    moved = {"folder": None, "train": str(tmp_path / "moved.tsv")}
    moved["valid"] = str(tmp_path / "valid.tsv")
    prepare(data_settings(**asdict(settings) | moved), cache)
    assert len(cached(cache)) == 1


@pytest.mark.parametrize("length", [0, 1, 100, -1])
def test_a_truncated_cache_is_made_anew(settings: DataSettings, cache: Path, length: int) -> None:
    corpus = prepare(settings, cache)
    (path,) = cached(cache)
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    assert content(prepare(settings, cache)) == content(corpus)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("other", ["[]", "null", "{}", '{"fingerprint": "another", "splits": {}}'])
def test_a_cache_with_something_else_is_made_anew(
    settings: DataSettings, cache: Path, other: str
) -> None:
    corpus = prepare(settings, cache)
    (path,) = cached(cache)
    path.write_text(other, encoding="utf-8")
    assert content(prepare(settings, cache)) == content(corpus)


@pytest.mark.parametrize(("max_length", "kept"), [(2, 1), (3, 2), (4, 2), (5, 3)])
def test_pairs_with_a_longer_side_are_left_out(
    settings: DataSettings,
    cache: Path,
    data_settings: Callable[..., DataSettings],
    max_length: int,
    kept: int,
) -> None:
    shorter = data_settings(**asdict(settings) | {"max_length": max_length, "min_frequency": 1})
    assert len(prepare(shorter, cache).splits["train"]) == kept


@pytest.mark.parametrize(("limit", "kept"), [(1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (9, [0, 1, 2])])
def test_a_limit_takes_pairs_from_all_over_the_file(
    settings: DataSettings,
    cache: Path,
    data_settings: Callable[..., DataSettings],
    limit: int,
    kept: list[int],
) -> None:
    wanted = asdict(settings) | {"min_frequency": 1}
    everything = prepare(data_settings(**wanted), cache).splits
    limited = prepare(data_settings(**wanted | {"limit": limit}), cache).splits
    assert limited["train"] == [everything["train"][number] for number in kept]
    assert limited["valid"] == everything["valid"]


def test_a_vocabulary_without_a_word_is_an_error(
    settings: DataSettings, cache: Path, data_settings: Callable[..., DataSettings]
) -> None:
    rare = data_settings(**asdict(settings) | {"min_frequency": 99})
    with pytest.raises(UserError, match=r"data\.min_frequency: .* found 99, which none does"):
        prepare(rare, cache)
    assert not cache.exists()


def test_a_max_length_that_keeps_no_pair_is_an_error(
    settings: DataSettings, cache: Path, data_settings: Callable[..., DataSettings]
) -> None:
    with pytest.raises(UserError, match=r"data.max_length: .* found 1, .* all 3 of data.train"):
        prepare(data_settings(**asdict(settings) | {"max_length": 1}), cache)


def test_parallel_files_are_found_in_the_folder(
    settings: DataSettings, cache: Path, data_settings: Callable[..., DataSettings], tmp_path: Path
) -> None:
    (tmp_path / "a.en").write_text("we eat\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("wir essen\n", encoding="utf-8")
    parallel = data_settings(**asdict(settings) | {"train": ("a.en", "a.de"), "min_frequency": 1})
    corpus = prepare(parallel, cache)
    assert corpus.splits["train"] == [(["we", "eat"], ["wir", "essen"])]


def test_sentences_and_probes_must_fit_the_table_of_positions(
    settings: DataSettings, cache: Path, data_settings: Callable[..., DataSettings]
) -> None:
    corpus = prepare(settings, cache)
    corpus.check_lengths(None)
    corpus.check_lengths(7)
    expected = (
        r"model\.max_positions: expected room for 5 tokens, .* found 6 .* i eat z\. b\. bread"
    )
    with pytest.raises(UserError, match=expected):
        corpus.check_lengths(6)
    long = data_settings(**asdict(settings) | {"probes": ("it " * 9,)})
    with pytest.raises(UserError, match=r"expected room for 9 tokens, .* found 7 .* it it it"):
        prepare(long, cache).check_lengths(7)


def test_the_first_translation_of_a_sentence_is_its_reference(
    settings: DataSettings, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "valid.tsv").write_text("we eat\tes\nit eats\tes isst\n", encoding="utf-8")
    references = prepare(settings, cache).references()
    assert references["we", "eat"] == ["wir", "essen"]
    assert references["it", "eats"] == ["es", "isst"]
    assert ("it",) not in references
