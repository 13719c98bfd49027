"""The command line.  Everything heavy is imported inside the commands, so that ``--help`` answers at once."""

from __future__ import annotations

import functools
import os
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from runcert.problems import ExitCode

if TYPE_CHECKING:
    from runcert.certifying import Order

__all__ = ["main"]

_TRACEBACK = "RUNCERT_TRACEBACK"
_Parameters = ParamSpec("_Parameters")

DEPTHS = click.Choice(["quick", "standard", "exhaustive"])

_servers_option = click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME=URL|wheel|system|containers",
    help="Where a server is, or how the kit gets one.",
)


def _reporting(command: Callable[_Parameters, int]) -> Callable[_Parameters, None]:
    """Turn what a command returns or raises into an exit code and at most one message."""

    @functools.wraps(command)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        from runcert import interruption

        interruption.take_signals()
        try:
            code = command(*args, **kwargs)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = int(ExitCode.UNDECIDED)
        except KeyboardInterrupt:
            code = 128 + signal.SIGINT
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                raise
            code = int(ExitCode.UNDECIDED) if interruption.came() else _told(error)
        if interruption.came() or code == 128 + signal.SIGINT:  # also where the exception was lost or wrapped on its way here
            click.echo("runcert: interrupted; everything that was started is stopped", err=True)
            code = 128 + (interruption.came() or signal.SIGINT)
        sys.exit(int(code))

    return run


def _told(error: Exception) -> int:
    """Say in one message what went wrong, and give the exit code."""
    from runcert.masking import without_passwords
    from runcert.problems import KitProblem, ServerLost, UsageProblem, describe_error

    if isinstance(error, (UsageProblem, ServerLost)):
        click.echo(f"runcert: {without_passwords(str(error))}", err=True)
        return int(ExitCode.COULD_NOT_START if isinstance(error, UsageProblem) else ExitCode.UNDECIDED)
    said = str(error) if isinstance(error, KitProblem) else describe_error(error)
    click.echo(f"runcert: the kit failed, which is a defect to report: {without_passwords(said)}", err=True)
    if not isinstance(error, KitProblem):
        click.echo(f"(set {_TRACEBACK}=1 to see where)", err=True)
    return int(ExitCode.UNDECIDED)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="runcert")
def main() -> None:
    """Certify stores of runs, clause by clause.

    Exit codes: 0 it holds; 1 it does not; 2 it could not start (target, option, adapter, server); 3 undecided.
    """


