"""UPDATE by key of a table that three materialized views read, beside one of a table without views: updates for each
second of the server's processor time, by pgbench.

The views are read before the updates begin, so that their rows are kept. Then they are not read, or once a second.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bench.harness import Rig, Row, connect, processor_time, wait_until_kept
from tests.rig.server import Millstream

TITLE = "UPDATE by key of a table with three dependent views, updates a second of processor time"
TABLES: Final = ("alone", "viewed")
ROWS: Final = 200_000
SCRIPT: Final = "\\set k random(1, {rows})\nUPDATE {table} SET balance = balance + 1 WHERE id = :k;\n"
VIEWS: Final = (
    "SELECT branch, count(*) AS accounts, sum(balance) AS total FROM viewed GROUP BY branch",
    "SELECT city, max(balance) AS greatest FROM viewed JOIN branches ON branch = number GROUP BY city",
    "SELECT * FROM viewed ORDER BY balance DESC, id LIMIT 10",
)
READS: Final = 6
AIM: Final = 0.8


def run(rig: Rig) -> list[Row]:
    """The tables take turns, for each way in which the views are read."""
    rows = []
    with rig.millstream(spark_enabled=False, maintenance_engine="embedded") as server:
        _create(server, int(ROWS * rig.scale))
        for clients in (1, 8):
            found: dict[tuple[str, bool], list[float]] = {}
            for _ in range(rig.rounds):
                for table, is_read in (("alone", False), ("viewed", False), ("viewed", True)):
                    with _reading(server, is_read):
                        found.setdefault((table, is_read), []).append(_rate(rig, server, table, clients))
            peer = statistics.median(found["alone", False])
            for is_read in (False, True):
                runs = found["viewed", is_read]
                case = f"{clients} client{'s' * (clients > 1)}, views {'read once a second' if is_read else 'not read'}"
                aim = f"{AIM:g} of one without"
                rows.append(Row(case, statistics.median(runs), "", peer, "no views", AIM, aim, runs=tuple(runs)))
    return rows


def _create(server: Millstream, rows: int) -> None:
    with connect(server) as client:
        client.query("CREATE TABLE branches (number integer PRIMARY KEY, city text)")
        client.query("INSERT INTO branches SELECT n, 'city ' || n % 50 FROM generate_series(0, 999) AS g (n)")
        for table in TABLES:
            client.query(f"CREATE TABLE {table} (id integer PRIMARY KEY, branch integer, balance integer, note text)")
            lines = b"".join(b"%d,%d,%d,a note\n" % (key, key % 1000, key % 977) for key in range(1, rows + 1))
            client.copy(f"COPY {table} FROM STDIN (FORMAT csv)", lines)
        for number, query in enumerate(VIEWS):
            client.query(f"CREATE MATERIALIZED VIEW view{number} AS {query}")
            for key in range(1, READS):
                client.query(f"UPDATE viewed SET balance = balance + 1 WHERE id = {key}")
                client.query(f"SELECT * FROM view{number}")
                wait_until_kept(client, f"view{number}")


def _rate(rig: Rig, server: Millstream, table: str, clients: int) -> float:
    """Updates for each second of processor time."""
    script = SCRIPT.format(table=table, rows=int(ROWS * rig.scale))
    before = processor_time(server.pid)
    rate = rig.pgbench(server, script, clients, "prepared")
    return rate * rig.seconds / (processor_time(server.pid) - before)


@contextmanager
def _reading(server: Millstream, is_read: bool) -> Iterator[None]:
    """Reads the views once a second meanwhile."""
    if not is_read:
        yield
        return
    ended = threading.Event()

    def read() -> None:
        with connect(server) as client:
            while not ended.wait(1):
                for number in range(len(VIEWS)):
                    client.query(f"SELECT * FROM view{number}")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()
