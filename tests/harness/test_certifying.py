from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runcert import Handles, Lab, Limits, RunStore, UsageProblem, adapter
from runcert.cases import Workplace
from runcert.certifying import _CHECKS_IN_A_BURST, Order, _spread, breadth_first, certify, parse_servers
from runcert.description import claims_from, describe_adapter, describe_claims
from runcert.execution import smoke
from runcert.fingerprint import environment, kit_digest
from runcert.problems import AdapterProblem
from runcert_contract import Run
from runcert_reference.adapters import memory, noop


def test_servers_are_given_by_name_and_url() -> None:
    assert parse_servers(["postgresql=postgresql://u@h/db?a=b", "redis=redis://h"]) == {
        "postgresql": "postgresql://u@h/db?a=b",
        "redis": "redis://h",
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["postgresql"], "expected NAME=URL"),
        (["=postgresql://h"], "expected NAME=URL"),
        (["postgresql="], "expected NAME=URL"),
        (["postgresql=localhost"], "expected a URL or one of wheel, system, containers"),
        (["redis=redis://a", "redis=redis://b"], "--server redis is given twice"),
    ],
)
def test_a_server_of_another_form_is_refused_with_the_way_out(texts: list[str], message: str) -> None:
    with pytest.raises(UsageProblem, match=message):
        parse_servers(texts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": ("memory", "memory")}, "the target 'memory' is named twice"),
        ({"contract": "queue"}, "there is no contract 'queue'; this revision knows run-store"),
        ({"only": ("RUN-CAS-77",)}, "there is no clause 'RUN-CAS-77' in this catalogue \\(RUN-CAS-1, "),
        ({"only": ("nonsense",)}, "there is no clause 'nonsense' in this catalogue"),
        ({"targets": ("nothing", "nobody")}, "there is no target 'nothing'(.|\n)*there is no target 'nobody'"),
        ({"only": ("RUN-CANCEL-1",)}, "nothing to run on memory: RUN-CANCEL-1 does not apply"),
    ],
)
def test_an_order_that_cannot_be_carried_out_is_refused_before_anything_is_judged(change: dict[str, Any], message: str) -> None:
    judged: list[int] = []

    def announce(count: int) -> Any:
        judged.append(count)
        return print

    with pytest.raises(UsageProblem, match=message):
        certify(replace(Order(("memory",), "quick", 1), **change), announce)

    assert judged == []


# -- smoke: is the adapter wired right?


class Lenient:
    """A store that has the operations and answers each with what it was made with."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def create(self, run: Run) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def find(self, run_id: str) -> object:
        return self.answer

    def compare_and_set(self, expected: Run, updated: Run) -> object:
        return self.answer


class Awaitable:
    def __await__(self) -> Iterator[None]:
        yield


def smoked(root: Path, store: object) -> str | None:
    def open_it(lab: Lab) -> Iterator[Any]:
        yield store

    workplace = Workplace("own", adapter(RunStore, handles=Handles.PER_THREAD)(open_it), root, {}, None)
    try:
        return smoke(workplace)
    finally:
        workplace.end()


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (object(), "it yielded object, which has no method find; yield the open store itself"),
        (Lenient(Awaitable()), "returns an awaitable; write the adapter as `async def` and claim AsyncRunStore"),
        (Lenient(KeyError("k")), "the raw error KeyError.*translate yours with @adapter"),
    ],
    ids=["no store", "awaitable", "raw error"],
)
def test_smoke_names_what_is_wired_wrongly(tmp_path: Path, store: object, message: str) -> None:
    with pytest.raises(AdapterProblem, match=message):
        smoked(tmp_path, store)


def test_smoke_judges_no_answer(tmp_path: Path) -> None:
    assert smoked(tmp_path, Lenient("nonsense")) is None


def test_smoke_refuses_a_store_that_keeps_nothing(tmp_path: Path) -> None:
    workplace = Workplace("noop", noop, tmp_path, {}, None)
    refused = smoke(workplace)
    workplace.end()

    assert refused == "a store that keeps nothing (no-op) is refused for everything but synchronous demonstrations"


# -- what a certificate says of adapter and machine


def test_the_digest_of_an_adapter_is_that_of_its_file_or_of_its_name() -> None:
    from_a_file, without_one = describe_adapter(memory)["digest"], describe_adapter(replace(memory, open=iter))["digest"]  # type: ignore[arg-type]  # it has no file

    assert len({from_a_file, without_one}) == 2
    assert without_one == describe_adapter(replace(memory, open=iter))["digest"]  # type: ignore[arg-type]  # as above


def test_limits_for_each_field_are_described_and_read_again() -> None:
    claims = replace(memory.claims, limits=Limits(identifier={"run_id": 100}, text=5))
    described = describe_claims(claims)

    assert described["limits"]["identifier"] == {"run_id": 100}
    assert claims_from(described).limits.identifier_length("run_id") == 100


def test_the_environment_names_versions_also_of_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runcert.fingerprint._NAMED", ("pytest", "no-such-package-here"))
    found = environment()

    assert found["pytest"] == pytest.__version__
    assert found["no-such-package-here"] == "not installed"
    assert len(kit_digest()) == 64


def test_checks_with_bursts_stay_in_one_process_and_the_others_are_dealt_out_around_them() -> None:
    names = [f"check {number}" for number in range(40)]
    bursts = frozenset(names[3:5])
    first, second = _spread(names, bursts, 2)

    assert bursts <= set(first)
    assert sorted(first + second) == sorted(names)
    assert len(second) == len(first) + 2 * _CHECKS_IN_A_BURST - 2
    assert _spread(names, bursts, 1) == [names]


def test_the_first_check_of_each_class_comes_first_and_bursts_come_last() -> None:
    checks = ["A.one", "A.two", "B.burst", "C.one", "C.two", "C.three", "D.one"]

    ordered = breadth_first(checks, frozenset({"B.burst"}))

    assert ["A.one", "C.one", "D.one", "A.two", "C.two", "C.three", "B.burst"] == ordered
