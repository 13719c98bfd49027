from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runcert import Clock, Lab, UsageProblem
from runcert.reach import EVICTING_SERVER, WIRE, Reach
from runcert.wire import Wire


def a_lab(directory: Path) -> Lab:
    servers = {"postgresql": "postgresql://user:password@127.0.0.1/db"}
    return Lab(
        "rc_1",
        directory,
        Clock(directory / "clock", 2.0),
        {"schema": "s"},
        servers,
        "s3cret-of-this-run",
        "127.0.0.1:1:word-of-this-run",
    )


def test_a_lab_comes_back_from_json_for_another_process(tmp_path: Path) -> None:
    lab = a_lab(tmp_path)

    assert lab == Lab.from_json(lab.to_json())


def test_the_skew_of_a_client_is_added_to_that_of_the_lab(tmp_path: Path) -> None:
    assert Lab.from_json(a_lab(tmp_path).to_json(), skew=-5.0).clock.skew == -3.0


def test_the_representation_shows_neither_the_secret_nor_the_servers(tmp_path: Path) -> None:
    text = repr(a_lab(tmp_path))

    assert "s3cret" not in text
    assert "password" not in text
    assert "word-of" not in text


def test_the_secret_is_given_to_the_adapter(tmp_path: Path) -> None:
    assert a_lab(tmp_path).secret == "s3cret-of-this-run"


def test_a_server_is_found_by_its_name(tmp_path: Path) -> None:
    assert a_lab(tmp_path).server("postgresql") == "postgresql://user:password@127.0.0.1/db"


def test_a_server_without_an_address_is_a_usage_problem_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="needs a server 'redis'; give its address with --server redis=URL"):
        replace(a_lab(tmp_path), desk="").server("redis")


def test_a_route_leads_to_the_address_itself_where_nothing_stands_between(tmp_path: Path) -> None:
    assert a_lab(tmp_path).route("localhost", 5432) == ("localhost", 5432)


def test_a_clock_shows_the_time_of_the_machine_until_it_is_turned(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    now = Clock(tmp_path / "clock").now()

    assert before <= now <= datetime.now(UTC)


@pytest.mark.parametrize("turns", [(3600.0,), (-7200.0,), (100.0, -40.5)])
def test_a_clock_that_is_turned_is_turned_for_every_client(tmp_path: Path, turns: tuple[float, ...]) -> None:
    here, there = Clock(tmp_path / "clock"), Clock(tmp_path / "clock", skew=10.0)
    before = datetime.now(UTC) + timedelta(seconds=sum(turns))
    for seconds in turns:
        here.turn(seconds)
    shown = there.now() - timedelta(seconds=10)

    assert before <= shown <= datetime.now(UTC) + timedelta(seconds=sum(turns))


def test_what_the_adapter_asked_for_is_noted_and_another_process_gets_the_address_itself(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    lab = replace(a_lab(tmp_path), wire=wire, reach=Reach(), patience=0.5)
    assert lab.reach.names == frozenset()

    host, port = lab.route("localhost", 5432)

    assert (host, port != 5432) == ("127.0.0.1", True)
    assert lab.reach.names == {WIRE}
    elsewhere = Lab.from_json(lab.to_json())
    assert (elsewhere.route("localhost", 5432), elsewhere.patience) == (("localhost", 5432), 0.5)
    assert elsewhere.route("/run/db.socket") == "/run/db.socket"
    wire.close()


def test_only_servers_that_can_be_set_to_evict_count_as_such() -> None:
    reach = Reach()
    reach.note_server("postgresql", "postgresql://u:p@h:1/d")
    assert reach.names == frozenset()

    reach.note_server("valkey", "redis://:p@h:2/0")

    assert reach.names == {EVICTING_SERVER}
    assert reach.evicting_servers == {"valkey": "redis://:p@h:2/0"}


def test_a_server_of_the_users_is_noted_and_never_taken_for_one_that_can_be_set(tmp_path: Path) -> None:
    lab = replace(a_lab(tmp_path), servers={"valkey": "redis://user:geheim@127.0.0.1:1/0"})
    lab.server("valkey")

    assert ("valkey",) == lab.reach.servers
    assert {} == lab.reach.evicting_servers
