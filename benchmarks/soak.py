"""False alarms, counted: honest stores are certified with many seeds, and every verdict but ``certified`` is one.

Prints one line for each run as it ends, and the total at the end.  What a false alarm left (certificate, failures to replay, what
the command printed) is kept below ``--out``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runcert.targets import adapter_names

KEEPS_NOTHING = {"noop"}
"""Registered stores that are refused on purpose."""

DEPTHS = {"quick": 20, "standard": 3}
"""How many seeds each depth gets."""


@dataclass(frozen=True, slots=True)
class Run:
    """One certification of one store."""

    target: str
    depth: str
    seed: int

    @property
    def name(self) -> str:
        """What it is called in a report and in the file system."""
        return f"{re.sub('[^A-Za-z0-9._-]+', '-', self.target)}-{self.depth}-{self.seed}"


def main(arguments: Sequence[str]) -> int:
    """Run everything that was asked for; gives 1 when there was a false alarm."""
    asked = _parser().parse_args(arguments)
    targets = asked.targets or sorted(set(adapter_names()) - KEEPS_NOTHING)
    runs = [
        Run(target, depth, seed)
        for target in targets
        for depth in DEPTHS
        for seed in range(asked.first_seed, asked.first_seed + getattr(asked, depth))
    ]
    alarms = [run for run in runs if not _is_certified(run, [*_servers(asked.server), *_processes(asked.n)], asked.out)]
    print(f"{len(runs)} runs, {len(alarms)} false alarms" + "".join(f"\n  {run.name}" for run in alarms))  # noqa: T201  # a report
    return int(bool(alarms))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="only these; by default every reference store")
    for depth, seeds in DEPTHS.items():
        parser.add_argument(f"--{depth}", type=int, default=seeds, metavar="SEEDS", help=f"seeds at this depth, {seeds}")
    parser.add_argument("--first-seed", type=int, default=1, metavar="N", help="the seeds are N, N + 1, ...; 1")
    parser.add_argument("--server", action="append", default=[], metavar="NAME=URL|WAY", help="as for runcert certify")
    parser.add_argument("-n", type=int, metavar="N", help="processes at once in each run, as for runcert certify")
    parser.add_argument("--out", type=Path, default=Path("soak"), metavar="DIR", help="where false alarms are kept; soak")
    return parser


def _servers(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from ("--server", text)


def _processes(number: int | None) -> Sequence[str]:
    return () if number is None else ("-n", str(number))


def _is_certified(run: Run, options: Sequence[str], out: Path) -> bool:
    """Certify once, print the line of this run, and keep what a false alarm left."""
    with tempfile.TemporaryDirectory() as directory:
        command = [str(Path(sys.executable).parent / "runcert"), "certify", run.target, "--depth", run.depth]
        command += ["--seed", str(run.seed), "--out", directory, *options]
        started = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        seconds = time.perf_counter() - started
        verdicts = _verdicts(Path(directory)) or [f"exit code {done.returncode}"]
        certified = done.returncode == 0 and set(verdicts) == {"certified"}
        print(  # noqa: T201  # a report
            f"{run.target:<17} {run.depth:<9} seed {run.seed:<6} {seconds:7.1f} s  "
            f"{', '.join(verdicts)}{'' if certified else '  FALSE ALARM'}",
            flush=True,
        )
        if not certified:
            shutil.copytree(directory, out / run.name, dirs_exist_ok=True)
            (out / run.name / "output.txt").write_text(done.stdout, encoding="utf-8")
    return certified


def _verdicts(directory: Path) -> list[str]:
    """Give the verdict of each certificate that a run wrote; none where it did not come so far."""
    certificates = sorted(directory.glob("*/certificate.json"))
    return [str(json.loads(file.read_text(encoding="utf-8"))["verdict"]) for file in certificates]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
