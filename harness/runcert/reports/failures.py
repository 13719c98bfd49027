"""A failure as text and as a file that can be replayed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runcert.execution import CheckResult
from runcert.masking import without_passwords
from runcert.problems import UsageProblem
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import CATALOGUE, JsonValue, Returned, decode

__all__ = ["FORMAT", "failure_file", "failure_lines", "outcome_of_step", "read_failure", "replay_command", "steps_in_words"]

FORMAT = "runcert-failure/1"


def failure_lines(result: CheckResult, replay: str, sentence: str = "") -> list[str]:
    """Give a failure as lines of text: clause, expected, found, steps, and how to see it again.

    Args:
        result: what the check found.
        replay: the command that replays it.
        sentence: what the check does, in a sentence.
    """
    lines = [f"{result.clause}  {CATALOGUE.get(result.clause).statement}"]
    if sentence:
        lines.append(f"  check     {result.check}: {sentence}")
    else:
        lines.append(f"  check     {result.check}")
    lines += [f"  expected  {result.expected}", f"  found     {result.found}"]
    steps = steps_in_words(result.steps)
    if steps:
        lines.append("  steps")
        lines += [f"    {number:2}. {step}" for number, step in enumerate(steps, start=1)]
    lines.append(f"  replay    {replay}")
    return lines


def steps_in_words(steps: Sequence[JsonValue]) -> list[str]:
    """Give the calls that led to a failure, one line each."""
    return [_step(step) for step in steps]


def _step(step: Any) -> str:
    operation: Any = decode(step[1])
    if not operation.method:
        return operation_in_words(operation)
    return f"{step[0]}: {operation_in_words(operation)}  ->  {outcome_of_step(step)}"


def outcome_of_step(step: Any) -> str:
    """Give what came of the call of a step, in words; a run that came back as it was given is not written out again."""
    operation: Any = decode(step[1])
    outcome: Any = decode(step[2])
    same = isinstance(outcome, Returned) and outcome.value is not None and outcome.value in operation.arguments
    return "the run as given" if same else outcome_in_words(outcome)


def replay_command(text: str, result: CheckResult, depth: str, seed: int, file: Path | None = None) -> str:
    """Give the one command that shows a failure again.

    Args:
        text: the target as it was named.
        result: what the check found.
        depth: the depth of the run.
        seed: the seed of the run.
        file: the failure's file, where one was written.
    """
    if file is not None:
        return f"runcert replay {file}"
    clause = result.clause if result.clause in result.clauses else result.clauses[0]
    return f"runcert certify {without_passwords(text)} --only {clause} --depth {depth} --seed {seed}"


def failure_file(text: str, result: CheckResult, depth: str, seed: int) -> dict[str, Any]:
    """Give what a replay needs, as JSON."""
    return {
        "format": FORMAT,
        "target": without_passwords(text),
        "clause": result.clause,
        "statement": CATALOGUE.get(result.clause).statement,
        "check": result.check,
        "depth": depth,
        "seed": seed,
        "expected": result.expected,
        "found": result.found,
        "steps": result.steps,
    }


def read_failure(path: Path) -> dict[str, Any]:
    """Read a failure's file.

    Raises:
        UsageProblem: there is no such file, or it is not a failure's.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageProblem(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UsageProblem(f"{path} is not a failure's file: {error}") from error
    needed = {"target": str, "check": str, "clause": str, "depth": str, "seed": int}
    if not isinstance(data, dict) or data.get("format") != FORMAT or not all(type(data.get(k)) is v for k, v in needed.items()):
        raise UsageProblem(
            f"{path} is not a failure's file of the form {FORMAT}; `runcert certify --out DIR` writes them to DIR/TARGET/failures"
        )
    return data
