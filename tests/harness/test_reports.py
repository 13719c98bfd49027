from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.conftest import Finished
from tests.records import a_run

from runcert import UsageProblem
from runcert.certifying import write_results
from runcert.execution import CheckResult
from runcert.faulty import faulty_stores
from runcert.grading import ClauseVerdict, TargetReport
from runcert.reports import reference_pages
from runcert.reports.failures import failure_file, failure_lines, read_failure, replay_command, steps_in_words
from runcert.reports.fault_pages import fault_page
from runcert.reports.junit import junit
from runcert.reports.matrix import print_matrix
from runcert.reports.summary import evidence_in_words, headline, markdown, not_certified, overview_markdown, weak_promises
from runcert.reports.terminal import print_reports
from runcert.selfcheck import Row, SelfcheckReport, store_selfcheck, stored_selfcheck
from runcert_contract import AllClosed, Create, Raised, Returned, Verdict, encode


def a_failure(**fields: Any) -> CheckResult:
    given: dict[str, Any] = {"expected": "the one", "found": "the other", "seed": 7}
    return CheckResult("memory", "memory", "Suite.test_one", ("RUN-CAS-1",), "RUN-CAS-1", "fail", **(given | fields))


def with_clauses(run: Finished, *clauses: ClauseVerdict) -> TargetReport:
    return replace(run.report, clauses=clauses)


# -- JUnit


@pytest.mark.parametrize("run", ["partial_run", "failed_run", "refused_run"])
def test_junit_is_xml_with_one_case_a_clause_named_by_its_id(run: str, request: pytest.FixtureRequest) -> None:
    report = request.getfixturevalue(run).report
    (suite,) = ElementTree.fromstring(junit(report))
    expected = ["refused"] if report.introduction.refused else [clause.id for clause in report.clauses]

    assert expected == [case.get("name") for case in suite]
    assert suite.get("tests") == str(len(expected))


@pytest.mark.parametrize(
    ("verdict", "tag"),
    [
        (Verdict.PASS, "system-out"),
        (Verdict.UNSUPPORTED, "system-out"),
        (Verdict.FAIL, "failure"),
        (Verdict.NOT_CLAIMED, "skipped"),
        (Verdict.WAIVED, "skipped"),
        (Verdict.INCONCLUSIVE, "error"),
        (Verdict.NOT_RUN, "error"),
        (Verdict.ADAPTER_ERROR, "error"),
        (Verdict.KIT_ERROR, "error"),
    ],
)
def test_a_verdict_that_does_not_count_is_never_a_plain_pass_in_junit(
    partial_run: Finished, verdict: Verdict, tag: str
) -> None:
    (suite,) = ElementTree.fromstring(junit(with_clauses(partial_run, ClauseVerdict("RUN-CAS-1", verdict, "because"))))
    counted = {"failure": "failures", "error": "errors", "skipped": "skipped"}

    assert [tag] == [child.tag for child in suite[0]]
    assert [str(int(tag == name)) for name in counted] == [suite.get(counted[name]) for name in counted]


@given(text=st.text(st.characters(codec=None), max_size=30) | st.sampled_from(["\0", "\x1b[31m", "\ufffe", "]]>", "<&\"'"]))
def test_junit_parses_whatever_a_store_answered(partial_run: Finished, text: str) -> None:
    failed = ClauseVerdict("RUN-CAS-1", Verdict.FAIL, "", (a_failure(expected=text, found=text),))
    lost = ClauseVerdict("RUN-CAS-2", Verdict.KIT_ERROR, text)
    (suite,) = ElementTree.fromstring(junit(with_clauses(partial_run, failed, lost)))

    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")


def test_control_characters_are_replaced_and_the_rest_is_kept(partial_run: Finished) -> None:
    failed = ClauseVerdict("RUN-CAS-1", Verdict.FAIL, "", (a_failure(found="a\0b\x1bc\ud800d \U0001f600"),))
    failure = ElementTree.fromstring(junit(with_clauses(partial_run, failed))).find(".//failure")

    assert failure is not None
    assert "found a\ufffdb\ufffdc\ufffdd \U0001f600" in (failure.text or "")


