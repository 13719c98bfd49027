"""The reference page of the clauses, made from the catalogue, the suites and the faulty stores that are installed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from runcert.checks import Check, checks_of
from runcert.faulty import FaultyStore, faulty_stores
from runcert_contract import CATALOGUE, Clause
from runcert_contract.catalogue import CONTRACT_PREFIXES

__all__ = ["clause_page"]

_HEAD = """\
# Clauses

<!-- Made by `python -m runcert.reports.reference_pages docs/reference`; change the catalogue, not this page. -->

A clause is one numbered invariant of a contract. Its id never changes and is never used again. Every clause is a MUST unless it
says SHOULD. A clause that needs something is judged only for stores that have it; for the others it is `not-claimed`, which is
printed and does not block (`unsupported` where a capability is declared absent and that was proved).

Under each clause stand the checks that judge it and the faulty stores that it has to catch (`runcert selfcheck`).
"""


def clause_page() -> str:
    """Give the page as Markdown."""
    summary = f"Catalogue revision {CATALOGUE.revision}, {len(CATALOGUE.clauses)} clauses, digest `{CATALOGUE.digest[:16]}`.\n"
    sections = [_contract_section(contract) for contract in CONTRACT_PREFIXES]
    return "\n".join([_HEAD, summary, *sections])


def _contract_section(contract: str) -> str:
    checks = _by_clause((name, check) for check in checks_of(contract) for name in check.clauses)
    stores = _by_clause((store.clause, store) for store in faulty_stores(contract))
    lines = [f"## {contract}", ""]
    topic = ""
    for clause in CATALOGUE.of(contract):
        if clause.topic != topic:
            topic = clause.topic
            lines += [f"### {topic}", ""]
        lines += _clause_lines(clause, checks.get(clause.id, ()), stores.get(clause.id, ()))
    return "\n".join(lines)


def _by_clause(pairs: Iterable[tuple[str, Check | FaultyStore]]) -> Mapping[str, list[Check | FaultyStore]]:
    found: dict[str, list[Check | FaultyStore]] = defaultdict(list)
    for clause_id, entry in pairs:
        found[clause_id].append(entry)
    return found


def _clause_lines(clause: Clause, checks: Sequence[Check | FaultyStore], stores: Sequence[Check | FaultyStore]) -> list[str]:
    needs = ", ".join(need.value for need in clause.needs) or "nothing"
    lines = [f"#### {clause.id}", "", f"{clause.statement}.", ""]
    lines += [f"*{clause.strength.value}. Needs: {needs}. Source: {clause.source}.*", ""]
    entries = [_entry(entry) for entry in (*checks, *stores)]
    return [*lines, *entries, ""] if entries else lines


def _entry(entry: Check | FaultyStore) -> str:
    if isinstance(entry, Check):
        return f"- check `{entry.id}`: {entry.sentence}"
    return f"- catches `{entry.name}` ({entry.backend}): {entry.fault}"
