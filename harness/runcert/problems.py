"""What can go wrong between a user and the kit, and which exit code it has.

A run goes through three stations.  *Starting*: a target, an option, a server or the adapter is wrong; that is a
:class:`UsageProblem` and exit code 2, before anything was judged.  *Judging*: a check finds that a clause does not hold; that
is a :class:`~runcert.checks.Violation` and exit code 1.  *Losing the thread*: the adapter fails in the middle
(:class:`AdapterProblem`), a server ends (:class:`ServerLost`), or the kit fails (:class:`KitProblem`); the
run is undecided and the exit code is 3.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["AdapterProblem", "ExitCode", "KitProblem", "ServerLost", "UsageProblem", "describe_error"]


class ExitCode(IntEnum):
    """The exit codes of every command."""

    HOLDS = 0
    DOES_NOT_HOLD = 1
    COULD_NOT_START = 2
    UNDECIDED = 3


class UsageProblem(Exception):
    """The run could not start; the message names the thing, what was expected, what was found, and the way out."""


class AdapterProblem(Exception):
    """The adapter, not the store, failed: it did not open, yielded the wrong number of stores, or a hook raised."""


class KitProblem(Exception):
    """The kit itself failed; a defect to report."""


class ServerLost(Exception):
    """A server ended, or a disk became full, in the middle of a run, so what was judged since says nothing."""


def describe_error(error: BaseException) -> str:
    """Give an error as one line: its class and its message."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
