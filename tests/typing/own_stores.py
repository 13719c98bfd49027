"""Stores as a stranger has them: no base class, no import of the kit but the record."""

from __future__ import annotations

from pathlib import Path

from runcert_contract import Run


class OwnStore:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self, run: Run) -> Run:
        return run

    def find(self, run_id: str) -> Run | None:
        return None

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        return False

    def close(self) -> None: ...


class OwnAsyncStore:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def create(self, run: Run) -> Run:
        return run

    async def find(self, run_id: str) -> Run | None:
        return None

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        return False

    async def close(self) -> None: ...


class NotAStore:
    def create(self, run: Run) -> None: ...

    def find(self, run_id: int) -> Run | None:
        return None
