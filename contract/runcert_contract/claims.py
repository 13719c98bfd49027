"""What an implementer says of a store; a certificate is limited to it.

Source of every rule here: section 1 of the contract, "Claims".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum

__all__ = [
    "Bounded",
    "Capability",
    "Claims",
    "Fault",
    "Handles",
    "Kept",
    "Limits",
    "LostAny",
    "LostClean",
    "Namespaces",
    "Numbers",
    "Promise",
    "Scope",
    "Stance",
    "Text",
    "Undefined",
    "Volatile",
]


class Scope(Enum):
    """Between whom the store coordinates; each scope includes the ones before it."""

    HANDLE = "handle"
    PROCESS = "process"
    HOST = "host"
    CLUSTER = "cluster"

    def includes(self, other: Scope) -> bool:
        """Say whether a store of this scope also coordinates within ``other``."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


class Handles(Enum):
    """Who may use one handle: any thread or task, only the thread that opened it, or one task at a time."""

    SHARED = "shared"
    PER_THREAD = "per-thread"
    PER_TASK = "per-task"


class Namespaces(Enum):
    """Whether each namespace is the store's own (schema, prefix, directory) or all share one."""

    OWN = "own"
    SHARED = "shared"


class Capability(Enum):
    """Optional parts of the contracts that a store claims, proves absent, or is silent about."""

    ENUMERATES = "enumerates"
    GUARDS_TERMINAL = "guards-terminal"
    VISIBILITY = "visibility"
    FINGERPRINTS = "fingerprints"
    REPAIRS = "repairs"
    VERSIONED_SCHEMA = "versioned-schema"
    BOUNDS_SILENCE = "bounds-silence"

    @property
    def operation(self) -> str | None:
        """The operation that belongs to this capability, or None where it has none of its own."""
        return {"enumerates": "find_resumable"}.get(self.value)


class Stance(Enum):
    """What is said of a capability: tested, proved absent, or nothing (observed but not certified)."""

    CLAIMED = "claimed"
    ABSENT = "absent"
    SILENT = "silent"


class Fault(Enum):
    """The faults that a durability promise can be about; they are not a ladder."""

    CLOSE = "close"
    CALLER_CRASH = "caller-crash"
    SERVER_CRASH = "server-crash"
    POWER_LOSS = "power-loss"
    DISK_ERROR = "disk-error"
    FAILOVER = "failover"
    NODE_LOSS = "node-loss"


@dataclass(frozen=True, slots=True)
class Promise:
    """What a store promises to keep across one fault; a lower bound, keeping more is never a fault."""

    @property
    def text(self) -> str:
        """The promise as it is printed and stored."""
        return {
            "Kept": "kept",
            "LostClean": "lost-clean",
            "LostAny": "lost-any",
            "Volatile": "volatile",
            "Undefined": "undefined",
        }[type(self).__name__]


@dataclass(frozen=True, slots=True)
class Kept(Promise):
    """Every acknowledged write survives."""


@dataclass(frozen=True, slots=True)
class Bounded(Promise):
    """Acknowledged writes older than ``window`` survive."""

    window: timedelta

    @property
    def text(self) -> str:
        """The promise with its window in seconds."""
        return f"bounded({self.window.total_seconds():g} s)"


@dataclass(frozen=True, slots=True)
class LostClean(Promise):
    """A suffix of the acknowledged writes may be lost; what is left is consistent."""


@dataclass(frozen=True, slots=True)
class LostAny(Promise):
    """Each record is as it was last or at some earlier moment."""


@dataclass(frozen=True, slots=True)
class Volatile(Promise):
    """Everything may be gone; then the store comes back empty."""


@dataclass(frozen=True, slots=True)
class Undefined(Promise):
    """Nothing is promised; what every fault that is not named gets."""


class Numbers(Enum):
    """Whether an integer and a float of equal value are two values or one."""

    STRICT = "strict"
    JSON = "json"


class Text(Enum):
    """Whether strings may hold U+0000."""

    ANY = "any"
    NO_NUL = "no-nul"


