"""All clauses of this revision: each contract's own, and the topics of section 2 applied to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runcert_contract import run_store
from runcert_contract.claims import Capability, Fault
from runcert_contract.clauses import Clause, Need

__all__ = ["CATALOGUE", "CONTRACT_PREFIXES", "REVISION", "TESTABLE_CAPABILITIES", "TESTABLE_FAULTS", "Catalogue", "digest_of"]

REVISION = 2
"""Counts up whenever a clause is added or sharpened; a certificate names it together with the digest."""

CONTRACT_PREFIXES: Mapping[str, str] = {"run-store": "RUN"}
"""The contracts of this revision: their name on the command line, and the prefix of their clause ids."""

TESTABLE_FAULTS = frozenset({Fault.CLOSE})
"""The faults that this revision can test; a promise for another one is a usage error."""

TESTABLE_CAPABILITIES = frozenset(
    {Capability.ENUMERATES, Capability.GUARDS_TERMINAL, Capability.VERSIONED_SCHEMA, Capability.BOUNDS_SILENCE}
)
"""The capabilities that this revision can test; claiming another one is a usage error."""

_TOPICS: tuple[tuple[str, str, tuple[Need, ...]], ...] = (
    ("INPUT-1", "values outside the domain are refused, typed, before storage is touched, whatever their kind", ()),
    ("INPUT-2", "refusals come in the order identifier, record, size, state", ()),
    (
        "INPUT-3",
        "a value over a declared limit is refused before storage is touched, after which the record can still be completed with a smaller value",
        (Need.LIMITS,),
    ),
    ("ERROR-1", "no raw driver, OS, JSON or recursion error leaves the store", ()),
    (
        "ERROR-2",
        "no message, repr, log line or traceback shows a secret (credentials handed out by the kit, attempt tokens)",
        (),
    ),
    ("CLOSED-1", "a closed handle raises Closed and does nothing else", ()),
    ("FIDELITY-1", "JSON edge values come back equal through a fresh handle", ()),
    ("FIDELITY-2", "text comes back equal through a fresh handle: non-BMP, U+0000, text that looks escaped", ()),
    ("FIDELITY-3", "numbers come back equal in value and type through a fresh handle", ()),
    ("FIDELITY-4", "instants come back as the same instant, aware, through a fresh handle", ()),
    ("FIDELITY-5", "empty and null stay apart through a fresh handle", ()),
    ("FIDELITY-6", "sizes and depths up to the declared limits come back equal through a fresh handle", ()),
    (
        "FIDELITY-7",
        "what a write returns equals what a find then returns; the store sets no field by itself (updated_at included)",
        (),
    ),
    ("ID-1", "ids that differ in case, accents, width, Unicode form or surrounding space are different", ()),
    ("ID-2", "ids that differ only after character 64, 128, 255 or 1024 are different", ()),
    ("ID-3", "% _ * ? [ \\ and separators in an id are literal", ()),
    ("ID-4", 'composite keys are injective: ("a:b", "c") is not ("a", "b:c"), empty parts included', (Need.ENUMERATES,)),
    ("ID-5", "an id that is a prefix of another is another id", ()),
    ("ID-6", "an id is accepted or refused alike by every method", ()),
    (
        "PATH-1",
        "ids that look like paths (../x, absolute, drive, UNC, NUL, colon, symlinks) change nothing outside the root",
        (),
    ),
    ("PATH-2", "a refused id that looks like a path changes nothing inside the root", ()),
    ("ALIAS-1", "no mutable state is shared, at any depth, with what is passed in", ()),
    ("ALIAS-2", "no mutable state is shared, at any depth, with what is handed out", ()),
    ("ALIAS-3", "no mutable state is shared, at any depth, between two reads", ()),
    ("ALIAS-4", "a rejected write leaves nothing behind", ()),
    (
        "NAMESPACE-1",
        "two namespaces on one backend never see each other's records, indexes, pointers, locks, counters; disposing of `ab` leaves `abc`",
        (Need.OWN_NAMESPACES,),
    ),
    ("USABLE-1", "after any typed error the same handle works once the backend does", ()),
    ("USABLE-2", "a find right after a refusal sees the winner", ()),
    (
        "CONTENTION-1",
        "under contention every outcome is success, the contract's own refusal, or Contended; never a raw locked, deadlock or serialization failure",
        (Need.CONCURRENCY,),
    ),
    (
        "CONTENTION-2",
        "a caller that is alone never gets Contended; where the callers of a burst repeat on Contended, exactly one wins",
        (Need.CONCURRENCY,),
    ),
    ("BOUND-1", "every call ends within the declared wait with a live backend, also under contention; a hang is a fail", ()),
    (
        "BOUND-2",
        "every call ends within the declared wait with a backend that accepts and stays silent; a hang is a fail",
        (Need.BOUNDS_SILENCE, Need.WIRE),
    ),
    (
        "ABSENT-1",
        "None, False and empty answers are statements about stored state; an outage, time-out, missing table or denied permission never yields them",
        (Need.OUTAGE,),
    ),
    (
        "CORRUPT-1",
        "an undecodable, cut or empty stored record is CorruptRecord for find, never absent, never defaults; create on its id raises AlreadyExists or CorruptRecord; an update raises CorruptRecord or succeeds by its version",
        (Need.DAMAGE,),
    ),
    ("LIST-1", "a listing holds every record once, at 0, 1, page, page+1, 2*page+1 and 10,000 records", (Need.ENUMERATES,)),
    ("LIST-3", "complete says truly that each record is in items or corrupt", (Need.ENUMERATES,)),
    (
        "LIST-4",
        "one undecodable record is named (in every tenant's answer, if its tenant cannot be read) and hides nothing else",
        (Need.ENUMERATES, Need.DAMAGE),
    ),
    ("DURABLE-1", "acknowledged writes survive each claimed fault as promised", (Need.CLOSE_PROMISE,)),
    ("DURABLE-3", "after each claimed fault nothing is invented, nothing older comes back", (Need.CLOSE_PROMISE,)),
    ("DURABLE-4", "after each claimed fault it still holds after recover, write again, reopen, read", (Need.CLOSE_PROMISE,)),
    (
        "EVICT-1",
        "no TTL, eviction or retention of the backend removes an authoritative record; under pressure writes are refused, typed; a backend set to evict is refused at opening",
        (Need.EVICTING_SERVER,),
    ),
    (
        "SCHEMA-1",
        "opening on a missing, older or newer schema raises Misconfigured and creates or alters nothing",
        (Need.VERSIONED_SCHEMA, Need.SCHEMA, Need.OWN_NAMESPACES),
    ),
    (
        "SCHEMA-2",
        "a fresh and a migrated schema pass the same clauses and old records still come back",
        (Need.VERSIONED_SCHEMA, Need.SCHEMA, Need.OWN_NAMESPACES),
    ),
    ("RESIDUE-1", "refused and failed operations leave no rows, files, markers, locks", (Need.INVENTORY,)),
    (
        "RESIDUE-2",
        "writers never share a temporary name, temporaries are never listed, and after a crash they are the only thing left over",
        (Need.INVENTORY, Need.WIRE),
    ),
    (
        "SURFACE-1",
        "no public callable outside the claimed contracts replaces a stored record (update, save, upsert, force_*)",
        (),
    ),
    ("PARITY-1", "sync and async form of one store give the same outcomes", (Need.PARITY,)),
    (
        "CANCEL-1",
        "a call cancelled or timed out at any await is indefinite: the handle stays usable, no later call gets its reply, no lock, lease or pool slot stays held",
        (Need.ASYNCHRONOUS,),
    ),
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The clauses of one revision."""

    revision: int
    clauses: tuple[Clause, ...]

    @property
    def digest(self) -> str:
        """A digest of every id, statement, need and strength, so that two catalogues can be told apart."""
        return digest_of(self.clauses)

    def get(self, clause_id: str) -> Clause:
        """Give the clause with this id.

        Raises:
            KeyError: there is none in this revision.
        """
        return next((clause for clause in self.clauses if clause.id == clause_id), None) or _unknown(clause_id)

    def of(self, contract: str) -> tuple[Clause, ...]:
        """Give the clauses of one contract, by its name on the command line."""
        prefix = CONTRACT_PREFIXES[contract]
        return tuple(clause for clause in self.clauses if clause.contract == prefix)


def _unknown(clause_id: str) -> Clause:
    raise KeyError(f"no clause {clause_id!r} in revision {REVISION}")


def digest_of(clauses: Iterable[Clause]) -> str:
    """Give the digest of a list of clauses: SHA-256 of their canonical JSON, as 64 hexadecimal digits."""
    rows = [[c.id, c.statement, [need.name for need in c.needs], c.strength.value] for c in clauses]
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


def _applied(prefix: str) -> tuple[Clause, ...]:
    return tuple(
        Clause(f"{prefix}-{name}", statement, needs, source="contract, section 2") for name, statement, needs in _TOPICS
    )


CATALOGUE = Catalogue(REVISION, (*run_store.CLAUSES, *_applied("RUN")))
"""The catalogue of this revision."""
