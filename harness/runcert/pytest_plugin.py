"""For people who live in pytest: ``pytest --certify TARGET`` runs the checks as items beside whatever else is collected.

The items are called ``runcert::TARGET::CLAUSE::Class.test``; ``-k``, ``--lf``, ``--pdb`` and xdist work on them as usual, and
``-m "clause(id='RUN-CAS-1')"`` selects exactly.  A certificate comes from ``runcert certify`` alone, where no conftest, ini file or
plug-in of a project can change what is run.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections import Counter
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runcert.masking import without_passwords

if TYPE_CHECKING:
    from runcert.servers.owner import Servers
    from runcert.watchdog import Hang

__all__ = ["pytest_addoption", "pytest_configure"]

_HUNG = 3
_UNDECIDED = 3
_DESK = "runcert_desk"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the ini setting."""
    group = parser.getgroup("runcert", "certification of stores of runs")
    group.addoption(
        "--certify",
        action="append",
        default=[],
        metavar="TARGET",
        help="certify TARGET: a name, path/to/file.py[:attribute], module:attribute or a URL; may be repeated",
    )
    group.addoption("--certify-depth", choices=["quick", "standard", "exhaustive"], default="quick", help="how long to try")
    group.addoption("--certify-seed", type=int, default=None, help="everything random follows from it")
    group.addoption("--only", action="append", default=[], metavar="CLAUSE", help="only this clause; may be repeated")
    group.addoption(
        "--certify-server",
        action="append",
        default=[],
        metavar="NAME=URL",
        help="where a server is, or wheel, system, containers",
    )
    parser.addini("certify", type="args", default=[], help="targets that are certified with every run")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; plan what is to run when targets were named."""
    config.addinivalue_line("markers", "clause(id): the clause of the catalogue that an item judges (runcert)")
    targets = [*_targets_of_ini(config), *config.option.certify]
    if targets and not config.option.help:
        _plan(config, targets)


def _targets_of_ini(config: pytest.Config) -> list[str]:
    """Give the targets of the ini file; files are named from where it stands, whatever directory pytest is started in."""
    from runcert.targets import split_file_target

    directory = config.rootpath if config.inipath is None else config.inipath.parent
    found: list[str] = []
    for text in config.getini("certify"):
        file = None if "://" in text else split_file_target(text)
        if file is not None:
            path, attribute = file
            text = f"{directory / path}{f':{attribute}' if attribute else ''}"  # noqa: PLW2901  # the same target, in full
        found.append(text)
    return found


def _plan(config: pytest.Config, targets: list[str]) -> None:
    pytest.register_assert_rewrite("runcert_suites")
    from runcert.certifying import parse_servers
    from runcert.messages import Settings
    from runcert.problems import AdapterProblem, KitProblem, UsageProblem
    from runcert.pytest_items import Certification
    from runcert.reports.failures import failure_lines, replay_command
    from runcert.watchdog import Watchdog

    seed = _seed(config)
    root = tempfile.mkdtemp(prefix="runcert-pytest-")
    config.add_cleanup(lambda: shutil.rmtree(root, ignore_errors=True))
    depth = config.option.certify_depth
    try:
        told = parse_servers(config.option.certify_server)
        provider = _ServerProvider(config, root, told)
        settings = Settings(root, depth, seed, told, provider.desk)
        watchdog = Watchdog(partial(_hung, config, Path(root)))
        config.add_cleanup(watchdog.stop)
        planned, texts = _planned(targets, config.option.only)
        explain = lambda result: "\n".join(  # noqa: E731  # one expression, used once
            failure_lines(result, replay_command(texts[result.spec], result, depth, seed))
        )
        certification = Certification(planned, settings, explain, watchdog)
        _smoke(certification)
        _leave_out_what_is_out_of_reach(certification)
    except (UsageProblem, AdapterProblem, KitProblem) as problem:
        raise pytest.UsageError(f"runcert: {without_passwords(str(problem))}") from None
    config.pluginmanager.register(provider, "runcert-servers")
    config.pluginmanager.register(certification, "runcert-certification")
    config.pluginmanager.register(_Summary(seed), "runcert-summary")


def _seed(config: pytest.Config) -> int:
    """Give the seed; the workers of xdist take the one of their controller."""
    given = config.option.certify_seed
    if given is None:
        given = secrets.randbelow(2**32)
        config.option.certify_seed = given
    return int(given)


def _planned(targets: list[str], only: list[str]) -> tuple[list[Any], dict[str, str]]:
    from runcert.checks import checks_of
    from runcert.execution import applicable
    from runcert.problems import UsageProblem
    from runcert.pytest_items import Planned
    from runcert.targets import check_unique, resolve
    from runcert_contract import CATALOGUE

    known = {clause.id for clause in CATALOGUE.clauses}
    for name in only:
        if name not in known:
            raise UsageProblem(f"there is no clause {name!r} in this catalogue; `runcert clauses` lists all")
    resolved = [target for text in targets for target in resolve(text)]
    check_unique(target.name for target in resolved)
    planned = [
        Planned(target.spec, target.adapter, check)
        for target in resolved
        for check in checks_of(target.adapter.contract)
        if applicable(check, target.adapter) and (not only or set(check.clauses) & set(only))
    ]
    if not planned:
        raise UsageProblem("nothing to run: no check applies to the targets and clauses that were named")
    return planned, {target.spec: target.text for target in resolved}


def _smoke(certification: Any) -> None:
    from runcert.execution import smoke
    from runcert.problems import UsageProblem

    for spec, adapter in {planned.spec: planned.adapter for planned in certification.planned}.items():
        refused = smoke(certification.workplace(spec, adapter))
        if refused is not None:
            raise UsageProblem(f"{adapter.target}: {refused}")


def _leave_out_what_is_out_of_reach(certification: Any) -> None:
    from runcert.execution import applicable

    certification.planned = [
        planned
        for planned in certification.planned
        if applicable(planned.check, planned.adapter, certification.workplace(planned.spec, planned.adapter).reach.names)
    ]


def _hung(config: pytest.Config, root: Path, hang: Hang) -> None:
    """Say what hangs, leave nothing behind, and end the process: the guardian stops its servers then."""
    from runcert.leftovers import dispose_of_leftovers

    message = f"\nruncert: {hang.description} did not end within {hang.seconds:g} s; pytest cannot go on in this process\n"
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        os.write(2, message.encode())
    dispose_of_leftovers(root)
    shutil.rmtree(root, ignore_errors=True)
    os._exit(_HUNG)


class _ServerProvider:
    """Owns the servers of the session; a worker of xdist asks its controller, so that there is one of each.

    Args:
        config: the configuration of pytest.
        root: the directory of the session.
        told: what the user said of servers, by name.
    """

    def __init__(self, config: pytest.Config, root: str, told: dict[str, str]) -> None:
        self.servers: Servers | None = None
        workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
        if workerinput is not None:
            self.desk = str(workerinput[_DESK])
            return
        from runcert.servers.desk import Desk
        from runcert.servers.owner import Servers

        self.servers = Servers(Path(root), told)
        desk = Desk(self.servers)
        config.add_cleanup(desk.close)
        config.add_cleanup(self.servers.stop)
        self.desk = desk.address

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist where to ask for servers."""
        node.workerinput[_DESK] = self.desk

    def pytest_runtest_logfinish(self) -> None:
        """End the session when a server ended by itself: what is judged after that says nothing about a store."""
        from runcert.problems import ServerLost

        if self.servers is not None:
            try:
                self.servers.check()
            except ServerLost as problem:
                pytest.exit(f"runcert: {without_passwords(str(problem))}", returncode=_UNDECIDED)


class _Summary:
    """Compares the clauses that were planned with those that ran, at the end.

    Args:
        seed: the seed of the run, printed so that it can be repeated.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._verdicts: Counter[str] = Counter()
        self._ran: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the clauses of an item that ran."""
        if report.when == "call":
            for name, value in report.user_properties:
                if name == "runcert":
                    result = json.loads(str(value))
                    self._ran.update(result["clauses"])
                    self._verdicts[result["verdict"]] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what ran, and that it is no certificate."""
        from runcert_contract import CATALOGUE

        verdicts = ", ".join(f"{number} {verdict}" for verdict, number in sorted(self._verdicts.items())) or "nothing ran"
        terminalreporter.section("runcert")
        terminalreporter.write_line(
            f"checks: {verdicts}; {len(self._ran)} of {len(CATALOGUE.clauses)} clauses were tried; seed {self._seed}. "
            "No certificate: `runcert certify` gives one."
        )
