"""RUN-RESUMABLE: what a recovery is given to look at; or, where a store cannot list, the proof that it says so."""

from __future__ import annotations

from runcert.cases import Case
from runcert.checks import Violation, clause, proves_absent
from runcert.handles import Handle
from runcert.wording import outcome_in_words
from runcert_contract import Capability, FindResumable, Raised, Run, RunStatus, Unsupported
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, path_to, updated


@clause("RUN-RESUMABLE-1", isolated=True)
class FindResumableOfOneTenant:
    """find_resumable returns every non-terminal run of exactly that tenant and nothing else."""

    def test_every_status(self, case: Case) -> None:
        """Every non-terminal status is in, every terminal one is out, and so is every other tenant."""
        handle = case.open()
        judge = Judge(case)
        tenant, other, empty = case.fresh_id("t"), case.fresh_id("t"), case.fresh_id("t")
        for status in RunStatus:
            judge.run_in(handle, status, tenant_id=tenant)
            judge.run_in(handle, status, tenant_id=other)
        for each in (handle, case.another(handle)):
            for name in (tenant, other, empty):
                judge.find_resumable(each, name)

    def test_after_every_move(self, case: Case) -> None:
        """A run stays in the listing, as it was last written, until the move to a terminal status takes it out."""
        handle = case.open()
        other = case.another(handle)
        judge = Judge(case)
        tenant = case.fresh_id("t")
        stays = judge.run_in(handle, RunStatus.RUNNING, tenant_id=tenant)
        for status in (status for status in RunStatus if status.terminal):
            run = a_run(case, tenant_id=tenant)
            judge.accepted(judge.create(handle, run), "create of a fresh id")
            judge.find_resumable(other, tenant)
            for step in path_to(status):
                following = moved(run, step, stage=f"on the way to {status.value}")
                judge.accepted(judge.compare_and_set(handle, run, following), f"the legal move to {step.value}")
                run = following
                judge.find_resumable(other, tenant)
        judge.accepted(judge.compare_and_set(handle, stays, moved(stays, RunStatus.CANCELLED)), "the move to CANCELLED")
        judge.find_resumable(other, tenant)

    def test_runs_that_end_at_once(self, case: Case) -> None:
        """Every move from each non-terminal status to each terminal one that is legal takes the run out."""
        handle = case.open()
        judge = Judge(case)
        tenant = case.fresh_id("t")
        for before in (status for status in RunStatus if not status.terminal):
            for after in (RunStatus.CANCELLED, RunStatus.EXPIRED, RunStatus.RUNTIME_FAILED, RunStatus.DENIED):
                run = judge.run_in(handle, before, tenant_id=tenant)
                judge.accepted(judge.compare_and_set(handle, run, moved(run, after)), f"the legal move to {after.value}")
            judge.find_resumable(handle, tenant)

    def test_after_updates_that_keep_the_status(self, case: Case) -> None:
        """The listing gives each run as it was last written, once, however often it was updated."""
        handle = case.open()
        judge = Judge(case)
        tenant = case.fresh_id("t")
        runs = [judge.run_in(handle, status, tenant_id=tenant) for status in (RunStatus.RUNNING, RunStatus.WAITING_EXTERNAL)]
        for number in range(3):
            for index, run in enumerate(runs):
                following = updated(run, stage=f"update {number}", owner=case.fresh_id("w"))
                judge.accepted(judge.compare_and_set(handle, run, following), "an update of the stored version")
                runs[index] = following
            judge.find_resumable(case.another(handle), tenant)

    def test_after_refusals(self, case: Case) -> None:
        """Refused creates and updates put nothing in and take nothing out."""
        handle = case.open()
        judge = Judge(case)
        tenant, elsewhere = case.fresh_id("t"), case.fresh_id("t")
        run = judge.run_in(handle, RunStatus.RUNNING, tenant_id=tenant)
        judge.compare_and_set(handle, _stale(run), moved(_stale(run), RunStatus.CANCELLED))
        judge.create(handle, a_run(case, run_id=run.run_id, tenant_id=elsewhere))
        missing = a_run(case, tenant_id=tenant)
        judge.compare_and_set(handle, missing, updated(missing))
        ended = judge.run_in(handle, RunStatus.SUCCEEDED, tenant_id=tenant)
        judge.create(handle, a_run(case, run_id=ended.run_id, tenant_id=tenant))
        judge.compare_and_set(handle, _stale(ended), updated(_stale(ended)))
        for name in (tenant, elsewhere):
            judge.find_resumable(case.another(handle), name)

    def test_tenants_with_similar_names(self, case: Case) -> None:
        """A tenant is exactly that tenant: no prefix, no other case, no pattern."""
        handle = case.open()
        judge = Judge(case)
        tenant = case.fresh_id("Tenant_")
        similar = [tenant, f"{tenant}0", tenant[:-1], tenant.lower(), tenant.upper(), tenant.replace("_", "-")]
        patterns = [
            f"{tenant[:6]}%{tenant[-8:]}",
            f"{tenant[:-1]}?",
            f"{tenant}*",
            f" {tenant}",
            f"{tenant} ",
            f"{tenant}:",
            f"{tenant}/",
        ]
        _one_run_for_each(judge, case, handle, similar + patterns)
        case.evidence["tenants"] = len(similar + patterns)

    def test_a_tenant_without_runs(self, case: Case) -> None:
        """A tenant that was never seen has an empty listing, and asking creates nothing."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        for name in (run.tenant_id, case.fresh_id("%"), run.run_id, run.action_id + case.fresh_id("a")):
            judge.find_resumable(handle, name)
        judge.accepted(judge.create(handle, run), "create for a tenant that was only asked for")
        judge.find_resumable(handle, run.tenant_id)


@clause("RUN-RESUMABLE-1", isolated=True)
class TheEmptyTenant:
    """The empty string is a tenant, where it is accepted: never "none" and never "all"."""

    def test_it_is_a_tenant_like_any_other(self, case: Case) -> None:
        """Its listing has its own runs and nobody else's, and nobody else's has its runs."""
        handle = case.open()
        judge = Judge(case)
        tenant = case.fresh_id("t")
        judge.create(handle, a_run(case, tenant_id=tenant))
        judge.find_resumable(handle, "")
        run = a_run(case, tenant_id="")
        judge.create(handle, run)
        for each in (handle, case.another(handle)):
            judge.find_resumable(each, "")
            judge.find_resumable(each, tenant)
        judge.compare_and_set(handle, run, moved(run, RunStatus.CANCELLED))
        judge.find_resumable(handle, "")
        judge.find_resumable(handle, tenant)


@proves_absent(Capability.ENUMERATES, "RUN-RESUMABLE-1", "RUN-ID-4", "RUN-LIST-1", "RUN-LIST-3", "RUN-LIST-4")
class ListingIsAbsent:
    """A store that declares `enumerates` absent has no find_resumable, or one that raises Unsupported."""

    def test_find_resumable_is_missing_or_unsupported(self, case: Case) -> None:
        """find_resumable gives no answer, with and without runs of the tenant."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        for _ in range(2):
            outcome = handle.call(FindResumable(run.tenant_id))
            if not isinstance(outcome, Raised) or not isinstance(outcome.error, Unsupported):
                raise Violation(
                    "no method find_resumable, or one that raises Unsupported (the capability enumerates is declared absent)",
                    outcome_in_words(outcome),
                )
            judge.create(handle, run)


def _stale(run: Run) -> Run:
    """Give the run as it never was: one version older than it is."""
    return updated(run, version=run.version - 1)


def _one_run_for_each(judge: Judge, case: Case, handle: Handle, tenants: list[str]) -> None:
    """Create a run for each tenant, then end some of them, and compare every listing each time."""
    runs = [a_run(case, tenant_id=tenant) for tenant in tenants]
    for run in runs:
        judge.find_resumable(handle, run.tenant_id)
        judge.create(handle, run)
    for tenant in tenants:
        judge.find_resumable(case.another(handle), tenant)
    for run in runs[::2]:
        judge.compare_and_set(handle, run, moved(run, RunStatus.CANCELLED))
    for tenant in tenants:
        judge.find_resumable(handle, tenant)
