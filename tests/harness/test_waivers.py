from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from runcert import UsageProblem
from runcert.waivers import Waiver, read_waivers, stale_or_expired

GOOD = """
[[waiver]]
clause = "RUN-CAS-9"
reason = "known: the driver rounds"
expires = 2027-01-31

[[waiver]]
clause = "RUN-FIND-2"
reason = "replica lag"
expires = 2026-12-31
target = "sqlite"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "waivers.toml"


def test_waivers_are_read_with_target_or_without(file: Path) -> None:
    file.write_text(GOOD, encoding="utf-8")
    expected = (
        Waiver("RUN-CAS-9", "known: the driver rounds", date(2027, 1, 31)),
        Waiver("RUN-FIND-2", "replica lag", date(2026, 12, 31), "sqlite"),
    )

    assert expected == read_waivers(file)


def test_an_empty_file_waives_nothing(file: Path) -> None:
    file.write_text("", encoding="utf-8")

    assert read_waivers(file) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[waiver]]", "[[waivers]]", "expected \\[\\[waiver\\]\\] tables"),
        (
            'clause = "RUN-CAS-9"',
            'clause = "RUN-CAS-99"',
            "there is no clause 'RUN-CAS-99' in this catalogue; see `runcert clauses`",
        ),
        ('clause = "RUN-CAS-9"', "clause = 9", "is no waiver"),
        ('clause = "RUN-CAS-9"', "", "is no waiver"),
        ('reason = "known: the driver rounds"', 'reason = "  "', "is no waiver"),
        ('reason = "known: the driver rounds"', "", "is no waiver"),
        ("expires = 2027-01-31", 'expires = "2027-01-31"', "is no waiver"),
        ("expires = 2027-01-31", "", "is no waiver"),
        ("expires = 2027-01-31", "expires = 2027-01-31\nfor_ever = true", "is no waiver"),
        ("expires = 2027-01-31", "expires = 2027-01-31T00:00:00Z", "is no waiver"),
        ('target = "sqlite"', "target = 1", "is no waiver"),
        ("2027-01-31", "2027-13-31", "cannot be read as TOML"),
        (GOOD, "waiver = 7", "expected \\[\\[waiver\\]\\]"),
        (GOOD, "waiver = [1]", "expected \\[\\[waiver\\]\\]"),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_name(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(GOOD.replace(old, new), encoding="utf-8")

    with pytest.raises(UsageProblem, match=message) as refusal:
        read_waivers(file)

    assert str(file) in str(refusal.value)


def test_a_file_that_is_missing_or_cannot_be_read_is_refused(file: Path) -> None:
    with pytest.raises(UsageProblem, match="there is no file"):
        read_waivers(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageProblem, match="cannot be read as TOML"):
        read_waivers(file)
    with pytest.raises(UsageProblem, match="cannot be read as TOML"):
        read_waivers(file.parent)


TODAY = date(2026, 6, 1)
WAIVER = Waiver("RUN-CAS-9", "known", TODAY)


@pytest.mark.parametrize(
    ("waiver", "verdicts", "expected"),
    [
        (WAIVER, [("memory", "RUN-CAS-9", "waived")], []),
        (WAIVER, [("memory", "RUN-CAS-9", "fail")], []),
        (WAIVER, [("memory", "RUN-CAS-9", "pass"), ("sqlite", "RUN-CAS-9", "waived")], []),
        (WAIVER, [], []),
        (WAIVER, [("memory", "RUN-CAS-8", "pass")], []),
        (
            WAIVER,
            [("memory", "RUN-CAS-9", "pass")],
            ["the waiver of RUN-CAS-9 is stale: the clause no longer fails (pass); remove the waiver"],
        ),
        (
            Waiver("RUN-CAS-9", "known", TODAY, "sqlite"),
            [("memory", "RUN-CAS-9", "waived"), ("sqlite", "RUN-CAS-9", "pass")],
            ["the waiver of RUN-CAS-9 for sqlite is stale: the clause no longer fails (pass); remove the waiver"],
        ),
        (
            Waiver("RUN-CAS-9", "known", date(2026, 5, 31)),
            [("memory", "RUN-CAS-9", "fail")],
            ["the waiver of RUN-CAS-9 expired on 2026-05-31; mend the store or renew the waiver"],
        ),
    ],
)
def test_a_waiver_that_outlived_its_reason_is_named(
    waiver: Waiver, verdicts: list[tuple[str, str, str]], expected: list[str]
) -> None:
    assert expected == stale_or_expired([waiver], verdicts, TODAY)
