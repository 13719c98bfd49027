"""RUN-LIST: a listing is whole, says so truthfully, and one unreadable record hides nothing else."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.wording import outcome_in_words, shortened, value_in_words
from runcert_contract import Create, FindResumable, Listing, Namespaces, Returned, Run, RunStatus, canonical, run_as_stored
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved

DAMAGES = ("undecodable", "cut", "empty")
"""The ways in which the hook ``damage`` makes a record unreadable."""

_MANY = 10_000
_PAGE_OF_MANY_BACKENDS = 1_000
_SECONDS_FOR_MANY = 20.0


@clause("RUN-LIST-1", isolated=True)
class EveryRecordOnce:
    """a listing holds every record once, at 0, 1, page, page+1, 2*page+1 and 10,000 records."""

    def test_at_the_edges_of_a_page(self, case: Case) -> None:
        """Sizes of nothing, one, one page, a page and one more, two pages and one more."""
        handle = case.open()
        tenant = case.fresh_id("t")
        page = case.claims.limits.page
        sizes = [0, 1, page, page + 1, 2 * page + 1]
        runs: list[Run] = []
        with case.silent():
            for size in sizes:
                runs += _created(case, handle, tenant, size - len(runs))
                for each in (handle, case.another(handle)):
                    _check_items(case, each, tenant, runs)
        case.evidence["records"] = [*sizes]

    def test_between_runs_that_do_not_belong_to_it(self, case: Case) -> None:
        """The runs of a tenant are found although whole pages of other tenants' and of ended runs lie between them."""
        handle = case.open()
        judge = Judge(case)
        tenant, other = case.fresh_id("t"), case.fresh_id("t")
        page = case.claims.limits.page
        with case.silent():
            first = _created(case, handle, tenant, 1)
            for _ in range(case.budget(3, 20, 100)):
                judge.run_in(handle, RunStatus.CANCELLED, tenant_id=tenant)
            others = _created(case, handle, other, 2 * page)
            last = _created(case, handle, tenant, 1)
            _check_items(case, handle, tenant, first + last)
            _check_items(case, handle, other, others)
        case.evidence["records of others"] = 2 * page

    def test_many(self, case: Case) -> None:
        """Ten thousand records, as far as the time for it goes; at the quick depth some pages."""
        handle = case.open()
        tenant = case.fresh_id("t")
        wanted = case.budget(min(_MANY, max(_PAGE_OF_MANY_BACKENDS + 3, 5 * case.claims.limits.page + 3)), _MANY, _MANY)
        seconds = case.budget(3.0, _SECONDS_FOR_MANY, float("inf"))
        runs: list[Run] = []
        started = time.monotonic()
        with case.silent():
            while len(runs) < wanted and time.monotonic() - started < seconds:
                runs += _created(case, handle, tenant, min(100, wanted - len(runs)))
            _check_items(case, handle, tenant, runs)
        case.evidence["records"] = len(runs)


@clause("RUN-LIST-3", isolated=True)
class CompleteIsTrue:
    """`complete` says truly that each record is in items or corrupt."""

    def test_with_readable_records(self, case: Case) -> None:
        """At the edges of a page `complete` is True exactly when nothing is missing, and a real boolean."""
        handle = case.open()
        tenant = case.fresh_id("t")
        page = case.claims.limits.page
        runs: list[Run] = []
        with case.silent():
            for size in (0, 1, page, page + 1):
                runs += _created(case, handle, tenant, size - len(runs))
                _check_complete(case, handle, tenant, {run.run_id for run in runs})

    def test_with_an_unreadable_record(self, case: Case) -> None:
        """The same beside a record that cannot be read (where the adapter can damage one)."""
        handle = case.open()
        tenant = case.fresh_id("t")
        runs = _created(case, handle, tenant, 4)
        _check_complete(case, handle, tenant, {run.run_id for run in runs})
        if case.has_hook("damage"):
            for how, run in zip(DAMAGES, runs, strict=False):
                case.hook("damage", "run-store", run.run_id, how)
                _check_complete(case, handle, tenant, {run.run_id for run in runs})
        case.evidence["with damage"] = case.has_hook("damage")


