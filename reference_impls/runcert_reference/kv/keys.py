r"""What lies under which key.

- ``NAMESPACE:run:RUN_ID`` is a hash with one run: ``record`` (ASCII JSON), and beside it what scripts decide by, ``tenant``,
  ``version`` and ``state``.  A purge leaves ``state`` alone, ``retired``, so that the id stays taken.
- ``NAMESPACE:resumable:TENANT_ID`` is a set of the ids of the tenant's runs that are not terminal.

Identifiers are the bytes of their UTF-8 form.  Each key has one identifier, at its end, and a namespace holds no colon: two
different identifiers, kinds or namespaces never make one key, whatever the identifiers hold.  No key ever gets a time to live.
"""

from __future__ import annotations

import re

from runcert_contract import Misconfigured, Run

__all__ = ["RESUMABLE", "RETIRED", "TERMINAL", "Keys", "bytes_of", "state_of", "text_of", "version_of"]

RESUMABLE, TERMINAL, RETIRED = b"resumable", b"terminal", b"retired"
"""The states of a run as scripts see it."""

_NAMESPACE = re.compile("[A-Za-z0-9_-]{1,64}")


class Keys:
    """The keys of one namespace.

    Args:
        namespace: the first part of every key.

    Raises:
        Misconfigured: it is no namespace.
    """

    def __init__(self, namespace: str) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise Misconfigured("a namespace has 1 to 64 letters, digits, _ or -; keys begin with it")
        self.prefix = f"{namespace}:".encode("ascii")

    @property
    def runs(self) -> bytes:
        """What the key of every run begins with."""
        return self.prefix + b"run:"

    @property
    def indexes(self) -> bytes:
        """What the key of every index begins with."""
        return self.prefix + b"resumable:"

    def run(self, run_id: str) -> bytes:
        """Give the key of a run."""
        return self.runs + bytes_of(run_id)

    def index(self, tenant_id: str) -> bytes:
        """Give the key of the index of a tenant's resumable runs."""
        return self.indexes + bytes_of(tenant_id)


def bytes_of(identifier: str) -> bytes:
    """Give the form in which an identifier is stored."""
    return identifier.encode("utf-8")


def text_of(identifier: bytes) -> str:
    """Give the identifier that is stored in this form; bytes that are no UTF-8 are shown escaped."""
    return identifier.decode("utf-8", "backslashreplace")


def state_of(run: Run) -> bytes:
    """Give the state of a run as scripts see it."""
    return TERMINAL if run.status.terminal else RESUMABLE


def version_of(run: Run) -> bytes:
    """Give the version as scripts compare it, as text: hexadecimal, because Python writes no decimal of any length."""
    return f"{run.version:x}".encode("ascii")
