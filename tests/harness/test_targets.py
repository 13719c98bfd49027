from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from runcert import UsageProblem
from runcert.targets import adapter_names, check_unique, resolve, split_file_target

STORE = """
from collections.abc import Iterator
from runcert import Lab, RunStore, adapter

@adapter(RunStore)
def first(lab: Lab) -> Iterator[RunStore]:
    yield object()
"""
SECOND = """
@adapter(RunStore, target="other")
def second(lab: Lab) -> Iterator[RunStore]:
    yield object()

number = 7
alias = type("Holder", (), {"adapter": first})()
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of adapters, a new one for each test."""

    def write_file(text: str) -> Path:
        path = tmp_path / "stores.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stores.py", (Path("stores.py"), None)),
        ("a/b.py:make", (Path("a/b.py"), "make")),
        ("C:\\stores.py:make", (Path("C:\\stores.py"), "make")),
        ("package.module:make", None),
        ("memory", None),
        ("stores.pyc", None),
    ],
)
def test_a_file_is_told_from_a_module_and_a_name(text: str, expected: object) -> None:
    assert expected == split_file_target(text)


@pytest.mark.parametrize("name", ["memory", "memory-async", "noop"])
def test_a_registered_name_is_found(name: str) -> None:
    (target,) = resolve(name)

    assert (target.text, target.spec, target.name) == (name, name, name)
    assert name in adapter_names()


def test_an_attribute_of_a_module_is_found() -> None:
    (target,) = resolve("runcert_reference.adapters:memory")

    assert (target.spec, target.name) == ("runcert_reference.adapters:memory", "memory")


def test_a_file_names_every_adapter_in_it_and_no_other(write: Write) -> None:
    path = write(STORE + SECOND + "from runcert_reference.adapters import memory\n")
    targets = resolve(str(path))

    assert [f"{path}:first", f"{path}:second"] == [target.text for target in targets]
    assert ["first", "other"] == [target.name for target in targets]


def test_a_target_from_a_file_is_found_again_from_another_directory(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(STORE)
    monkeypatch.chdir(tmp_path)
    (target,) = resolve("stores.py:first")
    monkeypatch.chdir("/")

    assert target.adapter is resolve(target.spec)[0].adapter


@pytest.mark.parametrize("attribute", ["second", "alias"])
def test_an_attribute_of_a_file_is_found_also_where_an_object_holds_the_adapter(write: Write, attribute: str) -> None:
    (target,) = resolve(f"{write(STORE + SECOND)}:{attribute}")

    assert target.name == {"second": "other", "alias": "first"}[attribute]


def test_an_adapter_may_import_what_lies_beside_its_file(write: Write, tmp_path: Path) -> None:
    (tmp_path / "beside_the_adapter.py").write_text("VALUE = 1\n", encoding="ascii")
    path = write("import beside_the_adapter\n" + STORE)

    assert [target.name for target in resolve(str(path))] == ["first"]


@pytest.mark.parametrize(
    ("content", "attribute", "message"),
    [
        ("number = 7\n", "", "holds no adapter; decorate the function that opens your store with @adapter\\(RunStore\\)"),
        (STORE, ":missing", "has no attribute 'missing'; it holds the adapters first"),
        ("number = 7\n", ":missing", "has no attribute 'missing'; it holds no adapter"),
        (STORE + SECOND, ":number", "is int, not an adapter; decorate a function"),
        ("def broken(:\n", "", "has a syntax error in line 1"),
        ("import no_such_module_here\n", "", "there is no module 'no_such_module_here'; install what provides it"),
        (
            "raise OSError('cannot reach db://u:hunter2@h')\n",
            "",
            "cannot be imported: OSError: cannot reach db://u:\\*\\*\\*@h",
        ),
        ("import sys\nsys.exit(0)\n", "", "cannot be imported: SystemExit"),
        ("from runcert import adapter\nadapter()(lambda lab: lab)\n", "", "must yield the open store"),
    ],
)
def test_a_file_that_is_no_target_is_refused_with_the_way_out(write: Write, content: str, attribute: str, message: str) -> None:
    path = write(content)

    with pytest.raises(UsageProblem, match=message) as refusal:
        resolve(f"{path}{attribute}")

    assert "hunter2" not in str(refusal.value)


def test_a_file_that_failed_once_is_read_again(write: Write) -> None:
    with pytest.raises(UsageProblem):
        resolve(str(write("def broken(:\n")))

    assert len(resolve(str(write(STORE)))) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere/stores.py", "there is no file nowhere/stores.py \\(looked in "),
        ("nowhere.py:make", "there is no file nowhere.py"),
        ("memry", "there is no target 'memry'; registered names are .*memory"),
        ("no_such_package_here.module:make", "there is no module 'no_such_package_here'"),
        ("runcert_reference.adapters:nothing", "has no attribute 'nothing'; it holds the adapters memory, memory_async, noop"),
        ("runcert_reference.adapters:CLAIMS", "is Claims, not an adapter"),
        (
            "oracle://user:hunter2@host/db",
            "the URL oracle://user:\\*\\*\\*@host/db: scheme 'oracle' is not known .*write an adapter of a few lines",
        ),
    ],
)
def test_a_target_that_is_not_there_is_refused_with_the_way_out(text: str, message: str) -> None:
    with pytest.raises(UsageProblem, match=message) as refusal:
        resolve(text)

    assert "hunter2" not in str(refusal.value)