# -- words


def test_the_headline_says_what_was_found_of_how_many_clauses(
    partial_run: Finished, failed_run: Finished, refused_run: Finished
) -> None:
    assert headline(partial_run.report, "quick") == (
        "memory: partial, no certificate (run-store, scope process, depth quick, 2 of 3 clauses)"
    )
    assert "not certified (run-store" in headline(failed_run.report, "quick")
    assert headline(refused_run.report, "quick").startswith("noop: refused: a store that keeps nothing")


def test_clauses_that_are_not_claimed_are_given_by_their_reason(partial_run: Finished) -> None:
    assert list(not_certified(partial_run.report).values()) == [["RUN-CANCEL-1"]]


@pytest.mark.parametrize(
    ("durability", "expected"),
    [
        ({}, []),
        ({"close": "kept"}, []),
        (
            {"close": "volatile"},
            ["after close: volatile (everything may be gone afterwards: a run may be created, and executed, twice)"],
        ),
        ({"close": "lost-any"}, ["after close: lost-any (acknowledged writes may be gone afterwards)"]),
    ],
)
def test_a_promise_below_kept_is_given_with_its_consequence(durability: dict[str, str], expected: list[str]) -> None:
    assert expected == weak_promises({"durability": durability})


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (ClauseVerdict("RUN-CAS-1", Verdict.FAIL, "", (a_failure(),)), "the other"),
        (ClauseVerdict("RUN-CAS-1", Verdict.FAIL, "no details"), "no details"),
        (ClauseVerdict("RUN-CAS-1", Verdict.NOT_RUN, "why"), "why"),
        (ClauseVerdict("RUN-CAS-1", Verdict.WAIVED, "until 2027", (a_failure(),)), "until 2027"),
        (ClauseVerdict("RUN-CAS-1", Verdict.PASS, "", (a_failure(),)), "1 check"),
        (
            ClauseVerdict(
                "RUN-CAS-1",
                Verdict.PASS,
                "",
                (a_failure(evidence={"values": 7}), a_failure(evidence={"by": {"a": 1, "b": []}, "ids": ["x", "y"]})),
            ),
            "2 checks; values 7; by a 1, b none; ids x, y",
        ),
    ],
)
def test_evidence_is_given_in_one_line(clause: ClauseVerdict, expected: str) -> None:
    if clause.verdict is Verdict.PASS:
        clause = replace(
            clause, results=tuple(replace(r, verdict="pass", check=f"Suite.test_{n}") for n, r in enumerate(clause.results))
        )

    assert expected == evidence_in_words(clause)


def test_the_summary_holds_every_clause_and_what_is_never_covered(partial_run: Finished) -> None:
    text = markdown(partial_run.report, partial_run.facts)

    assert all(f"| {clause.id} | {clause.verdict.value} |" in text for clause in partial_run.report.clauses)
    assert "Never covered: soak and capacity" in text
    assert "- after close: volatile" in text
    assert "not certified (" in text


def test_the_summary_shows_a_failure_with_its_steps_and_the_command_that_replays_it(failed_run: Finished) -> None:
    text = markdown(failed_run.report, failed_run.facts)

    assert "## RUN-CAS-1: compare_and_set gives True only if" in text
    assert "- expected: " in text
    assert "1. `handle 1: " in text
    assert f"Replay: `runcert certify {failed_run.report.introduction.text} --only RUN-CAS-1 --depth quick --seed 1`" in text


def test_the_summary_stays_a_table_and_shows_no_password(partial_run: Finished) -> None:
    failures = tuple(a_failure(found="a|b\nc pg://u:hunter2@h") for _ in range(5))
    report = replace(
        with_clauses(partial_run, ClauseVerdict("RUN-CAS-1", Verdict.FAIL, "", failures)), complaints=("a waiver is stale",)
    )
    text = markdown(report, partial_run.facts)

    assert "| RUN-CAS-1 | fail | a\\|b c pg://u:***@h |" in text
    assert "hunter2" not in text
    assert text.count("- check: ") == 3
    assert "- **a waiver is stale**" in text


