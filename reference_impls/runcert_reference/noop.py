"""A store that keeps nothing, for demonstrations; the kit refuses it."""

from __future__ import annotations

from runcert_contract import Run

__all__ = ["NoopRunStore"]


class NoopRunStore:
    """Accepts every call and keeps nothing."""

    def create(self, run: Run) -> Run:
        """Give the run back and forget it."""
        return run

    def find(self, run_id: str) -> Run | None:  # noqa: ARG002  # it has nothing to look for
        """Find nothing."""
        return None

    def compare_and_set(self, expected: Run, updated: Run) -> bool:  # noqa: ARG002  # it has nothing to compare with
        """Refuse every update."""
        return False
