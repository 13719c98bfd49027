"""Faults with values outside the domain or over a limit."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from runcert.faulty import deviates
from runcert_contract import InvalidIdentifier, InvalidRecord, Run, RunStatus, StoreError, TooLarge, check_new_run, check_run
from runcert_reference.faulty.changed_values import CoercesWhatIsGiven, with_texts, with_values
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import CLAIMS, MemoryRunStore, MemorySpace

_LONGEST_TEXT = CLAIMS.limits.text or 0


@faulty_memory("RUN-INPUT-1", source="K3 langflow-ai/langflow#11905")
class NanIsKept(MemoryRunStore):
    """A number that is not finite is stored as a token that only some readers understand."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except InvalidRecord as error:
            if "finite" not in str(error):
                raise
            deviates()
            self._put(run)
            return self._read(run.run_id)


@faulty_memory("RUN-INPUT-1", source="K3 twin: NaN becomes null")
class NanBecomesNull(CoercesWhatIsGiven):
    """A number that is not finite is stored as null."""

    def coerced(self, run: Run) -> Run:
        return with_values(run, lambda value: None if isinstance(value, float) and not math.isfinite(value) else value)


@faulty_memory("RUN-INPUT-1", source="the clause: tuples")
class TuplesBecomeLists(CoercesWhatIsGiven):
    """A tuple or set is stored as a list."""

    def coerced(self, run: Run) -> Run:
        return with_values(run, lambda value: list(value) if isinstance(value, (tuple, set)) else value)


@faulty_memory("RUN-INPUT-1", source="the clause: keys")
class KeysBecomeTexts(CoercesWhatIsGiven):
    """Keys that are no texts are turned into texts, as json.dumps does."""

    def coerced(self, run: Run) -> Run:
        return with_values(
            run, lambda value: {str(key): item for key, item in value.items()} if isinstance(value, dict) else value
        )


@faulty_memory("RUN-INPUT-1", source="the clause: lone surrogates")
class SurrogatesBecomeQuestionMarks(CoercesWhatIsGiven):
    """What cannot be encoded as UTF-8 is replaced."""

    def coerced(self, run: Any) -> Any:
        if not isinstance(run.stage, str) or not isinstance(run.failure_reason, str):
            return run
        return with_texts(run, lambda text: text.encode("utf-8", "replace").decode("utf-8"))


@faulty_memory("RUN-INPUT-1", source="K6 MemMachine/MemMachine#1558: naive ones are refused")
class NaiveInstantsBecomeUtc(CoercesWhatIsGiven):
    """A naive datetime is taken for one in UTC."""

    def coerced(self, run: Run) -> Run:
        aware: dict[str, Any] = {}
        for name in ("created_at", "updated_at", "due_at"):
            value = getattr(run, name)
            if isinstance(value, datetime) and value.tzinfo is None:
                aware[name] = value.replace(tzinfo=UTC)
        return replace(run, **aware)


@faulty_memory("RUN-INPUT-1", source="the clause: True is not 1")
class CountsAreConverted(CoercesWhatIsGiven):
    """Whatever int() takes is a count."""

    def coerced(self, run: Run) -> Run:
        try:
            return replace(run, version=int(run.version), recovery_count=int(run.recovery_count))
        except (TypeError, ValueError):
            return run


@faulty_memory("RUN-INPUT-1", source="the clause: statuses")
class StatusesByName(CoercesWhatIsGiven):
    """The name of a status is taken for the status."""

    def coerced(self, run: Run) -> Run:
        return replace(run, status=RunStatus(run.status)) if isinstance(run.status, str) else run


@faulty_memory("RUN-INPUT-1", source="the clause: storage is touched before the check")
class InvalidRunsAreStoredFirst(MemoryRunStore):
    """create stores the run and then refuses it."""

    def create(self, run: Any) -> Run:
        try:
            return super().create(run)
        except InvalidRecord:
            if isinstance(run, Run) and run.run_id not in self._space.entries:
                deviates()
                self._put(replace(run, version=0, status=RunStatus.REQUESTED, input={}))
            raise