def test_the_overview_links_to_each_target(partial_run: Finished, failed_run: Finished) -> None:
    text = overview_markdown([partial_run.report, failed_run.report])

    assert "| [memory](memory/summary.md) | partial, no certificate | 0 |" in text
    assert "| not certified | 1 |" in text


def test_the_terminal_shows_table_failure_and_verdict_without_colours_when_piped(
    failed_run: Finished, refused_run: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    many = ClauseVerdict("RUN-CAS-1", Verdict.FAIL, "", tuple(a_failure() for _ in range(5)))
    print_reports(
        [replace(failed_run.report, complaints=("a waiver is stale",)), refused_run.report, with_clauses(failed_run, many)],
        failed_run.facts,
        {},
    )
    shown = capsys.readouterr().out

    assert "\x1b" not in shown
    assert "RUN-CAS-1          fail" in shown
    assert "  expected  " in shown
    assert "  replay    runcert certify " in shown
    assert "  and 2 more checks of RUN-CAS-1" in shown
    assert "  a waiver is stale" in shown
    assert "noop: refused: " in shown


# -- failures

STEPS = [
    ["handle 1", encode(Create(a_run())), encode(Raised(KeyError("k")))],
    ["handle 2", encode(Create(a_run())), encode(Returned(object))],
]


def test_steps_are_given_as_calls_and_answers_also_where_the_answer_has_no_encoding() -> None:
    call = "create(Run(run_id='run-1', tenant_id='tenant', version=0, status=REQUESTED))"

    assert steps_in_words(STEPS) == [f"handle 1: {call}  ->  the raw error KeyError(\"'k'\")", f"handle 2: {call}  ->  <type>"]


def test_a_step_that_is_no_call_stands_without_handle_and_answer() -> None:
    steps = [["handle 1", encode(AllClosed()), encode(Returned(None))]]

    assert ["close every handle, open one again"] == steps_in_words(steps)


def test_a_failure_is_told_in_a_fixed_order() -> None:
    lines = failure_lines(a_failure(steps=STEPS), "runcert replay file.json", "an update is tried twice")
    starts = [
        "RUN-CAS-1  compare_and_set gives True",
        "  check     Suite.test_one: an update",
        "  expected  the one",
        "  found     the other",
        "  steps",
    ]
    starts += ["     1. handle 1: create(", "     2. handle 2: create(", "  replay    runcert replay file.json"]

    assert [True] * len(starts) == [line.startswith(start) for line, start in zip(lines, starts, strict=True)]


def test_a_failure_without_steps_or_sentence_is_told_without_them() -> None:
    assert len(failure_lines(a_failure(), "again")) == 5


def test_a_failure_is_replayed_from_its_file_or_by_clause_depth_and_seed() -> None:
    assert replay_command("memory", a_failure(), "quick", 3, Path("f.json")) == "runcert replay f.json"
    assert (
        replay_command("pg://u:hunter2@h", a_failure(), "quick", 3)
        == "runcert certify pg://u:***@h --only RUN-CAS-1 --depth quick --seed 3"
    )


def test_a_failures_file_is_read_again(tmp_path: Path) -> None:
    expected = failure_file("pg://u:hunter2@h", a_failure(steps=STEPS), "quick", 3)
    path = tmp_path / "failure.json"
    path.write_text(json.dumps(expected), encoding="utf-8")

    assert expected == read_failure(path)
    assert "hunter2" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        json.dumps(failure_file("memory", a_failure(), "quick", 3) | {"seed": "3"}),
        json.dumps({"format": "runcert-failure/1"}),
    ],
)
def test_a_file_that_is_no_failure_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "failure.json"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(UsageProblem, match="is not a failure's file"):
        read_failure(path)


def test_a_failures_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="there is no file"):
        read_failure(tmp_path / "nothing.json")


