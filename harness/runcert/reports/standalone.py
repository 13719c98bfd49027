"""A failure as a file of its own: a test for pytest that needs the store and the package of its contract, and nothing else of the kit.

It is written where the calls of the failure show it by themselves: in the order in which they were made, each but the last one does what the
model of the contract permits, and the last one does what it does not.  Failures that show in something else (in a log, in what is
counted behind the store, in calls at the same time) are replayed with the kit.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runcert.description import claims_from
from runcert.execution import CheckResult
from runcert.reports.adapter_source import AdapterSource, adapter_source
from runcert.reports.literals import NoLiteral, literal, run_literal
from runcert.wording import operation_in_words
from runcert_contract import (
    CATALOGUE,
    AllClosed,
    Edited,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    RunStoreModel,
    StoreError,
    canonical,
    decode,
)
from runcert_contract.run_store_model import Permission

__all__ = ["MARK", "standalone_path", "standalone_test"]

MARK = "# the contract permits:"
"""What stands before the last call of a test."""

_MOST_STEPS = 40
_BY_CALLS_ALONE = {
    *("CREATE", "FIND", "CAS", "IDENTITY", "TERMINAL", "RESUMABLE", "ALIAS", "FIDELITY"),
    *("ID", "INPUT", "PATH", "LIST", "DURABLE", "ERROR"),
}
"""The topics of clauses that a store can break without anything but calls: no clock, no hook, no outage, no other client."""
_LONGEST = 60_000
"""How many characters a file may have that is to be read."""


def standalone_test(result: CheckResult, description: Mapping[str, Any], text: str) -> str | None:
    """Give the file for one failure.

    Args:
        result: what the check found.
        description: the adapter as the kit describes it.
        text: the target, as it was named.

    Returns:
        The source of a test that fails on the store as it is and passes once the last call does what the contract says; None where the
        calls do not show the failure by themselves, or the store cannot be opened without the kit.
    """
    source = adapter_source(Path(str(description["source"]["file"])), str(description["adapter"]))
    topic = CATALOGUE.get(result.clause).topic
    if (
        source is None
        or topic not in _BY_CALLS_ALONE
        or description["contract"] != "run-store"
        or not 0 < len(result.steps) <= _MOST_STEPS
    ):
        return None
    steps = [_decoded(step) for step in result.steps]
    permitted = _permitted_last(RunStoreModel(claims_from(description["claims"])), steps)
    if not permitted or not result.expected.startswith(f"{operation_in_words(steps[-1][1])} to give "):
        return None  # the check looked at something else
    try:
        scenario = list(_Scenario(source, steps, permitted).lines())
    except (NoLiteral, TypeError):
        return None
    written = _file(result, source, text, scenario)
    return written if len(written) <= _LONGEST else None


def standalone_path(failure: Path) -> Path:
    """Give where the test for a failure is, beside the failure's own file."""
    return failure.with_name(f"test_{_variable(failure.stem).lower()}.py")


_Step = tuple[str, Operation, Outcome]


def _decoded(step: Any) -> _Step:
    operation: Any = decode(step[1])
    outcome: Any = decode(step[2])
    return str(step[0]), operation, outcome


def _permitted_last(model: RunStoreModel, steps: Sequence[_Step]) -> list[Permission]:
    """Give what the model permits the last call, if it is the first one that the model does not permit as it was; else nothing."""
    states = model.initial
    for number, (handle, operation, outcome) in enumerate(steps):
        if isinstance(operation, Edited):
            continue
        if not handle.startswith("handle") and not isinstance(operation, AllClosed):
            return []  # clients at the same time: the order of their calls is not known
        following = frozenset(after for state in states for after in model.step(state, operation, outcome))
        if not following:
            last = number == len(steps) - 1
            return (
                [p for state in states for s in model.settled(state) for p in model.permissions(s, operation)] if last else []
            )
        states = following
    return []


