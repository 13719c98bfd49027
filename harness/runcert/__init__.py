"""A conformance kit that certifies stores of runs.

What an adapter needs is here; what a suite needs is in :mod:`runcert.checks` and :mod:`runcert.cases`.
"""

from runcert.adapters import Adapter, adapter
from runcert.cleaning import Leftover
from runcert.lab import Clock, Lab
from runcert.marks import Maker, Mark
from runcert.problems import UsageProblem
from runcert_contract import (
    AsyncEnumeratesRuns,
    AsyncRunStore,
    Bounded,
    Capability,
    EnumeratesRuns,
    Fault,
    Handles,
    Kept,
    Limits,
    LostAny,
    LostClean,
    Namespaces,
    Numbers,
    RunStore,
    Scope,
    Stance,
    Text,
    Undefined,
    Volatile,
)

__all__ = [
    "Adapter",
    "AsyncEnumeratesRuns",
    "AsyncRunStore",
    "Bounded",
    "Capability",
    "Clock",
    "EnumeratesRuns",
    "Fault",
    "Handles",
    "Kept",
    "Lab",
    "Leftover",
    "Limits",
    "LostAny",
    "LostClean",
    "Maker",
    "Mark",
    "Namespaces",
    "Numbers",
    "RunStore",
    "Scope",
    "Stance",
    "Text",
    "Undefined",
    "UsageProblem",
    "Volatile",
    "adapter",
]