def test_everything_that_was_asked_for_is_written_and_old_failures_are_removed(tmp_path: Path, failed_run: Finished) -> None:
    directory = tmp_path / failed_run.report.name
    (directory / "failures").mkdir(parents=True)
    (directory / "failures" / "RUN-OLD-1-1.json").write_text("{}", encoding="ascii")
    files = write_results([failed_run.report], failed_run.facts, tmp_path)

    assert {
        "certificate.json",
        "summary.md",
        "junit.xml",
        "results.sarif",
        "report.html",
        "badge.json",
        "badge.svg",
        "failures",
    } == {path.name for path in directory.iterdir()}
    assert set(files.values()) == set((directory / "failures").iterdir())
    assert (tmp_path / "summary.md").is_file()
    assert read_failure(files[failed_run.report.name, "RUN-CAS-1", 1])["clause"] == "RUN-CAS-1"


def test_a_directory_that_cannot_be_written_is_a_usage_problem(tmp_path: Path, partial_run: Finished) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")

    with pytest.raises(UsageProblem, match="cannot write there"):
        write_results([partial_run.report], partial_run.facts, tmp_path / "file")


# -- the kill matrix


def a_row(state: str = "caught", caught_by: tuple[str, ...] = ("RUN-CREATE-2",), **fields: Any) -> Row:
    store = next(store for store in faulty_stores() if store.name == "create-replaces")
    return Row(store, state, caught_by=caught_by, **fields)


def test_the_matrix_says_who_was_caught_and_what_is_to_be_mended(capsys: pytest.CaptureFixture[str]) -> None:
    missed = a_row("missed", (), message="every check of its clause passed")
    print_matrix(SelfcheckReport((a_row(seconds=1.5), missed), ("RUN-CAS-1",), full=False), 7)
    shown = capsys.readouterr().out

    assert re.search(r"^RUN-CREATE-2 +caught +memory +create-replaces +1\.50 s$", shown, re.MULTILINE)
    assert re.search(r"^RUN-CREATE-2 +missed +memory +create-replaces +every check of its clause passed$", shown, re.MULTILINE)
    assert "RUN-CAS-1 catches nothing: no faulty store is for it" in shown
    assert "1 of 2 faulty stores caught by 1 clauses; seed 7: the kit is not to be trusted" in shown
    assert "redundant" not in shown


def test_with_every_check_on_every_store_the_matrix_names_what_no_store_needs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (a_row(caught_by=("RUN-CREATE-2",)), a_row(caught_by=("RUN-CREATE-1", "RUN-CREATE-2")))
    print_matrix(SelfcheckReport(rows, (), full=True), 7)
    shown = capsys.readouterr().out

    assert "0.00 s  also RUN-CREATE-1" in shown
    assert "redundant on these stores: RUN-CREATE-1\n" in shown
    assert "the kit can say no" in shown


@pytest.mark.parametrize("content", [None, "", "[]", '{"result": "run", "kit": "another build"}'])
def test_a_self_check_of_another_build_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if content is not None:
        store_selfcheck(SelfcheckReport((a_row(), a_row("missed")), (), full=False))
        (file,) = (tmp_path / "runcert").iterdir()
        assert {"memory": {"caught": 1, "stores": 2}} == stored_selfcheck()["backends"]
        file.write_text(content, encoding="ascii")

    assert {"result": "not run"} == stored_selfcheck()


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    store_selfcheck(SelfcheckReport((a_row(),), (), full=False))

    assert {"result": "not run"} == stored_selfcheck()


# -- the reference page


def test_the_reference_pages_are_written_into_a_directory(tmp_path: Path) -> None:
    assert reference_pages.main([str(tmp_path)]) == 0
    assert {name: make() for name, make in reference_pages.PAGES.items()} == {
        path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()
    }


def test_every_faulty_store_is_on_its_page_with_its_clause() -> None:
    rows = [row.split(" | ") for row in fault_page().splitlines() if row.startswith("| ") and "`" in row]

    assert sorted((f"`{store.name}`", store.backend) for store in faulty_stores()) == sorted(
        (row[-4].removeprefix("| "), row[-3]) for row in rows
    )
    assert "| A1 Azure/azure-functions-durable-extension#367 (twin) | `" in fault_page()


@pytest.mark.parametrize("arguments", [[], ["nowhere"], ["a", "b"]])
def test_without_a_directory_the_reference_pages_say_what_to_give(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert reference_pages.main(arguments) == 2
    assert "give the directory of the reference pages" in capsys.readouterr().err