class _Scenario:
    """The body of the test."""

    def __init__(self, source: AdapterSource, steps: Sequence[_Step], permitted: Sequence[Permission]) -> None:
        self._steps = steps
        self._permitted = permitted
        self._wait = "await " if source.asynchronous else ""
        self._enter = "await handles.enter_async_context" if source.asynchronous else "handles.enter_context"
        self._close = "await handles.aclose()" if source.asynchronous else "handles.close()"
        self._translated = source.errors != "{}"
        self._runs: dict[str, Run] = {}
        self._count = 0
        self._since_edited = False
        self._open: set[str] = set()
        edits = [operation for _, operation, _ in steps if isinstance(operation, Edited)]
        self._held = {edit.step for edit in edits if edit.part == "result"}

    def lines(self) -> Iterator[str]:
        """Give its lines, without indentation."""
        *before, (handle, operation, _) = self._steps
        for number, (name, earlier, outcome) in enumerate(before, start=1):
            yield from self._step(number, name, earlier, outcome)
        yield from self._opened(handle)
        yield from self._named(operation)
        wanted = [permission for permission in self._permitted if permission.run is not None]
        for permission in wanted:
            yield from self._name(permission.run)
        yield f"{MARK} {' or '.join(dict.fromkeys(p.text for p in self._permitted))}"
        yield from self._judged(handle, operation)

    def _step(self, number: int, name: str, operation: Operation, outcome: Outcome) -> Iterator[str]:
        if isinstance(operation, AllClosed):
            self._open.clear()
            yield self._close
            return
        if isinstance(operation, Edited):
            yield self._edited(operation)
            self._since_edited = True
            return
        yield from self._opened(name)
        yield from self._named(operation)
        call = self._call(name, operation)
        if isinstance(outcome, Returned):
            yield f"{'' if number not in self._held else f'result_{number} = '}{call}"
        elif isinstance(outcome, Raised) and isinstance(outcome.error, StoreError):
            yield f"with pytest.raises({self._errors([type(outcome.error)])}):"
            yield f"    {call}"
        else:
            raise NoLiteral("an outcome that nobody knows")

    def _edited(self, operation: Edited) -> str:
        """Give the line that edits something."""
        value = f"result_{operation.step}"
        if operation.part.startswith("argument"):
            _, call, _ = self._steps[operation.step - 1]
            value = self._argument(call.arguments[int(operation.part.split()[1]) - 1])
        return f"edit({value}, {operation.how!r})"

    def _opened(self, name: str) -> Iterator[str]:
        if name not in self._open:
            self._open.add(name)
            yield f"{_variable(name)} = {self._enter}(opened(lab))"

    def _named(self, operation: Operation) -> Iterator[str]:
        """Give names to the runs of a call; after an edit to new ones, as the store may share any of the old ones."""
        if self._since_edited:
            self._since_edited = False
            self._runs.clear()
        for argument in operation.arguments:
            if isinstance(argument, Run):
                yield from self._name(argument)

    def _name(self, run: Run | None) -> Iterator[str]:
        if run is None or any(canonical(run) == canonical(known) for known in self._runs.values()):
            return
        self._count += 1
        name = f"run_{self._count}"
        yield f"{name} = {run_literal(run, self._runs)}"
        self._runs[name] = run

    def _argument(self, argument: object) -> str:
        if isinstance(argument, Run):
            return next(name for name, known in self._runs.items() if canonical(known) == canonical(argument))
        return literal(argument)

    def _call(self, name: str, operation: Operation) -> str:
        arguments = ", ".join(map(self._argument, operation.arguments))
        return f"{self._wait}{_variable(name)}.{operation.method}({arguments})"

    def _judged(self, name: str, operation: Operation) -> Iterator[str]:
        call = self._call(name, operation)
        values, errors = self._expected(operation)
        if not values:
            yield f"with pytest.raises({self._errors(errors)}):"
            yield f"    {call}"
            return
        indent = ""
        if errors:
            yield f"with contextlib.suppress({self._errors(errors)}):"
            indent = "    "
        yield f"{indent}found = {call}"
        yield f"{indent}assert shown(found) in ({', '.join(values)},)"

    def _expected(self, operation: Operation) -> tuple[list[str], list[type[StoreError]]]:
        """Give the values and the errors that the contract permits, as source and as types."""
        values: dict[str, None] = {}
        errors: dict[type[StoreError], None] = {}
        for permission in self._permitted:
            if permission.run is not None:
                values[f"shown({self._argument(permission.run)})"] = None
            elif permission.text.startswith(("True", "False", "None")):
                values[f"shown({permission.text.partition(' ')[0]})"] = None
            elif permission.text.startswith("a complete Listing"):
                values[self._listing(permission, operation)] = None
            else:
                errors[_ERRORS[permission.text]] = None
        return list(values), list(errors)

    def _listing(self, permission: Permission, operation: Operation) -> str:
        tenant, *_ = operation.arguments
        runs = [stored.run for _, stored in permission.after.records]
        wanted = [run for run in runs if run.tenant_id == tenant and not run.status.terminal]
        return f"shown(Listing(({''.join(f'{self._known_or_literal(run)}, ' for run in wanted)})))"

    def _known_or_literal(self, run: Run) -> str:
        known = (name for name, each in self._runs.items() if canonical(each) == canonical(run))
        return next(known, None) or literal(run)

    def _errors(self, kinds: Sequence[type[StoreError]]) -> str:
        names = ", ".join(kind.__name__ for kind in kinds)
        if self._translated:
            return f"of_the_store({names})"
        return names if len(kinds) == 1 else f"({names})"


