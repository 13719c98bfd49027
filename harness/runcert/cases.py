"""What a check is given: handles on namespaces, fresh ids, seeds, and a place for evidence."""

from __future__ import annotations

import inspect
import random
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from runcert.adapters import Adapter
from runcert.event_loops import EventLoopThread
from runcert.handles import OPEN_SECONDS, Handle, Step, translate
from runcert.lab import Clock, Lab
from runcert.leftovers import note_namespace
from runcert.problems import AdapterProblem, UsageProblem, describe_error
from runcert.reach import Reach
from runcert.watchdog import Watchdog
from runcert.wire import Wire
from runcert_contract import Claims, JsonValue, Namespaces, Scope

__all__ = ["Case", "Depth", "Namespace", "Workplace"]

_T = TypeVar("_T")
_END = object()

PATIENCE = 0.4
"""How long a store waits for a backend that does not answer, in seconds, where its adapter takes ``lab.patience``."""


class Depth(Enum):
    """How long the same clauses are tried: every commit, by default, nightly."""

    QUICK = "quick"
    STANDARD = "standard"
    EXHAUSTIVE = "exhaustive"

    def choose(self, quick: _T, standard: _T, exhaustive: _T) -> _T:
        """Give the value for this depth."""
        return {Depth.QUICK: quick, Depth.STANDARD: standard, Depth.EXHAUSTIVE: exhaustive}[self]


@dataclass(slots=True)
class Namespace:
    """One namespace of a store, with the handles that are open on it."""

    lab: Lab
    root: Path
    handles: list[Handle] = field(default_factory=list)


class Workplace:
    """Everything of one target in one process: its namespaces, its event loop, its watchdog.

    Args:
        spec: how another process resolves the target.
        adapter: the adapter.
        root: a directory of this run; everything lies below it.
        servers: what the user said of servers, by name.
        watchdog: watches calls of synchronous stores.
        desk: where the kit is asked for servers.
    """

    def __init__(
        self, spec: str, adapter: Adapter, root: Path, servers: dict[str, str], watchdog: Watchdog | None, desk: str = ""
    ) -> None:
        self.spec = spec
        self.adapter = adapter
        self.secret = f"s3cret-{secrets.token_hex(8)}"
        self.kept: dict[str, Any] = {}
        self.steps: list[Step] = []
        self.at_end: list[Callable[[], None]] = []
        self._root = root
        self._servers = servers
        self._desk = desk
        self._watchdog = watchdog
        self._loop: EventLoopThread | None = None
        self._common: Namespace | None = None
        self._namespaces: list[Namespace] = []
        self._made = 0
        self.token = secrets.token_hex(4)
        self.reach = Reach()

    @property
    def root(self) -> Path:
        """The directory below which everything of this target lies."""
        return self._root

    @property
    def loop(self) -> EventLoopThread | None:
        """The event loop of an asynchronous store; None for a synchronous one."""
        if self.adapter.claims.asynchronous and (self._loop is None or self._loop.stuck):
            self._loop = EventLoopThread()
        return self._loop

    def common(self) -> Namespace:
        """Give the namespace that the checks of this target share; each uses ids of its own there."""
        if self._common is None:
            self._common = self.make()
        return self._common

    def make(self, suffix: str = "", settings: Mapping[str, Mapping[str, str]] | None = None) -> Namespace:
        """Make a namespace and prepare it.

        Args:
            suffix: appended to the name, to make one name the beginning of another.
            settings: settings, by server, that this namespace gets instead of the adapter's.
        """
        base = f"rc_{self.token}_{self._made}"
        return self.make_named(f"{base}{suffix}", settings)

    def make_named(self, name: str, settings: Mapping[str, Mapping[str, str]] | None = None) -> Namespace:
        """Make the namespace ``name`` and prepare it.

        Args:
            name: its name.
            settings: settings, by server, that this namespace gets instead of the adapter's.

        Raises:
            AdapterProblem: the adapter's ``prepare`` raised.
        """
        self._made += 1
        root = self._root / f"{self._made}-{name}"
        directory = root / "outer" / name
        directory.mkdir(parents=True)
        lab = Lab(
            name,
            directory,
            Clock(root / "clock"),
            servers=self._servers,
            _secret=self.secret,
            desk=self._desk,
            settings=settings or {},
            reach=Reach() if settings else self.reach,
        )
        lab = replace(lab, prepared=self.run_hook("prepare", self.adapter.prepare, lab))
        if self.adapter.dispose is not None:
            note_namespace(root, self.spec, lab)
        namespace = Namespace(lab, root)
        self._namespaces.append(namespace)
        return namespace

    def beside(self, adapter: Adapter) -> Workplace:
        """Make a workplace for another adapter in the same run; whoever asks for it has to end it.

        Args:
            adapter: the other adapter, for instance the other form of the same store.
        """
        self._made += 1
        root = self._root / f"{self._made}-beside"
        return Workplace(f"{self.spec} beside {adapter.name}", adapter, root, self._servers, self._watchdog, self._desk)

    def open(self, namespace: Namespace, note: Callable[[Step], None] | None = None, wire: Wire | None = None) -> Handle:
        """Open one more handle on ``namespace``; with a wire it is a client that gives up soon when its backend does not answer."""
        name = f"handle {len(namespace.handles) + 1}"
        lab = namespace.lab if wire is None else replace(namespace.lab, wire=wire, patience=PATIENCE)
        handle = Handle(self.adapter, lab, name, watchdog=self._watchdog, loop=self.loop, note=note)
        namespace.handles.append(handle)
        return handle

    def close_all(self, namespace: Namespace) -> None:
        """Close every handle of ``namespace``, newest first."""
        while namespace.handles:
            namespace.handles.pop().close()

    def dispose(self, namespace: Namespace) -> None:
        """Close every handle and remove the namespace."""
        self.close_all(namespace)
        self.run_hook("dispose", self.adapter.dispose, namespace.lab)
        self._namespaces = [other for other in self._namespaces if other is not namespace]
        shutil.rmtree(namespace.root, ignore_errors=True)

    def run_hook(self, name: str, hook: Callable[..., Any] | None, *arguments: object) -> Any:
        """Call a hook of the adapter, synchronous or asynchronous.

        Raises:
            AdapterProblem: it raised.
            UsageProblem: it says that something is missing on the command line.
        """
        if hook is None:
            return None
        try:
            if self._watchdog is None:
                return self._call_hook(hook, arguments)
            with self._watchdog.watching(lambda: f"the hook {name} of the adapter", OPEN_SECONDS):
                return self._call_hook(hook, arguments)
        except UsageProblem:
            raise
        except Exception as error:
            raise AdapterProblem(
                f"the hook {name} of the adapter {self.adapter.name} raised {describe_error(error)}"
            ) from error

    def _call_hook(self, hook: Callable[..., Any], arguments: Sequence[object]) -> Any:
        value = hook(*arguments)
        if not inspect.isawaitable(value):
            return value
        if self._loop is None:
            self._loop = EventLoopThread()
        return self._loop.run(value, OPEN_SECONDS)

    def end(self) -> None:
        """Close and remove everything; what cannot be closed any more is left to the end of the process."""
        for finish in self.at_end:
            finish()
        for namespace in list(self._namespaces):
            try:
                self.dispose(namespace)
            except AdapterProblem:
                namespace.handles.clear()
        if self._loop is not None:
            self._loop.stop()


