"""What a clause is, when it applies, and what can be said of it.

A clause is one numbered invariant.  Its id is stable for ever.  The catalogue (:mod:`runcert_contract.catalogue`) is the
list of all clauses of this revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from runcert_contract.claims import Capability, Claims, Fault, Namespaces, Stance, Undefined

__all__ = ["Applies", "Clause", "Need", "Strength", "Verdict"]


class Strength(Enum):
    """A failed SHOULD is shown and does not block; a failed MUST does."""

    MUST = "MUST"
    SHOULD = "SHOULD"


class Verdict(Enum):
    """What can be said of one clause for one store; only PASS and UNSUPPORTED count towards a certificate."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    NOT_CLAIMED = "not-claimed"
    WAIVED = "waived"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not-run"
    ADAPTER_ERROR = "adapter-error"
    KIT_ERROR = "kit-error"

    @property
    def counts(self) -> bool:
        """True when the verdict counts towards a certificate."""
        return self in (Verdict.PASS, Verdict.UNSUPPORTED)


class Need(Enum):
    """What has to be true of a store for a clause to apply to it; the value is the reason printed when it is not."""

    ENUMERATES = "capability enumerates"
    GUARDS_TERMINAL = "capability guards-terminal"
    ASYNCHRONOUS = "asynchronous store"
    OWN_NAMESPACES = "namespaces of its own"
    CLOSE_PROMISE = "durability promise for close"
    PARITY = "option parity_with"
    DAMAGE = "hook damage"
    INVENTORY = "hook inventory"
    PURGE = "hook purge"
    LIMITS = "declared limit"
    CONCURRENCY = "second client in scope"
    VERSIONED_SCHEMA = "capability versioned-schema"
    BOUNDS_SILENCE = "capability bounds-silence"
    SCHEMA = "hook schema"
    WIRE = "connection through lab.route"
    OUTAGE = "connection through lab.route or hook outage"
    EVICTING_SERVER = "server of the kit that can be set to evict"


_CAPABILITIES = {
    Need.ENUMERATES: Capability.ENUMERATES,
    Need.GUARDS_TERMINAL: Capability.GUARDS_TERMINAL,
    Need.VERSIONED_SCHEMA: Capability.VERSIONED_SCHEMA,
    Need.BOUNDS_SILENCE: Capability.BOUNDS_SILENCE,
}


@dataclass(frozen=True, slots=True)
class Applies:
    """Whether a clause applies to a store.

    Attributes:
        verdict: None where the clause applies; otherwise what is said of it without running anything
            (NOT_CLAIMED, or UNSUPPORTED where the absence still has to be proved).
        reason: why, in a few words.
    """

    verdict: Verdict | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """One invariant of one contract.

    Attributes:
        id: ``CONTRACT-TOPIC-n``, never changed and never reused.
        statement: the invariant in one sentence.
        needs: what must be true of a store for the clause to apply.
        strength: MUST unless said otherwise.
        source: the section of the contract, or the document, that the rule comes from.
    """

    id: str
    statement: str
    needs: tuple[Need, ...] = ()
    strength: Strength = Strength.MUST
    source: str = "contract, section 3"

    @property
    def contract(self) -> str:
        """The prefix of the contract, for instance ``RUN``."""
        return self.id.partition("-")[0]

    @property
    def topic(self) -> str:
        """The topic, for instance ``CAS``."""
        return self.id.split("-")[1]

    def applies_to(self, claims: Claims, hooks: frozenset[str], options: frozenset[str]) -> Applies:
        """Say whether this clause applies to a store, from its claims and from what its adapter gives.

        Args:
            claims: the claims of the store.
            hooks: the names of the hooks that the adapter gives.
            options: the names of further options that the adapter sets (``parity_with``), and of what the kit was seen to reach
                of the store (``wire``: its connections; ``evicting-server``: a server that the kit can start as one that evicts).
        """
        for need in self.needs:
            answer = _answer(need, claims, hooks, options)
            if answer.verdict is not None:
                return answer
        return Applies(None)


def _answer(need: Need, claims: Claims, hooks: frozenset[str], options: frozenset[str]) -> Applies:
    if need in _CAPABILITIES:
        return _answer_for_capability(_CAPABILITIES[need], claims)
    given: Mapping[Need, bool] = {
        Need.ASYNCHRONOUS: claims.asynchronous,
        Need.OWN_NAMESPACES: claims.namespaces is Namespaces.OWN,
        Need.CLOSE_PROMISE: not isinstance(claims.promise(Fault.CLOSE), Undefined),
        Need.PARITY: "parity_with" in options,
        Need.DAMAGE: "damage" in hooks,
        Need.INVENTORY: "inventory" in hooks,
        Need.PURGE: "purge" in hooks,
        Need.LIMITS: _declares_a_limit(claims),
        Need.CONCURRENCY: claims.admits_several_clients,
        Need.SCHEMA: "schema" in hooks,
        Need.WIRE: "wire" in options,
        Need.OUTAGE: "wire" in options or "outage" in hooks,
        Need.EVICTING_SERVER: "evicting-server" in options,
    }
    if given[need]:
        return Applies(None)
    reason = f"no {need.value}" if need is not Need.OWN_NAMESPACES else "namespaces=shared"
    return Applies(Verdict.NOT_CLAIMED, reason)


def _answer_for_capability(capability: Capability, claims: Claims) -> Applies:
    stance = claims.stance(capability)
    if stance is Stance.CLAIMED:
        return Applies(None)
    if stance is Stance.ABSENT:
        return Applies(Verdict.UNSUPPORTED, f"capability {capability.value} is declared absent")
    return Applies(Verdict.NOT_CLAIMED, f"capability {capability.value} not claimed")


def _declares_a_limit(claims: Claims) -> bool:
    limits = claims.limits
    return any(limit is not None for limit in (limits.identifier, limits.text, limits.depth, limits.refuses_above))
