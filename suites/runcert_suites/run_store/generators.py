"""Hypothesis strategies for the values of the RunStore contract, within what a store claims.

Every value is inside the domain and under the declared limits, so that a store has to accept it; the one exception is
:func:`identifiers`, whose odd strings a store may refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hypothesis import strategies as st

from runcert_contract import (
    LEGAL_MOVES,
    Claims,
    JsonObject,
    JsonValue,
    Result,
    ResultStatus,
    RetryDisposition,
    Run,
    RunStatus,
    Text,
)
from runcert_contract.json_values import size_of
from runcert_contract.run_store import as_json

__all__ = [
    "identifiers",
    "instants",
    "json_objects",
    "json_values",
    "moves",
    "numbers",
    "portable_identifiers",
    "results",
    "runs",
    "texts",
    "zones",
]

_FIRST = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_DEEPEST = 3
_LONGEST = 40

_RESULT_OF = {
    RunStatus.WAITING_APPROVAL: ResultStatus.PENDING_APPROVAL,
    RunStatus.WAITING_EXTERNAL: ResultStatus.ACCEPTED,
    RunStatus.SUCCEEDED: ResultStatus.SUCCEEDED,
    RunStatus.FAILED: ResultStatus.FAILED,
    RunStatus.DENIED: ResultStatus.DENIED,
    RunStatus.CANCELLED: ResultStatus.CANCELLED,
}


def portable_identifiers(longest: int = 64) -> st.SearchStrategy[str]:
    """Give identifiers that every store accepts in every field.

    Args:
        longest: the greatest length in code points, at most what the store declared for the field.
    """
    rest = st.text(alphabet=_FIRST + ".-", max_size=longest - 1)
    return st.builds(lambda first, others: first + others, st.sampled_from(_FIRST), rest)


def identifiers() -> st.SearchStrategy[str]:
    """Give identifiers of every kind; one that is not portable may be kept exactly or refused."""
    odd = st.sampled_from(["", " ", "a ", "a:b", "a/b", "../a", "%", "_", "*", "A", "a", "É", "E\u0301", "a\0b", "\U0001f600"])
    return st.one_of(portable_identifiers(), odd, st.text(_characters(allow_nul=True), max_size=64))


def texts(claims: Claims, longest: int = _LONGEST) -> st.SearchStrategy[str]:
    """Give texts: any Unicode scalar values, U+0000 only where the store keeps it.

    Args:
        claims: what the store claims.
        longest: the greatest length in code points; a declared limit that is smaller goes before it.
    """
    limit = longest if claims.limits.text is None else min(longest, claims.limits.text)
    return st.text(_characters(allow_nul=claims.text is Text.ANY), max_size=limit)


def _characters(*, allow_nul: bool) -> st.SearchStrategy[str]:
    surrogates: Sequence[Literal["Cs"]] = ("Cs",)
    return st.characters(exclude_categories=surrogates, exclude_characters="" if allow_nul else "\0")


def numbers() -> st.SearchStrategy[int | float]:
    """Give numbers that every store keeps exactly: integers within 64 bits and finite floats."""
    return st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))


def json_values(claims: Claims, deepest: int = _DEEPEST) -> st.SearchStrategy[JsonValue]:
    """Give JSON values.

    Args:
        claims: what the store claims.
        deepest: the greatest nesting depth; a declared limit that is smaller goes before it.
    """
    return _values(claims, deepest if claims.limits.depth is None else min(deepest, claims.limits.depth))


def json_objects(claims: Claims, deepest: int = _DEEPEST) -> st.SearchStrategy[JsonObject]:
    """Give JSON objects, with any keys, the empty one too.

    Args:
        claims: what the store claims.
        deepest: the greatest nesting depth, at least 1; a declared limit that is smaller goes before it.
    """
    limit = deepest if claims.limits.depth is None else min(deepest, claims.limits.depth)
    return st.dictionaries(texts(claims, 10), _values(claims, limit - 1), max_size=4)


def _values(claims: Claims, depth: int) -> st.SearchStrategy[JsonValue]:
    scalars: st.SearchStrategy[JsonValue] = st.one_of(st.none(), st.booleans(), numbers(), texts(claims))
    if depth < 1:
        return scalars
    inner = _values(claims, depth - 1)
    return st.one_of(scalars, st.lists(inner, max_size=3), st.dictionaries(texts(claims, 10), inner, max_size=3))


def instants(claims: Claims) -> st.SearchStrategy[datetime]:
    """Give aware datetimes of the declared range, in many time zones, to the microsecond."""
    limits = claims.limits
    in_utc = st.datetimes(limits.earliest.astimezone(UTC).replace(tzinfo=None), _without_zone(limits.latest))
    return st.builds(_in_zone, in_utc, st.sampled_from(zones()))


def _without_zone(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)


def _in_zone(instant: datetime, zone: tzinfo) -> datetime:
    in_utc = instant.replace(tzinfo=UTC)
    try:
        return in_utc.astimezone(zone)
    except OverflowError:
        return in_utc


def zones() -> Sequence[tzinfo]:
    """Give time zones that tell careless stores apart: far offsets, odd ones, and clocks that are set back in autumn."""
    offsets = (0, -8 * 3600, 5 * 3600 + 1800, 14 * 3600, -12 * 3600, 1172, -(23 * 3600 + 3599))
    found: list[tzinfo] = [timezone(timedelta(seconds=offset)) for offset in offsets]
    for name in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe"):
        with suppress(ZoneInfoNotFoundError):  # a machine without time zone data
            found.append(ZoneInfo(name))
    return found


def results(claims: Claims, statuses: Sequence[ResultStatus] = tuple(ResultStatus)) -> st.SearchStrategy[Result]:
    """Give results.

    Args:
        claims: what the store claims.
        statuses: the statuses to choose from.
    """
    return st.builds(
        Result,
        status=st.sampled_from(list(statuses)),
        code=texts(claims),
        message=texts(claims),
        output=json_values(claims),
        retry=st.sampled_from(RetryDisposition),
    )


def runs(
    claims: Claims,
    run_ids: st.SearchStrategy[str] | None = None,
    tenant_ids: st.SearchStrategy[str] | None = None,
) -> st.SearchStrategy[Run]:
    """Give new runs: version 0, REQUESTED, every other field anything.

    Args:
        claims: what the store claims.
        run_ids: where the run ids come from; portable identifiers by default.  Checks of one target share a namespace, so
            a property replaces them by fresh ones.
        tenant_ids: where the tenants come from; portable identifiers by default.
    """
    portable = portable_identifiers()
    made = st.builds(
        Run,
        run_id=portable if run_ids is None else run_ids,
        tenant_id=portable if tenant_ids is None else tenant_ids,
        action_id=portable,
        proposal_id=portable,
        idempotency_key=portable,
        created_at=instants(claims),
        updated_at=instants(claims),
        stage=texts(claims),
        owner=st.none() | portable,
        recovery_count=st.integers(0, 2**31 - 1),
        approval_id=st.none() | portable,
        due_at=st.none() | instants(claims),
        attempt_token=st.none() | portable,
        external_operation_id=st.none() | portable,
        external_operation_metadata=json_objects(claims),
        input=json_objects(claims),
        context=json_objects(claims),
        failure_reason=texts(claims),
    )
    return made.filter(lambda run: _fits(run, claims))


def moves(run: Run, claims: Claims) -> st.SearchStrategy[Run]:
    """Give the next version of a run: a legal move, or none, with every moving field anything.

    Args:
        run: the run as it is; it must not be terminal.
        claims: what the store claims.
    """
    following = st.sampled_from(sorted(LEGAL_MOVES[run.status] | {run.status}, key=lambda status: status.value))
    return following.flatmap(lambda status: _moved(run, status, claims)).filter(lambda moved: _fits(moved, claims))


def _moved(run: Run, status: RunStatus, claims: Claims) -> st.SearchStrategy[Run]:
    result = results(claims, [_RESULT_OF[status]]) if status in _RESULT_OF else st.none()
    return st.builds(
        lambda moved, with_result: replace(
            run,
            version=run.version + 1,
            status=status,
            result=with_result,
            updated_at=moved.updated_at,
            stage=moved.stage,
            owner=moved.owner,
            recovery_count=moved.recovery_count,
            approval_id=moved.approval_id,
            due_at=moved.due_at,
            attempt_token=moved.attempt_token,
            external_operation_id=moved.external_operation_id,
            external_operation_metadata=moved.external_operation_metadata,
            input=moved.input,
            context=moved.context,
            failure_reason=moved.failure_reason,
        ),
        runs(claims),
        result,
    )


def _fits(run: Run, claims: Claims) -> bool:
    limit = claims.limits.accepts_up_to
    return limit is None or size_of(as_json(run)) <= limit