@clause("RUN-LIST-4", isolated=True)
class AnUnreadableRecord:
    """one undecodable record is named (in every tenant's answer, if its tenant cannot be read) and hides nothing else."""

    def test_it_is_named_and_hides_nothing(self, case: Case) -> None:
        """Whichever of several records is damaged, and how, it is in `corrupt` and all the others are in `items`."""
        handle = case.open()
        damage = _Damage(case)
        for how in DAMAGES:
            for which in range(3):
                tenant = case.fresh_id("t")
                runs = _created(case, handle, tenant, 3)
                damage.make_unreadable(runs[which], how)
                rest = [run for run in runs if run is not runs[which]]
                for each in (handle, case.another(handle)):
                    damage.check_listing(each, tenant, rest, [runs[which]])

    def test_several_at_once(self, case: Case) -> None:
        """Of several damaged records every one is named, also when no readable one is left."""
        handle = case.open()
        damage = _Damage(case)
        tenant = case.fresh_id("t")
        runs = _created(case, handle, tenant, 4)
        for count, (how, run) in enumerate(zip((*DAMAGES, "cut"), runs, strict=True), start=1):
            damage.make_unreadable(run, how)
            damage.check_listing(handle, tenant, runs[count:], runs[:count])

    def test_other_tenants_lose_nothing(self, case: Case) -> None:
        """The listings of other tenants have all their runs, and name nothing but damaged records."""
        handle = case.open()
        damage = _Damage(case)
        for how in DAMAGES:
            tenant, other = case.fresh_id("t"), case.fresh_id("t")
            unreadable = _created(case, handle, tenant, 1)[0]
            others = _created(case, handle, other, 2)
            damage.make_unreadable(unreadable, how)
            damage.check_listing(handle, other, others, [])

    def test_an_ended_record(self, case: Case) -> None:
        """A damaged record of a run that had ended may be named or not; it hides nothing either way."""
        handle = case.open()
        damage = _Damage(case)
        judge = Judge(case)
        for how in DAMAGES:
            tenant = case.fresh_id("t")
            ended = judge.run_in(handle, RunStatus.SUCCEEDED, tenant_id=tenant)
            runs = _created(case, handle, tenant, 2)
            damage.make_unreadable(ended, how)
            damage.check_listing(handle, tenant, runs, [])

    def test_runs_that_come_and_go_beside_it(self, case: Case) -> None:
        """Beside a damaged record others are created and ended, and the listing follows."""
        handle = case.open()
        damage = _Damage(case)
        tenant = case.fresh_id("t")
        unreadable, *stay = _created(case, handle, tenant, 3)
        damage.make_unreadable(unreadable, "undecodable")
        judge = Judge(case)
        come = judge.run_in(handle, RunStatus.RUNNING, tenant_id=tenant)
        damage.check_listing(handle, tenant, [*stay, come], [unreadable])
        judge.accepted(judge.compare_and_set(handle, come, moved(come, RunStatus.SUCCEEDED)), "the move to SUCCEEDED")
        damage.check_listing(handle, tenant, stay, [unreadable])


# -- what a listing has to hold


def _created(case: Case, handle: Handle, tenant: str, number: int) -> list[Run]:
    """Create runs of one tenant; every create has to be accepted."""
    runs = [a_run(case, tenant_id=tenant) for _ in range(number)]
    for run in runs:
        outcome = handle.call(Create(run))
        if not isinstance(outcome, Returned):
            raise Violation(f"create of {value_in_words(run)} to be accepted", outcome_in_words(outcome))
    return runs


def _listing(handle: Handle, tenant: str) -> Listing:
    outcome = handle.call(FindResumable(tenant))
    if not isinstance(outcome, Returned) or not isinstance(outcome.value, Listing):
        raise Violation(f"find_resumable({tenant!r}) to give a Listing", outcome_in_words(outcome))
    return outcome.value


