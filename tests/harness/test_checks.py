from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from runcert.cases import Depth, Workplace
from runcert.checks import Check, Inconclusive, Violation, checks_of, clause, proves_absent, suite_packages
from runcert.execution import CheckResult, applicable, run_check, seed_of
from runcert.problems import AdapterProblem, KitProblem
from runcert_contract import CATALOGUE, Capability
from runcert_reference.adapters import memory, memory_async, noop

HEAD = "from runcert.checks import clause, proves_absent\nfrom runcert_contract import Capability\n"
GOOD = (
    HEAD
    + '''
@clause("RUN-CAS-1", "RUN-CAS-2", isolated=True)
class Updating:
    """Updates are guarded."""

    def test_second(self, case):
        """The second line of the file comes first."""

    def test_first(self, case): ...

    def no_test(self, case): ...

@proves_absent(Capability.ENUMERATES, "RUN-LIST-1")
class Absent:
    def test_that_it_is_absent(self, case): ...

class Plain:
    def test_nothing(self, case): ...
'''
)


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Register a package of suites under the contract `mine`; each test has one of its own name."""
    name = "suite_" + "".join(c for c in tmp_path.name if c.isalnum()) + f"_{abs(hash(tmp_path))}"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("mine", name, "runcert.suites")
    monkeypatch.setattr("runcert.checks.entry_points", lambda group: [entry, entry] if group == "runcert.suites" else [])

    def write(module: str, text: str) -> None:
        (package / f"{module}.py").write_text(text, encoding="utf-8")

    return write


def test_checks_are_the_test_methods_of_marked_classes_by_module_and_line(suite: Callable[[str, str], None]) -> None:
    suite("second", GOOD.replace("Updating", "Other").replace("Absent", "Gone"))
    suite("first", GOOD)
    found = checks_of("mine")

    assert ["Updating.test_second", "Updating.test_first", "Absent.test_that_it_is_absent"] == [check.id for check in found[:3]]
    assert len(found) == 6
    assert found[0].clauses == ("RUN-CAS-1", "RUN-CAS-2")
    assert [(True, None), (True, None), (False, Capability.ENUMERATES)] == [(c.isolated, c.proves_absent) for c in found[:3]]


def test_the_sentence_of_a_check_is_its_own_or_its_classs_or_its_name(suite: Callable[[str, str], None]) -> None:
    suite("first", GOOD)

    assert ["The second line of the file comes first.", "Updates are guarded.", "test that it is absent"] == [
        c.sentence for c in checks_of("mine")
    ]


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            {"a": GOOD, "b": GOOD.replace("Absent", "Gone")},
            "names these checks twice: Updating.test_first, Updating.test_second",
        ),
        (
            {"a": HEAD + '@clause("RUN-CAS-7")\nclass A: ...\n'},
            "cannot be imported: KeyError.*no clause 'RUN-CAS-7' in revision 2",
        ),
        ({"a": "import no_such_module_here\n"}, "cannot be imported: ModuleNotFoundError"),
        ({"a": "def broken(:\n"}, "cannot be imported: SyntaxError"),
    ],
    ids=["doubled", "unknown clause", "missing module", "syntax error"],
)
def test_a_suite_that_cannot_be_trusted_is_refused(
    suite: Callable[[str, str], None], modules: dict[str, str], message: str
) -> None:
    for module, text in modules.items():
        suite(module, text)

    with pytest.raises(KitProblem, match=message):
        checks_of("mine")


def test_a_contract_without_a_suite_is_a_problem_of_the_kit() -> None:
    with pytest.raises(KitProblem, match="no suite is installed for the contract 'nothing'; reinstall runcert"):
        checks_of("nothing")
    with pytest.raises(KitProblem, match="no suite is installed for the contract 'nothing'"):
        suite_packages("nothing")


def test_a_clause_that_is_not_in_the_catalogue_cannot_be_marked() -> None:
    with pytest.raises(KeyError, match="RUN-CAS-99"):
        clause("RUN-CAS-1", "RUN-CAS-99")


@pytest.mark.parametrize("check", checks_of("run-store"), ids=lambda check: check.id)
def test_every_check_of_the_suite_says_what_it_does_and_judges_known_clauses(check: Check) -> None:
    assert len(check.sentence.split()) >= 2
    assert set(check.clauses) <= {clause.id for clause in CATALOGUE.clauses}
    assert check.clauses


def test_a_violation_says_both_sides_and_may_name_its_clause() -> None:
    violation = Violation("True", "False", "RUN-CAS-2")

    assert str(violation) == "expected True; found False"
    assert (violation.expected, violation.found, violation.clause) == ("True", "False", "RUN-CAS-2")


# -- running one


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Workplace]:
    made = Workplace("memory", memory, tmp_path, {}, None)
    yield made
    made.end()


def a_check(function: Callable[..., None], *, isolated: bool = False) -> Check:
    return Check("Suite.test_one", ("RUN-CAS-1", "RUN-CAS-2"), function, isolated, None, "A check.")


def raising(error: BaseException) -> Check:
    def check(case: object) -> None:
        raise error

    return a_check(check)


@pytest.mark.parametrize(
    ("error", "verdict", "clause_id", "found"),
    [
        (Violation("a", "b"), "fail", "RUN-CAS-1", "b"),
        (Violation("a", "b", "RUN-CAS-2"), "fail", "RUN-CAS-2", "b"),
        (Inconclusive("nothing overlapped"), "inconclusive", "RUN-CAS-1", "nothing overlapped"),
        (AdapterProblem("the hook raised"), "adapter-error", "RUN-CAS-1", "the hook raised"),
        (ZeroDivisionError("by zero"), "kit-error", "RUN-CAS-1", "ZeroDivisionError: by zero (test_checks.py:"),
        (AssertionError("a plain assert"), "kit-error", "RUN-CAS-1", "AssertionError: a plain assert"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_a_check_raises_decides_its_verdict(
    workplace: Workplace, error: Exception, verdict: str, clause_id: str, found: str
) -> None:
    result, raised = run_check(raising(error), workplace, Depth.QUICK, 1)

    assert (result.verdict, result.clause, raised) == (verdict, clause_id, error)
    assert result.found.startswith(found)


def test_a_check_that_returns_passes_and_keeps_its_evidence(workplace: Workplace) -> None:
    def check(case: object) -> None:
        case.evidence["values"] = 7  # type: ignore[attr-defined]  # a case

    result, raised = run_check(a_check(check), workplace, Depth.QUICK, 1)

    assert (result.verdict, result.evidence, result.steps, raised) == ("pass", {"values": 7}, [], None)


def test_a_failure_shows_neither_the_secret_of_the_run_nor_a_password(workplace: Workplace) -> None:
    result, _ = run_check(raising(Violation(f"not {workplace.secret}", "pg://u:hunter2@h")), workplace, Depth.QUICK, 1)

    assert (result.expected, result.found) == ("not <the secret of this run>", "pg://u:***@h")


def test_a_result_comes_back_from_json(workplace: Workplace) -> None:
    result, _ = run_check(raising(Violation("a", "b")), workplace, Depth.QUICK, 1)

    assert result == CheckResult.from_json(result.to_json())


def test_the_seed_of_a_check_depends_on_its_name_and_the_runs_seed_alone() -> None:
    one, other = raising(Violation("a", "b")), Check("Suite.test_two", ("RUN-CAS-1",), print, False, None, "Another.")

    assert seed_of(1, one) == seed_of(1, one)
    assert len({seed_of(1, one), seed_of(2, one), seed_of(1, other)}) == 3


@pytest.mark.parametrize("depth", list(Depth))
def test_a_depth_chooses_its_own_value(depth: Depth) -> None:
    assert depth.value == depth.choose("quick", "standard", "exhaustive")


def test_a_check_runs_where_the_first_of_its_clauses_applies() -> None:
    lists = Check("Suite.test_list", ("RUN-LIST-1",), print, False, None, "Lists.")
    absent = Check("Suite.test_absent", ("RUN-LIST-1",), print, False, Capability.ENUMERATES, "Absent.")
    cancels = Check("Suite.test_cancel", ("RUN-CANCEL-1", "RUN-BOUND-1"), print, False, None, "Cancels.")

    assert [True, True, False] == [applicable(lists, adapter) for adapter in (memory, memory_async, noop)]
    assert [False, False, False] == [applicable(absent, adapter) for adapter in (memory, memory_async, noop)]
    assert [False, True] == [applicable(cancels, adapter) for adapter in (memory, memory_async)]


def test_marks_do_not_change_the_class() -> None:
    class Suite:
        pass

    assert clause("RUN-CAS-1")(Suite) is Suite
    assert proves_absent(Capability.ENUMERATES, "RUN-LIST-1")(Suite) is Suite


def test_the_suite_of_the_contract_is_the_one_of_this_distribution() -> None:
    assert ["runcert_suites.run_store"] == [package.__name__ for package in suite_packages("run-store")]


@pytest.mark.parametrize("interruptible", [True, False])
def test_an_interrupt_is_a_persons_where_one_is_there_and_else_the_stores(workplace: Workplace, interruptible: bool) -> None:
    check = raising(KeyboardInterrupt())
    if interruptible:
        with pytest.raises(KeyboardInterrupt):
            run_check(check, workplace, Depth.QUICK, 1)
        return
    result, error = run_check(check, workplace, Depth.QUICK, 1, interruptible=False)

    assert ("adapter-error", "the store raised KeyboardInterrupt; nobody pressed Ctrl-C") == (result.verdict, result.found)
    assert isinstance(error, AdapterProblem)
