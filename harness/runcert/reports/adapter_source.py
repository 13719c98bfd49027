"""What of an adapter's file is needed to open its store without the kit: the function, what it uses, and no decorator."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import runcert_contract

__all__ = ["AdapterSource", "adapter_source"]

_KIT = "runcert"
_STAND_INS = {"Lab"}
"""What the file that is written brings along itself."""
_OF_THE_LAB = {"namespace", "directory", "prepared", "patience", "secret"}
"""What the stand-in has of a lab."""


@dataclass(frozen=True, slots=True)
class AdapterSource:
    """An adapter as source code.

    Attributes:
        directory: where its file is, for modules that stand beside it.
        imports: what is imported.
        code: definitions, in the order of the file.
        opener: the name of the function that opens the store.
        asynchronous: whether it is an ``async def``.
        prepare: the name of the function that prepares a namespace; empty where there is none.
        dispose: the same for the one that removes it.
        errors: the mapping from errors of the store to those of the contract, as source.
    """

    directory: Path
    imports: str
    code: str
    opener: str
    asynchronous: bool
    prepare: str
    dispose: str
    errors: str


def adapter_source(file: Path, name: str) -> AdapterSource | None:
    """Read an adapter from its file.

    Args:
        file: the file.
        name: the adapter's function.

    Returns:
        What opens the store; None where that cannot be had from the file alone: an adapter that is made by another function, or
        one that uses more of the kit than its lab.
    """
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return None
    opener = next((node for node in tree.body if isinstance(node, _FUNCTIONS) and node.name == name), None)
    options = None if opener is None else _options(opener)
    if opener is None or options is None or len(opener.decorator_list) != 1:
        return None
    prepare, dispose = options.get("prepare"), options.get("dispose")
    if any(option is not None and not isinstance(option, ast.Name) for option in (prepare, dispose)):
        return None
    wanted = [*opener.body, *(option for key, option in options.items() if key in ("prepare", "dispose", "errors"))]
    needed = _needed(tree, opener, wanted)
    definitions = [node for node in tree.body if node is opener or any(each in needed for each in _names_of(node))]
    if not _asks_only_for_what_is_there(definitions):
        return None
    code = _code(text, tree, opener, needed)
    if code is None:
        return None
    return AdapterSource(
        directory=file.resolve().parent,
        imports=code[0],
        code=code[1],
        opener=name,
        asynchronous=isinstance(opener, ast.AsyncFunctionDef),
        prepare=prepare.id if isinstance(prepare, ast.Name) else "",
        dispose=dispose.id if isinstance(dispose, ast.Name) else "",
        errors=ast.unparse(options["errors"]) if "errors" in options else "{}",
    )


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _options(opener: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr] | None:
    """Give the options of ``@adapter(...)``; None where it is not written out."""
    for decorator in opener.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in ("adapter", f"{_KIT}.adapter"):
            if any(keyword.arg is None for keyword in decorator.keywords):
                return None
            return {str(keyword.arg): keyword.value for keyword in decorator.keywords}
    return None


def _asks_only_for_what_is_there(definitions: Sequence[ast.AST]) -> bool:
    """Say whether the lab is asked for nothing but what its stand-in has."""
    asked = {
        node.attr
        for definition in definitions
        for node in ast.walk(definition)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lab"
    }
    return asked <= _OF_THE_LAB


def _needed(tree: ast.Module, opener: ast.AST, wanted: Sequence[ast.AST]) -> set[str]:
    """Give the names at the top of the file that some code uses, and that those use in turn."""
    defined = {name: node for node in tree.body if node is not opener for name in _names_of(node)}
    needed: set[str] = set()
    waiting = [name for node in wanted for name in _used(node)]
    while waiting:
        name = waiting.pop()
        if name in defined and name not in needed:
            needed.add(name)
            if not isinstance(defined[name], (ast.Import, ast.ImportFrom)):
                waiting.extend(_used(defined[name]))
    return needed


def _names_of(node: ast.stmt) -> Iterator[str]:
    """Give the names that a statement at the top of a file binds."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (_bound(alias) for alias in node.names)
    else:
        yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _used(node: ast.AST) -> Iterator[str]:
    """Give the names that code reads when it runs; annotations are not read."""
    if isinstance(node, ast.Name):
        yield node.id
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _used(child)


def _code(text: str, tree: ast.Module, opener: ast.AST, needed: set[str]) -> tuple[str, str] | None:
    """Give the imports and the source of what is needed; None where that is more of the kit than can be had elsewhere."""
    lines, imports, parts = text.splitlines(), [], []
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            wanted = [alias for alias in node.names if _bound(alias) in needed]
            if _is_of_the_kit(node):
                wanted = [alias for alias in wanted if _bound(alias) not in _STAND_INS]
                if any(not hasattr(runcert_contract, alias.name) for alias in wanted) or (
                    isinstance(node, ast.Import) and wanted
                ):
                    return None
            if wanted:
                imports.append(_import(node, wanted))
        elif node is opener or any(name in needed for name in _names_of(node)):
            first = node.lineno if node is opener else min([node.lineno, *_decorated(node)])
            parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    return "\n".join(imports), "\n\n\n".join(parts)


def _decorated(node: ast.stmt) -> Iterator[int]:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield from (decorator.lineno for decorator in node.decorator_list)


def _is_of_the_kit(node: ast.Import | ast.ImportFrom) -> bool:
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return any(module.partition(".")[0] == _KIT for module in modules)


def _import(node: ast.Import | ast.ImportFrom, wanted: Sequence[ast.alias]) -> str:
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(names=list(wanted)))
    module = "runcert_contract" if _is_of_the_kit(node) else node.module
    return ast.unparse(ast.ImportFrom(module=module, names=list(wanted), level=node.level))
