"""An adapter as plain data: what the certificate and the reports say of it."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from runcert.adapters import HOOKS, Adapter
from runcert_contract import (
    CATALOGUE,
    Capability,
    Claims,
    Fault,
    Handles,
    Kept,
    Limits,
    Namespaces,
    Scope,
    Stance,
    Volatile,
)

__all__ = ["claims_from", "describe_adapter", "describe_claims"]


def describe_adapter(adapter: Adapter, reach: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Give everything about an adapter that a report needs, as JSON.

    Args:
        adapter: the adapter.
        reach: what the kit was seen to reach of the store (:class:`~runcert.reach.Reach`).
    """
    options = adapter.options | reach
    return {
        "target": adapter.target,
        "contract": adapter.contract,
        "adapter": adapter.name,
        "digest": _digest(adapter),
        "source": _source(adapter),
        "claims": describe_claims(adapter.claims),
        "hooks": [name for name in HOOKS if name in adapter.hooks],
        "options": sorted(options),
        "not_a_write": sorted(adapter.not_a_write),
        "clauses": {clause.id: _applies(adapter, options, clause.id) for clause in CATALOGUE.of(adapter.contract)},
    }


def _applies(adapter: Adapter, options: frozenset[str], clause_id: str) -> dict[str, str | None]:
    answer = CATALOGUE.get(clause_id).applies_to(adapter.claims, frozenset(adapter.hooks), options)
    return {"verdict": None if answer.verdict is None else answer.verdict.value, "reason": answer.reason}


def _source(adapter: Adapter) -> dict[str, Any]:
    """Give where the adapter's function stands, or its name where there is no file."""
    try:
        return {"file": inspect.getfile(adapter.open), "line": inspect.getsourcelines(adapter.open)[1]}
    except (OSError, TypeError):
        return {"file": adapter.name, "line": 1}


def _digest(adapter: Adapter) -> str:
    """Give a digest of the file that holds the adapter, or of its name where there is no file."""
    try:
        content = Path(inspect.getfile(adapter.open)).read_bytes()
    except (OSError, TypeError):
        content = adapter.name.encode()
    return hashlib.sha256(content).hexdigest()


def describe_claims(claims: Claims) -> dict[str, Any]:
    """Give claims as JSON."""
    return {
        "scope": claims.scope.value,
        "handles": claims.handles.value,
        "namespaces": claims.namespaces.value,
        "durability": {fault.value: promise.text for fault, promise in claims.durability.items()},
        "capabilities": {capability.value: claims.stance(capability).value for capability in Capability},
        "limits": _limits(claims.limits),
        "numbers": claims.numbers.value,
        "text": claims.text.value,
        "topology": claims.topology,
        "asynchronous": claims.asynchronous,
    }


def _limits(limits: Limits) -> dict[str, Any]:
    return {entry.name: _plain(getattr(limits, entry.name)) for entry in fields(limits)}


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    return value


def claims_from(data: Mapping[str, Any]) -> Claims:
    """Give the claims that :func:`describe_claims` wrote, as far as they decide which clauses apply."""
    limits = data["limits"]
    return Claims(
        scope=Scope(data["scope"]),
        handles=Handles(data["handles"]),
        namespaces=Namespaces(data["namespaces"]),
        durability={Fault(fault): Kept() if promise == "kept" else Volatile() for fault, promise in data["durability"].items()},
        capabilities={Capability(name): Stance(stance) for name, stance in data["capabilities"].items()},
        limits=Limits(
            identifier=limits["identifier"], text=limits["text"], depth=limits["depth"], refuses_above=limits["refuses_above"]
        ),
        asynchronous=data["asynchronous"],
    )
