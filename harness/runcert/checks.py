"""What a check of a suite is, and what it can find.

A suite is a package of modules; a check is a method ``test_...(self, case)`` of a class marked with :func:`clause`.  It
returns when the store keeps the clause, raises :class:`Violation` when it does not, and :class:`Inconclusive` when it ran and
could not decide.  Verdicts never depend on ``assert``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from types import ModuleType
from typing import TypeVar

from runcert.cases import Case
from runcert.problems import KitProblem
from runcert_contract import CATALOGUE, Capability

__all__ = ["Check", "Inconclusive", "Violation", "checks_of", "clause", "proves_absent", "suite_packages"]

_Suite = TypeVar("_Suite", bound=type)
_Loaded = TypeVar("_Loaded")
_MARK = "__runcert__"


class Violation(AssertionError):
    """A clause does not hold.

    Args:
        expected: what the contract permits, in words.
        found: what the store did.
        clause: the clause that does not hold; by default the one that the check is for.
    """

    def __init__(self, expected: str, found: str, clause: str | None = None) -> None:
        super().__init__(f"expected {expected}; found {found}")
        self.expected = expected
        self.found = found
        self.clause = clause


class Inconclusive(Exception):
    """The check ran and could not decide; the message says what was missing."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a suite.

    Attributes:
        id: ``Class.test_name``, unique within a contract's suite.
        clauses: the clauses that it judges; the first is the one that a plain violation belongs to.
        function: what to call with a case.
        isolated: True when it needs a namespace of its own.
        proves_absent: the capability whose absence it proves, for checks that run only then.
        sentence: the first line of its documentation.
        several_clients: True when it runs bursts.
    """

    id: str
    clauses: tuple[str, ...]
    function: Callable[[Case], None]
    isolated: bool
    proves_absent: Capability | None
    sentence: str
    several_clients: bool = False


def clause(*clause_ids: str, isolated: bool = False, several_clients: bool = False) -> Callable[[_Suite], _Suite]:
    """Mark a class whose ``test_`` methods judge these clauses.

    Args:
        clause_ids: ids of the catalogue; the first one is the one that a plain violation belongs to.
        isolated: True when each check needs a namespace of its own, because it damages or counts what is stored.
        several_clients: True when each check runs bursts: such checks share the client processes that one process of the kit starts.

    Raises:
        KeyError: an id is not in the catalogue.
    """
    for clause_id in clause_ids:
        CATALOGUE.get(clause_id)

    def mark(suite: _Suite) -> _Suite:
        setattr(suite, _MARK, (clause_ids, isolated, None, several_clients))
        return suite

    return mark


def proves_absent(capability: Capability, *clause_ids: str) -> Callable[[_Suite], _Suite]:
    """Mark a class whose ``test_`` methods prove that a capability declared absent really is."""

    def mark(suite: _Suite) -> _Suite:
        setattr(suite, _MARK, (clause_ids, False, capability, False))
        return suite

    return mark


def checks_of(contract: str) -> tuple[Check, ...]:
    """Give every check of the suites installed for ``contract``, in the order of modules and lines.

    Raises:
        KitProblem: no suite is installed, or one cannot be imported.
    """
    found = [check for module in _suite_modules(contract) for check in _checks_in(module)]
    ids = [check.id for check in found]
    doubled = sorted({check_id for check_id in ids if ids.count(check_id) > 1})
    if doubled:
        raise KitProblem(f"the suite of {contract} names these checks twice: {', '.join(doubled)}")
    return tuple(found)


def suite_packages(contract: str) -> list[ModuleType]:
    """Give the packages of suites that are installed for ``contract``.

    Raises:
        KitProblem: none is installed, or one cannot be imported.
    """
    entries = {entry.value: entry for entry in entry_points(group="runcert.suites") if entry.name == contract}
    if not entries:
        raise KitProblem(f"no suite is installed for the contract {contract!r}; reinstall runcert")
    return [_imported(value, contract, entry.load) for value, entry in entries.items()]


def _suite_modules(contract: str) -> Iterator[ModuleType]:
    for package in suite_packages(contract):
        yield from _imported(package.__name__, contract, partial(_modules_in, package))


def _modules_in(package: ModuleType) -> list[ModuleType]:
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def _imported(name: str, contract: str, load: Callable[[], _Loaded]) -> _Loaded:
    try:
        return load()
    except Exception as error:
        raise KitProblem(f"the suite {name} of the contract {contract!r} cannot be imported: {error!r}") from error


def _checks_in(module: ModuleType) -> Iterator[Check]:
    classes = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
    for suite in classes:
        marks = vars(suite).get(_MARK)
        if marks is not None:
            yield from _checks_of_class(suite, *marks)


def _checks_of_class(
    suite: type, clauses: tuple[str, ...], isolated: bool, absent: Capability | None, several_clients: bool
) -> Iterator[Check]:
    for name, method in vars(suite).items():
        if name.startswith("test_"):
            sentence = (inspect.getdoc(method) or inspect.getdoc(suite) or name.replace("_", " ")).splitlines()[0]
            yield Check(
                f"{suite.__name__}.{name}", clauses, getattr(suite(), name), isolated, absent, sentence, several_clients
            )