class Case:
    """One check on one store.

    Args:
        workplace: the store's workplace.
        depth: how long to try.
        seed: everything random in the check follows from it.
        isolated: True when the check gets a namespace of its own.
        token: what tells the identifiers of this run from those of others where namespaces are shared; the workplace's by default.
    """

    def __init__(
        self, workplace: Workplace, depth: Depth, seed: int, *, isolated: bool = False, token: str | None = None
    ) -> None:
        self.workplace = workplace
        self.depth = depth
        self.seed = seed
        self.random = random.Random(seed)  # noqa: S311  # choosing test data, not keys
        self.steps: list[Step] = []
        workplace.steps = self.steps
        self.evidence: dict[str, JsonValue] = {}
        self._isolated = isolated
        self._own: list[Namespace] = []
        self._opened: list[tuple[Namespace, Handle]] = []
        self._second: Handle | None = None
        self._wires: list[Wire] = []
        self._ids = 0
        self._token = f"{self.random.getrandbits(32):08x}"
        if self.claims.namespaces is Namespaces.SHARED:
            self._token += workplace.token if token is None else token  # what an earlier run left is still there

    @property
    def adapter(self) -> Adapter:
        """The adapter of the store."""
        return self.workplace.adapter

    @property
    def claims(self) -> Claims:
        """What is said of the store."""
        return self.workplace.adapter.claims

    # -- namespaces and handles

    def namespace(self) -> Namespace:
        """Give the namespace of this check: the target's common one, or its own when it is isolated."""
        if not self._isolated or self.claims.namespaces is Namespaces.SHARED:
            return self.workplace.common()
        if not self._own:
            self._own.append(self.workplace.make())
        return self._own[0]

    def another_namespace(self, name: str | None = None, settings: Mapping[str, Mapping[str, str]] | None = None) -> Namespace:
        """Make one more namespace, removed when the check ends.

        Args:
            name: its name; one is made where none is given.
            settings: settings, by server, that it gets instead of the adapter's.
        """
        made = self.workplace.make(settings=settings) if name is None else self.workplace.make_named(name, settings)
        self._own.append(made)
        return made

    def dispose(self, namespace: Namespace) -> None:
        """Remove a namespace that :meth:`another_namespace` made, before the check ends."""
        self._own.remove(namespace)
        self.workplace.dispose(namespace)

    def open(self, namespace: Namespace | None = None, *, wire: Wire | None = None) -> Handle:
        """Open a handle, closed when the check ends.

        Args:
            namespace: where; the namespace of the check where none is given.
            wire: what stands between this handle and its backend.
        """
        where = namespace or self.namespace()
        handle = self.workplace.open(where, self.steps.append, wire)
        self._opened.append((where, handle))
        return handle

    def try_to_open(self, namespace: Namespace | None = None) -> Handle | BaseException:
        """Open a handle, or give what the store raised instead, translated as the adapter says."""
        try:
            return self.open(namespace)
        except AdapterProblem as problem:
            if problem.__cause__ is None:
                raise
            return translate(problem.__cause__, self.adapter)

    def wire(self) -> Wire:
        """Give something to stand between a handle and its backend, closed when the check ends."""
        self.workplace.root.mkdir(parents=True, exist_ok=True)
        wire = Wire(self.workplace.root)
        self._wires.append(wire)
        return wire

    def another(self, handle: Handle) -> Handle:
        """Give a fresh handle beside ``handle``; the same one where the scope of the store is the handle."""
        return handle if self.claims.scope is Scope.HANDLE else self.open()

    def beside(self, handle: Handle) -> Handle:
        """Give the second handle of this check, opened once; ``handle`` itself where the scope of the store is the handle."""
        if self.claims.scope is Scope.HANDLE:
            return handle
        if self._second is None or not any(
            opened is self._second and opened in where.handles for where, opened in self._opened
        ):
            self._second = self.another(handle)
        return self._second

    def reopen(self, namespace: Namespace | None = None) -> Handle:
        """Close every handle of the namespace, which is the fault ``close``, and open one again."""
        where = namespace or self.namespace()
        self.workplace.close_all(where)
        return self.open(where)

    def close(self, handle: Handle) -> None:
        """Close one handle before the check ends."""
        for where, opened in self._opened:
            if opened is handle and handle in where.handles:
                where.handles.remove(handle)
        self._opened = [entry for entry in self._opened if entry[1] is not handle]
        handle.close()

    def end(self) -> None:
        """Close the handles of this check and remove its namespaces."""
        for wire in self._wires:
            wire.heal()
        for where, handle in reversed(self._opened):
            if handle in where.handles:
                where.handles.remove(handle)
            handle.close()
        self._opened.clear()
        self._close_wires()
        for namespace in self._own:
            self.workplace.dispose(namespace)
        self._own.clear()

    def abandon(self) -> None:
        """Forget what could not be closed after a failure; removing the run's directory removes the rest."""
        try:
            self.end()
        except AdapterProblem:
            self._opened.clear()
            self._close_wires()
            self._own.clear()

    def _close_wires(self) -> None:
        for wire in self._wires:
            wire.close()
        self._wires.clear()

    # -- data

    def fresh_id(self, prefix: str = "r") -> str:
        """Give a portable identifier that this run has not used before."""
        self._ids += 1
        return f"{prefix}{self._ids}-{self._token}"

    def budget(self, quick: _T, standard: _T, exhaustive: _T) -> _T:
        """Give the value for the depth of this run."""
        return self.depth.choose(quick, standard, exhaustive)

    # -- hooks

    def has_hook(self, name: str) -> bool:
        """Say whether the adapter gives this hook."""
        return name in self.adapter.hooks

    def hook(self, name: str, *arguments: object) -> Any:
        """Call a hook of the adapter with the lab of this check's namespace.

        Raises:
            AdapterProblem: it raised.
        """
        return self.workplace.run_hook(name, self.adapter.hooks[name], self.namespace().lab, *arguments)

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Take the backend away for the length of the body, through the adapter's hook.

        Raises:
            AdapterProblem: the hook raised, or does not yield exactly once.
        """
        steps = self.hook("outage")
        way = "it takes the backend away, yields, and brings it back"
        if not (inspect.isgenerator(steps) or inspect.isasyncgen(steps)):
            raise AdapterProblem(f"the hook outage of the adapter {self.adapter.name} returned {steps!r}; {way}")
        if self._next_of_outage(steps) is _END:
            raise AdapterProblem(f"the hook outage of the adapter {self.adapter.name} never yields; {way}")
        try:
            yield
        finally:
            if self._next_of_outage(steps) is not _END:
                raise AdapterProblem(f"the hook outage of the adapter {self.adapter.name} yields more than once; {way}")

    def _next_of_outage(self, steps: Any) -> Any:
        following = anext if inspect.isasyncgen(steps) else next
        return self.workplace.run_hook("outage", following, steps, _END)

    def inventory(self) -> dict[str, int]:
        """Count what is stored, through the adapter's hook."""
        counted = self.hook("inventory")
        try:
            return {str(kind): int(number) for kind, number in dict(counted).items()}
        except (TypeError, ValueError) as error:
            raise AdapterProblem(f"the hook inventory returned {counted!r}; expected a mapping from str to int") from error

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Leave the steps made in the body out of a failure's report (preparations by the thousand)."""
        kept = len(self.steps)
        yield
        del self.steps[kept:]
