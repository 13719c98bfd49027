"""The kill matrix: which faulty store is caught by which clause."""

from __future__ import annotations

from rich.text import Text

from runcert.problems import ExitCode
from runcert.reports.terminal import console_for
from runcert.selfcheck import Row, SelfcheckReport

__all__ = ["matrix_lines", "print_matrix"]


def print_matrix(report: SelfcheckReport, seed: int) -> None:
    """Print the matrix and what is wrong with it, if anything is."""
    console = console_for()
    for row, line in zip(report.rows, matrix_lines(report), strict=True):
        console.print(Text(line, style="green" if row.state == "caught" else "bold red"))
    for clause in report.idle:
        console.print(Text(f"{clause} catches nothing: no faulty store is for it", style="bold red"))
    for sentence in report.skipped:
        console.print(Text(sentence, style="yellow"))
    if report.full:
        console.print(f"redundant on these stores: {', '.join(report.redundant) or 'none'}")
    caught = sum(row.state == "caught" for row in report.rows)
    clauses = len({row.store.clause for row in report.rows})
    verdict = "the kit can say no" if report.exit_code is ExitCode.HOLDS else "the kit is not to be trusted"
    console.print(
        f"{caught} of {len(report.rows)} faulty stores caught by {clauses} clauses; seed {seed}: {verdict}", style="bold"
    )


def matrix_lines(report: SelfcheckReport) -> list[str]:
    """Give one line for each faulty store."""
    return [_line(row, report.full) for row in report.rows]


def _line(row: Row, full: bool) -> str:
    store = row.store
    others = f"  also {', '.join(c for c in row.caught_by if c != store.clause)}" if full and len(row.caught_by) > 1 else ""
    detail = f"{row.seconds:5.2f} s{others}" if row.state == "caught" else row.message
    return f"{store.clause:<18} {row.state:<12} {store.backend:<12} {store.name:<40} {detail}"
