"""RUN-CREATE: create stores the run, once, for everybody."""

from __future__ import annotations

from dataclasses import replace

from runcert.cases import Case
from runcert.checks import clause
from runcert_contract import AlreadyExists, InvalidRecord, RunStatus
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, updated


@clause("RUN-CREATE-1")
class CreateStoresTheRun:
    """create stores the run; a find that begins afterwards, on any handle in scope, returns it."""

    def test_the_run_is_found_on_the_same_and_on_another_handle(self, case: Case) -> None:
        """A run that was created is found on the same handle, on one opened before, and on one opened after."""
        first = case.open()
        before = case.another(first)
        judge = Judge(case)
        run = a_run(case, input={"a": [1, {"b": None}]}, stage="start")
        judge.accepted(judge.create(first, run), "create of a fresh id")
        for handle in (first, before, case.another(first)):
            judge.find(handle, run.run_id)

    def test_many_runs_are_told_apart(self, case: Case) -> None:
        """Each of several runs is found as itself."""
        handle = case.open()
        judge = Judge(case)
        runs = [a_run(case, stage=f"stage {number}") for number in range(10)]
        for run in runs:
            judge.create(handle, run)
        for run in reversed(runs):
            judge.find(case.another(handle), run.run_id)


@clause("RUN-CREATE-2")
class CreateOnAnIdInUse:
    """create on an id in use, in any status, raises AlreadyExists and leaves the stored record untouched."""

    def test_in_every_status(self, case: Case) -> None:
        """Whatever status the stored run is in, its id is taken, and nothing of the second run is stored."""
        handle = case.open()
        judge = Judge(case)
        for status in RunStatus:
            run = judge.run_in(handle, status, input={"first": True})
            rival = replace(a_run(case), run_id=run.run_id, input={"second": True}, stage="rival")
            judge.refused(judge.create(handle, rival), AlreadyExists, f"create on the id of a run in {status.value}")
            judge.find(case.another(handle), run.run_id)

    def test_with_the_very_same_run(self, case: Case) -> None:
        """Creating the same run twice is no success either: the second caller did not create it."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.create(handle, run)
        judge.refused(judge.create(case.another(handle), run), AlreadyExists, "the second create of the same run")
        judge.find(handle, run.run_id)


@clause("RUN-CREATE-4")
class CreateTakesVersionZero:
    """create takes version 0; anything else is InvalidRecord."""

    def test_other_versions_are_refused(self, case: Case) -> None:
        """A version that is not 0 is refused, and the id stays free."""
        handle = case.open()
        judge = Judge(case)
        for version in (1, 2, 2**31, -1):
            run = a_run(case, version=version)
            judge.refused(judge.create(handle, run), InvalidRecord, f"create with version {version}")
            judge.find(handle, run.run_id)
            judge.accepted(judge.create(handle, replace(run, version=0)), "create with version 0 on the same id")


@clause("RUN-CREATE-5")
class RunIdsAreUniqueAcrossTenants:
    """run ids are unique across tenants."""

    def test_another_tenant_cannot_take_the_id(self, case: Case) -> None:
        """The id of one tenant's run is taken for every other tenant, and the first run stays as it is."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case, tenant_id=case.fresh_id("ta"))
        judge.create(handle, run)
        rival = replace(run, tenant_id=case.fresh_id("tb"))
        judge.refused(judge.create(handle, rival), AlreadyExists, "create of the same id by another tenant")
        judge.find(handle, run.run_id)
        judge.compare_and_set(handle, run, updated(run, stage="still the first tenant's"))
        judge.find(handle, run.run_id)