def test_a_directory_is_no_file_of_adapters(tmp_path: Path) -> None:
    (tmp_path / "stores.py").mkdir()

    with pytest.raises(UsageProblem, match="there is no file"):
        resolve(str(tmp_path / "stores.py"))


def test_two_targets_of_one_name_are_refused(write: Write) -> None:
    targets = resolve(f"{write(STORE)}:first")

    with pytest.raises(UsageProblem, match="the target name 'first' is used more than once"):
        check_unique(target.name for target in [*targets, *targets])


def test_targets_of_different_names_are_not() -> None:
    check_unique(target.name for target in [*resolve("memory"), *resolve("noop")])


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """Entry points as other packages would register them: the registry is the boundary, what it names is real."""
    entries: list[EntryPoint] = []
    monkeypatch.setattr("runcert.targets.entry_points", lambda group: [entry for entry in entries if entry.group == group])
    return entries


def test_a_name_that_two_packages_register_for_different_stores_is_refused(registered: list[EntryPoint]) -> None:
    registered += [
        EntryPoint("mine", "runcert_reference.adapters:memory", "runcert.adapters"),
        EntryPoint("mine", "runcert_reference.adapters:noop", "runcert.adapters"),
    ]

    with pytest.raises(UsageProblem, match=r"'mine' is registered more than once .*name the one you mean as module:attribute"):
        resolve("mine")


def test_a_name_that_is_registered_twice_for_one_store_is_that_store(registered: list[EntryPoint]) -> None:
    registered += [EntryPoint("mine", "runcert_reference.adapters:memory", "runcert.adapters")] * 2

    assert resolve("mine")[0].name == "memory"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "sqlalchemy_that_is_not_here.x:y",
            "needs the module 'sqlalchemy_that_is_not_here', which is not installed: install what provides it",
        ),
        ("runcert_reference.adapters:nothing", "cannot be loaded: AttributeError"),
        ("runcert_reference.memory:CLAIMS", "is Claims, not an adapter"),
    ],
)
def test_a_registered_store_that_cannot_be_loaded_is_refused(registered: list[EntryPoint], value: str, message: str) -> None:
    registered.append(EntryPoint("mine", value, "runcert.adapters"))

    with pytest.raises(UsageProblem, match=message):
        resolve("mine")


def test_a_missing_driver_is_named_with_the_extra_that_brings_it(
    registered: list[EntryPoint], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "aiosqlite", None)
    (tmp_path / "store_with_a_driver.py").write_text("import aiosqlite\n", encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    registered.append(EntryPoint("mine", "store_with_a_driver:make", "runcert.adapters"))

    with pytest.raises(
        UsageProblem, match=r"'mine' needs the module 'aiosqlite', which is not installed: pip install 'runcert\[sql\]'"
    ):
        resolve("mine")


def test_a_url_is_opened_by_the_reference_store_of_its_scheme_and_shown_without_its_password(
    registered: list[EntryPoint], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = STORE + "def of_url(url: str) -> object:\n    return first\n"
    (tmp_path / "store_behind_a_url.py").write_text(text, encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    registered.append(EntryPoint("mykv", "store_behind_a_url:of_url", "runcert.url_schemes"))
    (target,) = resolve("mykv://u:hunter2@h")

    assert (target.text, target.spec, target.name) == ("mykv://u:***@h", "mykv://u:hunter2@h", "first")
