"""RUN-EVICT: no time to live and no full memory takes a record away, and a backend that would do so is refused.

Applies to stores on a server of the kit's that can be set to evict: the kit then starts more of them, with settings of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping

from runcert.cases import Case, Namespace
from runcert.checks import Inconclusive, Violation, clause
from runcert.handles import Handle, translate
from runcert.problems import AdapterProblem, UsageProblem
from runcert.servers.offers import KINDS
from runcert.wording import outcome_in_words
from runcert_contract import Misconfigured, Raised, Run, RunStatus, Scope
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, updated
from runcert_suites.run_store.sizes import of_size

_LARGE = 100_000
"""The size in bytes of the records with which a memory is filled, unless the store takes smaller ones only."""

_MOST = 40_000_000
"""How many bytes are written before the check gives up; more than any memory that the kit gives a server here."""


@clause("RUN-EVICT-1")
class NothingIsEvicted:
    """no TTL, eviction or retention of the backend removes an authoritative record."""

    def test_a_server_that_evicts_is_refused(self, case: Case) -> None:
        """Opening on a server that is set to evict any key when its memory is full raises Misconfigured."""
        evicting = _evicting(case)
        for name, policies in evicting.items():
            for settings in policies:
                _refused(case, name, settings)
        case.evidence["refused"] = {name: len(policies) for name, policies in evicting.items()}

    def test_records_outlive_times_to_live_and_a_full_memory(self, case: Case) -> None:
        """Records in every status are there when all that has a time to live is gone; a full memory refuses writes, typed, and loses none."""
        for name in _evicting(case):
            settings = KINDS[name].soon_full(secrets.randbelow(1 << 16))  # no other check may fill it
            namespace = case.another_namespace(settings={name: settings})
            judge, handle = Judge(case), case.open(namespace)
            runs = [judge.run_in(handle, status) for status in RunStatus]
            expired = KINDS[name].expire(namespace.lab.reach.evicting_servers[name])
            reader = handle if case.claims.scope is Scope.HANDLE else case.open(namespace)
            judge.all_there(reader, runs, f"when {expired} keys with a time to live have expired")
            case.steps.clear()
            filled, refusal = _fill(case, judge, handle)
            judge.all_there(reader, [*runs, *filled], "when the memory of the server is full")
            case.evidence.update({"expired": expired, "records in a full memory": len(filled), "refusal": refusal})


def _evicting(case: Case) -> Mapping[str, list[dict[str, str]]]:
    """Give, for each server of this store that can be set to evict, the settings to try."""
    case.close(case.open())  # so that it is known which servers the adapter asks for
    found = {}
    for name in case.workplace.reach.evicting_servers:
        settings = dict(KINDS[name].evicting)
        others = case.budget((), *(("allkeys-random", "allkeys-lfu"),) * 2)
        found[name] = [settings, *({**settings, "maxmemory-policy": policy} for policy in others)]
    if not found:
        raise Inconclusive("the adapter asked for no server of the kit's that can be set to evict")
    return found


def _refused(case: Case, name: str, settings: Mapping[str, str]) -> None:
    what = f"opening on a {KINDS[name].title} with {', '.join(f'{key} {value}' for key, value in settings.items())}"
    opened: Handle | BaseException
    try:
        namespace: Namespace = case.another_namespace(settings={name: settings})
    except (AdapterProblem, UsageProblem) as problem:  # the adapter's `prepare` may open the store as well
        opened = problem
    else:
        opened = case.try_to_open(namespace)
    if isinstance(opened, Handle):
        raise Violation(f"{what} to raise Misconfigured: it evicts records when its memory is full", "it was opened")
    if any(isinstance(translate(error, case.adapter), Misconfigured) for error in _causes(opened)):
        return
    own = next((error for error in _causes(opened) if not isinstance(error, (AdapterProblem, UsageProblem))), None)
    if own is None:
        raise opened
    raise Violation(f"{what} to raise Misconfigured", outcome_in_words(Raised(own)))


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__


def _fill(case: Case, judge: Judge, handle: Handle) -> tuple[list[Run], str]:
    """Create large records until one is refused, then try once more in each way; give those that were acknowledged, and the error.

    Raises:
        Inconclusive: none was ever refused.
    """
    limits, tenant = case.claims.limits, case.fresh_id("t")
    size = min(_LARGE, limits.accepts_up_to or _LARGE)
    filled: list[Run] = []
    with judge.backend_away():  # an error that asks for another try, or leaves the outcome open, is how a write may be refused
        for _ in range(_MOST // size):
            run = of_size(a_run(case, tenant_id=tenant), size)
            outcome = judge.create(handle, run)
            if isinstance(outcome, Raised):
                judge.create(handle, of_size(a_run(case, tenant_id=tenant), size))
                for stored in filled[-1:]:
                    judge.compare_and_set(handle, stored, updated(stored, stage="in a full memory"))
                return filled, type(outcome.error).__name__
            judge.find(handle, run.run_id)
            filled.append(run)
    raise Inconclusive(f"{_MOST // size} records of {size:,} bytes did not fill the memory of the server")
