"""Several certificates side by side: rows are clauses, columns are targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["comparison_markdown", "comparison_rows", "comparison_text"]

_ABSENT = "-"


def comparison_rows(certificates: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Give a header row and a row for each clause."""
    names = [str(certificate["target"]["name"]) for certificate in certificates]
    verdicts = [
        {clause["id"]: str(clause["verdict"]) for section in certificate["contracts"] for clause in section["clauses"]}
        for certificate in certificates
    ]
    clauses = list(dict.fromkeys(clause for column in verdicts for clause in column))
    rows = [["clause", *names], ["verdict", *(str(certificate["verdict"]) for certificate in certificates)]]
    return rows + [[clause, *(column.get(clause, _ABSENT) for column in verdicts)] for clause in clauses]


def comparison_text(certificates: Sequence[Mapping[str, Any]]) -> str:
    """Give the comparison as aligned columns."""
    rows = comparison_rows(certificates)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def comparison_markdown(certificates: Sequence[Mapping[str, Any]]) -> str:
    """Give the comparison as a Markdown table."""
    header, *rows = comparison_rows(certificates)
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
