"""What CI runs, in the same words at home.

``nox`` runs lint, types and tests; ``nox -s certify -- postgresql`` certifies a reference store; ``nox -s soak`` looks for false
alarms; ``nox -s bench`` measures; ``nox -l`` lists everything.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "types", "tests"]

PYPROJECT = nox.project.load_toml("pyproject.toml")
TEST = nox.project.dependency_groups(PYPROJECT, "test")
CHECK = nox.project.dependency_groups(PYPROJECT, "check")
COVERED = {"contract/runcert_contract": 95, "harness/runcert": 95, "reference_impls/runcert_reference": 95}
"""The lowest branch coverage in per cent; child processes are measured too, but for those that are killed."""

REFERENCE_TARGETS = sorted(set(PYPROJECT["project"]["entry-points"]["runcert.adapters"]) - {"noop"})
"""The reference stores that keep what they are given, by the names that ``runcert certify`` knows."""


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and layers."""
    session.install("-e", ".[all]", *CHECK)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Check types with mypy and pyright."""
    session.install("-e", ".[all]", "nox", *CHECK, *TEST)
    session.run("mypy")
    session.run("pyright")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests of the kit in parallel, with branch coverage of contract, harness and reference stores."""
    session.install("-e", ".[all]", *CHECK, *TEST)
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", "-n", "auto", "--timeout", "1200", *session.posargs)
    if session.posargs:
        return
    session.run("coverage", "combine", "--quiet")
    for package, lowest in COVERED.items():
        session.run("coverage", "report", f"--include=*/{package}/*", f"--fail-under={lowest}")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure how long certifications take, and what of that is the kit's."""
    session.install(".[all]")
    session.run("python", "benchmarks/certification.py", *session.posargs)
    session.run("python", "benchmarks/detection.py")


@nox.session
def docs(session: nox.Session) -> None:
    """Make the generated pages again, check links, examples and files of the documents, and build the site (``site/``)."""
    session.install("-e", ".[all]", *TEST)
    session.run("python", "-m", "runcert.reports.reference_pages", "docs/reference")
    session.run("mkdocs", "build", "--strict")
    session.run("pytest", "tests/docs", *session.posargs)


@nox.session
def certify(session: nox.Session) -> None:
    """Certify reference stores: those named after ``--``, or all; options after them go to ``runcert certify``."""
    session.install(".[all]")
    names_a_target = bool(session.posargs) and not session.posargs[0].startswith("-")
    session.run("runcert", "certify", *([] if names_a_target else REFERENCE_TARGETS), *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Certify every reference store with many seeds and count false alarms; ``-- --help`` says how to narrow it."""
    session.install(".[all]")
    session.run("python", "benchmarks/soak.py", *session.posargs)
