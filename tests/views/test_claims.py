"""What came out for the claims, in the terminal and in TensorBoard."""

import html
import math
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.interval import Interval
from qkvtrace.studies.evidence.kept import HeldOut, Report
from qkvtrace.studies.evidence.verdict import Result, finding, together
from qkvtrace.views.claims import (
    BINS,
    COLOURS,
    EMPTY,
    LEAST,
    asked,
    markdown,
    number,
    numbers,
    open_or_against,
    picture,
    print_report,
    unexceeded,
    worded,
    write_board,
)

MARKUP = "[red]x[/] <b>y</b> | *z* `w` _v_ ~u~ $t$ &lt; \\"
PART = Part(name="apart", says="They differ.", measure="|a − b|", unit="share", least=0.1)
SAME = replace(PART, name="same", says="They are one.", least=1e-5, because="a is b")
FOLDER = "outputs/claims/now"


def around(mean: float, seeds: int) -> list[float]:
    """Values whose mean is exactly so, 0.02 to each side at most."""
    return [mean + 0.02 * math.cos(math.pi * (i + 0.5) / seeds) for i in range(seeds)]


def result(letter: str, *measured: tuple[Part, Measured]) -> Result:
    findings = [finding(part, numbers) for part, numbers in measured]
    verdict = together([each.verdict for each in findings])
    return Result("so", letter, f"Title {letter}", "So.", "the article", verdict, findings)


def report(*results: Result) -> Report:
    seeds = len(results[0].findings[0].values)
    return Report(
        made="2026-12-01T09:30:00+00:00",
        versions={"qkvtrace": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        git_revision="0123456789abcdef",
        corpus="eat_drink_read",
        fingerprint="f" * 64,
        model={},
        training={},
        held_out=HeldOut("grammatical", 1),
        asked={"seeds": 32},
        seeds=list(range(seeds)),
        epochs=30,
        seconds=61.7,
        results=list(results),
    )


def of_every_kind(seeds: int) -> Report:
    """A claim that holds in its two parts, one that does not, an open one and an identity."""
    nothing, same = [0.0] * seeds, [1e-7] * seeds
    better = replace(PART, name="better", says="They are better.")
    return report(
        result(
            "a",
            (PART, Measured(around(0.4, seeds), {"untrained": around(0.2, seeds)})),
            (better, Measured(around(0.3, seeds), {"untrained": around(0.3, seeds)})),
        ),
        result("b", (PART, Measured(around(-0.25, seeds), {"shuffled": nothing}))),
        result("c", (PART, Measured(around(0.1, seeds)))),
        result("d", (SAME, Measured(same, {"other": [0.5] * seeds, "twin": same}))),
    )


# Numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.1, "0.1"),
        (1e-5, "1e-5"),
        (1.26e-7, "1.3e-7"),
        (math.log(2), "0.693"),
        (-0.02256, "-0.0226"),
        (12.345, "12.3"),
        (100.0, "100"),
        (12345.6, "12346"),
        (250_000.0, "2.5e5"),
        (-0.0, "0"),
        (math.nan, "nan"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("interval", "texts"),
    [
        (Interval(0.4, 0.388, 0.4361), ("0.400", "[0.388, 0.436]")),
        (Interval(0.001, -0.02, 0.03), ("0.0010", "[-0.0200, 0.0300]")),
        (Interval(2e-7, 1.2e-7, 3e-7), ("2.0e-7", "[1.2e-7, 3.0e-7]")),
        (Interval(-1e-9, -2.0, 2.0), ("0.00", "[-2.00, 2.00]")),
        (Interval(0.4, -math.inf, math.inf), ("0.4", "(too few seeds)")),
    ],
)
def test_a_mean_and_its_interval_have_the_same_decimals(
    interval: Interval, texts: tuple[str, str]
) -> None:
    assert numbers(interval) == texts


def test_what_is_undecided_says_at_how_many_seeds() -> None:
    assert [worded("undecided", n) for n in (1, 32)] == [
        "undecided at 1 seed",
        "undecided at 32 seeds",
    ]
    assert [worded(v, 32) for v in COLOURS if v != "undecided"] == [
        "holds",
        "true by construction",
        "does not hold",
    ]


# Pictures


@pytest.mark.parametrize(
    ("values", "least", "drawn"),
    [
        # One seed is a third of a block high, three a whole one.
        ([1.6], 0.0, "│▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄"),
        ([0.0, 0.0, 0.0, 1.6], 0.8, "█▁▁▁▁▁▁▁│▁▁▁▁▁▁▁▄"),
        ([0.05, 0.05, 0.05, 0.15, 0.35, 1.6], 0.4, "█▄▁▄│▁▁▁▁▁▁▁▁▁▁▁▄"),
        ([1e-7] * 32, 1e-5, "█▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁│"),
        ([2.0] * 5, 2.0, "▁▁▁▁▁▁▁▁│█▁▁▁▁▁▁▁"),
        ([0.0] * 5, 0.0, "▁▁▁▁▁▁▁▁│█▁▁▁▁▁▁▁"),
        # A single seed of 1000 is seen, and on which side it is, though they hardly differ.
        ([1.0] * 999 + [0.0], 1e-3, "▂│▁▁▁▁▁▁▁▁▁▁▁▁▁▁█"),
        ([math.nan, 1.0], 0.0, "│▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▄"),
    ],
)
def test_a_picture_counts_seeds_and_marks_the_least(
    values: list[float], least: float, drawn: str
) -> None:
    assert picture(values, least) == drawn


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(-1e6, 1e6))
def test_blocks_before_the_least_are_of_smaller_values_alone(
    values: list[float], least: float
) -> None:
    drawn = picture(values, least)
    assert len(drawn) == BINS + 1
    before, after = drawn.split(LEAST)
    assert (before.strip(EMPTY) != "") == any(value < least for value in values)
    if max(values) > least:
        assert (after.strip(EMPTY) != "") == any(value >= least for value in values)


# Terminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make stdout, which capsys replaces when a test begins, a terminal of some columns."""

    def make(columns: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.delenv("NO_COLOR", raising=False)
        settings = {"COLUMNS": str(columns), "TERM": "xterm", "COLORTERM": "truecolor"}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)

    return make


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def columns(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def test_in_a_pipe_each_part_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(of_every_kind(32), FOLDER)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "What texts claim, over 32 seeds"
    assert lines[1] == (
        "Tested 2026-12-01 09:30 UTC: seeds 0 to 31, 30 epochs each, on eat_drink_read "
        "(ffffffffff); generalisation on grammatical, 1 epoch; 62 s; qkvtrace 0.1.0, revision "
        "0123456789, PyTorch 2.13.0, Python 3.11.7."
    )
    assert lines[-1] == f"all of it: {FOLDER}"
    start = lines.index("a. Title a: holds")
    assert lines[start + 1] == "“So.” (the article)"
    assert columns(lines[start + 2]) == ["mean [95 %]", "asked", "verdict", "seeds", "controls"]
    says, mean, least, verdict, drawn, controls = columns(lines[start + 3])
    assert (says, least, verdict) == ("They differ.", "at least 0.1", "holds")
    assert re.fullmatch(r"0\.400 \[0\.39\d, 0\.40\d\]", mean)
    assert drawn == picture(around(0.4, 32), 0.1)
    assert controls == "untrained 0.2"
    assert columns(lines[start + 4])[-1] == "untrained 0.3, not above: untrained"
    for line in (
        "b. Title b: does not hold",
        "c. Title c: undecided at 32 seeds",
        "d. Title d: true by construction",
    ):
        assert line in lines
    says, mean, most, verdict, _, controls = columns(lines[lines.index(line) + 3])
    assert (says, most) == ("They are one. (because a is b)", "at most 1e-5")
    assert (mean, verdict) == ("1.0e-7 [1.0e-7, 1.0e-7]", "true by construction")
    assert controls == "other 0.5, twin 1e-7, as exact: twin"


@pytest.mark.parametrize("width", [60, 80, 110, 120, 200])
@pytest.mark.parametrize("seeds", [1, 8, 1000])
def test_a_terminal_shows_all_of_it_without_breaking_a_word(
    capsys: pytest.CaptureFixture[str],
    terminal: Callable[[int], None],
    width: int,
    seeds: int,
) -> None:
    terminal(width)
    print_report(of_every_kind(seeds), FOLDER)
    lines = plain(capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= width
    words = set(" ".join(lines).split())
    expected = {"They", "differ.", "better.", "0.4", "-0.25", "1e-5", "holds", "shuffled", "twin"}
    if seeds >= 8:
        expected = expected - {"0.4", "-0.25"} | {"0.400", "-0.250", "construction"}
    assert expected - {"holds"} <= words
    assert picture(around(0.4, seeds), 0.1) in words
    assert not any("…" in word for word in words)


def test_verdicts_have_their_colour_in_a_terminal(
    capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None]
) -> None:
    terminal(120)
    print_report(of_every_kind(32), FOLDER)
    out = capsys.readouterr().out
    for verdict, colour in COLOURS.items():
        red, green, blue = bytes.fromhex(colour[1:])
        words = verdict.split()[0]
        assert re.search(rf"\x1b\[(1;)?38;2;{red};{green};{blue}m{words}", out)


def test_markup_in_a_claim_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    odd = replace(PART, says=MARKUP)
    made = result("a", (odd, Measured(around(0.4, 8), {MARKUP: around(0.5, 8)})))
    print_report(report(replace(made, title=MARKUP, sentence=MARKUP, source=MARKUP)), FOLDER)
    out = capsys.readouterr().out
    assert f"a. {MARKUP}: holds" in out
    assert f"“{MARKUP}” ({MARKUP})" in out
    assert f"{MARKUP} 0.5, not above: {MARKUP}" in out


def test_controls_are_named_that_the_effect_is_not_surely_above() -> None:
    low, high = around(0.2, 8), around(0.4, 8)
    assert unexceeded(finding(PART, Measured(high, {"low": low, "high": high}))) == ["high"]
    assert unexceeded(finding(PART, Measured([0.4], {"high": [0.5]}))) == []  # nothing is sure yet
    exact, far = [1e-7] * 8, [0.5] * 7 + [0.0]
    assert unexceeded(finding(SAME, Measured(exact, {"far": far, "exact": exact}))) == ["exact"]


def test_what_is_against_the_texts_and_what_is_open_are_sentences() -> None:
    broken = result("e", (SAME, Measured([1e-7] * 31 + [-0.25])))
    made = of_every_kind(32)
    against, deviates, undecided = open_or_against(replace(made, results=[*made.results, broken]))
    assert re.fullmatch(
        r"Against the texts: b\. “They differ\.” does not hold: -0\.250 \[-0\.25\d, -0\.24\d\] "
        r"over 32 seeds, where at least 0\.1 was asked for\.",
        against,
    )
    assert deviates == (
        "Against the texts: e. “They are one.” should be so by construction, but deviates by up "
        "to 0.25, where rounding explains 1e-5."
    )
    assert re.fullmatch(
        r"Undecided: c\. “They differ\.”: 0\.100 \[0\.09\d+, 0\.10\d+\] over 32 seeds "
        r"has 0\.1 inside\.",
        undecided,
    )
    few = [*open_or_against(of_every_kind(1))]
    assert len(few) == 4
    assert few[0] == "Undecided: a. “They differ.”: an interval takes 8 seeds, found 1."


def test_a_seed_without_a_number_leaves_a_part_undecided_and_is_told() -> None:
    made = report(result("a", (PART, Measured([*around(0.4, 31), math.nan]))))
    assert [*open_or_against(made)] == [
        "Undecided: a. “They differ.”: some of 32 seeds have no number."
    ]
    assert "– (a seed has no number)" in markdown(made)


def test_a_part_beyond_the_claim_is_marked_and_is_not_against_the_texts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    further = replace(PART, beyond=True)
    made = report(result("a", (SAME, Measured([0.0] * 8)), (further, Measured([-1.0] * 8))))
    assert [*open_or_against(made)] == []
    print_report(made, FOLDER)
    assert "They differ. (beyond the claim)" in capsys.readouterr().out
    assert [row[1] for row in cells(markdown(made))[2:]] == [
        "They are one.",
        "They differ. (beyond the claim)",
    ]


def test_seeds_that_do_not_follow_each_other_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_report(replace(of_every_kind(3), seeds=[1, 5, 9]), FOLDER)
    assert "seeds 1, 5 and 9, 30 epochs" in capsys.readouterr().out


# Markdown


def cells(table: str) -> list[list[str]]:
    """What a person sees in each row of the table in TensorBoard."""
    with warnings.catch_warnings():  # its copy of html5lib says that it is deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        from tensorboard.plugin_util import markdown_to_safe_html

    rows = re.findall(r"<tr>(.*?)</tr>", markdown_to_safe_html(table), re.DOTALL)
    found = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    without = [[re.sub("</?(code|strong)>", "", cell) for cell in row] for row in found]
    assert "<" not in "".join(cell for row in without for cell in row)
    return [[html.unescape(cell) for cell in row] for row in without]


def test_markdown_has_a_row_a_claim_and_a_part_and_says_what_was_tested() -> None:
    text = markdown(of_every_kind(32))
    heading, *rows = cells(text)
    assert heading == [
        "",
        "claim",
        "mean [95 %]",
        "asked",
        "verdict",
        "32 seeds, from small values to large",
    ]
    mean = " ".join(numbers(finding(PART, Measured(around(0.4, 32))).interval))
    drawn = picture(around(0.4, 32), 0.1)
    assert rows[:2] == [
        ["a", "Title a", "", "", "holds", ""],
        ["", "They differ.", mean, "at least 0.1", "holds", drawn],
    ]
    assert [row[:2] for row in rows if row[0]] == [[n, f"Title {n}"] for n in "abcd"]
    assert [row[4] for row in rows if not row[0]] == [
        "holds",
        "holds, not above: untrained",
        "does not hold, not above: shuffled",
        "undecided at 32 seeds",
        "true by construction, as exact: twin",
    ]
    for told in ("2026-12-01 09:30", "PyTorch 2.13.0", "seeds 0 to 31", "eat\\_drink\\_read"):
        assert told in text.splitlines()[0]
    assert text.splitlines()[-5] == "- a. They differ. |a − b| (share)".replace("|", "\\|")


def test_markdown_shows_any_text_as_it_is() -> None:
    odd = replace(PART, says=MARKUP, measure=MARKUP, unit="a\nb")
    made = replace(result("a", (odd, Measured([0.4]))), title=MARKUP)
    (_, whole, row) = cells(markdown(report(made)))
    assert whole[1] == MARKUP
    assert row[1] == MARKUP
    raw = markdown(report(made)).splitlines()[-1]
    assert not re.search(r"[~$<]", raw)  # which GitHub reads, and no backslash stops in both
    assert asked(made.findings[0]) == "at least 0.1"


def test_tensorboard_shows_it_as_a_text(tmp_path: Path) -> None:
    made = of_every_kind(5)
    write_board(tmp_path / "board", made)
    events = EventAccumulator(str(tmp_path / "board"), size_guidance={"tensors": 0}).Reload()
    (event,) = events.Tensors("claims/text_summary")
    assert event.step == 0
    assert event.tensor_proto.string_val[0].decode() == markdown(made)
