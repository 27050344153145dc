"""What came out for the claims, as text: in the terminal, and as Markdown for TensorBoard.

Texts of claims are data: no markup in them is interpreted.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from qkvtrace.studies.evidence.interval import FEWEST, Interval
from qkvtrace.studies.evidence.kept import Report
from qkvtrace.studies.evidence.verdict import Finding, Result, Verdict
from qkvtrace.studies.tools.wording import listed
from qkvtrace.views.terminal import console

COLOURS: dict[Verdict, str] = {  # told apart by every kind of colour vision, on dark and on light
    "holds": "#009e73",
    "true by construction": "#0072b2",
    "does not hold": "#d55e00",
    "undecided": "#8a8f98",
}
BINS = 16  # of a picture
EMPTY, BLOCKS, LEAST = "▁", "▂▃▄▅▆▇█", "│"
FULL = 3  # seeds in the highest bin from which it is drawn at full height
LEGEND = f"Pictures count seeds, from small values to large; {LEAST} is the bound asked for."
BEYOND = "beyond the claim"  # which such a part does not decide
TAG = "claims"
WIDTHS = {"mean [95 %]": 18, "asked": 13, "verdict": 13, "seeds": BINS + 1, "controls": 22}
WIDEST = 110  # columns that a table of them takes, with room for what parts say


def print_report(report: Report, folder: str) -> None:
    """Print what came out for each claim; `folder` is where all of it lies."""
    terminal = console()
    seeds = len(report.seeds)
    for line in (Text(f"What texts claim, over {_seeds(seeds)}", "bold"), Text(made_of(report))):
        terminal.print(line)
    terminal.print(Text(LEGEND))
    for result in report.results:
        told = worded(result.verdict, seeds)
        terminal.print()
        terminal.print(
            Text.assemble(
                (f"{result.letter}. {result.title}: ", "bold"),
                (told, f"bold {COLOURS[result.verdict]}"),
            )
        )
        terminal.print(Text(f"“{result.sentence}” ({result.source})"))
        if terminal.width < WIDEST:
            terminal.print(*_lines(result, seeds), sep="\n")
        else:
            terminal.print(_grid(result, seeds, terminal.is_terminal))
    terminal.print()
    for sentence in open_or_against(report):
        terminal.print(Text(sentence))
    terminal.print(Text(f"all of it: {folder}", style="dim"))


def _grid(result: Result, seeds: int, folded: bool) -> Grid:
    """A row a part; where it is `folded`, what has no room beside stands below."""
    grid = Grid(expand=folded, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(ratio=1 if folded else None)
    for name, width in WIDTHS.items():
        grid.add_column(Text(name, "dim"), width=width if folded else None)
    for finding in result.findings:
        grid.add_row(_says(finding), *_cells(finding, seeds, folded))
    return grid


def _lines(result: Result, seeds: int) -> Iterator[Text | Padding]:
    """The same where no table fits."""
    for finding in result.findings:
        yield _says(finding)
        yield Padding(Text("  ").join(_cells(finding, seeds, folded=False)), (0, 0, 0, 4))


def _says(finding: Finding) -> Text:
    part = finding.part
    asides = [f"because {part.because}"] if part.because else []
    asides += [BEYOND] if part.beyond else []
    return Text.assemble(part.says, *((f" ({aside})", "dim") for aside in asides))


def _cells(finding: Finding, seeds: int, folded: bool) -> list[Text]:
    """What the columns of WIDTHS hold."""
    controls = [f"{c.name} {number(c.interval.mean)}" for c in finding.controls]
    return [
        Text(("\n" if folded else " ").join(numbers(finding.interval))),
        Text(asked(finding)),
        Text(worded(finding.verdict, seeds), COLOURS[finding.verdict]),
        Text(picture(finding.values, finding.part.least)),
        Text(("\n" if folded else ", ").join([*controls, *_unexceeded(finding)])),
    ]


def worded(verdict: Verdict, seeds: int) -> str:
    """A verdict as it is shown; what is undecided may be decided by more seeds."""
    return f"undecided at {_seeds(seeds)}" if verdict == "undecided" else verdict


def made_of(report: Report) -> str:
    """When, on what and with what the claims were tested."""
    revision = f", revision {report.git_revision[:10]}" if report.git_revision else ""
    first, last, held_out = report.seeds[0], report.seeds[-1], report.held_out
    made = report.made[:16].replace("T", " ")
    whole = report.seeds == [*range(first, last + 1)]
    named = f"{first} to {last}" if whole and first != last else listed([*map(str, report.seeds)])
    return (
        f"Tested {made} UTC: {'seed' if first == last else 'seeds'} {named}, "
        f"{_epochs(report.epochs)} each, on {report.corpus} ({report.fingerprint[:10]}); "
        f"generalisation on {held_out.corpus}, {_epochs(held_out.epochs)}; "
        f"{report.seconds:.0f} s; qkvtrace {report.versions['qkvtrace']}{revision}, "
        f"PyTorch {report.versions['torch']}, Python {report.versions['python']}."
    )


def open_or_against(report: Report) -> Iterator[str]:
    """A sentence for each part that came out against the texts, then one for each undecided.

    Parts that go beyond what texts claim are not among them.
    """
    seeds = len(report.seeds)
    for wanted, tell in (("does not hold", _against), ("undecided", _undecided)):
        for result in report.results:
            for finding in result.findings:
                if finding.verdict == wanted and not finding.part.beyond:
                    yield tell(f"{result.letter}. “{finding.part.says}”", finding, seeds)


def _against(named: str, finding: Finding, seeds: int) -> str:
    least = number(finding.part.least)
    if finding.part.because is not None:
        largest = number(max(map(abs, finding.values)))
        return (
            f"Against the texts: {named} should be so by construction, but deviates by up to "
            f"{largest}, where rounding explains {least}."
        )
    found = " ".join(numbers(finding.interval))
    return (
        f"Against the texts: {named} does not hold: {found} over {_seeds(seeds)}, "
        f"where at least {least} was asked for."
    )


def _undecided(named: str, finding: Finding, seeds: int) -> str:
    least, found = number(finding.part.least), " ".join(numbers(finding.interval))
    if seeds < FEWEST:
        return f"Undecided: {named}: an interval takes {FEWEST} seeds, found {seeds}."
    if math.isnan(finding.interval.mean):
        return f"Undecided: {named}: some of {_seeds(seeds)} have no number."
    return f"Undecided: {named}: {found} over {_seeds(seeds)} has {least} inside."


def picture(values: Sequence[float], least: float) -> str:
    """How the seeds are spread, as a line of BINS blocks, and where among them `least` lies.

    No block counts seeds from both sides of it: BINS are shared out between the two.
    """
    found = [value for value in values if math.isfinite(value)]
    low, high = min([*found, least]), max([*found, least])
    if low == high:
        low, high = low - (abs(low) or 1), high + (abs(high) or 1)
    before = round(BINS * (least - low) / (high - low))
    if low < least < high:
        before = min(max(before, 1), BINS - 1)
    edges = [
        *(low + (least - low) * step / before for step in range(before)),
        *(least + (high - least) * step / (BINS - before) for step in range(BINS - before)),
    ]
    counts = Counter(max(bisect_right(edges, value) - 1, 0) for value in found)
    most = max([FULL, *counts.values()])
    drawn = [
        BLOCKS[math.ceil(len(BLOCKS) * counts[at] / most) - 1] if counts[at] else EMPTY
        for at in range(BINS)
    ]
    return "".join((*drawn[:before], LEAST, *drawn[before:]))


def markdown(report: Report) -> str:
    """A table with a row a claim and one for each part, what they were tested with, and measures.

    Measures stand below: as a column they would leave no room for the others.
    """
    seeds = len(report.seeds)
    # A long heading makes room for the pictures, which must not be broken.
    heading = f"{_seeds(seeds)}, from small values to large"
    rows = [f"| | claim | mean [95 %] | asked | verdict | {heading} |", "|---|---|---|---|---|---|"]
    measures = []
    for result in report.results:
        letter, title = _escaped(result.letter), _escaped(result.title)
        rows.append(f"| {letter} | **{title}** | | | **{worded(result.verdict, seeds)}** | |")
        for finding in result.findings:
            part = finding.part
            says = _escaped(f"{part.says} ({BEYOND})" if part.beyond else part.says)
            cells = (
                says,
                " ".join(numbers(finding.interval)),
                asked(finding),
                _escaped(", ".join([worded(finding.verdict, seeds), *_unexceeded(finding)])),
                f"`{picture(finding.values, part.least)}`",
            )
            rows.append(f"| | {' | '.join(cells)} |")
            measures.append(f"- {letter}. {says} {_escaped(f'{part.measure} ({part.unit})')}")
    return "\n".join(
        [f"{_escaped(made_of(report))} {LEGEND}", "", *rows, "", "Measures:", "", *measures]
    )


def write_board(folder: Path, report: Report) -> None:
    """Write a TensorBoard file into `folder` that shows the claims as a text."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        writer.add_text(TAG, markdown(report), 0)


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, in TensorBoard and on GitHub."""
    for character in "&<~$":  # which no backslash escapes in both
        text = text.replace(character, f"&#{ord(character)};")
    return "".join(f"\\{c}" if c in "\\`*_[]|" else c for c in " ".join(text.split()))


def asked(finding: Finding) -> str:
    """The bound that decides: of an identity, how much it may deviate."""
    least = number(finding.part.least)
    return f"at least {least}" if finding.part.because is None else f"at most {least}"


def unexceeded(finding: Finding) -> list[str]:
    """The controls that show as much as the effect, as far as can be told."""
    if len(finding.values) < FEWEST or math.isnan(finding.interval.mean):
        return []
    return [control.name for control in finding.controls if not control.exceeded]


def _unexceeded(finding: Finding) -> list[str]:
    names = unexceeded(finding)
    says = "not above" if finding.part.because is None else "as exact"
    return [f"{says}: {listed(names)}"] if names else []


def numbers(interval: Interval) -> tuple[str, str]:
    """A mean and its interval, to three digits of the largest of them."""
    three = [interval.mean, interval.low, interval.high]
    if math.isnan(interval.mean):
        return "–", "(a seed has no number)"
    if not all(map(math.isfinite, three)):
        return number(interval.mean), "(too few seeds)"
    mean, low, high = _together(three)
    return mean, f"[{low}, {high}]"


def number(value: float) -> str:
    """To three digits, without the zeros that end them."""
    (text,) = _together([value])
    head, e, exponent = text.partition("e")
    return (head.rstrip("0").rstrip(".") if "." in head else head) + e + exponent


def _together(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as give the largest three digits."""
    largest = max(map(abs, values))
    if not math.isfinite(largest):
        return [str(value) for value in values]
    if largest and not 1e-3 <= largest < 1e5:
        return [_exponent(value) for value in values]
    decimals = max(0, 2 - math.floor(math.log10(largest))) if largest else 0
    return [f"{value:z.{decimals}f}" for value in values]


def _exponent(value: float) -> str:
    head, _, exponent = f"{value:.1e}".partition("e")
    return f"{head}e{int(exponent)}" if value else "0"


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _epochs(count: int) -> str:
    return "1 epoch" if count == 1 else f"{count} epochs"
