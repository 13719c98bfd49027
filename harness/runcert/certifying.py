"""One certification: introduce the targets, run their checks, grade, write what was asked for."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from runcert.certificate import RunFacts, make_certificate, now
from runcert.execution import CheckResult
from runcert.grading import TargetReport, grade
from runcert.masking import without_known_passwords, without_passwords
from runcert.messages import Job, Settings
from runcert.problems import UsageProblem
from runcert.reports.badges import badge_json, badge_svg
from runcert.reports.failures import failure_file
from runcert.reports.junit import junit
from runcert.reports.pages import report_page
from runcert.reports.sarif import sarif
from runcert.reports.standalone import standalone_path, standalone_test
from runcert.reports.standalone_runs import those_that_fail
from runcert.reports.summary import markdown, overview_markdown
from runcert.selfcheck import stored_selfcheck
from runcert.servers.offers import WAYS, is_address, kind_named
from runcert.supervisor import Introduction, Supervisor
from runcert.targets import check_unique, split_file_target
from runcert.waivers import Waiver, stale_or_expired
from runcert_contract import CATALOGUE
from runcert_contract.catalogue import CONTRACT_PREFIXES

__all__ = ["Order", "breadth_first", "certify", "check_targets", "insist_on_writable", "parse_servers", "write_results"]

Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What a user asked for.

    Attributes:
        targets: the targets as typed.
        depth: how long to try.
        seed: everything random follows from it.
        processes: how many processes at once.
        only: the clauses that were asked for; all where none is named.
        contract: only this contract; None for every one that a target claims.
        waivers: accepted failures.
        servers: addresses of servers by name.
        check: only this check, for a replay.
    """

    targets: tuple[str, ...]
    depth: str
    seed: int
    processes: int = 1
    only: tuple[str, ...] = ()
    contract: str | None = None
    waivers: tuple[Waiver, ...] = ()
    servers: dict[str, str] = field(default_factory=dict)
    check: str | None = None


def parse_servers(texts: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=URL`` and ``NAME=WAY`` options.

    Raises:
        UsageProblem: one is not of that form, or asks the kit for a server that it cannot start.
    """
    servers: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name or not value:
            raise UsageProblem(f"--server {text!r}: expected NAME=URL, for instance postgresql=postgresql://user@127.0.0.1/db")
        if value in WAYS:
            kind_named(name)
        elif not is_address(value):
            raise UsageProblem(f"--server {name}={value}: expected a URL or one of {', '.join(WAYS)}")
        if name in servers:
            raise UsageProblem(f"--server {name} is given twice")
        servers[name] = value
    return servers


def certify(order: Order, announce: Callable[[int], Progress]) -> tuple[list[TargetReport], RunFacts]:
    """Certify every target.

    Args:
        order: what was asked for.
        announce: told how many checks are to run; gives what is told of each message.

    Returns:
        The verdict on each target, and the facts of the run.

    Raises:
        UsageProblem: something is wrong before anything was judged.
        KitProblem: the kit itself failed.
    """
    _check_order(order)
    started = now()
    settings = Settings(root="", depth=order.depth, seed=order.seed, servers=order.servers)
    supervisor = Supervisor(settings)
    with supervisor.running():
        introductions = supervisor.introduce(order.targets)
        check_unique(introduction.name for introduction in introductions)
        chosen = [_narrowed(introduction, order) for introduction in introductions]
        jobs = _jobs(chosen, order.processes)
        supervisor.on_event = announce(sum(len(job.checks) for _, shard in jobs for job in shard))
        results = supervisor.run(jobs, order.processes)
        servers = supervisor.servers.in_words
    reports = _reports(chosen, results, order, started.date())
    facts = RunFacts(order.depth, order.seed, started, now(), stored_selfcheck(), order.waivers, servers)
    return reports, facts


def check_targets(targets: Sequence[str]) -> None:
    """Refuse a target that is named twice.

    Raises:
        UsageProblem: one is.
    """
    if len(set(targets)) != len(targets):
        doubled = next(text for text in targets if targets.count(text) > 1)
        raise UsageProblem(f"the target {without_passwords(doubled)!r} is named twice")


def _check_order(order: Order) -> None:
    check_targets(order.targets)
    if order.contract is not None and order.contract not in CONTRACT_PREFIXES:
        raise UsageProblem(f"there is no contract {order.contract!r}; this revision knows {', '.join(CONTRACT_PREFIXES)}")
    known = {clause.id for clause in CATALOGUE.clauses}
    for name in order.only:
        if name not in known:
            near = (
                ", ".join(sorted(other for other in known if other.rpartition("-")[0] == name.rpartition("-")[0]))
                or "`runcert clauses` lists all"
            )
            raise UsageProblem(f"there is no clause {name!r} in this catalogue ({near})")


def _narrowed(introduction: Introduction, order: Order) -> Introduction:
    """Keep the checks that were asked for.

    Raises:
        UsageProblem: nothing is left, because the target does not claim what was asked for.
    """
    if order.contract is not None and introduction.contract != order.contract:
        raise UsageProblem(f"{introduction.name} claims {introduction.contract}, not {order.contract}: nothing to run")
    checks = [
        (name, clauses)
        for name, clauses in introduction.checks
        if (not order.only or set(clauses) & set(order.only)) and order.check in (None, name)
    ]
    if not checks and introduction.refused is None:
        applies = introduction.description["clauses"]
        reasons = "; ".join(
            f"{name} does not apply ({applies[name]['reason']})" for name in order.only if applies[name]["verdict"]
        )
        raise UsageProblem(f"nothing to run on {introduction.name}: {reasons or 'the selection is empty'}")
    return replace(introduction, checks=checks)


_CHECKS_IN_A_BURST = 10
"""How many other checks take about as long as one with bursts."""


def _jobs(introductions: Sequence[Introduction], processes: int) -> list[tuple[str, list[Job]]]:
    """Spread the checks: a process for each target that was named, more where there are more processes than targets."""
    by_text: dict[str, list[Introduction]] = defaultdict(list)
    for introduction in introductions:
        if introduction.refused is None:
            by_text[introduction.asked].append(introduction)
    jobs: list[tuple[str, list[Job]]] = []
    shards = max(1, processes // max(1, len(by_text)))
    for text, members in by_text.items():
        spread = [(m, _spread(breadth_first([name for name, _ in m.checks], m.bursts), m.bursts, shards)) for m in members]
        for shard in range(shards):
            mine = [Job(m.spec, parts[shard]) for m, parts in spread]
            jobs.append((text, [job for job in mine if job.checks]))
    return [(text, shard) for text, shard in jobs if shard]


def breadth_first(checks: Sequence[str], bursts: frozenset[str]) -> list[str]:
    """Order checks so that a fault is found soon: the first one of each class, then the second, ...; bursts, which take long, last.

    Args:
        checks: the ids of the checks, in the order of the suite.
        bursts: those with several clients at once.
    """
    seen: Counter[str] = Counter()
    rank: dict[str, int] = {}
    for name in checks:
        suite = name.partition(".")[0]
        rank[name] = seen[suite]
        seen[suite] += 1
    return sorted(checks, key=lambda name: (name in bursts, rank[name]))


def _spread(checks: Sequence[str], bursts: frozenset[str], shards: int) -> list[list[str]]:
    """Deal checks out; those with bursts stay together, because they share client processes that take long to start."""
    parts: list[list[str]] = [[] for _ in range(shards)]
    loads = [_CHECKS_IN_A_BURST * sum(name in bursts for name in checks), *[0] * (shards - 1)]
    for name in checks:
        where = 0 if name in bursts else loads.index(min(loads))
        parts[where].append(name)
        loads[where] += name not in bursts
    return parts


def _reports(
    introductions: Sequence[Introduction], results: Sequence[CheckResult], order: Order, today: date
) -> list[TargetReport]:
    by_spec: dict[str, list[CheckResult]] = defaultdict(list)
    for result in results:
        by_spec[result.spec].append(result)
    reports = [grade(i, by_spec[i.spec], order.only, order.waivers, today) for i in introductions]
    verdicts = [(report.name, clause.id, clause.verdict.value) for report in reports for clause in report.clauses]
    complaints = tuple(stale_or_expired(order.waivers, verdicts, today))
    return [replace(report, complaints=complaints) for report in reports]


# -- what is written


def insist_on_writable(out: Path) -> None:
    """Make the directory for results, and try it, before anything is run whose results would be lost.

    Raises:
        UsageProblem: the directory cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out) as tried:
            tried.write(bytes(65536))
            tried.flush()
    except OSError as error:
        raise UsageProblem(f"--out {out}: cannot write there ({error.strerror or error})") from error


