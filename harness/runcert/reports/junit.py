"""JUnit XML: one test case a clause, named by the clause id."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from runcert.grading import ClauseVerdict, TargetReport
from runcert.reports.summary import evidence_in_words
from runcert_contract import CATALOGUE, Verdict

__all__ = ["junit"]

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: TargetReport) -> str:
    """Give the verdicts on the clauses of a target as JUnit XML."""
    cases = [_case(report.name, clause) for clause in report.clauses]
    if report.introduction.refused is not None:
        cases = [_refused(report.name, report.introduction.refused)]
    suite = ElementTree.Element("testsuite", name=report.name, tests=str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _refused(target: str, sentence: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", name="refused", classname=target)
    ElementTree.SubElement(case, "failure", message=sentence)
    return case


def _case(target: str, clause: ClauseVerdict) -> ElementTree.Element:
    seconds = sum(result.seconds for result in clause.results)
    case = ElementTree.Element("testcase", name=clause.id, classname=target, time=f"{seconds:.3f}")
    statement = CATALOGUE.get(clause.id).statement
    if clause.verdict is Verdict.FAIL:
        failure = ElementTree.SubElement(case, "failure", message=_clean(statement))
        failure.text = _clean("\n".join(f"expected {f.expected}\nfound {f.found}\n" for f in clause.failures))
    elif clause.verdict in (Verdict.NOT_CLAIMED, Verdict.WAIVED):
        ElementTree.SubElement(case, "skipped", message=_clean(f"{clause.verdict.value}: {clause.reason}"))
    elif not clause.verdict.counts:
        ElementTree.SubElement(case, "error", message=_clean(f"{clause.verdict.value}: {clause.reason}"))
    else:
        output = ElementTree.SubElement(case, "system-out")
        output.text = _clean(f"{statement}\n{evidence_in_words(clause)}")
    return case


def _clean(text: str) -> str:
    """Replace what XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
