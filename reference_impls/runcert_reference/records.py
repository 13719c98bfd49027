"""How the reference stores write a run: ASCII JSON in the tagged encoding, which keeps every value apart."""

from __future__ import annotations

import json

from runcert_contract import CorruptRecord, Run, decode, encode

__all__ = ["read_record", "write_record"]


def write_record(run: Run) -> str:
    """Give the text under which a run is stored."""
    return json.dumps(encode(run), separators=(",", ":"))


def read_record(text: str, run_id: str) -> Run:
    """Give the run that a stored text holds.

    Args:
        text: what is stored.
        run_id: the id under which it was found.

    Raises:
        CorruptRecord: it is not a run, or another one.
    """
    try:
        run = decode(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise CorruptRecord(
            f"run {run_id!r}: the stored record cannot be read; restore it from a backup", record=run_id
        ) from error
    if not isinstance(run, Run) or run.run_id != run_id:
        raise CorruptRecord(f"run {run_id!r}: another record is stored under this id; restore it from a backup", record=run_id)
    return run
