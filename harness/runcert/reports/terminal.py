"""The terminal: live progress, one table, then each failure.  Plain where it is piped; NO_COLOR is respected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from runcert.certificate import NEVER_COVERED, RunFacts
from runcert.grading import Outcome, TargetReport
from runcert.masking import without_passwords
from runcert.reports.failures import failure_lines, replay_command
from runcert.reports.standalone import standalone_path
from runcert.reports.summary import evidence_in_words, headline, not_certified, selfcheck_in_words, weak_promises
from runcert_contract import Verdict

__all__ = ["LiveProgress", "console_for", "print_reports"]

_STYLES = {
    Verdict.PASS: "green",
    Verdict.UNSUPPORTED: "green",
    Verdict.FAIL: "bold red",
    Verdict.WAIVED: "yellow",
    Verdict.NOT_CLAIMED: "dim",
}
_MOST_FAILURES = 3


def console_for(*, stderr: bool = False) -> Console:
    """Give a console that colours nothing when it is piped and never breaks a line that is."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True)


class LiveProgress:
    """Shows what is running, on standard error, while a person looks on.

    Args:
        title: what is going on.
        total: how many checks are to run.
    """

    def __init__(self, title: str, total: int) -> None:
        console = console_for(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._title = title
        self._task: TaskID = self._progress.add_task(title, total=total)

    def start(self) -> None:
        """Begin to show."""
        self._progress.start()

    def stop(self) -> None:
        """Stop showing and leave nothing on the screen."""
        self._progress.stop()

    def note(self, message: dict[str, Any]) -> None:
        """Show one message of a child process."""
        if message["kind"] == "started":
            self._progress.update(self._task, description=f"{self._title}  {message['target']}  {message['check'][:60]}")
        elif message["kind"] == "result":
            self._progress.advance(self._task)


def print_reports(reports: Sequence[TargetReport], facts: RunFacts, files: dict[tuple[str, str, int], Any]) -> None:
    """Print the verdicts of a run.

    Args:
        reports: the verdict on each target.
        facts: what holds for the whole run.
        files: the file of each failure by target, clause and number, where files were written.
    """
    console = console_for()
    for report in reports:
        _print_table(console, report)
        _print_failures(console, report, facts, files)
    for report in reports:
        _print_words(console, report, facts.depth)
    console.print(f"Depth {facts.depth}, seed {facts.seed}.  Never covered: {'; '.join(NEVER_COVERED)}.", style="dim")
    console.print(Text(selfcheck_in_words(facts.selfcheck), style="dim"))


def _print_table(console: Console, report: TargetReport) -> None:
    if report.outcome is Outcome.REFUSED:
        return
    console.print(f"\n{report.name}", style="bold")
    if not console.is_terminal:
        for clause in report.clauses:
            console.print(Text(f"{clause.id:<18} {clause.verdict.value:<13} {_one_line(evidence_in_words(clause))}"))
        return
    table = Table("clause", "verdict", "evidence", box=None, pad_edge=False, header_style="dim")
    for clause in report.clauses:
        style = _STYLES.get(clause.verdict, "bold yellow")
        table.add_row(clause.id, Text(clause.verdict.value, style=style), Text(_one_line(evidence_in_words(clause))))
    console.print(table, soft_wrap=False)


def _one_line(text: str) -> str:
    return without_passwords(" ".join(text.split()))


def _print_failures(console: Console, report: TargetReport, facts: RunFacts, files: dict[tuple[str, str, int], Any]) -> None:
    for clause in report.clauses:
        for number, failure in enumerate(clause.failures[:_MOST_FAILURES], start=1):
            file = files.get((report.name, clause.id, number))
            replay = replay_command(report.introduction.text, failure, facts.depth, facts.seed, file)
            first, *rest = failure_lines(failure, replay)
            console.print(Text(f"\n{first}", style="bold red"))
            console.print(Text(without_passwords("\n".join(rest))))
            if file is not None and standalone_path(file).exists():
                console.print(Text(f"  alone     pytest {standalone_path(file)}  (without the kit)"))
        more = len(clause.failures) - _MOST_FAILURES
        if more > 0:
            console.print(f"  and {more} more check{'s' if more > 1 else ''} of {clause.id}")


def _print_words(console: Console, report: TargetReport, depth: str) -> None:
    good = report.outcome in (Outcome.CERTIFIED, Outcome.PARTIAL)
    console.print(Text(f"\n{headline(report, depth)}", style="bold green" if good else "bold red"))
    for complaint in report.complaints:
        console.print(f"  {complaint}", style="bold red")
    if report.outcome is Outcome.REFUSED:
        return
    for promise in weak_promises(report.introduction.description["claims"]):
        console.print(Text(f"  {promise}"))
    for reason, clauses in not_certified(report).items():
        console.print(Text(f"  not certified ({reason}): {', '.join(clauses)}"))
