"""Transaction blocks without threads: their answers, that they need no thread, and many of them concurrently."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import sql

from server.operations.config import Address, Config
from tests.rig.beside import Beside
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.server.in_process import House, Peer, opened, request
from tests.server.wire import SYNC, bind, execute

_TABLE = "(k integer PRIMARY KEY, n smallint NOT NULL, name text)"
_CHANGE = "UPDATE held SET n = n + $1::smallint WHERE k = $2"
_PREPARED = {
    "begin": "BEGIN",
    "change": _CHANGE,
    "read": "SELECT n FROM held WHERE k = $1",
    "note": "INSERT INTO noted VALUES ($1, current_timestamp)",
    "commit": "COMMIT",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    data = tmp_path_factory.mktemp("data")
    config = replace(Config(), data=data, listen=Address("127.0.0.1", 0), spark_enabled=False)
    with opened(config, {}) as made:
        made.owner.query(f"CREATE TABLE held {_TABLE}")
        made.owner.query("CREATE TABLE noted (k integer, at timestamp)")
        made.owner.query("INSERT INTO held VALUES (1, 0, 'a'), (2, 0, NULL)")
        made._prepared = _PREPARED
        yield made


def _simple(peer: Peer, delta: int) -> list[bytes]:
    return [
        peer.query("BEGIN"),
        peer.query(f"UPDATE held SET n = n + {delta} WHERE k = 1"),
        peer.query("SELECT n FROM held WHERE k = 1"),
        peer.query(f"INSERT INTO noted VALUES ({delta}, current_timestamp)"),
        peer.query("END"),
    ]


def _extended(peer: Peer, delta: int) -> list[bytes]:
    calls = [("begin", []), ("change", [delta, 2]), ("read", [2]), ("note", [delta]), ("commit", [])]
    return [peer.ask(bind([str(value).encode() for value in values], name), execute(), SYNC) for name, values in calls]


@pytest.mark.parametrize(("run", "key"), [(_simple, 1), (_extended, 2)])
def test_a_block_by_key_needs_no_thread(house: House, monkeypatch: pytest.MonkeyPatch, run: Any, key: int) -> None:
    peer = house.peer()
    for delta in (1, -1, 1, -1):  # until all is planned and in memory
        run(peer, delta)
    calls = []
    submit = house.server.workers.submit
    monkeypatch.setattr(house.server.workers, "submit", lambda *each: calls.append(each) or submit(*each))
    for delta in (7, -3):
        begun, changed, read, noted, ended = run(peer, delta)
        assert b"BEGIN" in begun
        assert b"UPDATE 1" in changed
        assert str(7 if delta > 0 else 4).encode() in read
        assert b"INSERT 0 1" in noted
        assert b"COMMIT" in ended
    assert not calls
    assert b"\x014" in peer.query(f"SELECT n FROM held WHERE k = {key}")
    house.leave()


def test_a_block_has_its_own_time_at_its_own_place(house: House) -> None:
    peer = house.peer()
    for zone in ("UTC", "UTC", "Asia/Tokyo"):
        peer.query(f"SET TimeZone = '{zone}'")
        for text in ("BEGIN", *["INSERT INTO noted VALUES (100, current_timestamp)"] * 2, "COMMIT"):
            peer.query(text)
    shown = peer.query("SELECT count(*), count(DISTINCT at), max(at) - min(at) > '8 h' FROM noted WHERE k = 100")
    assert b"\x00\x00\x00\x016\x00\x00\x00\x013\x00\x00\x00\x01t" in shown
    house.leave()


_STATEMENTS = (
    "INSERT INTO {t} VALUES ({k}, {n}, 'new')",
    "INSERT INTO {t} (k, n) VALUES ({k}, {n})",
    "UPDATE {t} SET n = n + {n}::smallint WHERE k = {k}",
    "UPDATE {t} SET n = {n}, name = 'set' WHERE k = {k} AND n < 100",
    "UPDATE {t} SET n = - n WHERE k = {k}",
    "DELETE FROM {t} WHERE k = {k}",
    "SELECT * FROM {t} WHERE k = {k}",
    "SELECT n, name FROM {t} WHERE k = {k}",
    "SELECT count(*), sum(n) FROM {t}",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE s",
)


def _outcome(client: psycopg.Connection[Any], text: str, prepared: bool) -> tuple[object, ...]:
    try:
        found = client.execute(sql.SQL(text), prepare=prepared)  # type: ignore[arg-type]
        rows = found.fetchall() if found.description else found.rowcount
        return rows, found.statusmessage, client.info.transaction_status
    except psycopg.Error as error:
        return error.sqlstate, client.info.transaction_status


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("prepared", [False, True])
def test_blocks_answer_as_postgresqls_do(running: Millstream, postgres: Postgres, prepared: bool) -> None:
    chance, name = random.Random(prepared), f"blocks_{prepared}"
    with running.connect() as ours, postgres.connect() as theirs:
        for client in (ours, theirs):
            client.execute(f"CREATE TABLE {name} {_TABLE}")
            client.execute(f"INSERT INTO {name} SELECT g, g, 'old' FROM generate_series(1, 4) g")
        for _ in range(40):
            script = [chance.choice(_STATEMENTS) for _ in range(chance.randrange(1, 8))]
            for text in ("BEGIN", *script, chance.choice(("COMMIT", "COMMIT", "END", "ROLLBACK"))):
                filled = text.format(t=name, k=chance.randrange(1, 6), n=chance.choice((1, -2, 30000)))
                assert _outcome(ours, filled, prepared) == _outcome(theirs, filled, prepared), (script, filled)
            every = f"SELECT * FROM {name} ORDER BY k"
            assert ours.execute(every).fetchall() == theirs.execute(every).fetchall()
        for client in (ours, theirs):
            client.execute(f"DROP TABLE {name}")


@pytest.mark.slow
def test_transfers_of_many_clients_lose_nothing(running: Millstream) -> None:
    """Each client moves amounts between accounts in blocks, as pgbench does; some blocks are rolled back."""
    clients, rounds = 6, 30
    with running.connect() as client:
        client.execute("CREATE TABLE purses (k integer PRIMARY KEY, n integer)")
        client.execute("INSERT INTO purses SELECT g, 0 FROM generate_series(0, 4) g")
        client.execute("CREATE TABLE moves (amount integer, at timestamptz)")

    def move(seed: int) -> int:
        chance, moved = random.Random(seed), 0
        with running.connect() as client:
            client.prepare_threshold = seed % 2
            for _ in range(rounds):
                source, target, amount = chance.randrange(5), chance.randrange(5), chance.randrange(1, 100)
                try:
                    client.execute("BEGIN")
                    client.execute("UPDATE purses SET n = n - %s WHERE k = %s", [amount, source])
                    client.execute("SELECT n FROM purses WHERE k = %s", [source])
                    client.execute("UPDATE purses SET n = n + %s WHERE k = %s", [amount, target])
                    client.execute("INSERT INTO moves VALUES (%s, now())", [amount])
                    client.execute("COMMIT" if (commits := chance.random() < 0.8) else "ROLLBACK")
                    moved += amount if commits else 0
                except psycopg.errors.DeadlockDetected:  # of others that move between the same two
                    client.execute("ROLLBACK")
        return moved

    with ThreadPoolExecutor(clients) as threads:
        moved = sum(threads.map(move, range(clients)))
    with running.connect() as client:
        assert client.execute("SELECT sum(n) FROM purses").fetchone() == (0,)
        assert client.execute("SELECT sum(amount) FROM moves").fetchone() == (moved,)
        client.execute("DROP TABLE purses, moves")


def test_a_statement_that_waits_for_a_block_can_be_cancelled(running: Millstream) -> None:
    with running.connect() as first, running.connect() as second:
        first.execute("CREATE TABLE awaited (k integer PRIMARY KEY, n integer)")
        first.execute("INSERT INTO awaited VALUES (1, 0)")
        for _ in range(3):  # until its rows are in memory
            first.execute("UPDATE awaited SET n = n + 1 WHERE k = 1")
        first.execute("BEGIN")
        first.execute("UPDATE awaited SET n = n + 1 WHERE k = 1")
        second.execute("BEGIN")
        waiting = Beside(second.execute, "UPDATE awaited SET n = n + 1 WHERE k = 1")
        blockers, pids = "SELECT pg_blocking_pids(%s)", [each.info.backend_pid for each in (first, second)]
        with running.connect() as other:
            wait_until(lambda: other.execute(blockers, pids[1:]).fetchone() == (pids[:1],), 60, "wait for the block")
        second.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            waiting.result()
        second.execute("ROLLBACK")
        first.execute("COMMIT")
        assert second.execute("SELECT n FROM awaited").fetchone() == (4,)
        first.execute("DROP TABLE awaited")


def test_notifications_of_blocks_delay_no_client(running: Millstream) -> None:
    """A commit with notifications waits for other such commits in a thread, never on the event loop."""
    with running.connect() as client:
        client.execute("CREATE FOREIGN TABLE told (k integer) SERVER stream")
        client.execute("CREATE TABLE telling (k integer PRIMARY KEY, n integer)")
        client.execute("INSERT INTO telling VALUES (1, 0), (2, 0), (3, 0)")

    def run(statements: tuple[str, ...]) -> None:
        with running.connect() as client:
            client.execute("SET statement_timeout = '30s'")
            for _ in range(25):
                for text in statements:
                    client.execute(sql.SQL(text))  # type: ignore[arg-type]

    scripts = [
        ("BEGIN", "INSERT INTO told VALUES (1)", "NOTIFY blocks_told", "COMMIT"),
        ("BEGIN", "NOTIFY blocks_told", "COMMIT"),
        *((f"UPDATE telling SET n = n + 1 WHERE k = {key}",) for key in (1, 2)),
        ("BEGIN", "UPDATE telling SET n = n + 1 WHERE k = 3", "NOTIFY blocks_told", "COMMIT"),
    ]
    with ThreadPoolExecutor(len(scripts)) as threads:
        list(threads.map(run, scripts, timeout=60))
    with running.connect() as client:
        assert client.execute("SELECT n FROM telling").fetchall() == [(25,)] * 3
        client.execute("DROP TABLE telling")


def test_many_blocks_in_one_burst_without_waiting_for_the_disk(house: House) -> None:
    peer, blocks = house.peer(), 150
    peer.query("SET synchronous_commit = off")
    peer.query("UPDATE held SET n = 0 WHERE k = 1")
    texts = ("BEGIN", "UPDATE held SET n = n + 1 WHERE k = 1", "COMMIT")
    burst = request(*(("Q", text.encode() + b"\0") for _ in range(blocks) for text in texts))
    data = peer.feed(burst, answers=3 * blocks)
    assert data.count(b"COMMIT") == blocks
    assert str(blocks).encode() in peer.query("SELECT n FROM held WHERE k = 1")
    house.leave()


def test_isolation_comes_before_the_first_change(running: Millstream) -> None:
    with running.connect() as client:
        client.execute("CREATE TABLE isolated (k integer PRIMARY KEY, n integer)")
        client.execute("INSERT INTO isolated VALUES (1, 0)")
        for _ in range(3):  # until its rows are in memory
            client.execute("UPDATE isolated SET n = n + 1 WHERE k = 1")
        client.execute("BEGIN")
        client.execute("UPDATE isolated SET n = n + 1 WHERE k = 1")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            client.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        client.execute("ROLLBACK")
        client.execute("DROP TABLE isolated")