@faulty_memory("RUN-INPUT-1", source="the clause: what is no identifier")
class NothingIsFoundUnderWhatIsNoText(MemoryRunStore):
    """find answers None for what is no text, as if it had looked."""

    def find(self, run_id: Any) -> Run | None:
        if not isinstance(run_id, str):
            deviates()
            return None
        return super().find(run_id)


@faulty_memory("RUN-INPUT-1", source="the clause: only create checks")
class UpdatesAreNotChecked(MemoryRunStore):
    """compare_and_set checks types only at the top of each object."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        try:
            return super().compare_and_set(expected, updated)
        except InvalidRecord as error:
            if "[" not in str(error):
                raise
            deviates()
            return True


@faulty_memory("RUN-INPUT-2", source="the clause: state first")
class StateIsLookedAtFirst(MemoryRunStore):
    """create says that the id is taken before it looks at the run."""

    def create(self, run: Any) -> Run:
        if isinstance(run, Run) and run.run_id in self._space.entries:
            deviates()
            return super().create(
                replace(run, version=0, status=RunStatus.REQUESTED, input={}, due_at=None, owner=None, stage="")
            )
        return super().create(run)


@faulty_memory("RUN-INPUT-2", source="the clause: a stale update is not looked at")
class StaleUpdatesAreNotLookedAt(MemoryRunStore):
    """compare_and_set answers False for a stale version whatever is wrong with the update."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        try:
            return super().compare_and_set(expected, updated)
        except StoreError:
            entry = self._space.entries.get(expected.run_id)
            if entry is not None and entry.version == expected.version:
                raise
            deviates()
            return False


@faulty_memory("RUN-INPUT-2", source="the clause: size before record")
class SizesAreCheckedFirst(MemoryRunStore):
    """A text over its limit is refused as such before identifiers and values are looked at."""

    def create(self, run: Run) -> Run:
        stage: object = getattr(run, "stage", None)
        if isinstance(stage, str) and len(stage) > _LONGEST_TEXT:
            deviates()
            raise TooLarge(f"run {run.run_id!r}: the stage is too long")
        return super().create(run)


@faulty_memory("RUN-INPUT-2", source="the clause: record before identifier")
class RecordsAreCheckedBeforeIdentifiers(MemoryRunStore):
    """What is wrong with a value is said before what is wrong with an identifier."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except InvalidIdentifier:
            deviates()
            check_new_run(replace(run, run_id="r", tenant_id="t", owner=None, attempt_token=None), CLAIMS)
            raise


@faulty_memory("RUN-INPUT-3", source="K7 kvesteri/sqlalchemy-utils#164: cut in place of refused")
class LongTextsAreCut(CoercesWhatIsGiven):
    """A text over the limit is cut to it, without a word."""

    def coerced(self, run: Any) -> Any:
        return replace(run, stage=run.stage[:_LONGEST_TEXT]) if isinstance(run.stage, str) else run


@faulty_memory("RUN-INPUT-3", source="K7 twin: the write happens, then it is refused")
class LargeRunsAreStoredAndRefused(MemoryRunStore):
    """A run over the limit is stored, and then create raises TooLarge."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except TooLarge:
            deviates()
            self._put(replace(run, input={}, stage=""))
            raise


@faulty_memory("RUN-INPUT-3", source="K1 osbuild/osbuild-composer#4779: the result cannot be written at the end of the job")
class LargeResultsBlockCompletion(MemoryRunStore):
    """A completion that was too large takes the version, so that no smaller one is accepted."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._taken: set[tuple[str, int]] = set()

    def compare_and_set(self, expected: Any, updated: Run) -> bool:
        if isinstance(expected, Run) and (expected.run_id, expected.version) in self._taken:
            deviates()
            return False
        try:
            return super().compare_and_set(expected, updated)
        except TooLarge:
            self._taken.add((expected.run_id, expected.version))
            raise


@faulty_memory("RUN-INPUT-3", source="the clause: the limit on depth")
class DepthIsNotLimited(MemoryRunStore):
    """What is nested deeper than declared is not refused; create keeps it as text."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except TooLarge as error:
            if "nested" not in str(error):
                raise
            deviates()
            shallow = replace(run, input={}, context={}, external_operation_metadata={}, result=None)
            check_run(shallow, CLAIMS)
            self._put(shallow)
            return run
