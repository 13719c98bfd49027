"""RUN-DURABLE: what was acknowledged is kept as promised when every handle is closed."""

from __future__ import annotations

from dataclasses import replace

from runcert.cases import Case
from runcert.checks import clause
from runcert.handles import Handle
from runcert_contract import Capability, Fault, Kept, Result, ResultStatus, Run, RunStatus
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated


@clause("RUN-DURABLE-1", isolated=True)
class AcknowledgedWritesSurviveClose:
    """acknowledged writes survive each claimed fault as promised."""

    def test_runs_in_every_status(self, case: Case) -> None:
        """After every handle was closed, each run is there in the version that was acknowledged last (or all are gone, where nothing more is promised)."""
        judge, handle = _begin(case)
        runs = [judge.run_in(handle, status, input={"status": status.value}, stage="kept") for status in RunStatus]
        other = case.another(handle)
        runs += [judge.run_in(other, RunStatus.RUNNING, tenant_id=runs[0].tenant_id) for _ in range(case.budget(5, 30, 200))]
        _read_all(judge, judge.reopen(), runs)
        case.evidence["runs"] = len(runs)

    def test_the_last_write_before_closing(self, case: Case) -> None:
        """The write that was acknowledged just before the handle was closed is no less safe than the others."""
        judge, handle = _begin(case)
        run = judge.run_in(handle, RunStatus.RUNNING)
        for number in range(case.budget(3, 6, 20)):
            last = a_run(case)
            judge.accepted(judge.create(handle, last), "create of a fresh id")
            run = _write(judge, handle, run, f"round {number}")
            handle = judge.reopen()
            _read_all(judge, handle, [run, last])
            if not _kept(case):
                judge, run = _start_again(case, handle)


@clause("RUN-DURABLE-3", isolated=True)
class NothingIsInventedByClosing:
    """after each claimed fault nothing is invented, nothing older comes back."""

    def test_refused_writes_stay_refused(self, case: Case) -> None:
        """What was refused before the handles were closed is not there afterwards."""
        judge, handle = _begin(case)
        run = judge.run_in(handle, RunStatus.RUNNING, input={"first": True})
        missing, wrong = a_run(case), a_run(case, version=3)
        judge.create(handle, a_run(case, run_id=run.run_id, input={"second": True}))
        judge.compare_and_set(handle, replace(run, version=run.version - 1), replace(run, stage="stale"))
        judge.compare_and_set(handle, missing, updated(missing))
        judge.create(handle, wrong)
        _read_all(judge, judge.reopen(), [run, missing, wrong, a_run(case)])

    def test_nothing_older_comes_back(self, case: Case) -> None:
        """Of a run that was updated many times the newest version is there, also after several closings in a row."""
        judge, handle = _begin(case)
        runs = [judge.run_in(handle, RunStatus.RUNNING) for _ in range(3)]
        for number in range(case.budget(4, 12, 50)):
            runs = [_write(judge, handle, run, f"step {number}") for run in runs]
        ended = moved(runs[0], RunStatus.SUCCEEDED, result=Result(ResultStatus.SUCCEEDED, output={"rows": 2}))
        judge.accepted(judge.compare_and_set(handle, runs[0], ended), "completion")
        runs[0] = ended
        for _ in range(3):
            handle = judge.reopen()
            _read_all(judge, handle, runs)
            judge.compare_and_set(handle, replace(runs[1], version=1), replace(runs[1], version=2, stage="older"))
            judge.create(handle, replace(runs[0], version=0, status=RunStatus.REQUESTED, result=None))
            if not _kept(case):
                return


@clause("RUN-DURABLE-4", isolated=True)
class WritingAgainAfterClose:
    """after each claimed fault it still holds after recover, write again, reopen, read."""

    def test_write_again_and_reopen(self, case: Case) -> None:
        """Old runs are updated and new ones created after the handles were opened again, and the next closing keeps both."""
        judge, handle = _begin(case)
        runs = [judge.run_in(handle, status) for status in (RunStatus.REQUESTED, RunStatus.RUNNING, RunStatus.CANCELLED)]
        rounds = case.budget(3, 6, 20)
        for number in range(rounds):
            handle = judge.reopen()
            _read_all(judge, handle, runs)
            if not _kept(case):
                judge, first = _start_again(case, handle)
                runs = [first]
            new = a_run(case, stage=f"after closing {number}")
            judge.accepted(judge.create(handle, new), "create after the handles were opened again")
            runs = [run if run.status.terminal else _write(judge, handle, run, f"again {number}") for run in (*runs, new)]
            _read_all(judge, judge.reopen(), runs)
            if not _kept(case):
                judge, handle = _begin(case)
                runs = []
        case.evidence["rounds"] = rounds


def _begin(case: Case) -> tuple[Judge, Handle]:
    promise = case.claims.promise(Fault.CLOSE)
    case.evidence["promise"] = f"close: {promise.text}"
    case.steps.clear()
    return Judge(case), case.open()


def _start_again(case: Case, handle: Handle) -> tuple[Judge, Run]:
    """Go on with a run of its own, where the promise lets the others go."""
    judge = Judge(case)
    return judge, judge.run_in(handle, RunStatus.RUNNING)


def _kept(case: Case) -> bool:
    return isinstance(case.claims.promise(Fault.CLOSE), Kept)


def _write(judge: Judge, handle: Handle, run: Run, stage: str) -> Run:
    following = updated(run, stage=stage)
    judge.accepted(judge.compare_and_set(handle, run, following), f"the update of {run.run_id}")
    return following


def _read_all(judge: Judge, handle: Handle, runs: list[Run]) -> None:
    """Find each run, and list each tenant; the judge knows whether they have to be there."""
    for run in runs:
        judge.find(handle, run.run_id)
    if judge.case.claims.claims(Capability.ENUMERATES):
        for tenant_id in dict.fromkeys(run.tenant_id for run in runs):
            judge.find_resumable(handle, tenant_id)
