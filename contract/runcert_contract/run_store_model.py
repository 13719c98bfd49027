"""The executable model of the RunStore contract: which outcomes it permits, in which state.

The model is pure.  ``step(state, operation, outcome)`` gives the states in which a store may be after it gave that
outcome; none at all means that the contract does not permit it.  Often several outcomes are permitted (an identifier
that is not portable may be kept or refused), therefore a judge keeps a *set* of states.  An operation whose outcome is
unknown stays pending: it may take effect at any later moment, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from runcert_contract.canonical import canonical
from runcert_contract.claims import Capability, Claims, Fault, Kept, Limits, Volatile
from runcert_contract.errors import AlreadyExists, InvalidIdentifier, InvalidRecord, StoreError, TooLarge
from runcert_contract.identifiers import DEFAULT_LENGTH, is_portable
from runcert_contract.json_values import holds_large_integer
from runcert_contract.operations import Operation, Outcome, Raised, Returned, Unknown, is_definite
from runcert_contract.run_store import (
    LEGAL_MOVES,
    Listing,
    Run,
    check_identifier,
    check_new_run,
    check_update,
    run_as_stored,
)

__all__ = ["AllClosed", "CompareAndSet", "Create", "Find", "FindResumable", "Permission", "RunStoreModel", "State"]


# -- operations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create(Operation):
    """``create(run)``."""

    method: ClassVar[str] = "create"
    run: Run


@dataclass(frozen=True, slots=True)
class Find(Operation):
    """``find(run_id)``."""

    method: ClassVar[str] = "find"
    run_id: str


@dataclass(frozen=True, slots=True)
class CompareAndSet(Operation):
    """``compare_and_set(expected, updated)``."""

    method: ClassVar[str] = "compare_and_set"
    expected: Run
    updated: Run


@dataclass(frozen=True, slots=True)
class FindResumable(Operation):
    """``find_resumable(tenant_id)``."""

    method: ClassVar[str] = "find_resumable"
    tenant_id: str


@dataclass(frozen=True, slots=True)
class AllClosed(Operation):
    """The fault ``close``: every handle of the namespace was closed, then one was opened again."""


# -- state -----------------------------------------------------------------------------------------------------------


class _ByCanonical:
    """Something that is compared and hashed by the canonical form of what it holds."""

    __slots__ = ("canonical",)

    def __init__(self, text: str) -> None:
        self.canonical = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByCanonical) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)


class Stored(_ByCanonical):
    """A run as it lies in the store."""

    __slots__ = ("run",)

    def __init__(self, run: Run, text: str) -> None:
        super().__init__(text)
        self.run = run


class Pending(_ByCanonical):
    """A write whose outcome is unknown."""

    __slots__ = ("operation",)

    def __init__(self, operation: Operation) -> None:
        super().__init__(canonical(operation))
        self.operation = operation


@dataclass(frozen=True, slots=True)
class State:
    """One state in which the store may be.

    Attributes:
        records: what is stored.
        pending: writes that may still take effect.
        rulings: for each field and string that is not a portable identifier, whether the store keeps it (ID-6).
    """

    records: frozenset[tuple[str, Stored]] = frozenset()
    pending: frozenset[Pending] = frozenset()
    rulings: frozenset[tuple[str, str, bool]] = frozenset()

    def get(self, run_id: str) -> Stored | None:
        """Give what is stored under ``run_id``."""
        return next((stored for key, stored in self.records if key == run_id), None)

    def with_record(self, run_id: str, stored: Stored) -> State:
        """Give the state after ``stored`` was written under ``run_id``."""
        others = frozenset(entry for entry in self.records if entry[0] != run_id)
        return replace(self, records=others | {(run_id, stored)})

    def with_rulings(self, rulings: Iterable[tuple[str, str, bool]]) -> State:
        """Give the state after more is known of which identifiers are kept."""
        return replace(self, rulings=self.rulings.union(rulings))


@dataclass(frozen=True, slots=True)
class Permission:
    """One outcome that the contract permits.

    Attributes:
        text: the outcome in words, for messages.
        admits: says whether an outcome is this one.
        after: the state that follows.
        run: the run that the outcome returns, where it returns one.
    """

    text: str
    admits: Callable[[Outcome], bool]
    after: State
    run: Run | None = None


# -- model -----------------------------------------------------------------------------------------------------------


class RunStoreModel:
    """The contract as a state machine.

    Args:
        claims: what the store claims; limits, capabilities and the form of numbers change what is permitted.
    """

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self._must_refuse = replace(claims, limits=_surely_refused(claims.limits))
        self._sharp = self._must_refuse == claims  # nothing lies between what has to be kept and what has to be refused

    @property
    def initial(self) -> frozenset[State]:
        """The states of a store that was just made: one, empty."""
        return frozenset({State()})

    def stored(self, run: Run) -> Stored:
        """Give ``run`` as this store keeps it."""
        kept = run_as_stored(run, self.claims.limits)
        return Stored(kept, canonical(kept, self.claims.numbers))

    def step(self, state: State, operation: Operation, outcome: Outcome) -> frozenset[State]:
        """Give the states that may follow when ``operation`` in ``state`` had ``outcome``; empty: not permitted."""
        following: set[State] = set()
        for settled in self.settled(state):
            if isinstance(outcome, Unknown) or (isinstance(outcome, Raised) and _indefinite(outcome.error)):
                following.add(replace(settled, pending=settled.pending | {Pending(operation)}))
            elif isinstance(outcome, Raised) and isinstance(outcome.error, StoreError) and outcome.error.retryable:
                following.add(settled)
            else:
                following.update(p.after for p in self.permissions(settled, operation) if p.admits(outcome))
        return frozenset(following)

    def permitted(self, state: State, operation: Operation) -> tuple[str, ...]:
        """Give the outcomes that the contract permits, in words."""
        texts = {p.text: None for settled in self.settled(state) for p in self.permissions(settled, operation)}
        return tuple(texts)

    def settled(self, state: State) -> frozenset[State]:
        """Give ``state`` and every state that pending writes may have turned it into by now."""
        found = {state}
        waiting = [state]
        while waiting:
            current = waiting.pop()
            for pending in current.pending:
                without = replace(current, pending=current.pending - {pending})
                for after in self._effects(without, pending.operation):
                    if after not in found:
                        found.add(after)
                        waiting.append(after)
        return frozenset(found)

    def expected_runs(self, state: State, operation: Operation) -> tuple[Run, ...]:
        """Give the runs that the contract permits ``operation`` to return, for messages that compare field by field."""
        return tuple(
            p.run for settled in self.settled(state) for p in self.permissions(settled, operation) if p.run is not None
        )

    def permissions(self, state: State, operation: Operation) -> tuple[Permission, ...]:
        """Give every outcome that is permitted in ``state``, pending writes left aside."""
        if isinstance(operation, Create):
            return self._create(state, operation)
        if isinstance(operation, Find):
            return self._find(state, operation)
        if isinstance(operation, CompareAndSet):
            return self._compare_and_set(state, operation)
        if isinstance(operation, FindResumable):
            return self._find_resumable(state, operation)
        if isinstance(operation, AllClosed):
            return self._all_closed(state)
        raise TypeError(f"the RunStore contract has no operation {type(operation).__name__}")

    def _effects(self, state: State, operation: Operation) -> list[State]:
        changed = [p.after for p in self.permissions(state, operation) if p.after.records != state.records]
        return [state, *changed]

    # Each of these reads: what the arguments alone rule out, then what the stored state says.

    def _create(self, state: State, operation: Create) -> tuple[Permission, ...]:
        run = operation.run
        required = _error_of(lambda: check_new_run(run, self._must_refuse))
        if required is not None:
            return self._refused_by_arguments(required, state, run)
        permissions = self._may_refuse(
            state, _identifiers(run), self._optional_error(lambda: check_new_run(run, self.claims)), run
        )
        known = self._kept(state, _identifiers(run))
        if known is None:
            return permissions
        if state.get(run.run_id) is not None:
            return (*permissions, self._refused(AlreadyExists, known))
        stored = self.stored(run)
        after = known.with_record(run.run_id, stored)
        return (
            *permissions,
            Permission(f"the run as stored, {_brief(stored.run)}", self._returns_run(stored), after, stored.run),
        )

    def _find(self, state: State, operation: Find) -> tuple[Permission, ...]:
        names = {"run_id": operation.run_id}
        required = _error_of(lambda: check_identifier(operation.run_id, "run_id", self._must_refuse))
        if required is not None:
            return (self._refused(required, state),)
        permissions = self._may_refuse(state, names)
        known = self._kept(state, names)
        if known is None:
            return permissions
        stored = state.get(operation.run_id)
        if stored is None:
            return (*permissions, Permission("None", _returns_none, known))
        return (*permissions, Permission(f"the stored run, {_brief(stored.run)}", self._returns_run(stored), known, stored.run))

    def _compare_and_set(self, state: State, operation: CompareAndSet) -> tuple[Permission, ...]:
        expected, updated = operation.expected, operation.updated
        required = _error_of(lambda: check_update(expected, updated, self._must_refuse))
        if required is not None:
            return self._refused_by_arguments(required, state, expected, updated)
        names = {**_identifiers(expected), **_identifiers(updated)}
        optional = self._optional_error(lambda: check_update(expected, updated, self.claims))
        permissions = self._may_refuse(state, names, optional, updated)
        if _illegal(expected, updated):
            permissions += (self._refused(InvalidRecord, state),)
        known = self._kept(state, names)
        if known is None:
            return permissions
        return permissions + self._update_of_stored(known, state.get(expected.run_id), expected, updated)

    def _update_of_stored(self, state: State, stored: Stored | None, expected: Run, updated: Run) -> tuple[Permission, ...]:
        refused = Permission("False", _returns(False), state)
        if stored is None or stored.run.version != expected.version:
            return (refused,)
        after = state.with_record(updated.run_id, self.stored(updated))
        accepted = Permission("True", _returns(True), after)
        if not stored.run.status.terminal:
            return (accepted, self._refused(InvalidRecord, state)) if _illegal(stored.run, updated) else (accepted,)
        illegal = self._refused(InvalidRecord, state)
        if not self.claims.claims(Capability.GUARDS_TERMINAL):
            return (replace(accepted, text=_UNGUARDED), illegal)
        if _changes_outcome(stored.run, updated):
            return (refused, illegal)
        return (accepted, refused, illegal)

    def _find_resumable(self, state: State, operation: FindResumable) -> tuple[Permission, ...]:
        names = {"tenant_id": operation.tenant_id}
        required = _error_of(lambda: check_identifier(operation.tenant_id, "tenant_id", self._must_refuse))
        if required is not None:
            return (self._refused(required, state),)
        permissions = self._may_refuse(state, names)
        known = self._kept(state, names)
        if known is None:
            return permissions
        wanted = [
            stored
            for _, stored in state.records
            if stored.run.tenant_id == operation.tenant_id and not stored.run.status.terminal
        ]
        ids = ", ".join(sorted(repr(stored.run.run_id) for stored in wanted)) or "no run"
        text = f"a complete Listing of {ids}"
        return (*permissions, Permission(text, self._lists(wanted), known))

    def _all_closed(self, state: State) -> tuple[Permission, ...]:
        promise = self.claims.promise(Fault.CLOSE)
        kept = Permission("everything kept", _anything, replace(state, pending=frozenset()))
        if isinstance(promise, Kept):
            return (kept,)
        if isinstance(promise, Volatile):
            gone = Permission("everything gone", _anything, State(rulings=state.rulings))
            return (kept, gone)
        raise ValueError(f"this model cannot tell what {promise.text} permits after close")

    # Identifiers that are not portable: kept or refused, the same for one field and string everywhere (ID-6).

    def _refused_by_arguments(self, required: type[StoreError], state: State, *runs: object) -> tuple[Permission, ...]:
        records = [run for run in runs if isinstance(run, Run)]
        if required is InvalidIdentifier or len(records) < len(runs):
            return (self._refused(required, state),)
        odd = {pair for run in records for pair in self._odd(_identifiers(run))}
        if any((f, name, False) in state.rulings for f, name in odd):
            return (self._refused(InvalidIdentifier, state),)
        undecided = any((f, name, True) not in state.rulings for f, name in odd)
        earlier = (self._refused(InvalidIdentifier, state),) if undecided else ()
        return (*earlier, self._refused(required, state))

    def _may_refuse(
        self, state: State, names: Mapping[str, str], optional: type[StoreError] | None = None, run: Run | None = None
    ) -> tuple[Permission, ...]:
        open_names = [(f, name) for f, name in self._odd(names) if (f, name, True) not in state.rulings]
        permissions: tuple[Permission, ...] = ()
        if open_names:
            ruled = state.with_rulings({(f, name, False) for f, name in open_names}) if len(open_names) == 1 else state
            permissions += (self._refused(InvalidIdentifier, ruled),)
        if optional is TooLarge:
            permissions += (self._refused(TooLarge, state),)
        if run is not None and _holds_large_integer(run):
            permissions += (self._refused(InvalidRecord, state), self._refused(TooLarge, state))
        return permissions

    def _optional_error(self, check: Callable[[], None]) -> type[StoreError] | None:
        """Give the error of a check that only what a store need not keep can fail; what it has to refuse is refused already."""
        return None if self._sharp else _error_of(check)

    def _odd(self, names: Mapping[str, str]) -> list[tuple[str, str]]:
        lengths = self.claims.limits.identifier_length
        return [(f, name) for f, name in names.items() if not is_portable(name, lengths(f) or DEFAULT_LENGTH)]

    def _kept(self, state: State, names: Mapping[str, str]) -> State | None:
        odd = self._odd(names)
        if any((f, name, False) in state.rulings for f, name in odd):
            return None
        return state.with_rulings({(f, name, True) for f, name in odd}) if odd else state

    # What an outcome has to look like.

    def _refused(self, error: type[StoreError], after: State) -> Permission:
        return Permission(
            error.__name__, lambda outcome: isinstance(outcome, Raised) and isinstance(outcome.error, error), after
        )

    def _returns_run(self, stored: Stored) -> Callable[[Outcome], bool]:
        def admits(outcome: Outcome) -> bool:
            if not isinstance(outcome, Returned) or not isinstance(outcome.value, Run):
                return False
            return canonical(outcome.value, self.claims.numbers) == stored.canonical

        return admits

    def _lists(self, wanted: list[Stored]) -> Callable[[Outcome], bool]:
        def admits(outcome: Outcome) -> bool:
            if not isinstance(outcome, Returned) or not isinstance(outcome.value, Listing):
                return False
            listing = outcome.value
            found = sorted(canonical(item, self.claims.numbers) for item in listing.items)
            return found == sorted(stored.canonical for stored in wanted) and not listing.corrupt and listing.complete is True

        return admits


_UNGUARDED = "True (a store that refuses to change ended runs claims the capability guards-terminal)"


def _surely_refused(limits: Limits) -> Limits:
    return replace(limits, accepts_up_to=limits.refuses_above)


def _error_of(check: Callable[[], None]) -> type[StoreError] | None:
    try:
        check()
    except StoreError as error:
        return type(error)
    return None


def _identifiers(run: Run) -> dict[str, str]:
    names = ("run_id", "tenant_id", "action_id", "proposal_id", "idempotency_key")
    optional = ("owner", "approval_id", "attempt_token", "external_operation_id")
    found = {name: getattr(run, name) for name in names}
    found.update({name: getattr(run, name) for name in optional if getattr(run, name) is not None})
    return found


def _holds_large_integer(run: Run) -> bool:
    output = None if run.result is None else run.result.output
    values = (run.input, run.context, run.external_operation_metadata, output, run.version, run.recovery_count)
    return any(holds_large_integer(value) for value in values)


def _illegal(before: Run, updated: Run) -> bool:
    """Say whether a store may call the move illegal; a terminal run has no legal move at all."""
    if before.status is updated.status:
        return before.status.terminal
    return updated.status not in LEGAL_MOVES[before.status]


def _changes_outcome(before: Run, updated: Run) -> bool:
    return (before.status, canonical(before.result)) != (updated.status, canonical(updated.result))


def _indefinite(error: BaseException) -> bool:
    return isinstance(error, StoreError) and not error.definite


def _returns(value: bool) -> Callable[[Outcome], bool]:
    return lambda outcome: isinstance(outcome, Returned) and outcome.value is value


def _returns_none(outcome: Outcome) -> bool:
    return isinstance(outcome, Returned) and outcome.value is None


def _anything(outcome: Outcome) -> bool:
    return is_definite(outcome)


def _brief(run: Run) -> str:
    defaults = {entry.name: entry.default for entry in fields(run)}
    shown = {"run_id": run.run_id, "version": run.version, "status": run.status.value}
    if run.stage != defaults["stage"]:
        shown["stage"] = run.stage if len(run.stage) <= 60 else f"{run.stage[:60]}... ({len(run.stage)} characters)"
    return (
        "Run("
        + ", ".join(f"{name}={value!r}" if name != "status" else f"status={value}" for name, value in shown.items())
        + ")"
    )
