"""Large results, COPY TO and pipelined reads by one client, and single-row reads and writes of a table by pgbench."""

from __future__ import annotations

import random
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Final

from bench.client import Client
from bench.harness import Rig, Row, connect
from tests.rig.postgres import Postgres
from tests.rig.server import DATABASE, USER, Millstream

TITLE = "Results of 1,000,000 rows, pipelines, and a table's rows by key"
ROWS: Final = 1_000_000
#: A row as applications have them: keys, a number, a date, a text.
FILL: Final = (
    "SELECT i::bigint AS id, (i % 1000)::integer AS k, (i % 9973)::numeric(12, 2) / 7 AS price,"
    " date '2020-01-01' + i % 1000 AS day, 'row number ' || i AS note"
)
COLUMNS: Final = "id bigint, k integer, price numeric(12, 2), day date, note text"
LARGE: Final[tuple[tuple[str, Callable[[Client], int]], ...]] = (
    ("table, text", lambda client: client.fetch("SELECT * FROM large")),
    ("table, binary", lambda client: client.fetch("SELECT * FROM large", binary=True)),
    ("view of 250,000 groups, text", lambda client: client.fetch("SELECT * FROM groups")),
    ("view of 250,000 groups, binary", lambda client: client.fetch("SELECT * FROM groups", binary=True)),
    ("COPY TO STDOUT, text", lambda client: client.fetch("COPY large TO STDOUT")),
    ("COPY TO STDOUT, CSV", lambda client: client.fetch("COPY large TO STDOUT (FORMAT csv)")),
    ("COPY TO STDOUT, binary", lambda client: client.fetch("COPY large TO STDOUT (FORMAT binary)")),
)
PIPELINED: Final = 2_000
WRITE: Final = "\\set k random(1, 1000000)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :k;\n"


def run(rig: Rig) -> list[Row]:
    """Peers take turns; the answers have the same number of bytes, or nearly (PostgreSQL's ParameterStatus apart)."""
    with rig.millstream() as server:
        _prepare(server, rig.postgres)
        with connect(server) as ours, connect(rig.postgres) as theirs:
            rows = [_large(rig, name, read, ours, theirs) for name, read in LARGE]
            rows.append(_pipelined(rig, ours, theirs))
        for name, script, mode in (
            ("row of a table by key, simple", "select-only", "simple"),
            ("row of a table by key, prepared", "select-only", "prepared"),
            ("UPDATE of a table's row, prepared", WRITE, "prepared"),
            ("pgbench's own blocks (tpcb-like), simple", "tpcb-like", "simple"),
            ("pgbench's own blocks (tpcb-like), prepared", "tpcb-like", "prepared"),
        ):
            rows += [_pgbench(rig, f"{name}, {clients} clients", script, mode, clients, server) for clients in (1, 8)]
    return rows


def _prepare(server: Millstream, postgres: Postgres) -> None:
    for peer in (server, postgres):
        user, database = (USER, DATABASE) if isinstance(peer, Millstream) else ("postgres", "postgres")
        where = ["-h", "127.0.0.1", "-p", str(peer.port), "-U", user, database]
        subprocess.run(["pgbench", "-i", "-q", "-s", "10", *where], check=True, capture_output=True)
        with connect(peer) as client:
            client.query(f"DROP TABLE IF EXISTS large; CREATE TABLE large ({COLUMNS})")
            client.query(f"INSERT INTO large {FILL} FROM generate_series(1, {ROWS}) AS g (i)")
    grouped = "SELECT id / 4 AS id, count(*) AS n, sum(price) AS price FROM {} GROUP BY 1"
    with connect(server) as client:
        client.query(f"CREATE FOREIGN TABLE feed ({COLUMNS}) SERVER stream")
        client.query(f"CREATE VIEW groups AS {grouped.format('feed')}")
        client.query("INSERT INTO feed SELECT * FROM large")
    with connect(postgres) as client:
        client.query(f"DROP TABLE IF EXISTS groups; CREATE TABLE groups AS {grouped.format('large')}")
        for name in ("large", "groups"):
            client.query(f"VACUUM ANALYZE {name}")


def _large(rig: Rig, name: str, read: Callable[[Client], int], ours: Client, theirs: Client) -> Row:
    """MB of the wire a second, by the peer's own bytes, so that the ratio is that of times."""
    figures, peers = [], []
    size = read(theirs)
    read(ours)
    for _ in range(rig.rounds):
        figures.append(size / _seconds(read, ours) / 1e6)
        peers.append(size / _seconds(read, theirs) / 1e6)
    peer = statistics.median(peers)
    return Row(name, statistics.median(figures), "MB/s", peer, "PostgreSQL", 1.0, "as fast", runs=tuple(figures))


def _seconds(read: Callable[[Client], int], client: Client) -> float:
    started = time.perf_counter()
    read(client)
    return time.perf_counter() - started


def _pipelined(rig: Rig, ours: Client, theirs: Client) -> Row:
    keys = random.Random(1).sample(range(1, ROWS), PIPELINED)
    text = "SELECT abalance FROM pgbench_accounts WHERE aid = $1"

    def read(client: Client) -> int:
        return client.pipeline(text, keys)

    assert abs(read(ours) - read(theirs)) < 16 * PIPELINED
    figures = tuple(PIPELINED / _seconds(read, ours) for _ in range(rig.rounds))
    peer = statistics.median(PIPELINED / _seconds(read, theirs) for _ in range(rig.rounds))
    median = statistics.median(figures)
    return Row("pipelined reads by key", median, "per s", peer, "PostgreSQL", 1.0, "as fast", runs=figures)


def _pgbench(rig: Rig, case: str, script: str, mode: str, clients: int, server: Millstream) -> Row:
    ours, theirs = [], []
    for _ in range(rig.rounds):
        ours.append(rig.pgbench(server, script, clients, mode))
        theirs.append(rig.pgbench(rig.postgres, script, clients, mode))
    peer = statistics.median(theirs)
    return Row(case, statistics.median(ours), "tps", peer, "PostgreSQL", runs=tuple(ours))
