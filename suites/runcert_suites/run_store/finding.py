"""RUN-FIND: an unknown id gives None; what was acknowledged is seen by everybody, and answers never go back."""

from __future__ import annotations

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert_contract import Capability, Run, RunStatus
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated


@clause("RUN-FIND-1", isolated=True)
class FindOfAnUnknownId:
    """an unknown id gives None, raises nothing (but InvalidIdentifier), creates nothing."""

    def test_the_id_stays_free(self, case: Case) -> None:
        """An id that was only looked for, however often, can be created afterwards, and nothing is listed for its tenant."""
        handle = case.open()
        judge = Judge(case)
        for _ in range(3):
            run = a_run(case)
            for each in (handle, case.another(handle), handle):
                judge.find(each, run.run_id)
            if case.claims.claims(Capability.ENUMERATES):
                judge.find_resumable(handle, run.tenant_id)
            judge.accepted(judge.create(handle, run), "create of an id that was only looked for")
            judge.find(case.another(handle), run.run_id)

    def test_beside_runs_with_similar_ids(self, case: Case) -> None:
        """An id is unknown although longer, shorter and neighbouring ids are stored."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case, run_id=f"{case.fresh_id()}-5")
        judge.create(handle, run)
        for unknown in (run.run_id[:-1], f"{run.run_id}0", f"{run.run_id[:-1]}4", f"{run.run_id[:-1]}6", run.tenant_id):
            judge.find(handle, unknown)

    def test_nothing_more_is_stored(self, case: Case) -> None:
        """What is stored, as the adapter counts it, is the same after many unknown ids as before (where it can count)."""
        handle = case.open()
        judge = Judge(case)
        judge.create(handle, a_run(case))
        judge.find(handle, case.fresh_id())
        before = case.inventory() if case.has_hook("inventory") else {}
        unknown = [case.fresh_id() for _ in range(20)]
        for run_id in unknown:
            judge.find(handle, run_id)
        after = case.inventory() if case.has_hook("inventory") else {}
        if after != before:
            raise Violation(f"find of {len(unknown)} unknown ids to leave what is stored at {before}", f"{after}")
        case.evidence["inventory compared"] = case.has_hook("inventory")


@clause("RUN-FIND-2")
class FindAfterAnAcknowledgedWrite:
    """a find that begins after an acknowledged write, on any handle in scope, sees it or something newer; answers never go back."""

    def test_every_handle_sees_every_write(self, case: Case) -> None:
        """Several handles write in turn, and after each write all of them see it, whatever they saw before."""
        handles = _three_handles(case)
        judge = Judge(case)
        run = a_run(case)
        _all_find(judge, handles, run.run_id)
        judge.accepted(judge.create(handles[0], run), "create of a fresh id")
        _all_find(judge, handles, run.run_id)
        for number in range(6):
            following = updated(run, stage=f"stage {number}", input={"number": [number]})
            judge.accepted(judge.compare_and_set(handles[number % 3], run, following), "an update of the version just seen")
            run = following
            _all_find(judge, handles, run.run_id)
            _all_find(judge, handles[::-1], run.run_id)

    def test_a_refused_update_is_not_seen(self, case: Case) -> None:
        """A handle whose update was refused sees the winner's run, not its own."""
        first, second, third = _three_handles(case)
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(first, run), "create of a fresh id")
        _all_find(judge, (first, second, third), run.run_id)
        judge.accepted(judge.compare_and_set(first, run, updated(run, stage="the winner's")), "the first update")
        judge.compare_and_set(second, run, updated(run, stage="the loser's"))
        _all_find(judge, (second, first, third), run.run_id)
        judge.create(second, a_run(case, run_id=run.run_id, stage="the second creator's"))
        _all_find(judge, (second, first, third), run.run_id)

    def test_the_end_of_a_run_is_seen(self, case: Case) -> None:
        """A terminal run is seen as such by a handle that knew it as running."""
        first, second, third = _three_handles(case)
        judge = Judge(case)
        run = judge.run_in(first, RunStatus.RUNNING)
        _all_find(judge, (first, second, third), run.run_id)
        judge.accepted(judge.compare_and_set(third, run, moved(run, RunStatus.SUCCEEDED)), "the move to SUCCEEDED")
        _all_find(judge, (first, second, third), run.run_id)

    def test_answers_never_go_back(self, case: Case) -> None:
        """Of many finds after a write, on every handle, none gives an older version."""
        handles = _three_handles(case)
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handles[0], run), "create of a fresh id")
        finds = case.budget(8, 40, 200)
        for _ in range(3):
            following = updated(run, stage="newer")
            judge.accepted(judge.compare_and_set(handles[1], run, following), "an update of the version just seen")
            run = following
            for _ in range(finds):
                _all_find(judge, handles, run.run_id)
        case.evidence["finds after one write"] = finds * len(handles)

    def test_writers_and_readers_in_random_order(self, case: Case) -> None:
        """In a random sequence of finds and updates on three handles and three runs every find sees the latest write."""
        handles = _three_handles(case)
        judge = Judge(case)
        runs = [a_run(case) for _ in range(3)]
        for run in runs:
            judge.accepted(judge.create(handles[0], run), "create of a fresh id")
        old: list[Run] = list(runs)
        steps = case.budget(60, 300, 2000)
        for _ in range(steps):
            which = case.random.randrange(len(runs))
            handle = case.random.choice(handles)
            choice = case.random.random()
            if choice < 0.6:
                judge.find(handle, runs[which].run_id)
            elif choice < 0.8:
                judge.compare_and_set(handle, old[which], updated(old[which], stage="perhaps too late"))
                judge.find(handle, runs[which].run_id)
                runs[which], old[which] = _known(judge, runs[which].run_id), runs[which]
            else:
                following = updated(runs[which], stage="in time")
                judge.accepted(judge.compare_and_set(handle, runs[which], following), "an update of the version just seen")
                runs[which], old[which] = following, runs[which]
        case.evidence["steps"] = steps


def _three_handles(case: Case) -> tuple[Handle, Handle, Handle]:
    first = case.open()
    return (first, case.another(first), case.another(first))


def _all_find(judge: Judge, handles: tuple[Handle, ...], run_id: str) -> None:
    for handle in handles:
        judge.find(handle, run_id)


def _known(judge: Judge, run_id: str) -> Run:
    """Give the run that the judge knows to be stored."""
    stored = next(iter(judge.states)).get(run_id)
    if stored is None:
        raise Violation(f"run {run_id!r} to be stored", "that it is not")
    return stored.run
