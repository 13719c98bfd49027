"""How soon a fault is found: every faulty store is certified at the depth quick until its first failure.

Prints, for each faulty store, the seconds from its first check to the first failure, with the clause and the check that failed; then the
median for each backend.  Each store has the order of checks of ``runcert certify``; nothing is sorted by what is known of its fault.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from runcert.certifying import breadth_first
from runcert.checks import checks_of
from runcert.execution import applicable
from runcert.faulty import FaultyStore, faulty_stores
from runcert.messages import ANY_CLAUSE, Job, Settings
from runcert.supervisor import Supervisor
from runcert_contract import Verdict

BOUNDS = {"memory": 2.0, "sqlite": 2.0}
"""The longest median, in seconds."""


def main(arguments: Sequence[str]) -> int:
    """Measure; gives 1 when a median exceeds its bound or a store was not found out at all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backends", nargs="*", default=[], help="only faulty stores on these; memory and sqlite")
    asked = set(parser.parse_args(arguments).backends) or set(BOUNDS)
    stores = [store for store in faulty_stores() if store.backend in asked]
    found = _first_failures(stores)
    seconds = defaultdict(list)
    lines = []
    for store in stores:
        if store.spec in found:
            took, clause, check = found[store.spec]
            seconds[store.backend].append(took)
            lines.append(f"{took:6.2f} s  {store.backend:<12} {store.name:<44} {clause:<18} {check}")
        else:
            lines.append(f"   never  {store.backend:<12} {store.name}")
    exceeded = []
    for backend, each in sorted(seconds.items()):
        median, bound = statistics.median(each), BOUNDS.get(backend)
        exceeded += [backend] if bound is not None and median > bound else []
        said = "" if bound is None else f" of at most {bound:g} s{' EXCEEDED' if backend in exceeded else ''}"
        lines.append(f"{backend}: median {median:.2f} s{said}, longest {max(each):.2f} s, {len(each)} stores")
    print("\n".join(lines))  # noqa: T201  # a report
    return int(bool(exceeded) or len(found) < len(stores))


def _first_failures(stores: Sequence[FaultyStore]) -> dict[str, tuple[float, str, str]]:
    """Give, for each store, the seconds to its first failure, its clause and its check; one store after the other."""
    began: dict[str, float] = {}
    found: dict[str, tuple[float, str, str]] = {}

    def note(message: dict[str, Any]) -> None:
        if message["kind"] == "started":
            began.setdefault(message["spec"], time.perf_counter())
        elif message["kind"] == "result" and message["result"]["verdict"] == Verdict.FAIL.value:
            result = message["result"]
            took = time.perf_counter() - began[result["spec"]]
            found.setdefault(result["spec"], (took, result["clause"], result["check"]))

    jobs = [Job(store.spec, _checks(store), until_red=ANY_CLAUSE) for store in stores]
    with Supervisor(Settings(root="", depth="quick", seed=1), note).running() as supervisor:
        supervisor.run([("faulty stores", jobs)], 1)
    return found


def _checks(store: FaultyStore) -> list[str]:
    checks = [check for check in checks_of(store.adapter.contract) if applicable(check, store.adapter)]
    return breadth_first([check.id for check in checks], frozenset(check.id for check in checks if check.several_clients))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
