"""RUN-NAMESPACE: two namespaces on one backend know nothing of each other."""

from __future__ import annotations

from runcert.cases import Case, Namespace
from runcert.checks import clause
from runcert.handles import Handle
from runcert_contract import Capability, Run, RunStatus
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated


@clause("RUN-NAMESPACE-1")
class NamespacesAreApart:
    """two namespaces on one backend never see each other's records, indexes, pointers, locks, counters."""

    def test_records(self, case: Case) -> None:
        """One id is two runs in two namespaces, each created, found and updated for itself."""
        for first, second in _pairs_of_sides(case):
            run = a_run(case)
            first.judge.create(first.handle, run)
            second.judge.find(second.handle, run.run_id)
            second.judge.compare_and_set(second.handle, run, updated(run, stage="of the other namespace"))
            first.judge.find(first.handle, run.run_id)
            other = a_run(case, run_id=run.run_id, stage="second")
            second.judge.accepted(second.judge.create(second.handle, other), "create of an id that another namespace uses")
            for side, stored in ((first, run), (second, other)):
                following = updated(stored, stage=f"updated in {side.name}")
                accepted = side.judge.compare_and_set(side.handle, stored, following)
                side.judge.accepted(accepted, "an update of the stored version")
                for each in (first, second):
                    each.judge.find(each.handle, run.run_id)

    def test_listings(self, case: Case) -> None:
        """A tenant of that name in both namespaces has two listings; what ends in one stays in the other."""
        for first, second in _pairs_of_sides(case):
            tenant = case.fresh_id("t")
            shared = a_run(case, tenant_id=tenant)
            for side in (first, second):
                side.judge.create(side.handle, shared)
                side.judge.create(side.handle, a_run(case, tenant_id=tenant))
                _list_both(first, second, tenant)
            ended = moved(shared, RunStatus.CANCELLED)
            first.judge.accepted(first.judge.compare_and_set(first.handle, shared, ended), "the move to CANCELLED")
            _list_both(first, second, tenant)
            for side in (first, second):
                side.judge.find(side.handle, shared.run_id)

    def test_disposing_of_one(self, case: Case) -> None:
        """Disposing of the namespace whose name is the beginning of the other's leaves the other as it was."""
        names = _names(case)[:2]
        short, long = (_Side(case, case.another_namespace(name)) for name in names)
        tenant = case.fresh_id("t")
        runs = [a_run(case, tenant_id=tenant) for _ in range(3)]
        for side in (short, long):
            for run in runs:
                side.judge.accepted(side.judge.create(side.handle, run), "create of a fresh id")
        case.dispose(short.namespace)
        _all_there(long, runs, tenant)
        run = runs[0]
        accepted = long.judge.compare_and_set(long.handle, run, updated(run, stage="afterwards"))
        long.judge.accepted(accepted, "an update after the other namespace was disposed of")
        _all_there(long, runs, tenant)

    def test_closing_one(self, case: Case) -> None:
        """Closing every handle of one namespace does not touch the other's handles or runs."""
        for first, second in _pairs_of_sides(case)[::2]:
            run = a_run(case)
            second.judge.create(second.handle, run)
            case.workplace.close_all(first.namespace)
            second.judge.find(second.handle, run.run_id)
            second.judge.accepted(second.judge.create(second.handle, a_run(case)), "create of a fresh id")


class _Side:
    """One of two namespaces: a handle on it, and a judge who knows what belongs in it."""

    def __init__(self, case: Case, namespace: Namespace) -> None:
        self.namespace = namespace
        self.name = namespace.lab.namespace
        self.handle: Handle = case.open(namespace)
        self.judge = Judge(case)


def _names(case: Case) -> list[str]:
    """Give names of namespaces: a base, one that it begins, and two that a pattern or a fold would take for one another."""
    base = f"rc_{case.workplace.token}_n{case.random.getrandbits(32):08x}"
    return [base, f"{base}c", f"{base}_1", f"{base}x1"]


def _pairs_of_sides(case: Case) -> list[tuple[_Side, _Side]]:
    """Give pairs of sides; names are alike in each pair, and either may come first."""
    sides = [_Side(case, case.another_namespace(name)) for name in _names(case)]
    return [(sides[0], sides[1]), (sides[1], sides[0]), (sides[2], sides[3]), (sides[3], sides[2])]


def _list_both(first: _Side, second: _Side, tenant: str) -> None:
    for side in (first, second):
        if side.judge.case.claims.claims(Capability.ENUMERATES):
            side.judge.find_resumable(side.handle, tenant)


def _all_there(side: _Side, runs: list[Run], tenant: str) -> None:
    for run in runs:
        side.judge.find(side.handle, run.run_id)
    _list_both(side, side, tenant)
