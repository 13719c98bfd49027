"""Real runs of real stores, made once for each process of the tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from runcert.certificate import RunFacts
from runcert.certifying import Order, certify
from runcert.grading import TargetReport


@dataclass(frozen=True)
class Finished:
    """One certification that ended."""

    report: TargetReport
    facts: RunFacts


def finished(target: str, *only: str) -> Finished:
    """Certify a target at quick depth, a few clauses of it or all."""

    def announce(_: int) -> Any:
        return lambda message: None

    (report,), facts = certify(Order((target,), "quick", 1, only=only), announce)
    return Finished(report, facts)


@pytest.fixture(scope="session")
def partial_run() -> Finished:
    """Three clauses of the store in memory: two that apply and one that does not."""
    return finished("memory", "RUN-CREATE-2", "RUN-FIND-1", "RUN-CANCEL-1")


@pytest.fixture(scope="session")
def full_run() -> Finished:
    """Every clause of the store in memory."""
    return finished("memory")


@pytest.fixture(scope="session")
def failed_run() -> Finished:
    """A faulty store and the clause that catches it."""
    return finished("runcert_reference.faulty.comparing_and_setting:UpdateIgnoresTheVersion", "RUN-CAS-1")


@pytest.fixture(scope="session")
def refused_run() -> Finished:
    """The store that keeps nothing."""
    return finished("noop")