def _errors_of(kind: type[StoreError]) -> Iterator[type[StoreError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _errors_of(inner)


_ERRORS = {kind.__name__: kind for kind in _errors_of(StoreError) if kind.__module__ == StoreError.__module__}


def _variable(name: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in name)


# -- the file ----------------------------------------------------------------------------------------------------------


def _file(result: CheckResult, source: AdapterSource, text: str, scenario: Sequence[str]) -> str:
    parts = [_head(result, text), _imports(source, scenario), _LAB, source.code]
    parts.append(_opened(source))
    if source.errors != "{}":
        parts.append(_OF_THE_STORE.format(errors=source.errors))
    parts += [_EDIT] if any(line.startswith("edit(") for line in scenario) else []
    parts += [_SHOWN, _test(result, source, scenario)]
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"


def _head(result: CheckResult, text: str) -> str:
    clause = CATALOGUE.get(result.clause)
    said = [("target", text), ("expected", result.expected), ("found", result.found), ("check", result.check)]
    lines = [f"# {name:<9} {line}" for name, value in said for line in _wrapped(value)]
    sentence = f"{clause.id}: {clause.statement}.".replace("\\", "\\\\")
    needs = "This test needs pytest, the store, and the package of its contract; run it with pytest."
    return "\n".join([f'"""{sentence}\n\n{needs}\n"""', "", *lines])


def _wrapped(value: str) -> list[str]:
    return textwrap.wrap(value, 110, break_long_words=False, break_on_hyphens=False) or [""]


def _imports(source: AdapterSource, scenario: Sequence[str]) -> str:
    body = "\n".join(scenario)
    words = {word for line in scenario for word in _words(line)}
    records = ("Result", "ResultStatus", "RetryDisposition", "RunStatus")
    names = sorted({"Listing", "Run", "canonical"} | {name for name in (*records, *_ERRORS) if name in words})
    lines = ["from __future__ import annotations", ""]
    lines += ["import asyncio"] if source.asynchronous else []
    lines += ["import contextlib", "import sys", "import uuid"]
    lines += ["from dataclasses import replace"] if "replace(" in body else []
    times = [name for name in ("datetime", "timedelta", "timezone") if name in words]
    lines += [f"from datetime import {', '.join(times)}"] if times else []
    lines += ["", "import pytest", f"from runcert_contract import {', '.join(names)}", ""]
    lines.append(f"sys.path.insert(0, {str(source.directory)!r})  # modules of the store stand beside its adapter")
    lines += ["", source.imports] if source.imports else []
    return "\n".join(lines)


def _words(line: str) -> list[str]:
    return "".join(character if character.isidentifier() or character.isdigit() else " " for character in line).split()


_LAB = '''
class Lab:
    """What the adapter is told of the one namespace that there is."""

    def __init__(self, directory):
        self.namespace = f"alone_{uuid.uuid4().hex[:8]}"
        self.directory = directory
        self.prepared = self.patience = None
        self.secret = uuid.uuid4().hex
'''

_SHOWN = '''
def shown(value):
    """Give a value in the form in which the contract compares it; the order of a listing means nothing."""
    if isinstance(value, Listing):
        return sorted(canonical(run) for run in value.items), value.complete
    return canonical(value)
'''

_EDIT = '''
def edit(value, how):
    """Edit a run, or all that is in a listing, in place, as a caller may who holds it."""
    for run in value.items if isinstance(value, Listing) else [value]:
        output = run.result.output if run.result else None
        objects = [part for part in (run.input, run.context, run.external_operation_metadata, output) if isinstance(part, dict)]
        if how == "everything is taken out":
            for part in objects:
                part.clear()
        elif how == "something is added at the top":
            for part in objects:
                part["added"] = "by the caller"
        else:
            inner = [child for part in objects for child in part.values()]
            while inner:
                part = inner.pop()
                if isinstance(part, list):
                    inner.extend(part)
                    part.append("added by the caller")
                elif isinstance(part, dict):
                    inner.extend(part.values())
                    part["added"] = "by the caller"
    if isinstance(value, Listing) and isinstance(value.items, list):
        value.items.clear()
'''

_OF_THE_STORE = '''
ERRORS = {errors}


def of_the_store(*kinds):
    """Give errors of the contract, and what the store raises in their place."""
    return (*kinds, *(raw for raw, kind in ERRORS.items() if issubclass(kind, kinds)))
'''


def _opened(source: AdapterSource) -> str:
    if source.asynchronous:
        return f'''
@contextlib.asynccontextmanager
async def opened(lab):
    """Open one handle, as the adapter does, and close it again."""
    handles = {source.opener}(lab)
    yield await anext(handles)
    await anext(handles, None)
'''
    return f'''
@contextlib.contextmanager
def opened(lab):
    """Open one handle, as the adapter does, and close it again."""
    handles = {source.opener}(lab)
    yield next(handles)
    next(handles, None)
'''


def _test(result: CheckResult, source: AdapterSource, scenario: Sequence[str]) -> str:
    name = f"test_{_variable(result.clause).lower()}"
    stack = (
        "async with contextlib.AsyncExitStack() as handles:"
        if source.asynchronous
        else "with contextlib.ExitStack() as handles:"
    )
    body = ["lab = Lab(tmp_path)"]
    body += [f"lab.prepared = {source.prepare}(lab)"] if source.prepare else []
    inside = [stack, *(textwrap.indent(line, "    ") for line in scenario)]
    if source.dispose:
        inside = ["try:", *(textwrap.indent(line, "    ") for line in inside), "finally:", f"    {source.dispose}(lab)"]
    body += inside
    indented = textwrap.indent("\n".join(body), "    ")
    if not source.asynchronous:
        return f"def {name}(tmp_path):\n{indented}"
    return f"async def scenario(tmp_path):\n{indented}\n\n\ndef {name}(tmp_path):\n    asyncio.run(scenario(tmp_path))"
