from __future__ import annotations

import re
from dataclasses import replace

import pytest

from runcert_contract import CATALOGUE, Clause, Need, Strength
from runcert_contract.catalogue import CONTRACT_PREFIXES, REVISION, digest_of

FROZEN = {
    1: "7911f2de848d49e3ccadc6abe8ac65ae4c49699d7a9a5c5178b975106fab8e9b",
    2: "7f5e2d2ad612026405405b5656928e02e13595d8815965f5e476a407e2f8decb",
}
"""The digest of each revision that was published: a change of any statement needs a new revision."""

OF_THE_CONTRACT = (
    [f"CREATE-{n}" for n in range(1, 6)]
    + [f"FIND-{n}" for n in range(1, 4)]
    + [f"CAS-{n}" for n in (1, 2, 3, 4, 5, 6, 8, 9, 10)]
    + ["IDENTITY-1", "TERMINAL-1", "REUSE-1", "RESUMABLE-1"]
)
OF_EVERY_CONTRACT = (
    [f"INPUT-{n}" for n in range(1, 4)]
    + ["ERROR-1", "ERROR-2", "CLOSED-1"]
    + [f"FIDELITY-{n}" for n in range(1, 8)]
    + [f"ID-{n}" for n in range(1, 7)]
    + ["PATH-1", "PATH-2"]
    + [f"ALIAS-{n}" for n in range(1, 5)]
    + ["NAMESPACE-1", "USABLE-1", "USABLE-2", "CONTENTION-1", "CONTENTION-2", "BOUND-1", "CORRUPT-1"]
    + ["LIST-1", "LIST-3", "LIST-4", "DURABLE-1", "DURABLE-3", "DURABLE-4", "RESIDUE-1", "SURFACE-1", "PARITY-1", "CANCEL-1"]
    + ["ABSENT-1", "BOUND-2", "EVICT-1", "SCHEMA-1", "SCHEMA-2", "RESIDUE-2"]
)


def test_the_catalogue_holds_exactly_the_clauses_of_this_revision() -> None:
    expected = {f"RUN-{name}" for name in (*OF_THE_CONTRACT, *OF_EVERY_CONTRACT)}

    assert expected == {clause.id for clause in CATALOGUE.clauses}


def test_every_id_is_used_once() -> None:
    ids = [clause.id for clause in CATALOGUE.clauses]

    assert len(set(ids)) == len(ids)


def test_the_statements_of_a_revision_never_change() -> None:
    assert FROZEN[REVISION] == CATALOGUE.digest


@pytest.mark.parametrize("clause", CATALOGUE.clauses, ids=lambda clause: clause.id)
def test_a_clause_is_one_sentence_under_a_well_formed_id(clause: Clause) -> None:
    assert re.fullmatch(r"[A-Z]+-[A-Z]+-[0-9]+", clause.id)
    assert clause.id == f"{clause.contract}-{clause.topic}-{clause.id.rpartition('-')[2]}"
    assert len(clause.statement.split()) >= 4
    assert not clause.statement.endswith(".")
    assert clause.source.startswith("contract, section ")


def test_no_two_clauses_say_the_same() -> None:
    statements = [clause.statement for clause in CATALOGUE.clauses]

    assert len(set(statements)) == len(statements)


@pytest.mark.parametrize("prefix", CONTRACT_PREFIXES.values())
def test_the_clauses_of_a_contract_are_those_with_its_prefix(prefix: str) -> None:
    (name,) = (name for name, value in CONTRACT_PREFIXES.items() if value == prefix)
    expected = [clause for clause in CATALOGUE.clauses if clause.id.startswith(f"{prefix}-")]

    assert expected == list(CATALOGUE.of(name))


def test_a_clause_is_found_by_its_id_and_a_stranger_is_not() -> None:
    assert CATALOGUE.get("RUN-CAS-1").id == "RUN-CAS-1"
    with pytest.raises(KeyError, match="no clause 'RUN-CAS-7' in revision 2"):
        CATALOGUE.get("RUN-CAS-7")


@pytest.mark.parametrize(
    "change",
    [
        {"id": "RUN-OTHER-1"},
        {"statement": "another statement"},
        {"needs": (Need.DAMAGE, Need.PURGE)},
        {"strength": Strength.SHOULD},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_digest_changes_with_every_part_of_a_clause(change: dict[str, object]) -> None:
    first, *others = CATALOGUE.clauses

    assert digest_of([replace(first, **change), *others]) != CATALOGUE.digest  # type: ignore[arg-type]  # the values fit their fields


def test_the_digest_depends_on_the_order_of_clauses() -> None:
    assert digest_of(reversed(CATALOGUE.clauses)) != CATALOGUE.digest
