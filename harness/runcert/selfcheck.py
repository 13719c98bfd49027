"""The kit checks itself: every faulty store has to be caught, by the clause named for it, and for its own fault.

A faulty store is *caught* when a check of its clause fails on it and the same check passes on the same store without the
fault.  It is *missed* when none fails, and *well-behaved* when its wrong turn was never taken.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runcert.checks import checks_of
from runcert.execution import CheckResult, applicable
from runcert.faulty import FaultyStore, faulty_stores
from runcert.fingerprint import kit_digest
from runcert.messages import Job, Settings
from runcert.problems import ExitCode, UsageProblem
from runcert.servers.offers import KINDS, find
from runcert.supervisor import Supervisor
from runcert_contract import CATALOGUE, Verdict
from runcert_contract.catalogue import CONTRACT_PREFIXES

__all__ = ["Row", "SelfcheckReport", "run_selfcheck", "stored_selfcheck"]


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one faulty store.

    Attributes:
        store: the faulty store.
        state: caught, missed, well-behaved or wrong-reason.
        check: the check that caught it.
        seconds: how long that check took.
        message: what the check said.
        caught_by: every clause that failed on it (with ``full``; otherwise its own).
    """

    store: FaultyStore
    state: str
    check: str = ""
    seconds: float = 0.0
    message: str = ""
    caught_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelfcheckReport:
    """What came of the whole self-check.

    Attributes:
        rows: one for each faulty store.
        idle: clauses that no faulty store is for.
        full: True when every check ran on every store.
        skipped: a sentence for each server that cannot be had here: the stores on it were left out.
    """

    rows: tuple[Row, ...]
    idle: tuple[str, ...]
    full: bool
    skipped: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """0 when every store was caught and every clause catches one, else 1."""
        good = bool(self.rows) and not self.idle and all(row.state == "caught" for row in self.rows)
        return ExitCode.HOLDS if good else ExitCode.DOES_NOT_HOLD

    @property
    def redundant(self) -> tuple[str, ...]:
        """The clauses that no store needs: whatever they catch, another clause catches too (meaningful with ``full``)."""
        needed = {row.caught_by[0] for row in self.rows if len(row.caught_by) == 1}
        catching = {clause for row in self.rows for clause in row.caught_by}
        return tuple(sorted(catching - needed))


def run_selfcheck(
    contract: str | None,
    *,
    full: bool,
    seed: int,
    processes: int,
    on_event: Callable[[dict[str, Any]], None] = lambda _: None,
    stores: Sequence[FaultyStore] | None = None,
) -> SelfcheckReport:
    """Run every faulty store against its clause, or against all of them.

    Args:
        contract: only the stores of this contract; None for all.
        full: True to run every check on every store.
        seed: the seed of the run.
        processes: how many processes at once.
        on_event: told of each message, for progress.
        stores: the faulty stores; by default all that are installed.

    Raises:
        UsageProblem: a server cannot be had, and this is continuous integration (``CI`` is set), where none may be missing.
    """
    chosen, skipped = _with_a_server(faulty_stores(contract) if stores is None else tuple(stores))
    if skipped and os.environ.get("CI"):
        raise UsageProblem("\n".join((*skipped, "CI is set, so that no faulty store may be left out")))
    jobs = [_job(store, full) for store in chosen]
    shards = [jobs[number::processes] for number in range(processes) if jobs[number::processes]]
    with Supervisor(Settings(root="", depth="quick", seed=seed), on_event).running() as supervisor:
        results = supervisor.run([(f"faulty stores {n}", shard) for n, shard in enumerate(shards)], processes) if jobs else []
    by_spec: dict[str, list[CheckResult]] = defaultdict(list)
    for result in results:
        by_spec[result.spec].append(result)
    rows = tuple(_row(store, by_spec[store.spec], full) for store in chosen)
    return SelfcheckReport(rows, _idle(chosen, contract), full, skipped)


def total_checks(contract: str | None, *, full: bool) -> int:
    """Give how many checks a self-check may run, for progress."""
    return sum(len(_job(store, full).checks) for store in _with_a_server(faulty_stores(contract))[0])


