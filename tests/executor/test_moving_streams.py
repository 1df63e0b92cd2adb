"""Continuous views over several streams that move between servers: a transaction on all streams is seen as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.commit.log_follower import EVERY, LogFollower
from executor.commit.records import Followed, StreamRows
from executor.replicas.replica import log_of, placed
from tests.executor.client import Client
from tests.executor.moving import Servers, lost
from tests.rig.beside import Repeating
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

BOTH = (
    "CREATE VIEW w AS SELECT k, c, d FROM (SELECT k, count(*) AS c FROM s GROUP BY k) x"
    " JOIN (SELECT k, count(*) AS d FROM r GROUP BY k) y USING (k)"
)
READ = "SELECT k, c, d FROM w ORDER BY k"


@pytest.fixture
def both(servers: Servers, a: Client) -> Client:
    """With a view over two streams, which get the same rows in one transaction each."""
    a.run("CREATE FOREIGN TABLE r (k int, t text) SERVER stream")
    a.run(BOTH)
    return a


def insert(client: Client, count: int) -> None:
    rows = f"FROM generate_series(1, {count}) g"
    client.run(f"BEGIN; INSERT INTO s SELECT g % 2, g, '' {rows}; INSERT INTO r SELECT g % 2, '' {rows}; COMMIT")


def counted(count: int) -> list[tuple[int, int, int]]:
    return [(0, count, count), (1, count, count)]


def test_there_and_back(servers: Servers, both: Client) -> None:
    insert(both, 4)
    total = 2
    for target in "bcb":
        servers.migrate("a", target, "w")
        for restarted in ("", target, "a"):
            if restarted:
                servers.stop(restarted)
            insert(servers.client("a"), 6)
            total += 3
            assert servers.client(target).run(READ) == counted(total)
            assert servers.client("a").run(READ) == counted(total)
        servers.migrate(target, "a", "w")
        insert(servers.client("a"), 2)
        total += 1
        assert servers.client("a").run(READ) == counted(total)
        wait_until(lambda t=target: not servers[t].core.streams, what="the replicas' end")


def test_a_transaction_is_seen_whole(servers: Servers, both: Client) -> None:
    """The transaction is written in small and large parts, while other rows arrive on only one of the streams."""
    insert(both, 2)
    servers.migrate("a", "b", "w")
    b, rows = servers.client("b"), 2

    def read() -> None:
        assert [c - d for _, c, d in b.run(READ)] == [0, 0]

    with Repeating(read) as reading:
        while rows < 16_000 or not reading.has_done(10):
            for count in (2, 20, 2000):
                insert(both, count)
                rows += count
    assert b.run(READ) == counted(rows // 2)


def test_a_replica_that_is_there_already(servers: Servers, both: Client) -> None:
    """A replica of one of the streams exists already, at a later position than the states of the view over both."""
    insert(both, 4)
    servers.migrate("a", "b")
    insert(both, 6)
    servers.migrate("a", "b", "w")
    assert len(servers["b"].replicas.all()) == 1
    insert(both, 2)
    b = servers.client("b")
    assert b.run(READ) == counted(6)
    assert b.run("SELECT sum(c) FROM v") == [(12,)]
    servers.stop("b")
    insert(both, 2)
    assert servers.client("b").run(READ) == counted(7)
    servers.migrate("b", "a", "w")
    wait_until(lambda: len(servers["b"].core.streams) == 1, what="the other replica's end")
    insert(both, 2)
    assert servers.client("b").run("SELECT sum(c) FROM v") == [(16,)]
    assert both.run(READ) == counted(8)


def test_positions_that_are_not_the_same(servers: Servers, both: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """One stream is ahead of the other, as records were written that moved only one; the rows in between arrive in
    parts."""
    monkeypatch.setattr(LogFollower.read, "__defaults__", (1, EVERY))
    insert(both, 4)
    servers.migrate("a", "b", "w")
    b = servers["b"]
    b.view_migration._thread.close()
    b.view_migration.checkpoints.close()
    (replica,) = b.replicas.all()
    replica.catch_up()
    second = list(replica.streams.values())[1]
    insert(both, 2)
    insert(both, 4)
    follower = LogFollower(log_of(b.core, "a"), frozenset((second.there,)), replica.position)
    while follower.is_behind():
        rows = StreamRows(second.stream.oid, tuple(placed(follower.read(), second.layout)))
        b.core.sequencer.commit((rows, Followed(second.stream.oid, follower.position)), sync=False)
    follower.close()
    assert replica.position < second.upto
    insert(both, 2)
    assert servers.client("b").run(READ) == counted(6)


def test_a_lost_server(servers: Servers, both: Client) -> None:
    insert(both, 4)
    servers.migrate("a", "b", "w")
    insert(both, 4)
    servers.copied("b", "w")
    insert(both, 4)
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("w") == "a", what="the take-over")
    assert both.run(READ) == counted(6)


@pytest.mark.parametrize("pattern", ["*/manifest.json", "*/t0.parquet"])
def test_a_damaged_copy(pattern: str, servers: Servers, both: Client, tmp_path: Path) -> None:
    """The view is rebuilt from the home's state of each stream, which may be of different LSNs, and the log."""
    insert(both, 4)
    assert both.run(READ) == counted(2)
    servers.stop("a")
    a = servers.client("a")
    a.run("INSERT INTO r VALUES (0, ''), (1, '')")
    insert(a, 4)
    servers.migrate("a", "b", "w")
    insert(a, 4)
    servers.stop("b")
    for path in (tmp_path / "storage").glob(f"views/*/{pattern}"):
        path.write_bytes(b"")
    lost(servers["a"], "b")
    wait_until(lambda: servers.owner("w") == "a", what="the take-over")
    assert a.run(READ) == [(0, 6, 7), (1, 6, 7)]


def test_neither_stream_is_altered(servers: Servers, both: Client) -> None:
    servers.migrate("a", "b", "w")
    for name in "sr":
        with pytest.raises(SqlError, match="55000"):
            both.run(f"ALTER FOREIGN TABLE {name} ADD COLUMN x int")
        with pytest.raises(SqlError, match="55000"):
            servers.client("b").run(f"DROP FOREIGN TABLE {name} CASCADE")
