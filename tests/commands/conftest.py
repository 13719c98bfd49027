"""What the tests of commands share; the fixture ``runcert`` is every test's."""

from __future__ import annotations

from tests.command_line import RUNCERT, STORES, Finished, Runcert

__all__ = ["RUNCERT", "STORES", "Finished", "Runcert"]