@dataclass(frozen=True, slots=True)
class Limits:
    """Declared limits; what is not declared is tested to the kit's defaults and never has to be refused.

    Args:
        identifier: the longest identifier in code points, one number for all fields or one per field (at least 64).
        text: the longest ``stage``, ``code``, ``message`` and ``failure_reason`` in code points.
        depth: the deepest nesting of a JSON value; a scalar has depth 0, ``[]`` and ``{}`` have depth 1.
        accepts_up_to: size in bytes of a record as canonical UTF-8 JSON that is surely accepted.
        refuses_above: size in bytes above which a record is surely refused.
        precision: the step to which instants are truncated (towards the past).
        earliest: the earliest instant that is kept.
        latest: the latest instant that is kept.
        maximum_wait: the longest time that any call takes.
        page: how many records a page of a listing holds, where the store pages.
    """

    identifier: int | Mapping[str, int] | None = None
    text: int | None = None
    depth: int | None = None
    accepts_up_to: int | None = None
    refuses_above: int | None = None
    precision: timedelta = timedelta(microseconds=1)
    earliest: datetime = datetime(1970, 1, 1, tzinfo=timezone.utc)
    latest: datetime = datetime(9999, 12, 30, tzinfo=timezone.utc)
    maximum_wait: timedelta = timedelta(seconds=10)
    page: int = 100

    def identifier_length(self, field_name: str) -> int | None:
        """Give the longest identifier accepted in ``field_name``, or None where none was declared."""
        if isinstance(self.identifier, Mapping):
            return self.identifier.get(field_name)
        return self.identifier

    def _too_small(self) -> list[str]:
        """Say which limits leave no room for the runs with which stores are tried."""
        found = [
            f"limits.{name} must be at least {least:,}; below that a store cannot be tried"
            for name, least in (("text", 64), ("depth", 8), ("accepts_up_to", 8_192))
            if (limit := getattr(self, name)) is not None and limit < least
        ]
        if self.earliest > datetime(2020, 1, 1, tzinfo=timezone.utc) or self.latest < datetime(2040, 1, 1, tzinfo=timezone.utc):
            found.append("limits.earliest and limits.latest must leave the years 2020 to 2040 inside")
        return found

    def problems(self) -> tuple[str, ...]:
        """List what is wrong with the declaration itself, as sentences."""
        found: list[str] = []
        lengths = self.identifier.values() if isinstance(self.identifier, Mapping) else (self.identifier,)
        if any(length is not None and length < 64 for length in lengths):
            found.append("limits.identifier must be at least 64 code points (contract, section 1, Identifier)")
        if (self.accepts_up_to is None) != (self.refuses_above is None):
            found.append("limits.accepts_up_to and limits.refuses_above are declared together or not at all")
        elif self.accepts_up_to is not None and self.refuses_above is not None and self.accepts_up_to > self.refuses_above:
            found.append("limits.accepts_up_to must not be greater than limits.refuses_above")
        if self.maximum_wait <= timedelta(0):
            found.append("limits.maximum_wait must be greater than zero")
        if self.precision < timedelta(microseconds=1):
            found.append("limits.precision must be at least one microsecond")
        if not 1 <= self.page <= 10_000:
            found.append("limits.page must be between 1 and 10,000")
        if self.precision > timedelta(minutes=1):
            found.append("limits.precision must be at most one minute")
        found.extend(self._too_small())
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Claims:
    """Everything that is said of one store under one contract."""

    scope: Scope = Scope.HANDLE
    handles: Handles = Handles.PER_THREAD
    namespaces: Namespaces = Namespaces.OWN
    durability: Mapping[Fault, Promise] = field(default_factory=dict)
    capabilities: Mapping[Capability, Stance] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    numbers: Numbers = Numbers.STRICT
    text: Text = Text.ANY
    topology: str = ""
    asynchronous: bool = False
    many_loops: bool = False

    def stance(self, capability: Capability) -> Stance:
        """Give what is said of ``capability``; silence is the default."""
        return self.capabilities.get(capability, Stance.SILENT)

    def claims(self, capability: Capability) -> bool:
        """Say whether ``capability`` is claimed."""
        return self.stance(capability) is Stance.CLAIMED

    def promise(self, fault: Fault) -> Promise:
        """Give the promise for ``fault``; :class:`Undefined` where none was made."""
        return self.durability.get(fault, Undefined())

    @property
    def admits_several_clients(self) -> bool:
        """True when more than one client may work at once, as far as scope and handles were claimed."""
        return self.scope is not Scope.HANDLE or self.handles is Handles.SHARED
