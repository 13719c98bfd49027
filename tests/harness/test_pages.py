from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.harness.conftest import Finished
from tests.records import a_run

from runcert.certificate import make_certificate
from runcert.execution import CheckResult
from runcert.grading import ClauseVerdict
from runcert.reports.badges import badge_json, badge_svg
from runcert.reports.diagrams import steps_as_svg
from runcert.reports.pages import _TOPICS, comparison_page, report_page
from runcert_contract import CATALOGUE, AllClosed, Create, Find, Raised, Returned, Verdict, encode

RUNS = ["partial_run", "failed_run", "refused_run"]


class Page(HTMLParser):
    """Reads a page: its tags in pairs, its ids, what it would load, and its text."""

    VOID = ("meta", "br", "rect", "line")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("src", "data", "srcset"):
                self.loads.append(str(value))
            if name == "href":
                self.links.append(str(value))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(run: Finished) -> Page:
    return Page(report_page(run.report, run.facts))


@pytest.mark.parametrize("run", RUNS)
def test_a_page_is_whole_and_loads_and_runs_nothing(run: str, request: pytest.FixtureRequest) -> None:
    page = page_of(request.getfixturevalue(run))

    assert page.open == []
    assert page.loads == []
    assert "script" not in page.tags
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)


@pytest.mark.parametrize("run", RUNS)
def test_the_first_heading_is_the_verdict(run: str, request: pytest.FixtureRequest) -> None:
    report = request.getfixturevalue(run).report

    assert f"{report.name} is {report.outcome.value}" in " ".join(page_of(request.getfixturevalue(run)).text.split())


def test_every_clause_has_a_row_with_its_sentence_and_its_verdict(failed_run: Finished) -> None:
    page = page_of(failed_run)

    assert [clause.id for clause in failed_run.report.clauses if clause.id not in page.ids] == []
    assert all(CATALOGUE.get(clause.id).statement in page.text for clause in failed_run.report.clauses)


def test_a_failure_shows_what_was_expected_and_found_and_how_to_see_it_again(failed_run: Finished) -> None:
    failures = [failure for clause in failed_run.report.clauses for failure in clause.failures[:1]]
    text = page_of(failed_run).text

    assert failures
    assert all(failure.expected in text and failure.found in text for failure in failures)
    assert "runcert certify" in text


def test_what_is_not_said_stands_beside_what_holds(failed_run: Finished) -> None:
    text = page_of(failed_run).text

    assert text.index("What was found to hold") < text.index("What this does not say") < text.index("Clauses by topic")
    assert "never covered: " in text


def test_a_refused_store_gets_its_sentence_and_no_clauses(refused_run: Finished) -> None:
    page = page_of(refused_run)

    assert str(refused_run.report.introduction.refused) in page.text
    assert "table" not in page.tags


def test_what_a_store_says_is_text_and_never_markup_and_shows_no_password(failed_run: Finished) -> None:
    hostile = CheckResult(
        "memory", "memory", "Suite.test_one", ("RUN-CAS-1",), "RUN-CAS-1", "fail",
        expected="<script>alert(1)</script>", found="</dd><img src=x> postgresql://ann:hunter2@host/db", steps=[_step("<b>", "</svg>")],
    )  # fmt: skip
    report = replace(failed_run.report, clauses=(ClauseVerdict("RUN-CAS-1", Verdict.FAIL, "", (hostile,)),))
    text = report_page(report, failed_run.facts)
    page = Page(text)

    assert "script" not in page.tags
    assert "img" not in page.tags
    assert "b" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert "hunter2" not in text


def test_every_topic_of_the_catalogue_has_words() -> None:
    assert {clause.topic for clause in CATALOGUE.clauses} <= set(_TOPICS)


# -- colours


def _colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_on_its_ground(scheme: str) -> None:
    """The contrast is at least that of level AA of the Web Content Accessibility Guidelines, 4.5 to 1."""
    style = files("runcert.reports").joinpath("templates/style.css").read_text(encoding="utf-8")
    light, dark = style.split("@media (prefers-color-scheme: dark)")[0:2]
    colours = _colours(light if scheme == "light" else dark.split("* {")[0])
    for ground in ("page", "card"):
        for text in ("text", "quiet", "good", "bad", "open"):
            lighter, darker = sorted((_luminance(colours[text]), _luminance(colours[ground])), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (scheme, text, ground)


# -- diagrams


def _step(handle: str, stage: str) -> list[Any]:
    run = a_run(stage=stage)
    return [handle, encode(Create(run)), encode(Returned(run))]


def _texts(svg: str, kind: str) -> list[str]:
    return [str(e.text) for e in ElementTree.fromstring(svg).iter() if e.get("class") == kind]


def test_a_diagram_has_a_lane_for_each_handle_and_marks_the_last_call() -> None:
    find = ["handle 1", encode(Find("r1")), encode(Raised(ValueError("broken")))]
    svg = steps_as_svg(
        [_step("handle 1", "a"), _step("handle 2", "b"), ["", encode(AllClosed()), encode(Returned(None))], find]
    )

    assert _texts(svg, "head") == ["handle 1", "handle 2", "all handles"]
    assert len(_texts(svg, "call")) == 3
    assert len(_texts(svg, "call last")) == 1
    assert any("ValueError" in text for text in _texts(svg, "said"))


def test_a_long_call_is_cut_and_says_so() -> None:
    svg = steps_as_svg([_step("handle 1", "x" * 5000)])

    assert "  …" in _texts(svg, "made")
    assert all(len(text) <= 40 for text in _texts(svg, "made"))


def test_no_steps_make_no_diagram() -> None:
    assert steps_as_svg([]) == ""


# -- side by side


def test_a_comparison_marks_the_clauses_that_differ(partial_run: Finished, failed_run: Finished) -> None:
    certificates = [make_certificate(run.report, run.facts) for run in (partial_run, failed_run)]
    page = Page(comparison_page(certificates))

    assert page.open == []
    assert "RUN-CREATE-2 ≠" in page.text
    assert all(certificate["target"]["name"] in page.text for certificate in certificates)


# -- badges


@pytest.mark.parametrize("run", RUNS)
def test_a_badge_says_what_the_certificate_says_and_not_more(run: str, request: pytest.FixtureRequest) -> None:
    finished: Finished = request.getfixturevalue(run)
    data = json.loads(badge_json(finished.report, "quick"))
    picture = ElementTree.fromstring(badge_svg(finished.report, "quick"))

    assert data["schemaVersion"] == 1
    assert data["message"] == finished.report.outcome.value.partition(",")[0]
    assert picture.get("aria-label") == f"runcert: {data['message']}"


def test_the_badge_of_a_certified_store_names_the_depth(partial_run: Finished) -> None:
    whole = replace(partial_run.report, partial=False)

    assert json.loads(badge_json(whole, "quick"))["message"] == "certified, quick"