def write_results(reports: Sequence[TargetReport], facts: RunFacts, out: Path) -> dict[tuple[str, str, int], Path]:
    """Write certificates, reports and failures below ``out``.

    Returns:
        The file of each failure, by target, clause and number.

    Raises:
        UsageProblem: the directory cannot be written.
    """
    files: dict[tuple[str, str, int], Path] = {}
    try:
        for report in reports:
            directory = out / report.name
            directory.mkdir(parents=True, exist_ok=True)
            _write_json(directory / "certificate.json", make_certificate(report, facts))
            _write(directory / "summary.md", markdown(report, facts))
            _write(directory / "junit.xml", junit(report))
            _write(directory / "results.sarif", sarif(report, facts.depth, facts.seed))
            _write(directory / "report.html", report_page(report, facts))
            _write(directory / "badge.json", badge_json(report, facts.depth))
            _write(directory / "badge.svg", badge_svg(report, facts.depth))
            files.update(_write_failures(report, facts, directory / "failures"))
        _write(out / "summary.md", overview_markdown(list(reports)))
    except OSError as error:
        raise UsageProblem(f"--out {out}: cannot write there ({error.strerror or error})") from error
    return files


def _write_failures(report: TargetReport, facts: RunFacts, directory: Path) -> dict[tuple[str, str, int], Path]:
    for old in (*directory.glob("*.json"), *directory.glob("test_*.py")):
        old.unlink()
    files: dict[tuple[str, str, int], Path] = {}
    tests: list[Path] = []
    for clause in report.clauses:
        for number, failure in enumerate(clause.failures, start=1):
            directory.mkdir(exist_ok=True)
            path = directory / f"{clause.id}-{number}.json"
            _write_json(path, failure_file(_portable(report.introduction.text), failure, facts.depth, facts.seed))
            files[report.name, clause.id, number] = path
            alone = standalone_test(failure, report.introduction.description, _portable(report.introduction.text))
            if alone is not None:
                tests.append(standalone_path(path))
                _write(tests[-1], alone)
    for test in set(tests) - those_that_fail(tests):
        test.unlink()
    return files


def _portable(text: str) -> str:
    """Name a file by its full path, so that a replay works from any directory."""
    file = split_file_target(text)
    if "://" in text or file is None:
        return text
    path, attribute = file
    return f"{path.resolve()}:{attribute}" if attribute else str(path.resolve())


def _write_json(path: Path, content: object) -> None:
    _write(path, json.dumps(content, indent=2, ensure_ascii=True) + "\n")


def _write(path: Path, text: str) -> None:
    path.write_text(without_known_passwords(text), encoding="utf-8")
