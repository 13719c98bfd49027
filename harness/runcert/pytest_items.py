"""The checks as pytest items: ``runcert::TARGET::CLAUSE::Class.test``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from runcert.adapters import Adapter
from runcert.cases import Depth, Workplace
from runcert.checks import Check
from runcert.execution import CheckResult, hang_result, run_check
from runcert.faulty import deviations
from runcert.messages import ANY_CLAUSE, Settings
from runcert.watchdog import Hang, Watchdog
from runcert_contract import Verdict

__all__ = ["Certification", "ClauseItem", "Planned"]

PROPERTY = "runcert"
"""The name of the user property under which a result travels in a pytest report."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One check that is to run on one target."""

    spec: str
    adapter: Adapter
    check: Check
    until_red: str = ""
    sound: Adapter | None = None


class ClauseItem(pytest.Item):
    """One check on one target, as pytest sees it."""

    certification: Certification
    planned: Planned

    def runtest(self) -> None:
        """Run the check; a failure raises what the check raised."""
        result, error = self.certification.run(self.planned)
        self.user_properties.append((PROPERTY, json.dumps(result.to_json())))
        if error is not None:
            raise error

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002  # pytest's signature
        """Say what was expected and found; a failure of the kit keeps its traceback."""
        result = self.certification.last
        if result is None or result.verdict == Verdict.KIT_ERROR.value or self.config.getoption("fulltrace", default=False):
            return super().repr_failure(excinfo)
        return self.certification.explain(result)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Give where the check is written down."""
        function = self.planned.check.function
        _, line = inspect.getsourcelines(function)
        return Path(inspect.getfile(function)), line - 1, self.nodeid


class Certification:
    """Plans, runs and keeps what a pytest session certifies.

    Args:
        planned: what is to run, in order.
        settings: what holds for the whole run.
        explain: turns a failure into the text that a person reads.
        watchdog: watches calls of synchronous stores.
        started: called before each check, with target and check.
        interruptible: True where a person may press Ctrl-C.
    """

    def __init__(
        self,
        planned: Sequence[Planned],
        settings: Settings,
        explain: Callable[[CheckResult], str],
        watchdog: Watchdog | None = None,
        started: Callable[[Planned], None] = lambda _: None,
        *,
        interruptible: bool = True,
    ) -> None:
        self.planned = planned
        self.settings = settings
        self.explain = explain
        self.last: CheckResult | None = None
        self._watchdog = watchdog
        self._started = started
        self._interruptible = interruptible
        self._workplaces: dict[int, Workplace] = {}
        self._red: set[str] = set()
        self._on_sound: dict[tuple[int, str], str] = {}

    # -- running

    def run(self, planned: Planned) -> tuple[CheckResult, BaseException | None]:
        """Run one planned check."""
        self.last = None
        self._started(planned)
        before = deviations()
        result, error = self._run_on(planned.spec, planned.adapter, planned)
        result = replace(result, deviations=deviations() - before)
        if result.verdict == Verdict.FAIL.value:
            if planned.until_red in (result.clause, ANY_CLAUSE):
                self._red.add(planned.spec)
            if planned.sound is not None:
                result = replace(result, sound=self._verdict_on_sound(planned.sound, planned))
        self.last = result
        return result, error

    def hung(self, planned: Planned, hang: Hang) -> CheckResult:
        """Give the result of a check in which something did not end; its process cannot go on."""
        return hang_result(planned.check, self.workplace(planned.spec, planned.adapter), hang)

    def is_settled(self, planned: Planned) -> bool:
        """Say whether a check need not run, because its target is already red and that was all that was asked."""
        return planned.spec in self._red

    def _verdict_on_sound(self, sound: Adapter, planned: Planned) -> str:
        """Repeat a check on the store without the fault; faulty stores over one base share the answer."""
        key = id(sound), planned.check.id
        if key not in self._on_sound:
            self._on_sound[key] = self._run_on(f"{planned.spec}.sound", sound, planned)[0].verdict
        return self._on_sound[key]

    def _run_on(self, spec: str, adapter: Adapter, planned: Planned) -> tuple[CheckResult, BaseException | None]:
        workplace, depth = self.workplace(spec, adapter), Depth(self.settings.depth)
        return run_check(planned.check, workplace, depth, self.settings.seed, interruptible=self._interruptible)

    def workplace(self, spec: str, adapter: Adapter) -> Workplace:
        """Give the workplace of an adapter, made at first use."""
        if id(adapter) not in self._workplaces:
            root = Path(self.settings.root) / f"{adapter.target}-{len(self._workplaces)}"
            self._workplaces[id(adapter)] = Workplace(
                spec, adapter, root, self.settings.servers, self._watchdog, self.settings.desk
            )
        return self._workplaces[id(adapter)]

    def end(self) -> None:
        """Close and remove everything that was opened."""
        for workplace in self._workplaces.values():
            workplace.end()
        self._workplaces.clear()

    # -- pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the checks to whatever else the session collected, before anything is deselected."""
        items.extend(self._items(session))

    def _items(self, session: pytest.Session) -> Iterable[ClauseItem]:
        for planned in self.planned:
            check = planned.check
            nodeid = f"runcert::{planned.adapter.target}::{check.clauses[0]}::{check.id}"
            item: ClauseItem = ClauseItem.from_parent(session, name=f"{planned.adapter.target}::{check.id}", nodeid=nodeid)
            item.certification = self
            item.planned = planned
            item.extra_keyword_matches.update((planned.adapter.target, *check.clauses))
            for name in check.clauses:
                item.add_marker(pytest.mark.clause(id=name))
            yield item

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Pass over what is settled already."""
        if isinstance(item, ClauseItem) and self.is_settled(item.planned):
            pytest.skip("this store is red already")  # only where a job names the clause at which it stops (self-check)

    def pytest_sessionfinish(self) -> None:
        """Close what was opened."""
        self.end()