def _with_a_server(stores: Sequence[FaultyStore]) -> tuple[tuple[FaultyStore, ...], tuple[str, ...]]:
    """Leave out the stores on servers that cannot be had here, with a sentence for each server."""
    by_server: dict[str, list[FaultyStore]] = defaultdict(list)
    for store in stores:
        by_server[store.backend.removesuffix("-async")].append(store)
    troubles = {name: trouble for name in by_server if name in KINDS and (trouble := _trouble_with(name))}
    skipped = (f"{len(by_server[name])} faulty stores on {name} were left out: {trouble}" for name, trouble in troubles.items())
    return tuple(store for store in stores if store.backend.removesuffix("-async") not in troubles), tuple(skipped)


def _trouble_with(server: str) -> str:
    try:
        find(KINDS[server], None)
    except UsageProblem as problem:
        return str(problem)
    return ""


def _job(store: FaultyStore, full: bool) -> Job:
    checks = [
        check
        for check in checks_of(store.adapter.contract)
        if applicable(check, store.adapter) and (full or store.clause in check.clauses)
    ]
    checks.sort(key=lambda check: len(check.clauses))  # what is for this clause alone goes before what judges many at once
    return Job(store.spec, [check.id for check in checks], until_red="" if full else store.clause, faulty=True)


def _idle(stores: Sequence[FaultyStore], contract: str | None) -> tuple[str, ...]:
    aimed = {store.clause for store in stores}
    prefixes = {CONTRACT_PREFIXES[contract]} if contract is not None else set(CONTRACT_PREFIXES.values())
    return tuple(clause.id for clause in CATALOGUE.clauses if clause.contract in prefixes and clause.id not in aimed)


def _row(store: FaultyStore, results: Sequence[CheckResult], full: bool) -> Row:
    deviated = sum(result.deviations for result in results)
    caught = [result for result in results if _catches(store, result)]
    failed = dict.fromkeys(result.clause for result in results if result.verdict == Verdict.FAIL.value)
    others = tuple(sorted(failed)) if full else ()
    if deviated == 0:
        return Row(store, "well-behaved", message="its wrong turn was never taken")
    if not caught:
        return Row(store, "missed", message=_what_happened(results), caught_by=others)
    first = caught[0]
    message = f"expected {first.expected}; found {first.found}"
    if first.sound not in ("", Verdict.PASS.value):
        return Row(
            store,
            "wrong-reason",
            first.check,
            first.seconds,
            f"the store without the fault is {first.sound}: {message}",
            others,
        )
    return Row(store, "caught", first.check, first.seconds, message, others or (store.clause,))


def _catches(store: FaultyStore, result: CheckResult) -> bool:
    if result.clause != store.clause:
        return False
    return result.verdict == Verdict.FAIL.value


def _what_happened(results: Sequence[CheckResult]) -> str:
    said = [f"{r.check}: {r.verdict} {r.clause} {r.found}".strip() for r in results if r.verdict != Verdict.PASS.value]
    return "; ".join(said) if said else "every check of its clause passed"


# -- the stored result, for certificates


def _store_path() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(base).expanduser() / "runcert" / f"selfcheck-{kit_digest()[:16]}.json"


def store_selfcheck(report: SelfcheckReport) -> None:
    """Keep the result of this build of the kit, by backend; a cache that cannot be written is done without."""
    backends: dict[str, dict[str, int]] = {}
    for row in report.rows:
        counts = backends.setdefault(row.store.backend, {"caught": 0, "stores": 0})
        counts["stores"] += 1
        counts["caught"] += row.state == "caught"
    path = _store_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"result": "run", "kit": kit_digest(), "backends": backends}), encoding="utf-8")
    except OSError:
        return


def stored_selfcheck() -> dict[str, Any]:
    """Give the stored result of exactly this build of the kit, or ``{"result": "not run"}``."""
    try:
        data = json.loads(_store_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"result": "not run"}
    return data if isinstance(data, dict) and data.get("kit") == kit_digest() else {"result": "not run"}
