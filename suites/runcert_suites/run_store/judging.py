"""The model as a judge: every call is made through it, and an outcome that the contract does not permit is a violation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from runcert.cases import Case, Namespace
from runcert.checks import Violation
from runcert.handles import Handle, Step
from runcert.wording import difference, operation_in_words, outcome_in_words, value_in_words
from runcert_contract import (
    AllClosed,
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    Hung,
    Listing,
    Namespaces,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    RunStatus,
    RunStoreModel,
    State,
    StoreError,
    Unknown,
)
from runcert_suites.run_store.records import a_run, moved, path_to

__all__ = ["Judge"]


class Judge:
    """Judges a sequence of calls, on however many handles, by the model of the contract.

    Args:
        case: the check that the calls belong to.
        clause: the clause that a violation belongs to; by default the check's own.
    """

    def __init__(self, case: Case, clause: str | None = None) -> None:
        self.case = case
        self.clause = clause
        self.model = RunStoreModel(case.claims)
        self.states: frozenset[State] = self.model.initial
        self._away = False

    @contextmanager
    def backend_away(self) -> Iterator[None]:
        """Permit errors that ask for another try, or leave the outcome open, for the length of the body: the backend is away or full."""
        self._away = True
        try:
            yield
        finally:
            self._away = False

    def all_there(self, handle: Handle, runs: Sequence[Run], when: str) -> None:
        """Look for runs that the model knows, one by one and in the listings of their tenants.

        Args:
            handle: who looks.
            runs: what is looked for.
            when: what happened before, for the message.

        Raises:
            Violation: one is missing or changed.
        """
        try:
            for run in runs:
                self.find(handle, run.run_id)
            if self.case.claims.claims(Capability.ENUMERATES):
                for tenant in dict.fromkeys(run.tenant_id for run in runs):
                    self.find_resumable(handle, tenant)
        except Violation as violation:
            raise Violation(f"{violation.expected} {when}", violation.found, violation.clause) from None

    def call(self, handle: Handle, operation: Operation) -> Outcome:
        """Make a call and judge its outcome.

        Raises:
            Violation: the contract does not permit it.
        """
        outcome = handle.call(operation)
        self.judge(operation, outcome)
        return outcome

    def judge(self, operation: Operation, outcome: Outcome) -> None:
        """Judge the outcome of a call that was made already.

        Raises:
            Violation: the contract does not permit it.
        """
        following = self._following(operation, outcome)
        if not following:
            raise self._violation(operation, outcome)
        self.states = following

    def _following(self, operation: Operation, outcome: Outcome) -> frozenset[State]:
        if isinstance(outcome, Hung) or (isinstance(outcome, Raised) and not self._away and _excuse(outcome.error)):
            return frozenset()
        return frozenset().union(*(self.model.step(state, operation, outcome) for state in self.states))

    def _violation(self, operation: Operation, outcome: Outcome) -> Violation:
        call = operation_in_words(operation)
        clause = "RUN-BOUND-1" if isinstance(outcome, Hung) else self.clause
        if isinstance(outcome, Returned) and isinstance(outcome.value, Listing):
            item = self._differing_item(outcome.value)
            if item is not None:
                return Violation(f"{call} to give {item[0]}", item[1], clause)
        if isinstance(outcome, Returned) and isinstance(outcome.value, Run):
            for run in self._expected_runs(operation):
                fields = difference(run, outcome.value, self.case.claims.numbers)
                if fields is not None:
                    return Violation(f"{call} to give {fields[0]}", fields[1], clause)
        return Violation(f"{call} to give {self.permitted(operation)}", outcome_in_words(outcome), clause)

    def _differing_item(self, listing: Listing) -> tuple[str, str] | None:
        """Give in words how an item differs from the stored run of its id; None where the ids are not even the right ones."""
        stored = {run_id: entry.run for state in self.states for run_id, entry in state.records}
        items: Sequence[object] = listing.items
        for item in items:
            if isinstance(item, Run) and item.run_id in stored and not stored[item.run_id].status.terminal:
                fields = difference(stored[item.run_id], item, self.case.claims.numbers)
                if fields is not None:
                    return f"run {item.run_id!r} with {fields[0]}", f"it with {fields[1]}"
        return None

    def _expected_runs(self, operation: Operation) -> Iterable[Run]:
        return (run for state in self.states for run in self.model.expected_runs(state, operation))

    def permitted(self, operation: Operation) -> str:
        """Give what the contract permits now, in words."""
        texts = {text: None for state in self.states for text in self.model.permitted(state, operation)}
        return " or ".join(texts)

    # -- shorter ways to write the calls

    def create(self, handle: Handle, run: Run) -> Outcome:
        """Call ``create`` and judge it."""
        return self.call(handle, Create(run))

    def find(self, handle: Handle, run_id: str) -> Outcome:
        """Call ``find`` and judge it."""
        return self.call(handle, Find(run_id))

    def compare_and_set(self, handle: Handle, expected: Run, updated: Run) -> Outcome:
        """Call ``compare_and_set`` and judge it."""
        return self.call(handle, CompareAndSet(expected, updated))

    def find_resumable(self, handle: Handle, tenant_id: str) -> Outcome:
        """Call ``find_resumable`` and judge it; the judge has to know every run of that tenant.

        Where namespaces are shared, what other checks left (damaged records, runs of the tenant "") is not judged.
        """
        operation = FindResumable(tenant_id)
        if self.case.claims.namespaces is not Namespaces.SHARED:
            return self.call(handle, operation)
        outcome = handle.call(operation)
        self.judge(operation, self._without_strangers(outcome, tenant_id))
        return outcome

    def _without_strangers(self, outcome: Outcome, tenant_id: str) -> Outcome:
        if not isinstance(outcome, Returned) or not isinstance(outcome.value, Listing):
            return outcome
        listing = outcome.value
        known = {run_id for state in self.states for run_id, _ in state.records}
        items = [run for run in listing.items if tenant_id or getattr(run, "run_id", None) in known]
        return Returned(Listing(items, [name for name in listing.corrupt if name in known], listing.complete))

    def reopen(self, namespace: Namespace | None = None) -> Handle:
        """Close every handle, open one again, and judge by what was promised for that.

        Args:
            namespace: where; the namespace of the check where none is given.
        """
        handle = self.case.reopen(namespace)
        self.case.steps.append(Step("every handle", AllClosed(), Returned(None)))
        self.judge(AllClosed(), Returned(None))
        return handle

    def accepted(self, outcome: Outcome, what: str) -> None:
        """Insist that a call succeeded, where a check needs more than what is merely permitted.

        Raises:
            Violation: it was refused.
        """
        if not isinstance(outcome, Returned) or outcome.value is False:
            raise Violation(f"{what} to be accepted", outcome_in_words(outcome), self.clause)

    def refused(self, outcome: Outcome, error: type[StoreError], what: str) -> None:
        """Insist that a call was refused with ``error``.

        Raises:
            Violation: it was not.
        """
        if not isinstance(outcome, Raised) or not isinstance(outcome.error, error):
            raise Violation(f"{what} to be refused with {error.__name__}", outcome_in_words(outcome), self.clause)

    def refuses(self, handle: Handle, operation: Operation, error: type[StoreError], what: str) -> None:
        """Make a call that has to be refused with ``error``, and judge it in every other way too.

        Raises:
            Violation: it was not refused, or not with that.
        """
        outcome = handle.call(operation)
        self.refused(outcome, error, what)
        self.judge(operation, outcome)

    def run_in(self, handle: Handle, status: RunStatus, **fields: object) -> Run:
        """Create a run and bring it to ``status`` by legal moves; every step has to be accepted."""
        run = a_run(self.case, **fields)
        self.accepted(self.create(handle, run), f"create of {value_in_words(run)}")
        for step in path_to(status):
            following = moved(run, step)
            self.accepted(self.compare_and_set(handle, run, following), f"the legal move to {step.value}")
            run = following
        return run

    def unknown(self, operation: Operation, reason: str) -> None:
        """Note a call whose outcome nobody knows: it may take effect later, or never."""
        self.judge(operation, Unknown(reason))


def _excuse(error: BaseException) -> bool:
    """Say whether an error only asks for another try, which nobody may be asked who is alone with a live backend."""
    return isinstance(error, StoreError) and (error.retryable or not error.definite)