def _check_items(case: Case, handle: Handle, tenant: str, runs: Sequence[Run]) -> Listing:
    """Insist that the items of a listing are exactly these runs, each once, in any order."""
    listing = _listing(handle, tenant)
    limits, numbers = case.claims.limits, case.claims.numbers
    wanted = Counter(canonical(run_as_stored(run, limits), numbers) for run in runs)
    if Counter(canonical(run, numbers) for run in listing.items) != wanted:
        problem = _problem_with(listing.items, runs)
        raise Violation(f"find_resumable({tenant!r}) to list {_counted(runs)}, each once", problem)
    return listing


def _counted(runs: Sequence[Run]) -> str:
    return {0: "no run", 1: "1 run"}.get(len(runs), f"{len(runs)} runs")


def _problem_with(items: Sequence[object], runs: Sequence[Run]) -> str:
    """Say in words how the items differ from the runs that should be there."""
    found = Counter(str(getattr(item, "run_id", item)) for item in items)
    wanted = {run.run_id for run in runs}
    parts = [f"{len(items)} items"]
    parts += _named("missing", (run.run_id for run in runs if run.run_id not in found))
    parts += _named("more than once", (run_id for run_id, times in found.items() if times > 1))
    parts += _named("not of this listing", (run_id for run_id in found if run_id not in wanted))
    if len(parts) == 1:
        parts.append("but not as they were written")
    return "; ".join(parts)


def _named(what: str, run_ids: Iterable[str]) -> list[str]:
    names = [repr(run_id) for run_id in run_ids]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{what}: {', '.join(names[:3])}{more}"] if names else []


def _corrupt(case: Case, listing: Listing, ours: Collection[str]) -> list[str]:
    """Give the records named as corrupt; where namespaces are shared, those of this check only."""
    shared = case.claims.namespaces is Namespaces.SHARED
    return [name for name in listing.corrupt if not shared or name in ours]


class _Damage:
    """The records that a check made unreadable; any of them may be named in any tenant's answer."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._damaged: set[str] = set()

    def make_unreadable(self, run: Run, how: str) -> None:
        """Damage the stored record of a run."""
        self._case.hook("damage", "run-store", run.run_id, how)
        self._damaged.add(run.run_id)

    def check_listing(self, handle: Handle, tenant: str, readable: Sequence[Run], unreadable: Sequence[Run]) -> None:
        """Insist that the readable runs of a tenant are its items, and that the unreadable ones are named.

        Raises:
            Violation: one is missing, is named twice, or something is named that is no damaged record.
        """
        listing = _check_items(self._case, handle, tenant, readable)
        named = Counter(_corrupt(self._case, listing, self._damaged))
        must = {run.run_id for run in unreadable}
        if not must <= named.keys() <= self._damaged or any(times > 1 for times in named.values()):
            wanted = f"{sorted(must)!r}, whose stored record is unreadable," if must else "no readable record,"
            raise Violation(
                f"find_resumable({tenant!r}) to name in `corrupt` {wanted} each at most once, and nothing but damaged records",
                shortened(f"corrupt = {list(listing.corrupt)!r}"),
            )


def _check_complete(case: Case, handle: Handle, tenant: str, run_ids: set[str]) -> None:
    """Insist that ``complete`` is a boolean and says whether every run is in the listing."""
    listing = _listing(handle, tenant)
    present = {getattr(item, "run_id", None) for item in listing.items} | set(_corrupt(case, listing, run_ids))
    missing = sorted(run_ids - present)
    truth = not missing
    if listing.complete is not truth:
        why = (
            f"{len(missing)} of {len(run_ids)} runs are in neither"
            if missing
            else f"all {len(run_ids)} runs are in one of them"
        )
        raise Violation(
            f"find_resumable({tenant!r}) to have complete = {truth}, because of items and corrupt {why}",
            f"complete = {listing.complete!r}, with {len(listing.items)} items and corrupt = {shortened(repr(list(listing.corrupt)))}",
        )
