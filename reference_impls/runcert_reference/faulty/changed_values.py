"""What faulty stores have in common that change a record on its way in or into storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runcert.faulty import deviates
from runcert_contract import Run, canonical
from runcert_reference.memory import MemoryRunStore

__all__ = ["ChangesWhatIsStored", "CoercesWhatIsGiven", "with_texts", "with_values"]


def with_values(run: Run, change: Callable[[Any], Any]) -> Run:
    """Give ``run`` with ``change`` applied to every JSON value in it, innermost first."""
    result = run.result
    if result is not None and hasattr(result, "output"):
        result = replace(result, output=_changed(result.output, change))
    return replace(
        run,
        input=_changed(run.input, change),
        context=_changed(run.context, change),
        external_operation_metadata=_changed(run.external_operation_metadata, change),
        result=result,
    )


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) is list:
        return change([_changed(item, change) for item in value])
    if type(value) is dict:
        return change({key: _changed(item, change) for key, item in value.items()})
    return change(value)


def with_texts(run: Run, change: Callable[[str], str]) -> Run:
    """Give ``run`` with ``change`` applied to its text fields and to every text in its JSON."""
    changed = with_values(run, lambda value: change(value) if isinstance(value, str) else value)
    return replace(changed, stage=change(run.stage), failure_reason=change(run.failure_reason))


class ChangesWhatIsStored(MemoryRunStore):
    """Stores :meth:`stored_form` of each run in place of the run."""

    def stored_form(self, run: Run) -> Run:
        raise NotImplementedError  # each faulty store says how

    def _put(self, run: Run) -> None:
        stored = self.stored_form(run)
        if canonical(stored) != canonical(run):
            deviates()
        super()._put(stored)


class CoercesWhatIsGiven(MemoryRunStore):
    """Takes :meth:`coerced` of each run in place of the run, before anything is checked."""

    def coerced(self, run: Run) -> Run:
        raise NotImplementedError  # each faulty store says how

    def _coerced(self, run: Any) -> Any:
        if not isinstance(run, Run):
            return run
        coerced = self.coerced(run)
        if canonical(coerced) != canonical(run):
            deviates()
        return coerced

    def create(self, run: Run) -> Run:
        return super().create(self._coerced(run))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        return super().compare_and_set(self._coerced(expected), self._coerced(updated))
