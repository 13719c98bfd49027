"""RUN-ID: identifiers are opaque; two different strings are two different identifiers, in every field.

An identifier that is not portable may be refused; the judge remembers which it was, field by field and string by string.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from runcert.cases import Case
from runcert.checks import clause
from runcert.handles import Handle
from runcert_contract import (
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    Namespaces,
    Operation,
    Returned,
    Run,
    RunStatus,
)
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated

IDENTITY_NAMES = ("tenant_id", "action_id", "proposal_id", "idempotency_key")
OPTIONAL_NAMES = ("owner", "approval_id", "attempt_token", "external_operation_id")
FIELDS = ("run_id", *IDENTITY_NAMES, *OPTIONAL_NAMES)
"""Every field of a run that holds an identifier."""

_LOOK_ALIKES = (
    ("Run", "run", "RUN", "rUn"),
    ("e", "\u00e9", "e\u0301", "\u00c9", "E\u0301"),
    ("A", "\uff21", "a", "\uff41", "\u00c5", "\u212b", "A\u030a"),
    ("ss", "\u00df", "SS", "\u1e9e"),
    ("i", "I", "\u0131", "\u0130"),
    ("fi", "\ufb01", "K", "\u212a", "\u03a9", "\u2126"),
    ("2", "\u00b2", "\u0662", "\uff12"),
    ("\u03c3", "\u03c2", "\u03a3"),
    ("x", " x", "x ", "x\t", "x\n", "\u00a0x", "x\u200b", "\ufeffx", "x.", "x_"),
    ("\uac00", "\u1100\u1161", "\U0001f642", "\U0001f642\ufe0f"),
)
"""Groups of strings that some comparison or normalisation takes for one another."""

_NUMERALS = ("{}", "0{}", "000{}", "{}.0", "{}.00", "+{}", "-{}", "{}e0", " {}", "0x{:x}", "{:_}")
"""Ways to write one number (or nearly): a column with a type of its own, or a parser, takes them for one another."""


@clause("RUN-ID-1", isolated=True)
class LookAlikesAreDifferent:
    """ids that differ in case, accents, width, Unicode form or surrounding space are different."""

    def test_run_ids(self, case: Case) -> None:
        """Each look-alike is a run of its own: found, updated and created without touching the others."""
        handle = case.open()
        for group in _LOOK_ALIKES:
            _are_different_runs(case, handle, _around(case.fresh_id(""), group))
        case.evidence["strings"] = sum(len(group) * 2 for group in _LOOK_ALIKES)

    def test_run_ids_in_one_listing(self, case: Case) -> None:
        """Runs of one tenant whose ids look alike are all listed (where there is a listing)."""
        if not case.claims.claims(Capability.ENUMERATES):
            return
        handle = case.open()
        for group in _LOOK_ALIKES:
            judge = Judge(case)
            tenant = case.fresh_id("t")
            for run_id in _around(case.fresh_id(""), group):
                judge.create(handle, a_run(case, run_id=run_id, tenant_id=tenant))
            judge.find_resumable(case.beside(handle), tenant)

    def test_tenants(self, case: Case) -> None:
        """Each look-alike is a tenant of its own (where there is a listing)."""
        handle = case.open()
        for group in _LOOK_ALIKES:
            _are_different_tenants(case, handle, _around(case.fresh_id(""), group))

    def test_numerals(self, case: Case) -> None:
        """Strings that read as one number are different, as run ids and as tenants."""
        handle = case.open()
        for compare in (_are_different_runs, _are_different_tenants):
            number = int.from_bytes(hashlib.sha256(case.fresh_id("n").encode()).digest()[:6])
            compare(case, handle, [form.format(number) for form in _NUMERALS])
        case.evidence["numerals"] = len(_NUMERALS)

    def test_other_identifiers(self, case: Case) -> None:
        """In every other field a look-alike comes back as it was given, and is never taken for another one."""
        handle = case.open()
        for index, group in enumerate(_LOOK_ALIKES):
            for field in _some(case, IDENTITY_NAMES[1:], index):
                values = _around(case.fresh_id(""), group)
                _are_different_identities(case, handle, field, values[: case.budget(len(group), len(values), len(values))])
            for field in _some(case, OPTIONAL_NAMES, index):
                values = _around(case.fresh_id(""), group)
                _come_back(case, handle, field, values[case.budget(len(group), 0, 0) :])


@clause("RUN-ID-2", isolated=True)
class LateDifferences:
    """ids that differ only after character 64, 128, 255 or 1024 are different."""

    def test_run_ids(self, case: Case) -> None:
        """Long run ids that begin alike are different runs, or refused as too long."""
        handle = case.open()
        for length in _lengths(case, "run_id"):
            _are_different_runs(case, handle, _differing_at(case, length))
        case.evidence["lengths"] = [*_lengths(case, "run_id")]

    def test_tenants(self, case: Case) -> None:
        """Long tenants that begin alike are different tenants (where there is a listing)."""
        handle = case.open()
        for length in _lengths(case, "tenant_id"):
            _are_different_tenants(case, handle, _differing_at(case, length))

    def test_other_identifiers(self, case: Case) -> None:
        """Long identifiers in every other field come back whole; at the quick depth the two longest lengths that are accepted are tried."""
        handle = case.open()
        enough = case.budget(2, 100, 100)
        for field in FIELDS[2:]:
            accepted = 0
            for length in reversed(_lengths(case, field)):
                compare = _are_different_identities if field in IDENTITY_NAMES else _come_back
                accepted += compare(case, handle, field, _differing_at(case, length))
                if accepted == enough:
                    break


@clause("RUN-ID-3", isolated=True)
class PatternsAreLiteral:
    r"""% _ * ? [ \ and separators in an id are literal."""

    def test_run_ids(self, case: Case) -> None:
        """An id that reads as a pattern finds, replaces and hides none of the runs that it would match."""
        handle = case.open()
        for plain, pattern in _patterns(case):
            judge = Judge(case)
            judge.accepted(judge.create(handle, a_run(case, run_id=plain)), "create of a portable id")
            for _ in range(2):
                judge.find(handle, pattern)
            missing = a_run(case, run_id=pattern)
            judge.compare_and_set(handle, missing, updated(missing, stage="by pattern"))
            judge.create(handle, missing)
            judge.compare_and_set(case.beside(handle), missing, updated(missing, stage="literal"))
            for run_id in (plain, pattern):
                judge.find(case.beside(handle), run_id)
        case.evidence["patterns"] = len(_patterns(case))

    def test_tenants(self, case: Case) -> None:
        """A tenant that reads as a pattern lists none of the tenants that it would match (where there is a listing)."""
        handle = case.open()
        for plain, pattern in _patterns(case):
            _are_different_tenants(case, handle, [plain, pattern])
            _are_different_tenants(case, handle, [f"{pattern}x", f"{plain}x"])


@clause("RUN-ID-4", isolated=True)
class CompositeKeysAreInjective:
    """composite keys are injective: ("a:b", "c") is not ("a", "b:c"), empty parts included."""

    _SEPARATORS = ("-", "_", ".", "__", "--", "", ":", "::", "/", "|", "#", ",", " ", "\\", "%2F", "\t", "\x1f", "\x00", "\n")

    def test_tenant_and_run_id(self, case: Case) -> None:
        """Whatever joins tenant and run id in a key, no two pairs meet in one."""
        handle = case.open()
        for separator in self._SEPARATORS:
            judge = Judge(case)
            a, b, c = case.fresh_id("a"), case.fresh_id("b"), case.fresh_id("c")
            pairs = [(f"{a}{separator}{b}", c), (a, f"{b}{separator}{c}")]
            _are_different_pairs(judge, handle, pairs)
        case.evidence["separators"] = len(self._SEPARATORS)

    def test_empty_and_escaped_parts(self, case: Case) -> None:
        """Parts that begin or end with the separator, or escape it, stay apart too."""
        handle = case.open()
        for separator in (":", "/", "-", "_", "|", "\\"):
            judge = Judge(case)
            a, c = case.fresh_id("a"), case.fresh_id("c")
            pairs = [
                (f"{a}{separator}", c),
                (a, f"{separator}{c}"),
                (f"{a}\\{separator}", f"{c}x"),
                (f"{a}\\", f"{separator}{c}x"),
                (f"{a}\\", f"y{separator}{c}z"),
                (f"{a}{separator}y\\", f"{c}z"),
            ]
            _are_different_pairs(judge, handle, pairs)

    def test_the_empty_string(self, case: Case) -> None:
        """The empty string as a part, where it is accepted, is a part like any other."""
        handle = case.open()
        judge = Judge(case)
        a = case.fresh_id("a")
        pairs = [("", a), (a, "")]
        if case.claims.namespaces is Namespaces.SHARED:
            pairs.pop()  # an earlier run on the same backend may have used the empty run id
        _are_different_pairs(judge, handle, [*pairs, (case.fresh_id("t"), f":{a}"), ("", f"{a}:")])


@clause("RUN-ID-5", isolated=True)
class PrefixesAreDifferent:
    """an id that is a prefix of another is another id."""

    def test_run_ids(self, case: Case) -> None:
        """`run1` is not found, replaced or taken by `run10`, in either order."""
        handle = case.open()
        for order in (1, -1):
            base = case.fresh_id("run")
            _are_different_runs(case, handle, [base, f"{base}0", f"{base}00", f"{base}.", f"{base}_1", f"{base}-1"][::order])

    def test_tenants(self, case: Case) -> None:
        """The listing of `t1` has no run of `t10`, in either order (where there is a listing)."""
        handle = case.open()
        for order in (1, -1):
            base = case.fresh_id("t")
            _are_different_tenants(case, handle, [base, f"{base}0", f"{base}00", f"{base}.", f"{base}_1", f"{base}-1"][::order])

    def test_other_identifiers(self, case: Case) -> None:
        """In the other identity fields an update from one to its prefix is a change of identity."""
        handle = case.open()
        for field in IDENTITY_NAMES[1:]:
            base = case.fresh_id("x")
            _are_different_identities(case, handle, field, [base, f"{base}0", f"{base}00"])


@clause("RUN-ID-6", isolated=True)
class EveryMethodRulesAlike:
    """an id is accepted or refused alike by every method."""

    _ODD = (
        " {}", "{} ", "{} b", "-{}", ".{}", "..{}", "\u00e9{}", "e\u0301{}", "{}%", "{}*", "{}/b", "{}\\b", "{}:b",
        "{}\x00", "{}\n", "{}\t", "\U0001f642{}", "{}~", "{}'", '{}"', "{};--", "\u202e{}", "\ufeff{}", "{}\x7f",
    )  # fmt: skip

    def test_in_every_order_of_methods(self, case: Case) -> None:
        """Whichever method sees an odd string first, all others rule as it did, in every field that they are given it in."""
        handle = case.open()
        refused = kept = 0
        forms = (*self._ODD[case.budget(case.seed % 2, 0, 0) :: case.budget(2, 1, 1)], *_long_forms(case))
        for form, field in fields_and_forms(case, forms):
            for first in range(len(_calls(case, field, ""))):
                judge = Judge(case)
                value = form.format(case.fresh_id(""))
                calls = _calls(case, field, value)
                for operation in (*calls[first:], *calls[:first], *calls):
                    judge.call(handle, operation)
                ruled = {accepted for state in judge.states for _, _, accepted in state.rulings}
                refused += False in ruled
                kept += True in ruled
        case.evidence |= {"refused": refused, "kept": kept}

    def test_on_a_run_that_is_stored(self, case: Case) -> None:
        """An update that brings in an odd string is ruled on like a create with it."""
        handle = case.open()
        for index, form in enumerate(self._ODD):
            for field in _some(case, OPTIONAL_NAMES, index):
                judge = Judge(case)
                value = form.format(case.fresh_id(""))
                run = a_run(case)
                judge.accepted(judge.create(handle, run), "create of a fresh id")
                judge.compare_and_set(handle, run, updated(run, **{field: value}))
                judge.find(case.beside(handle), run.run_id)
                judge.create(handle, a_run(case, **{field: value}))


# -- what "different" means


def _around(token: str, group: Iterable[str]) -> list[str]:
    """Give the strings of a group before a token of this check and after one, so that no other check uses them."""
    parts = list(group)
    return [f"{part}{token}" for part in parts] + [f"x{token}{part}" for part in parts]


def _some(case: Case, fields: Sequence[str], index: int) -> Sequence[str]:
    """Give all fields, or, unless the depth is exhaustive, one of them in turn."""
    return case.budget([fields[index % len(fields)]], [fields[index % len(fields)]], fields)


def _lengths(case: Case, field: str) -> list[int]:
    """Give the lengths at which two identifiers are to differ in their last character only."""
    declared = case.claims.limits.identifier_length(field)
    return sorted({64, 65, 129, 255, 256, 1025, *([] if declared is None else [declared, declared + 1])})


def _differing_at(case: Case, length: int) -> list[str]:
    start = case.fresh_id("long").ljust(length - 1, "x")
    return [f"{start}{end}" for end in "abA"]


def _patterns(case: Case) -> list[tuple[str, str]]:
    """Give pairs of a portable string and one that matches it where it is read as a pattern."""
    t = case.fresh_id("p")
    return [
        (f"{t}-doe", f"{t}_doe"),
        (f"{t}-do", f"{t}.do"),
        (f"{t}-abc", f"{t}-%"),
        (f"{t}-abd", f"%{t}-abd"),
        (f"{t}-abe", f"{t}-a*"),
        (f"{t}-abf", f"{t}-ab?"),
        (f"{t}-abg", f"{t}-ab[a-z]"),
        (f"{t}-abh", f"{t}-ab[!x]"),
        (f"{t}-abi", f"{t}-ab\\i"),
        (f"{t}-abj", f"{t}-.*"),
        (f"{t}-abk", f"^{t}-abk$"),
        (f"{t}-abl", f"{t}-(abl|x)"),
        (f"{t}-abm", f"{t}-ab{{m,n}}"),
        (f"{t}-abn", f"{t}-abn/"),
        (f"{t}-abo", f"{t}-abo:"),
        (f"{t}-abp", f"{t}-abp#"),
        (f"{t}-abq", f"{t}-abq|"),
        (f"{t}-abr", f"{t}-abr' OR '1'='1"),
        (f"{t}-abs", f"{t}-ab%73"),
    ]


def _are_different_runs(case: Case, handle: Handle, run_ids: Sequence[str]) -> None:
    """Look for each id, create a run under each, update each once, and look for all of them after each step."""
    judge = Judge(case)
    other = case.beside(handle)
    runs = [a_run(case, run_id=run_id) for run_id in run_ids]
    kept: list[Run] = []
    for run in runs:
        judge.find(handle, run.run_id)
        if isinstance(judge.create(handle, run), Returned):
            kept.append(run)
        judge.find(other, run.run_id)
    for number, run in enumerate(kept):
        judge.compare_and_set(other, run, updated(run, stage=f"update {number}"))
    for run in runs:
        judge.find(handle, run.run_id)


def _are_different_tenants(case: Case, handle: Handle, tenants: Sequence[str]) -> None:
    """Create a run for each tenant and compare every listing, before and after some of the runs have ended."""
    judge = Judge(case)
    other = case.beside(handle)
    runs = [a_run(case, tenant_id=tenant) for tenant in tenants]
    for run in runs:
        judge.create(handle, run)
    _list_all(judge, other, tenants)
    for run in runs[::2]:
        judge.compare_and_set(other, run, moved(run, RunStatus.CANCELLED))
    _list_all(judge, handle, tenants)
    for run in runs:
        judge.find(other, run.run_id)


def _list_all(judge: Judge, handle: Handle, tenants: Iterable[str]) -> None:
    if judge.case.claims.claims(Capability.ENUMERATES):
        for tenant in tenants:
            judge.find_resumable(handle, tenant)


def _are_different_identities(case: Case, handle: Handle, field: str, values: Sequence[str]) -> bool:
    """Let each value come back as it was given, and let no update take one for another; say whether all were accepted."""
    accepted = _come_back(case, handle, field, values)
    judge = Judge(case)
    for first, second in dict.fromkeys((*pairwise(values), *((values[0], value) for value in values[1:]))):
        run = a_run(case, **{field: first})
        judge.create(handle, run)
        judge.compare_and_set(handle, run, updated(run, **{field: second}))
        judge.find(handle, run.run_id)
    return accepted


def _come_back(case: Case, handle: Handle, field: str, values: Sequence[str]) -> bool:
    """Let each value come back as it was given; say whether all were accepted."""
    judge = Judge(case)
    other = case.beside(handle)
    accepted = True
    for value in values:
        run = a_run(case, **{field: value})
        accepted &= isinstance(judge.create(handle, run), Returned)
        judge.find(other, run.run_id)
        judge.compare_and_set(other, run, updated(run))
        judge.find(handle, run.run_id)
    return accepted


def _are_different_pairs(judge: Judge, handle: Handle, pairs: Sequence[tuple[str, str]]) -> None:
    """Create a run for each pair of tenant and run id, list every tenant, and end the runs one by one."""
    other = judge.case.beside(handle)
    runs = [a_run(judge.case, tenant_id=tenant, run_id=run_id) for tenant, run_id in pairs]
    for run in runs:
        judge.create(handle, run)
    tenants = [tenant for tenant, _ in pairs]
    _list_all(judge, other, tenants)
    for run in runs:
        judge.find(other, run.run_id)
        judge.compare_and_set(handle, run, moved(run, RunStatus.CANCELLED))
        _list_all(judge, other, tenants)


# -- calls with an odd string


def fields_and_forms(case: Case, forms: Sequence[str]) -> list[tuple[str, str]]:
    """Give which form to try in which field: all in all at the exhaustive depth, else a part of them in the fields that are no keys."""
    part = case.budget(6, 3, 1)
    return [
        (form, field)
        for index, form in enumerate(forms)
        for number, field in enumerate(FIELDS)
        if field in ("run_id", "tenant_id") or (index + number) % part == 0
    ]


def _long_forms(case: Case) -> list[str]:
    """Give the form of an identifier that no store has to accept, because it is longer than what is tested without a limit."""
    declared = any(case.claims.limits.identifier_length(field) is not None for field in FIELDS)
    return [] if declared else ["{}" + "x" * 300]


def _calls(case: Case, field: str, value: str) -> list[Operation]:
    """Give a call of every method that takes ``value`` as the identifier ``field``."""
    fields: dict[str, Any] = {field: value}
    run = a_run(case, **fields)
    calls: list[Operation] = [Create(run), CompareAndSet(run, updated(run))]
    if field == "run_id":
        calls.append(Find(value))
    if field == "tenant_id" and case.claims.claims(Capability.ENUMERATES):
        calls.append(FindResumable(value))
    return calls
