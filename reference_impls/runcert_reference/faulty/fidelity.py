"""Faults of values that do not come back as they were given."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from runcert.faulty import deviates
from runcert_contract import Result, ResultStatus, RetryDisposition, Run, RunStatus, TooLarge
from runcert_contract.json_values import depth_of
from runcert_reference.faulty.changed_values import ChangesWhatIsStored, with_texts, with_values
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore


@faulty_memory("RUN-FIDELITY-1", source="the clause: null in objects")
class NullsAreDropped(ChangesWhatIsStored):
    """Keys whose value is null are left out."""

    def stored_form(self, run: Run) -> Run:
        return with_values(
            run,
            lambda value: {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value,
        )


@faulty_memory("RUN-FIDELITY-1", source="K4 contribsys/faktory#395: types")
class BooleansBecomeNumbers(ChangesWhatIsStored):
    """True comes back as 1."""

    def stored_form(self, run: Run) -> Run:
        return with_values(run, lambda value: int(value) if isinstance(value, bool) else value)


@faulty_memory("RUN-FIDELITY-1", source="the clause: keys with a meaning")
class DottedKeysAreSplit(ChangesWhatIsStored):
    """A key with a dot in it is taken for a path."""

    def stored_form(self, run: Run) -> Run:
        return with_values(run, _split_dots)


@faulty_memory("RUN-FIDELITY-1", source="the clause: texts that look like JSON")
class TextsThatLookLikeJsonAreParsed(ChangesWhatIsStored):
    """The text "null" comes back as null."""

    def stored_form(self, run: Run) -> Run:
        return with_values(run, lambda value: None if value == "null" else value)


@faulty_memory("RUN-FIDELITY-2", source="K1 osbuild/osbuild-composer#4779 twin: cut at NUL")
class TextsEndAtNul(ChangesWhatIsStored):
    """A text is cut at its first U+0000."""

    def stored_form(self, run: Run) -> Run:
        return with_texts(run, lambda text: text.partition("\0")[0])


@faulty_memory("RUN-FIDELITY-2", source="the clause: a byte order mark is taken for one of the file")
class ByteOrderMarksAreDropped(ChangesWhatIsStored):
    """A text that begins with U+FEFF comes back without it."""

    def stored_form(self, run: Run) -> Run:
        return with_texts(run, lambda text: text.removeprefix("\ufeff"))


@faulty_memory("RUN-FIDELITY-2", source="D6 amule-org/amule#312: normal forms, in texts")
class TextsAreNormalised(ChangesWhatIsStored):
    """Texts are brought into Unicode normal form C."""

    def stored_form(self, run: Run) -> Run:
        return with_texts(run, lambda text: unicodedata.normalize("NFC", text))


@faulty_memory("RUN-FIDELITY-2", source="the clause: a character set of three bytes")
class CharactersBeyondTheBmpAreReplaced(ChangesWhatIsStored):
    """Characters that take four bytes in UTF-8 come back as question marks."""

    def stored_form(self, run: Run) -> Run:
        return with_texts(run, lambda text: "".join("?" if ord(character) > 0xFFFF else character for character in text))


@faulty_memory("RUN-FIDELITY-2", source="the clause: padding")
class TextsAreTrimmed(ChangesWhatIsStored):
    """Spaces at the end of a text are lost."""

    def stored_form(self, run: Run) -> Run:
        return with_texts(run, lambda text: text.rstrip(" "))


@faulty_memory("RUN-FIDELITY-2", source="the clause: text that looks escaped")
class EscapesAreUndone(ChangesWhatIsStored):
    """A backslash that was written as one is read as the start of an escape."""

    def stored_form(self, run: Run) -> Run:
        return with_texts(run, lambda text: text.replace("\\n", "\n").replace("\\\\", "\\"))


@faulty_memory("RUN-FIDELITY-3", source="K4 contribsys/faktory#395")
class IntegersPassThroughFloats(ChangesWhatIsStored):
    """Integers are decoded as doubles and rounded."""

    def stored_form(self, run: Run) -> Run:
        return with_values(run, lambda value: int(float(value)) if type(value) is int and abs(value) > 2**53 else value)


@faulty_memory("RUN-FIDELITY-3", source="K4 twin: 1.0 becomes 1")
class WholeFloatsBecomeIntegers(ChangesWhatIsStored):
    """A float without a fraction comes back as an integer."""

    def stored_form(self, run: Run) -> Run:
        return with_values(run, lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)


@faulty_memory("RUN-FIDELITY-3", source="K4 twin: beyond 64 bits")
class LargeIntegersWrapAround(ChangesWhatIsStored):
    """An integer beyond 64 bits loses what does not fit."""

    def stored_form(self, run: Run) -> Run:
        return with_values(run, lambda value: (value + 2**63) % 2**64 - 2**63 if type(value) is int else value)


@faulty_memory("RUN-FIDELITY-3", source="K4 twin: single precision")
class FloatsAreRounded(ChangesWhatIsStored):
    """Floats keep 15 digits."""

    def stored_form(self, run: Run) -> Run:
        return with_values(run, lambda value: float(f"{value:.15g}") if isinstance(value, float) else value)


@faulty_memory("RUN-FIDELITY-4", source="K6 MemMachine/MemMachine#1558")
class OffsetsAreDropped(ChangesWhatIsStored):
    """The offset of an instant is dropped, and the clock time is read back as UTC."""

    def stored_form(self, run: Run) -> Run:
        return _with_instants(run, lambda instant: instant.replace(tzinfo=UTC))


@faulty_memory("RUN-FIDELITY-4", source="K6 twin: naive instants come back")
class InstantsComeBackNaive(MemoryRunStore):
    """Instants are read back without a time zone."""

    def _read(self, run_id: str) -> Run:
        deviates()
        return _with_instants(super()._read(run_id), lambda instant: instant.astimezone(UTC).replace(tzinfo=None))


@faulty_memory("RUN-FIDELITY-4", source="K6 twin: a precision that was not declared")
class MicrosecondsAreLost(ChangesWhatIsStored):
    """Instants keep milliseconds."""

    def stored_form(self, run: Run) -> Run:
        return _with_instants(run, lambda instant: instant.replace(microsecond=instant.microsecond // 1000 * 1000))


@faulty_memory("RUN-FIDELITY-4", source="K6 twin: clocks that are set back")
class FoldedHoursBecomeOne(ChangesWhatIsStored):
    """Of the two hours with one name, when clocks are set back, the first is stored for both."""

    def stored_form(self, run: Run) -> Run:
        return _with_instants(run, lambda instant: instant.replace(fold=0).astimezone(UTC))


@faulty_memory("RUN-FIDELITY-4", source="the clause: the ends of the range")
class InstantsEndEarly(ChangesWhatIsStored):
    """Instants are kept as nanoseconds in 64 bits; later ones come back as the last that fits."""

    def stored_form(self, run: Run) -> Run:
        last = datetime(2262, 4, 11, tzinfo=UTC)
        return _with_instants(run, lambda instant: min(instant, last))


@faulty_memory("RUN-FIDELITY-5", source="the clause: nothing and an empty result")
class EmptyResultsAreDropped(ChangesWhatIsStored):
    """A result without code, message and output comes back as no result."""

    def stored_form(self, run: Run) -> Run:
        result = run.result
        empty = result is not None and result == Result(result.status)
        return replace(run, result=None) if empty else run


@faulty_memory("RUN-FIDELITY-5", source="the clause: empty is null")
class EmptyTextsBecomeNull(ChangesWhatIsStored):
    """The empty text comes back as null."""

    def stored_form(self, run: Run) -> Run:
        return with_values(run, lambda value: None if value == "" else value)


@faulty_memory("RUN-FIDELITY-5", source="the clause: an update to null")
class NullsAreNotWritten(MemoryRunStore):
    """An update leaves out fields that are null, so that the old value stays."""

    def _put(self, run: Run) -> None:
        kept = run
        if run.version and run.owner is None and (before := self._read(run.run_id)).owner is not None:
            deviates()
            kept = replace(run, owner=before.owner)
        super()._put(kept)


@faulty_memory("RUN-FIDELITY-6", source="K7 kvesteri/sqlalchemy-utils#164")
class LongRecordsAreCut(MemoryRunStore):
    """What is stored is cut after 65,535 bytes, without an error."""

    def _put(self, run: Run) -> None:
        super()._put(run)
        entry = self._space.entries[run.run_id]
        if len(entry.record) > 65_535:
            deviates()
            self._space.entries[run.run_id] = replace(entry, record=entry.record[:65_535])

    def create(self, run: Run) -> Run:
        super_read, self._read = self._read, lambda run_id: run  # type: ignore[method-assign]  # noqa: ARG005  # it answers from memory
        try:
            return super().create(run)
        finally:
            self._read = super_read  # type: ignore[method-assign]  # as above


@faulty_memory("RUN-FIDELITY-6", source="the clause: bytes are counted in place of code points")
class LimitsCountBytes(MemoryRunStore):
    """The limit on texts is applied to their bytes."""

    def create(self, run: Run) -> Run:
        if len(run.stage.encode()) > 100_000 >= len(run.stage):
            deviates()
            raise TooLarge(f"run {run.run_id!r}: the stage is too long")
        return super().create(run)


@faulty_memory("RUN-FIDELITY-6", source="the clause: depth")
class DeepValuesAreFlattened(ChangesWhatIsStored):
    """What is nested more than 32 deep comes back as text."""

    def stored_form(self, run: Run) -> Run:
        return replace(run, input={"text": str(run.input)}) if depth_of(run.input) > 32 else run


@faulty_memory("RUN-FIDELITY-7", source="the clause: updated_at is the store's")
class UpdatedAtIsSetByTheStore(ChangesWhatIsStored):
    """Each update sets updated_at to the time of the store."""

    def stored_form(self, run: Run) -> Run:
        return replace(run, updated_at=run.updated_at + timedelta(milliseconds=5)) if run.version else run


@faulty_memory("RUN-FIDELITY-7", source="F7 digitallyinduced/ihp#2644: counters of the store")
class RecoveriesAreCountedByTheStore(ChangesWhatIsStored):
    """recovery_count never goes back, whatever the caller writes."""

    def stored_form(self, run: Run) -> Run:
        entry = self._space.entries.get(run.run_id)
        before = 0 if entry is None else self._read(run.run_id).recovery_count
        return replace(run, recovery_count=max(before, run.recovery_count))


@faulty_memory("RUN-FIDELITY-7", source="the clause: create returns what it was given")
class CreateReturnsWhatItWasGiven(ChangesWhatIsStored):
    """create fills an empty stage in storage and returns the run without it."""

    def stored_form(self, run: Run) -> Run:
        return replace(run, stage=run.stage or run.status.value.lower())

    def create(self, run: Run) -> Run:
        super().create(run)
        return run


def _split_dots(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, item in value.items():
        first, dot, rest = key.partition(".")
        found[first] = {rest: item} if dot else item
    return found


def _with_instants(run: Run, change: Any) -> Run:
    due_at = None if run.due_at is None else change(run.due_at)
    return replace(run, created_at=change(run.created_at), updated_at=change(run.updated_at), due_at=due_at)


@faulty_memory("RUN-FIDELITY-7", source="the clause: a field that one status loses")
class ReasonsOfCancelledRunsAreLost(ChangesWhatIsStored):
    """A cancelled run is stored without its failure reason."""

    def stored_form(self, run: Run) -> Run:
        return replace(run, failure_reason="") if run.status is RunStatus.CANCELLED else run


@faulty_memory("RUN-FIDELITY-7", source="the clause: a result that is not final")
class AcceptedResultsAreDropped(ChangesWhatIsStored):
    """A run that waits for an external operation is stored without the result that accepted it."""

    def stored_form(self, run: Run) -> Run:
        dropped = run.result is not None and run.result.status is ResultStatus.ACCEPTED
        return replace(run, result=None) if dropped else run


@faulty_memory("RUN-FIDELITY-7", source="the clause: a disposition that follows from the status")
class FailedValidationIsNeverRetried(ChangesWhatIsStored):
    """The retry disposition of a failed validation is stored as NEVER, whatever it was."""

    def stored_form(self, run: Run) -> Run:
        if run.result is None or run.result.status is not ResultStatus.VALIDATION_FAILED:
            return run
        return replace(run, result=replace(run.result, retry=RetryDisposition.NEVER))


@faulty_memory("RUN-FIDELITY-6", source="K7 kvesteri/sqlalchemy-utils#164: one value instead of the whole record")
class LongOutputsAreCut(ChangesWhatIsStored):
    """A text in a result's output is cut after 65,535 characters."""

    def stored_form(self, run: Run) -> Run:
        result = run.result
        if result is None or not isinstance(result.output, str):
            return run
        return replace(run, result=replace(result, output=result.output[:65_535]))
