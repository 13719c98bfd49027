"""The reference store in Valkey, where the suites cannot look: keys, the server's errors, lost replies, servers that are refused."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records import a_run, following, texts
from tests.reference_impls.fake_valkey import CLOSE, FACTS, SILENT, FakeValkey, bulk, fake_valkey
from tests.servers.places import need

from runcert.lab import Clock, Lab
from runcert.problems import UsageProblem
from runcert.servers.owner import Servers
from runcert.targets import resolve
from runcert_contract import (
    AlreadyExists,
    Closed,
    Contended,
    CorruptRecord,
    InvalidRecord,
    Misconfigured,
    OutcomeUnknown,
    Run,
    RunStatus,
    StoreError,
    StoreUnavailable,
)

redis = pytest.importorskip("redis")

from runcert_reference import kv_adapters, kv_namespaces  # noqa: E402  # only where the driver is installed
from runcert_reference.kv import connections  # noqa: E402
from runcert_reference.kv.addresses import Address  # noqa: E402
from runcert_reference.kv.keys import Keys  # noqa: E402
from runcert_reference.kv.operations import retire_run  # noqa: E402
from runcert_reference.kv.run_store import AsyncValkeyRunStore, ValkeyRunStore  # noqa: E402

NAMESPACE = "rc_test"
ENDED = {"status": RunStatus.CANCELLED}


@contextmanager
def private_server(**settings: str | float | bool) -> Iterator[str]:
    """Run a server of the kit for the length of the body, and give its address."""
    need("valkey", "wheel")
    root = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
    servers = Servers(root, {})
    try:
        yield servers.url("valkey", settings)
    finally:
        servers.stop()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with private_server(**{"busy-reply-threshold": 50}) as started:
        yield started


@pytest.fixture
def address(url: str) -> Address:
    return Address.of(url)


@pytest.fixture
def server(url: str) -> Iterator[Any]:
    """Give a client of the driver, on a server that is empty before and after."""
    with closing(redis.Redis.from_url(url)) as client:
        client.flushall()
        yield client
        client.flushall()


@pytest.fixture
def store(address: Address, server: Any) -> Iterator[ValkeyRunStore]:
    with closing(ValkeyRunStore(address, NAMESPACE)) as opened:
        yield opened


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeValkey]:
    monkeypatch.setattr(connections, "REPLY_WAIT", 0.7)
    with fake_valkey() as server:
        yield server


@pytest.fixture
def on_fake(fake: FakeValkey) -> Iterator[ValkeyRunStore]:
    with closing(ValkeyRunStore(Address("127.0.0.1", fake.port), NAMESPACE)) as opened:
        fake.commands.clear()
        yield opened


def keys_of(server: Any) -> set[bytes]:
    return set(server.scan_iter())


def lab_named(namespace: str, directory: Path, prepared: Any = None) -> Lab:
    return Lab(namespace, directory, Clock(directory / "clock"), prepared)


def ids(runs: Any) -> list[str]:
    return sorted(run.run_id for run in runs)


# -- keys


@given(st.lists(st.tuples(st.sampled_from(["a", "ab", "a_b"]), texts(max_size=6)), min_size=2, max_size=2, unique=True))
def test_keys_are_injective(pairs: list[tuple[str, str]]) -> None:
    made = {key for namespace, name in pairs for key in (Keys(namespace).run(name), Keys(namespace).index(name))}

    assert 4 == len(made)


@pytest.mark.parametrize("namespace", ["", "a:b", "a*", "é", "a b", "x" * 65, "a\n"])
def test_a_namespace_that_could_reach_into_another_is_refused(namespace: str) -> None:
    with pytest.raises(Misconfigured, match="namespace"):
        Keys(namespace)


def test_a_run_is_one_hash_and_one_entry_of_its_tenant_without_a_time_to_live(store: ValkeyRunStore, server: Any) -> None:
    store.create(a_run("é*:1", tenant_id="t:1"))

    assert {b"rc_test:run:\xc3\xa9*:1", b"rc_test:resumable:t:1"} == keys_of(server)
    assert {b"\xc3\xa9*:1"} == server.smembers("rc_test:resumable:t:1")
    assert {b"tenant", b"version", b"state", b"record"} == set(server.hgetall("rc_test:run:é*:1"))
    assert [-1, -1] == [server.ttl(key) for key in keys_of(server)]


def test_the_entry_goes_when_the_run_ends(store: ValkeyRunStore, server: Any) -> None:
    run = store.create(a_run("r1"))

    assert store.compare_and_set(run, following(run, **ENDED))
    assert {b"rc_test:run:r1"} == keys_of(server)
    assert [] == list(store.find_resumable("tenant").items)


def test_a_namespace_does_not_see_another_that_begins_with_its_name(store: ValkeyRunStore, address: Address) -> None:
    store.create(a_run("r1"))

    with closing(ValkeyRunStore(address, f"{NAMESPACE}x")) as other:
        assert other.find("r1") is None
        assert [] == list(other.find_resumable("tenant").items)
        assert a_run("r1") == other.create(a_run("r1"))


def test_an_update_under_another_tenant_is_refused_and_changes_nothing(store: ValkeyRunStore) -> None:
    run = store.create(a_run("r1"))
    other = a_run("r1", tenant_id="other")

    with pytest.raises(InvalidRecord, match="tenant_id"):
        store.compare_and_set(other, following(other))
    assert run == store.find("r1")
    assert [[], ["r1"]] == [ids(store.find_resumable(tenant).items) for tenant in ("other", "tenant")]


def test_versions_of_any_length_are_compared_exactly(store: ValkeyRunStore) -> None:
    store.create(a_run("r1"))
    for version in (2**53, 2**64, 10**5000):
        expected = a_run("r1", version=version)
        assert not store.compare_and_set(expected, following(expected))


# -- records that cannot be read


@pytest.mark.parametrize(
    "fields",
    [
        {"record": "{"},
        {"record": ""},
        {"record": b"\xff"},
        {"version": "7"},
        {"tenant": "x"},
        {"state": "terminal"},
        {"state": "?"},
    ],
    ids=str,
)
def test_what_does_not_agree_with_itself_is_corrupt_and_named_to_its_tenant(
    store: ValkeyRunStore, server: Any, fields: dict[str, Any]
) -> None:
    store.create(a_run("r1"))
    store.create(a_run("r2"))
    server.hset("rc_test:run:r1", mapping=fields)

    with pytest.raises(CorruptRecord) as caught:
        store.find("r1")
    with pytest.raises(AlreadyExists):
        store.create(a_run("r1"))
    listing = store.find_resumable("tenant")

    assert "r1" == caught.value.record
    assert (["r2"], ["r1"], True) == (ids(listing.items), list(listing.corrupt), listing.complete)


@pytest.mark.parametrize("name", ["tenant", "version", "state"])
def test_an_update_of_what_scripts_cannot_decide_by_is_corrupt(store: ValkeyRunStore, server: Any, name: str) -> None:
    run = store.create(a_run("r1"))
    server.hdel("rc_test:run:r1", name)

    with pytest.raises(CorruptRecord, match="r1"):
        store.compare_and_set(run, following(run))
    assert {b"r1"} == server.smembers("rc_test:resumable:tenant")


def test_a_value_of_another_kind_is_corrupt_and_hides_nothing_else(store: ValkeyRunStore, server: Any) -> None:
    runs = [store.create(a_run(name)) for name in ("r1", "r2")]
    server.delete("rc_test:run:r1")
    server.set("rc_test:run:r1", "text")
    calls: list[Callable[[], object]] = [
        lambda: store.find("r1"),
        lambda: store.compare_and_set(runs[0], following(runs[0])),
    ]

    for call in calls:
        with pytest.raises(CorruptRecord) as caught:
            call()
        assert "r1" == caught.value.record
    listing = store.find_resumable("tenant")
    assert (["r2"], ["r1"]) == (ids(listing.items), list(listing.corrupt))


def test_a_record_that_is_gone_from_under_its_index_is_named(store: ValkeyRunStore, server: Any) -> None:
    store.create(a_run("r1"))
    server.delete("rc_test:run:r1")

    assert ["r1"] == list(store.find_resumable("tenant").corrupt)


def test_a_write_that_fails_in_the_middle_of_its_script_leaves_nothing(store: ValkeyRunStore, server: Any) -> None:
    server.set("rc_test:resumable:tenant", "no set")

    with pytest.raises(CorruptRecord):
        store.create(a_run("r1"))
    assert {b"rc_test:resumable:tenant"} == keys_of(server)


def test_a_purged_id_stays_taken_in_one_small_key(store: ValkeyRunStore, server: Any, address: Address) -> None:
    run = store.create(a_run("r1"))
    with closing(connections.Connections(address)) as ways:
        found = [ways.ask(retire_run(Keys(NAMESPACE), run_id)) for run_id in ("r1", "unknown")]

    assert [True, False] == found
    assert {b"rc_test:run:r1"} == keys_of(server)
    assert {b"state": b"retired"} == server.hgetall("rc_test:run:r1")
    assert store.find("r1") is None
    assert not store.compare_and_set(run, following(run))
    with pytest.raises(AlreadyExists):
        store.create(run)


# -- what the server says


REFUSALS = {
    "-OOM command not allowed when used memory > 'maxmemory'.": StoreUnavailable,
    "-LOADING Redis is loading the dataset in memory": StoreUnavailable,
    "-MISCONF Errors writing to the AOF file: No space left on device": StoreUnavailable,
    "-NOREPLICAS Not enough good replicas to write.": StoreUnavailable,
    "-MASTERDOWN Link with MASTER is down": StoreUnavailable,
    "-CLUSTERDOWN Hash slot not served": StoreUnavailable,
    "-BUSY Redis is busy running a script.": Contended,
    "-READONLY You can't write against a read only replica.": Misconfigured,
    "-NOAUTH Authentication required.": Misconfigured,
    "-WRONGPASS invalid username-password pair or user is disabled.": Misconfigured,
    "-NOPERM User x has no permissions to run the 'eval' command": Misconfigured,
    "-MOVED 3999 127.0.0.1:6381": Misconfigured,
    "-CROSSSLOT Keys in request don't hash to the same slot": Misconfigured,
    "-WRONGTYPE Operation against a key holding the wrong kind of value": CorruptRecord,
}


@pytest.mark.parametrize(("line", "kind"), REFUSALS.items(), ids=lambda value: str(value).partition(" ")[0])
def test_each_refusal_of_the_server_is_the_error_of_the_contract(
    fake: FakeValkey, on_fake: ValkeyRunStore, line: str, kind: type[StoreError]
) -> None:
    fake.answers |= {"EVAL": f"{line}\r\n".encode(), "HGETALL": f"{line}\r\n".encode()}
    run = a_run("r1")
    calls: list[Callable[[], object]] = [
        lambda: on_fake.create(run),
        lambda: on_fake.compare_and_set(run, following(run)),
        lambda: on_fake.find("r1"),
        lambda: on_fake.find_resumable("tenant"),
    ]

    for call in calls:
        with pytest.raises(StoreError) as caught:
            call()
        assert kind is type(caught.value)
        assert caught.value.definite
    assert ["EVAL", "EVAL", "HGETALL", "EVAL"] == fake.commands


@pytest.mark.parametrize("answer", [CLOSE, SILENT, b"-ERR something new\r\n", b"?\r\n"], ids=repr)
def test_only_a_write_without_an_answer_is_unknown_and_nothing_is_sent_twice(
    fake: FakeValkey, on_fake: ValkeyRunStore, answer: bytes
) -> None:
    fake.answers |= {"EVAL": answer, "HGETALL": answer}
    run = a_run("r1", attempt_token="s3cret")

    started = time.monotonic()
    with pytest.raises(OutcomeUnknown, match="r1") as caught:
        on_fake.create(run)
    with pytest.raises(StoreUnavailable, match="r1"):
        on_fake.find("r1")

    assert ["EVAL", "HGETALL"] == fake.commands
    assert time.monotonic() - started < 9
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_handle_works_again_after_a_lost_reply(fake: FakeValkey, on_fake: ValkeyRunStore) -> None:
    fake.answers["HGETALL"] = CLOSE
    with pytest.raises(StoreUnavailable):
        on_fake.find("r1")
    fake.answers["HGETALL"] = b"*0\r\n"

    assert on_fake.find("r1") is None


def test_nothing_was_written_where_no_connection_could_be_made(fake: FakeValkey, on_fake: ValkeyRunStore) -> None:
    fake.close()

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            on_fake.create(a_run("r1"))
    assert [] == fake.commands


def test_a_server_out_of_memory_takes_no_write_and_loses_nothing(store: ValkeyRunStore, server: Any) -> None:
    run = store.create(a_run("r1"))
    server.config_set("maxmemory", 1)
    try:
        for call in (lambda: store.create(a_run("r2")), lambda: store.compare_and_set(run, following(run))):
            with pytest.raises(StoreUnavailable, match="memory"):
                call()
        assert run == store.find("r1")
        assert ["r1"] == ids(store.find_resumable("tenant").items)
    finally:
        server.config_set("maxmemory", 0)
    assert store.compare_and_set(run, following(run))


def test_a_server_busy_with_anothers_script_is_contended(store: ValkeyRunStore, url: str) -> None:
    def endless() -> None:
        with closing(redis.Redis.from_url(url, protocol=2)) as client, pytest.raises(redis.exceptions.ResponseError):
            client.eval("while true do end", 0)

    busy = threading.Thread(target=endless)
    busy.start()
    time.sleep(0.2)
    try:
        with pytest.raises(Contended):
            store.create(a_run("r1"))
    finally:
        with closing(redis.Redis.from_url(url, protocol=2)) as client:
            client.script_kill()
        busy.join()

    assert store.find("r1") is None


def test_a_write_that_the_server_keeps_waiting_is_unknown_while_reads_go_on(store: ValkeyRunStore, server: Any) -> None:
    run = store.create(a_run("r1"))
    server.execute_command("CLIENT", "PAUSE", "20000", "WRITE")
    try:
        with pytest.raises(OutcomeUnknown):
            store.compare_and_set(run, following(run))
        assert run == store.find("r1")
        assert ["r1"] == ids(store.find_resumable("tenant").items)
    finally:
        server.execute_command("CLIENT", "UNPAUSE")
    assert store.compare_and_set(run, following(run))


def test_a_server_that_ends_is_unavailable_and_no_run_is_called_absent() -> None:
    with private_server() as url:
        store = ValkeyRunStore(Address.of(url), NAMESPACE)
        store.create(a_run("r1"))

    for call in (lambda: store.find("r1"), lambda: store.create(a_run("r2")), lambda: store.find_resumable("tenant")):
        with pytest.raises(StoreUnavailable):
            call()
    store.close()


# -- which servers are refused


@pytest.mark.parametrize(
    ("fact", "instead", "says"),
    [
        ("redis_version:7.2.4", "redis_version:6.2.14", r"version 6\.2\.14"),
        ("redis_version:7.2.4", "other:1", "version unknown"),
        ("maxmemory_policy:noeviction", "maxmemory_policy:volatile-ttl", "evicts records.*volatile-ttl"),
        ("maxmemory_policy:noeviction", "other:1", "evicts records.*unknown"),
        ("role:master", "role:slave", "replica"),
        ("cluster_enabled:0", "cluster_enabled:1", "cluster"),
    ],
)
def test_a_server_that_cannot_hold_authoritative_records_is_refused_at_opening(
    fake: FakeValkey, fact: str, instead: str, says: str
) -> None:
    fake.answers["INFO"] = bulk(FACTS.replace(fact, instead))

    address = Address("127.0.0.1", fake.port)
    with pytest.raises(Misconfigured, match=says):
        ValkeyRunStore(address, NAMESPACE)
    with pytest.raises(Misconfigured, match=says):
        asyncio.run(_opened(address))
    assert ["INFO", "INFO"] == fake.commands


async def _opened(address: Address) -> AsyncValkeyRunStore:
    return await AsyncValkeyRunStore.open(address, NAMESPACE)


def test_an_evicting_server_is_refused_and_nothing_is_written_there() -> None:
    with private_server(**{"maxmemory-policy": "allkeys-lru"}) as url:
        with pytest.raises(Misconfigured, match="noeviction"):
            ValkeyRunStore(Address.of(url), NAMESPACE)
        with closing(redis.Redis.from_url(url)) as client:
            assert 0 == client.dbsize()


@pytest.mark.parametrize(
    ("answers", "database"),
    [({"AUTH": SILENT}, 0), ({"AUTH": b"-WRONGPASS invalid\r\n"}, 0), ({"SELECT": b"-ERR out of range\r\n"}, 9)],
)
def test_a_server_that_does_not_let_a_handle_in_is_a_typed_error_without_the_password(
    fake: FakeValkey, answers: dict[str, bytes], database: int
) -> None:
    fake.answers |= answers
    address = Address("127.0.0.1", fake.port, database, "me", "s3cret")

    with pytest.raises((Misconfigured, StoreUnavailable)) as caught:
        ValkeyRunStore(address, NAMESPACE)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)) + repr(address)


# -- addresses


def test_an_address_is_read_part_by_part() -> None:
    assert Address("h", 7, 3, "u@x", "p:/#") == Address.of("redis://u%40x:p%3A%2F%23@h:7/3")
    assert Address("::1", 6379, 0, None, "p") == Address.of("redis://:p@[::1]")


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://:s3cret@h:port/0",
        "redis://:s3cret@h/name",
        "redis://:s3cret@h/0?socket_timeout=999",
        "redis://:s3cret@h/0#x",
        "rediss://:s3cret@h/0",
        "redis://:s3cret@h/1/2",
        "redis://:s3cret@[h/0",
    ],
)
def test_an_address_that_says_anything_else_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        Address.of(url)
    assert "s3cret" not in str(caught.value)


# -- handles


def test_a_closed_handle_sends_nothing(fake: FakeValkey, on_fake: ValkeyRunStore) -> None:
    on_fake.close()

    with pytest.raises(Closed):
        on_fake.create(a_run("r1"))
    assert [] == fake.commands


def test_closing_waits_for_the_call_that_is_under_way(store: ValkeyRunStore, server: Any) -> None:
    server.execute_command("CLIENT", "PAUSE", "300", "WRITE")
    writer = threading.Thread(target=lambda: store.create(a_run("r1")))
    writer.start()
    time.sleep(0.1)
    store.close()
    writer.join()

    assert 1 == server.exists("rc_test:run:r1")


def test_more_threads_than_connections_take_turns(store: ValkeyRunStore, server: Any) -> None:
    before = len(server.client_list())
    found: list[Run | None] = []
    threads = [threading.Thread(target=lambda: found.append(store.find("r1"))) for _ in range(5 * connections.CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [None] * len(threads) == found
    assert len(server.client_list()) - before <= connections.CONNECTIONS


def test_a_call_that_gets_no_turn_is_contended(
    fake: FakeValkey, on_fake: ValkeyRunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS", 1)
    monkeypatch.setattr(connections, "TURN_WAIT", 0.05)
    fake.answers["HGETALL"] = SILENT
    failures: list[type[BaseException]] = []

    def call() -> None:
        try:
            on_fake.find("r1")
        except StoreError as error:
            failures.append(type(error))

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [Contended, StoreUnavailable] == failures


def test_a_task_that_gets_no_turn_is_contended(fake: FakeValkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS", 1)
    monkeypatch.setattr(connections, "TURN_WAIT", 0.05)

    async def scenario() -> list[type[object]]:
        store = await _opened(Address("127.0.0.1", fake.port))
        fake.answers["HGETALL"] = SILENT
        outcomes = await asyncio.gather(store.find("r1"), store.find("r1"), return_exceptions=True)
        await store.close()
        return [type(outcome) for outcome in outcomes]

    assert [StoreUnavailable, Contended] == asyncio.run(scenario())


def test_a_cancelled_call_takes_its_own_reply_with_it(address: Address, server: Any) -> None:
    async def scenario() -> tuple[Run | None, Run | None]:
        store = await AsyncValkeyRunStore.open(address, NAMESPACE)
        await store.create(a_run("r1"))
        for _ in range(20):
            task = asyncio.create_task(store.find("r1"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        found = await store.find("unknown"), await store.find("r1")
        await store.close()
        with pytest.raises(Closed):
            await store.find("r1")
        return found

    assert (None, a_run("r1")) == asyncio.run(scenario())


# -- namespaces of the kit


def test_a_namespace_is_removed_whole_and_alone(address: Address, server: Any, tmp_path: Path) -> None:
    server.set("of somebody", "else")
    server.set("rc_ax:1", "another run's")
    prepared = kv_namespaces.make_namespace(address, lab_named("rc_a", tmp_path))
    with closing(ValkeyRunStore(address, "rc_a")) as store:
        for number in range(5):
            store.create(a_run(f"r{number}", tenant_id=f"t{number % 2}"))
    lab = lab_named("rc_a", tmp_path, prepared)

    counted = kv_namespaces.count_keys(address, "rc_a")
    kv_namespaces.remove_namespace(address, lab)

    assert {"runs": 5, "retired": 0, "index entries": 5, "other keys": 1} == counted
    assert {b"of somebody", b"rc_ax:1"} == keys_of(server)


def test_a_namespace_that_is_somebody_elses_is_refused_and_left(address: Address, server: Any, tmp_path: Path) -> None:
    server.set("rc_a:run:r1", "mine")

    with pytest.raises(UsageProblem, match="not this run's"):
        kv_namespaces.make_namespace(address, lab_named("rc_a", tmp_path))
    with pytest.raises(RuntimeError, match="mark"):
        kv_namespaces.remove_namespace(address, lab_named("rc_a", tmp_path, {"namespace": "rc_a", "mark": "another"}))
    assert {b"rc_a:run:r1"} == keys_of(server)


# -- the command line


def certify(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runcert", "certify", *arguments, "--depth", "quick", "--seed", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment, timeout=120)


def test_a_user_who_may_touch_only_keys_of_the_kit_can_certify_and_the_rest_is_left(
    address: Address, server: Any, tmp_path: Path
) -> None:
    server.set("of somebody", "else")
    commands = ["+info", "+eval", "+dbsize", "+scan", "+get", "+set", "+exists", "+del", "+unlink", "+@hash", "+@set"]
    server.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">s3cret", "~rc_*", *commands)
    clauses = ("RUN-RESUMABLE-1", "RUN-CREATE-3", "RUN-REUSE-1", "RUN-CORRUPT-1", "RUN-RESIDUE-1")
    only = [part for clause in clauses for part in ("--only", clause)]

    done = certify(f"redis://limited:s3cret@{address.host}:{address.port}", *only, "--out", str(tmp_path / "out"))

    assert 0 == done.returncode, done.stdout + done.stderr
    assert {b"of somebody"} == keys_of(server)
    written = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert "s3cret@" not in done.stdout + done.stderr + written


def test_a_database_full_of_other_keys_is_refused(
    address: Address, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kv_namespaces, "_MOST_KEYS", 1)
    server.mset({"a": 1, "b": 2})

    with pytest.raises(UsageProblem, match="holds 2 keys"):
        kv_namespaces.make_namespace(address, lab_named("rc_a", tmp_path))
    assert {b"a", b"b"} == keys_of(server)


def test_an_address_of_the_users_that_names_no_server_is_a_usage_problem(tmp_path: Path) -> None:
    lab = Lab("rc_a", tmp_path, Clock(tmp_path / "clock"), servers={"valkey": "redis://:s3cret@h/name"})

    with pytest.raises(UsageProblem, match=r"^--server valkey: ") as told:
        kv_adapters.valkey.prepare(lab)  # type: ignore[misc]  # it has one
    with pytest.raises(UsageProblem) as named:
        kv_adapters.redis_at_url("redis://:s3cret@h/name")
    assert "s3cret" not in str(told.value) + str(named.value)


def test_a_server_that_cannot_be_used_is_a_usage_problem_of_its_namespace(fake: FakeValkey, tmp_path: Path) -> None:
    fake.answers["INFO"] = bulk(FACTS.replace("role:master", "role:slave"))

    with pytest.raises(UsageProblem, match=rf"127\.0\.0\.1:{fake.port}: .*replica"):
        kv_namespaces.make_namespace(Address("127.0.0.1", fake.port), lab_named("rc_a", tmp_path))


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_a_wrong_password_and_an_unreachable_server_are_one_sentence_each(url: str, server: Any) -> None:
    password = Address.of(url).password or ""
    wrong = certify(url.replace(password, "s3cret"))
    nobody = certify(f"redis://:s3cret@127.0.0.1:{unused_port()}")

    assert [2, 2] == [wrong.returncode, nobody.returncode]
    assert "refuses this user and password" in wrong.stderr
    assert "cannot be reached" in nobody.stderr
    for done in (wrong, nobody):
        assert 1 == len(done.stderr.strip().splitlines()), done.stderr
        assert "s3cret" not in done.stdout + done.stderr


def test_without_the_driver_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("redis", "runcert_reference.kv"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "redis", None)

    with pytest.raises(UsageProblem, match=r"pip install 'runcert\[kv\]'"):
        resolve("valkey")
