"""How long certifications take, and what of that is the kit's.

Prints, for each reference store and depth: seconds from the command to the verdict, seconds of the checks, seconds that the same
store operations take alone (called one after the other, without the kit), and the ratio of the last two.  All in one run on one
machine, so that the ratio can be compared where the seconds cannot.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from runcert.cases import Depth, Workplace
from runcert.checks import checks_of
from runcert.execution import applicable, run_check
from runcert.handles import Handle, Step
from runcert.targets import resolve
from runcert_contract import Operation

BOUNDS = {("memory", "quick"): 8.0, ("sqlite", "quick"): 15.0, ("memory", "standard"): 90.0, ("sqlite", "standard"): 90.0}
HELP_BOUND = 0.3


def main(arguments: Sequence[str]) -> int:
    """Measure; gives 1 when a bound is exceeded."""
    repeats = int(arguments[0]) if arguments else 3
    exceeded = _measure_help(repeats)
    for (target, depth), bound in BOUNDS.items():
        runs = repeats if depth == "quick" else 1
        command = [_runcert(), "certify", target, "--depth", depth, "--seed", "1"]
        seconds = statistics.median(_seconds_of(command) for _ in range(runs))
        checks, operations = _checks_and_operations(target, Depth(depth))
        alone = _alone(target, operations)
        over = seconds > bound
        exceeded |= over
        print(  # noqa: T201  # a report
            f"{target:<7} {depth:<9} {seconds:6.2f} s of at most {bound:g} s{' EXCEEDED' if over else ''}; "
            f"checks {checks:.2f} s, {len(operations)} operations alone {alone:.2f} s, ratio {checks / alone:.1f}"
        )
    return int(exceeded)


def _measure_help(repeats: int) -> bool:
    seconds = statistics.median(_seconds_of([_runcert(), "--help"]) for _ in range(repeats))
    print(f"--help  {seconds:.2f} s of at most {HELP_BOUND:g} s")  # noqa: T201  # a report
    return seconds > HELP_BOUND


def _runcert() -> str:
    return str(Path(sys.executable).parent / "runcert")


def _seconds_of(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _checks_and_operations(name: str, depth: Depth) -> tuple[float, list[Operation]]:
    """Run every check in this process; give the seconds and the operations that were called one by one."""
    operations: list[Operation] = []
    original = Handle.call

    def call(handle: Handle, operation: Operation) -> object:
        operations.append(operation)
        return original(handle, operation)

    with tempfile.TemporaryDirectory() as root:
        target = resolve(name)[0]
        workplace = Workplace(target.spec, target.adapter, Path(root), {}, None)
        Handle.call = call  # type: ignore[method-assign,assignment]  # counts what the checks call
        try:
            started = time.perf_counter()
            for check in checks_of(target.adapter.contract):
                if applicable(check, target.adapter):
                    run_check(check, workplace, depth, 1)
            seconds = time.perf_counter() - started
        finally:
            Handle.call = original  # type: ignore[method-assign]  # as it was
            workplace.end()
    return seconds, operations


def _alone(name: str, operations: Sequence[Operation]) -> float:
    """Give the seconds that the operations take on a fresh store, called directly."""
    with tempfile.TemporaryDirectory() as root:
        target = resolve(name)[0]
        workplace = Workplace(target.spec, target.adapter, Path(root), {}, None)
        notes: list[Step] = []
        handle = workplace.open(workplace.common(), notes.append)
        started = time.perf_counter()
        for operation in operations:
            method = getattr(handle.store, operation.method)
            try:
                method(*operation.arguments)
            except Exception:  # noqa: BLE001, S112  # refusals are part of the operations
                continue
        seconds = time.perf_counter() - started
        workplace.end()
    return seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
