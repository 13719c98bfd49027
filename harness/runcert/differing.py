"""Where stores differ: what each answers to one program of calls, side by side.

Certifying asks whether a store keeps the contract; this asks where two stores that may both keep it are not the same, which is what
somebody who changes from one to the other has to know.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from runcert.problems import UsageProblem
from runcert.targets import check_unique
from runcert_contract import Capability, Stance

if TYPE_CHECKING:
    from runcert.supervisor import Supervisor

__all__ = ["Answer", "Difference", "Differences", "differences_of", "differences_text", "find_differences"]

_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Answer:
    """What a store answered to one call.

    Attributes:
        call: the call in words.
        comparable: a text that is equal for two answers exactly when they are the same.
        said: the answer in words.
        permitted: whether the contract permits it; None where nobody can tell, because an earlier answer was not permitted.
    """

    call: str
    comparable: str
    said: str
    permitted: bool | None

    def to_json(self) -> dict[str, Any]:
        """Give the answer as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which the answers differ.

    Attributes:
        number: the number of the first call that shows it, from 1.
        answers: what each store answered to that call.
        alike: how many calls show it.
    """

    number: int
    answers: tuple[Answer, ...]
    alike: int


@dataclass(frozen=True, slots=True)
class Differences:
    """How stores compare over a program of calls.

    Attributes:
        names: the stores.
        seed: decides the program.
        calls: how many calls there were.
        differing: how many of them were answered differently.
        ways: the ways in which they were, and the answers that the contract does not permit, also where all gave the same.
        forbidden: the stores that gave an answer that the contract does not permit.
    """

    names: tuple[str, ...]
    seed: int
    calls: int
    differing: int
    ways: tuple[Difference, ...]
    forbidden: tuple[str, ...]


def find_differences(
    supervisor: Supervisor,
    targets: Sequence[str],
    seed: int,
    length: int,
) -> Differences:
    """Give every store the same calls and compare what they answer.

    Args:
        supervisor: runs the stores, each target in a process of its own.
        targets: at least two stores, as they are named on the command line.
        seed: decides the calls.
        length: how many calls.

    Raises:
        UsageProblem: a target cannot be loaded, there is only one, or one keeps nothing.
    """
    introductions = supervisor.introduce(targets)
    check_unique(introduction.name for introduction in introductions)
    if len(introductions) < 2:
        raise UsageProblem(f"{introductions[0].name} is one store; name at least two, so that there is something to compare")
    for introduction in introductions:
        if introduction.refused is not None:
            raise UsageProblem(f"{introduction.name}: {introduction.refused}")
    lists = all(_lists(introduction.description["claims"]) for introduction in introductions)
    # where namespaces are shared, a second run with one seed must not meet the records of the first
    token = secrets.token_hex(4)
    answers = {
        introduction.name: supervisor.answers(introduction, seed=seed, length=length, lists=lists, token=token)
        for introduction in introductions
    }
    return differences_of(answers, seed)


def _lists(claims: Mapping[str, Any]) -> bool:
    return bool(claims["capabilities"].get(Capability.ENUMERATES.value) == Stance.CLAIMED.value)


def differences_of(answers: Mapping[str, Sequence[Answer]], seed: int) -> Differences:
    """Compare answers, call by call.

    Args:
        answers: by store, all to the same calls.
        seed: the seed of the program.
    """
    rows = list(zip(*answers.values(), strict=True))
    differ = {number for number, row in enumerate(rows, start=1) if len({answer.comparable for answer in row}) > 1}
    first: dict[tuple[str, ...], tuple[int, tuple[Answer, ...]]] = {}
    counted: Counter[tuple[str, ...]] = Counter()
    for number, row in enumerate(rows, start=1):
        if number in differ or any(answer.permitted is False for answer in row):
            first.setdefault(_way(row), (number, row))
            counted[_way(row)] += 1
    ways = tuple(Difference(number, row, counted[way]) for way, (number, row) in first.items())
    forbidden = tuple(name for name, given in answers.items() if any(answer.permitted is False for answer in given))
    return Differences(tuple(answers), seed, len(rows), len(differ), ways, forbidden)


def _way(row: Sequence[Answer]) -> tuple[str, ...]:
    """Give what two calls have in common that show the same difference: the operation, and what kind of answer each store gave."""
    kinds = (" ".join(answer.comparable.partition("(")[0].split()[:2]) for answer in row)
    return (row[0].call.partition("(")[0], *kinds, *(str(answer.permitted) for answer in row))


def differences_text(differences: Differences) -> str:
    """Give the differences for people: each way once, with its first call."""
    names = ", ".join(differences.names)
    head = f"{names}: {differences.calls} calls, seed {differences.seed}"
    if not differences.differing:
        lines = [f"{head}; all answers are the same"]
    else:
        lines = [f"{head}; {differences.differing} answers differ"]
    width = max(len(name) for name in differences.names)
    for way in differences.ways:
        alike = f", and {way.alike - 1} more like it" if way.alike > 1 else ""
        lines += ["", f"call {way.number}{alike}: {_cut(way.answers[0].call)}"]
        for name, answer in zip(differences.names, way.answers, strict=True):
            lines.append(f"  {name:<{width}}  {_cut(answer.said)}{_PERMITTED[answer.permitted]}")
    lines += [
        "",
        *(f"{name} broke the contract: `runcert certify` tells which clause" for name in differences.forbidden),
    ]
    if differences.differing and not differences.forbidden:
        lines.append("the contract permits every one of these answers")
    return "\n".join(lines).rstrip()


_PERMITTED = {True: "", False: "  <- not permitted", None: "  (after an answer that was not permitted)"}


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