def _run_options(command: Callable[..., None]) -> Callable[..., None]:
    options = [
        click.option(
            "--depth", type=DEPTHS, default="standard", show_default=True, help="How long the same clauses are tried."
        ),
        click.option(
            "--out", type=click.Path(file_okay=False, path_type=Path), help="Write certificates, reports and failures here."
        ),
        click.option("--seed", type=click.IntRange(min=0), help="Everything random follows from it; printed when not given."),
        click.option("-n", "processes", type=click.IntRange(min=1), help="Processes at once; by default one per processor."),
        click.option("--contract", help="Only this contract."),
        click.option("--waivers", type=click.Path(dir_okay=False, path_type=Path), help="TOML file of accepted failures."),
        _servers_option,
        click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--only", multiple=True, metavar="CLAUSE", help="Only this clause; may be repeated. Gives no certificate.")
@_run_options
@_reporting
def certify(targets: tuple[str, ...], only: tuple[str, ...], **options: Any) -> int:
    """Certify each TARGET: a name, path/to/file.py[:attribute], module:attribute, or a URL."""
    return _certify(_order(targets, only=only, **options), options["out"], options["form"])


def _order(
    targets: tuple[str, ...],
    *,
    only: tuple[str, ...] = (),
    check: str | None = None,
    depth: str = "standard",
    seed: int | None = None,
    processes: int | None = None,
    contract: str | None = None,
    waivers: Path | None = None,
    servers: tuple[str, ...] = (),
    **_: Any,
) -> Order:
    from runcert.certifying import Order, parse_servers
    from runcert.waivers import read_waivers

    return Order(
        targets=targets,
        depth=depth,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        processes=processes or os.cpu_count() or 1,
        only=only,
        contract=contract,
        waivers=read_waivers(waivers) if waivers is not None else (),
        servers=parse_servers(servers),
        check=check,
    )


def _certify(order: Order, out: Path | None, form: str) -> int:
    import json

    from runcert.certificate import make_certificate
    from runcert.certifying import certify as run_certification
    from runcert.certifying import insist_on_writable, write_results
    from runcert.grading import overall_exit_code
    from runcert.reports.terminal import LiveProgress, print_reports

    if out is not None:
        insist_on_writable(out)
    progress: list[LiveProgress] = []

    def announce(total: int) -> Callable[[dict[str, Any]], None]:
        progress.append(LiveProgress("certifying", total))
        progress[0].start()
        return progress[0].note

    try:
        reports, facts = run_certification(order, announce)
    finally:
        for shown in progress:
            shown.stop()
    files = write_results(reports, facts, out) if out is not None else {}
    code = int(overall_exit_code(reports))
    if form == "json":
        click.echo(json.dumps({"exit_code": code, "certificates": [make_certificate(r, facts) for r in reports]}, indent=2))
    else:
        print_reports(reports, facts, dict(files))
    return code


@main.command()
@click.option("--contract", help="Only this contract.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_reporting
def clauses(contract: str | None, form: str) -> int:
    """Print the clauses of this catalogue."""
    import json

    from runcert.problems import UsageProblem
    from runcert_contract import CATALOGUE
    from runcert_contract.catalogue import CONTRACT_PREFIXES

    if contract is not None and contract not in CONTRACT_PREFIXES:
        raise UsageProblem(f"there is no contract {contract!r}; this revision knows {', '.join(CONTRACT_PREFIXES)}")
    chosen = CATALOGUE.of(contract) if contract is not None else CATALOGUE.clauses
    if form == "json":
        rows = [
            {
                "id": c.id,
                "statement": c.statement,
                "needs": [n.value for n in c.needs],
                "strength": c.strength.value,
                "source": c.source,
            }
            for c in chosen
        ]
        click.echo(json.dumps({"revision": CATALOGUE.revision, "digest": CATALOGUE.digest, "clauses": rows}, indent=2))
        return 0
    for clause in chosen:
        needs = f"  [needs {', '.join(need.value for need in clause.needs)}]" if clause.needs else ""
        click.echo(f"{clause.id:<18} {clause.statement}{needs}")
    click.echo(f"\n{len(chosen)} clauses, catalogue revision {CATALOGUE.revision}, digest {CATALOGUE.digest[:16]}")
    return 0


@main.command(name="list")
@click.option("--faulty", is_flag=True, help="List the faulty stores instead.")
@_reporting
def list_targets(*, faulty: bool) -> int:
    """List the targets that installed packages registered."""
    from runcert.faulty import faulty_stores
    from runcert.targets import adapter_names

    if faulty:
        for store in faulty_stores():
            click.echo(f"{store.spec:<75} {store.clause:<18} {store.fault}")
    else:
        for name in adapter_names():
            click.echo(name)
    return 0


@main.command(name="servers")
@click.option("--server", "told", multiple=True, metavar="NAME=URL|wheel|system|containers", help="What a run would be told.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_reporting
def list_servers(told: tuple[str, ...], form: str) -> int:
    """Say which servers can be had here, in which way, which version, and why not in the others."""
    import json
    from dataclasses import asdict

    from runcert.certifying import parse_servers
    from runcert.reports.servers import server_table
    from runcert.servers.offers import all_offers

    offers = all_offers(parse_servers(told))
    if form == "json":
        click.echo(json.dumps([asdict(offer) | {"available": offer.available} for offer in offers], indent=2))
    else:
        click.echo(server_table(offers))
    return 0


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@_servers_option
@_reporting
def replay(file: Path, servers: tuple[str, ...]) -> int:
    """Run the check of a failure's FILE again, on the same target with the same seed: 1 it failed again, 3 it did not."""
    from runcert.reports.failures import read_failure

    data = read_failure(file)
    order = _order((data["target"],), check=data["check"], depth=data["depth"], seed=data["seed"], processes=1, servers=servers)
    return _replay(order, data, ExitCode.UNDECIDED)


def _replay(order: Order, data: dict[str, Any], diverged: int) -> int:
    from runcert.certifying import certify as run_certification
    from runcert.reports.failures import failure_lines

    reports, _ = run_certification(order, lambda _: lambda _: None)
    results = {r.check: r for report in reports for clause in report.clauses for r in clause.results if r.check == order.check}
    result = results.get(data["check"])
    if result is not None and result.verdict == "fail" and result.clause == data["clause"]:
        click.echo("\n".join(failure_lines(result, "failed again, as before")))
        return 1
    verdict = "did not run" if result is None else f"gave {result.verdict} {result.clause} {result.found}".rstrip()
    click.echo(
        f"{data['check']} {verdict}; before, it failed {data['clause']}. The replay diverged: the failure depends on timing or on the machine."
    )
    return diverged


@main.command()
@click.argument("certificate", type=click.Path(path_type=Path))
@_reporting
def verify(certificate: Path) -> int:
    """Recompute the verdict of a CERTIFICATE from what it lists. This proves consistency, not origin: it has no signature."""
    from runcert.certificate import contradictions, read_certificate

    data = read_certificate(certificate)
    problems = contradictions(data)
    for problem in problems:
        click.echo(problem)
    if problems:
        click.echo(f"{certificate} contradicts itself or its schema")
        return 1
    click.echo(f"{certificate} is consistent: {data['target']['name']} is {data['verdict']} (consistency, not a signature)")
    return 0


@main.command()
@click.argument("certificate", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write the new certificate here.")
@_servers_option
@_reporting
def rerun(certificate: Path, out: Path | None, servers: tuple[str, ...]) -> int:
    """Repeat the run of a CERTIFICATE: same target, depth and seed."""
    from runcert.certificate import read_certificate
    from runcert.problems import UsageProblem

    data = read_certificate(certificate)
    run, target = data["run"], data["target"]
    only = tuple(c["id"] for c in data["contracts"][0]["clauses"]) if run["partial"] else ()
    if "***@" in target["text"]:
        raise UsageProblem(
            f"{certificate}: the password of {target['text']} is not stored; run `runcert certify` with the full URL"
        )
    click.echo(f"repeating {target['text']} at depth {run['depth']} with seed {run['seed']}; before: {data['verdict']}")
    return _certify(_order((target["text"],), only=only, depth=run["depth"], seed=run["seed"], servers=servers), out, "text")


@main.command()
@click.argument("certificates", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="CERTIFICATE...")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "html", "json"]), default="text", show_default=True)
@_reporting
def compare(certificates: tuple[Path, ...], form: str) -> int:
    """Lay CERTIFICATES side by side; 0 when every one is consistent and certified."""
    import json

    from runcert.certificate import contradictions, read_certificate
    from runcert.comparing import comparison_markdown, comparison_rows, comparison_text
    from runcert.reports.pages import comparison_page

    loaded = [read_certificate(path) for path in certificates]
    forms = {"text": comparison_text, "markdown": comparison_markdown, "html": comparison_page}
    click.echo(json.dumps(comparison_rows(loaded, certificates)) if form == "json" else forms[form](loaded, certificates))
    broken = [str(path) for path, data in zip(certificates, loaded, strict=True) if contradictions(data)]
    for path in broken:
        click.echo(f"{path} contradicts itself; see `runcert verify {path}`", err=True)
    return 0 if not broken and all(data["verdict"] == "certified" for data in loaded) else 1


@main.command(name="clean")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME", help="Also what was made on this machine, where no run goes on."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_reporting
def clean_up(urls: tuple[str, ...], *, dry_run: bool, hosts: tuple[str, ...], form: str) -> int:
    """Remove what killed runs left at each URL: a directory, a database or a server of yours. Nothing without the kit's mark is touched."""
    import json
    from dataclasses import asdict

    from runcert.cleaning import clean
    from runcert.masking import without_passwords

    found = {without_passwords(url): clean(url, hosts, dry_run=dry_run) for url in urls}
    if form == "json":
        click.echo(json.dumps({url: [asdict(each) for each in cleaned] for url, cleaned in found.items()}, indent=2))
    else:
        for url, cleaned in found.items():
            for each in cleaned:
                click.echo(f"{each.done:<16} {each.kind} {each.name}: {each.why}")
            removed = sum(each.done == "removed" for each in cleaned)
            click.echo(f"{url}: {len(cleaned)} found, {removed} removed")
    return 0 if all(each.settled for cleaned in found.values() for each in cleaned) else 1


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET TARGET...")
@click.option("--length", type=click.IntRange(min=1), default=500, show_default=True, help="How many calls.")
@click.option("--seed", type=click.IntRange(min=0), help="Decides the calls; printed in any case.")
@_servers_option
@_reporting
def diff(targets: tuple[str, ...], length: int, seed: int | None, servers: tuple[str, ...]) -> int:
    """Give every TARGET the same calls and show where their answers differ, also where the contract permits both.

    0 when no answer breaks the contract, whether they differ or not; 1 when one does.
    """
    from runcert.certifying import check_targets, parse_servers
    from runcert.differing import differences_text, find_differences
    from runcert.messages import Settings
    from runcert.supervisor import Supervisor

    chosen = secrets.randbelow(2**32) if seed is None else seed
    check_targets(targets)
    with Supervisor(Settings(root="", seed=chosen, servers=parse_servers(servers))).running() as supervisor:
        found = find_differences(supervisor, targets, chosen, length)
    click.echo(differences_text(found))
    return 1 if found.forbidden else 0


@main.command()
@click.option("--contract", help="Only this contract.")
@click.option("--full", is_flag=True, help="Run every check on every faulty store, and say which clause is redundant.")
@click.option("--seed", type=click.IntRange(min=0), help="Everything random follows from it; printed when not given.")
@click.option("-n", "processes", type=click.IntRange(min=1), help="Processes at once; by default one per processor.")
@_reporting
def selfcheck(contract: str | None, *, full: bool, seed: int | None, processes: int | None) -> int:
    """Prove that the kit can say no: run the faulty stores and print which clause catches which."""
    from runcert.problems import UsageProblem
    from runcert.reports.matrix import print_matrix
    from runcert.reports.terminal import LiveProgress
    from runcert.selfcheck import run_selfcheck, store_selfcheck, total_checks
    from runcert_contract.catalogue import CONTRACT_PREFIXES

    if contract is not None and contract not in CONTRACT_PREFIXES:
        raise UsageProblem(f"there is no contract {contract!r}; this revision knows {', '.join(CONTRACT_PREFIXES)}")
    chosen = secrets.randbelow(2**32) if seed is None else seed
    progress = LiveProgress("selfcheck", total_checks(contract, full=full))
    progress.start()
    try:
        report = run_selfcheck(
            contract, full=full, seed=chosen, processes=processes or os.cpu_count() or 1, on_event=progress.note
        )
    finally:
        progress.stop()
    if contract is None:
        store_selfcheck(report)
    print_matrix(report, chosen)
    return int(report.exit_code)
