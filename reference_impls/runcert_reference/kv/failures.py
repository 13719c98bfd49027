"""From what driver and server raise to the errors of the contract, in one place.

The server's errors begin with a code, and the decision goes by it.  Where a connection fails, it depends on how far the call
was: before the command was sent nothing was written; after that nobody knows what became of a write.
Messages name the record and the way out; neither the URL nor what was sent is ever part of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum

from redis.exceptions import ConnectionError as ServerLost
from redis.exceptions import InvalidResponse, RedisError, ResponseError
from redis.exceptions import TimeoutError as ServerSilent

from runcert_contract import Contended, CorruptRecord, Misconfigured, OutcomeUnknown, StoreError, StoreUnavailable

__all__ = ["Stage", "translated"]


class Stage(Enum):
    """How far a call is."""

    CONNECTING = "nothing of the command was sent"
    READING = "a command that writes nothing was sent"
    WRITING = "a command that writes was sent"


_MISCONFIGURED = {
    "NOAUTH": "the server wants a password; put it into the address",
    "WRONGPASS": "the server refuses this user and password; put the right ones into the address",
    "NOPERM": "this user may not run the commands or touch the keys of this store; extend its permissions",
    "READONLY": "the server is a replica and takes no writes; name the primary",
    "MOVED": "the server is part of a cluster, which this store does not use; name a server with cluster mode off",
    "CROSSSLOT": "the server is part of a cluster, which this store does not use; name a server with cluster mode off",
}
_UNAVAILABLE = {
    "LOADING": "the server is still loading its data; try again when it is ready",
    "OOM": "the server is out of memory and takes no writes; give it more, then try again",
    "MISCONF": "the server cannot write to its disk and takes no writes; try again when it can",
    "NOREPLICAS": "the server has too few replicas and takes no writes; try again when they are back",
    "MASTERDOWN": "the server has lost its primary; try again when that is back",
    "CLUSTERDOWN": "the cluster of the server is down; try again when it is back",
}

_MEANINGS: Mapping[str, tuple[type[StoreError], str]] = {
    **{code: (Misconfigured, sentence) for code, sentence in _MISCONFIGURED.items()},
    **{code: (StoreUnavailable, sentence) for code, sentence in _UNAVAILABLE.items()},
    "BUSY": (Contended, "the server is busy with another script; try again"),
    "WRONGTYPE": (CorruptRecord, "a value of another kind lies under a key of this store; restore it from a backup"),
}
"""What each code of the server means; with every one of these nothing was written."""

_OTHERWISE: Mapping[Stage, tuple[type[StoreError], str]] = {
    Stage.CONNECTING: (StoreUnavailable, "the server cannot be reached; try again when it is back"),
    Stage.READING: (StoreUnavailable, "the server did not answer; try again when it is back"),
    Stage.WRITING: (
        OutcomeUnknown,
        "the answer of the server was lost, so the write may have taken effect; read before you go on",
    ),
}


@contextmanager
def translated(stage: Stage, what: str, *, record: str | None = None) -> Iterator[None]:
    """Let no error of driver, server or system out of the body.

    Args:
        stage: how far the call is.
        what: what the operation is about, for messages: "run 'r1'".
        record: the id of the record, where there is one.

    Raises:
        StoreError: the error of the contract that the error stands for.
    """
    try:
        yield
    except (RedisError, OSError, UnicodeError) as error:  # UnicodeError: a host that can be no name
        kind, sentence = _MEANINGS.get(_code(error)) or _meaning_without_code(error, stage)
        if kind is CorruptRecord:
            raise CorruptRecord(f"{what}: {sentence}", record=record) from error
        raise kind(f"{what}: {sentence}") from error


def _code(error: BaseException) -> str:
    """Give the code of the server, or nothing where the server said nothing."""
    if isinstance(error, InvalidResponse):
        return ""
    given = getattr(error, "status_code", None)
    return str(given or (str(error).partition(" ")[0] if isinstance(error, ResponseError) else ""))


def _meaning_without_code(error: BaseException, stage: Stage) -> tuple[type[StoreError], str]:
    if stage is Stage.CONNECTING and isinstance(error, ResponseError) and not isinstance(error, (ServerLost, ServerSilent)):
        return Misconfigured, "the server refuses this connection (user, password or database); correct the address"
    return _OTHERWISE[stage]
