"""Single-row INSERT into a stream with a sum-per-key view, by pgbench, beside PostgreSQL's into a plain table."""

from __future__ import annotations

import statistics
from typing import Final

from bench.harness import Rig, Row, connect

TITLE = "Single-row INSERT by pgbench, durable, transactions per second"
SCRIPT: Final = (
    "\\set k random(1, 1000)\n\\set v random(1, 100000)\nINSERT INTO events VALUES (:k, :v, 'a short text');\n"
)
COLUMNS: Final = "key integer, value integer, note text"
AIMS: Final = {"prepared": 1.0, "simple": 0.5}


def run(rig: Rig) -> list[Row]:
    """Peers take turns for each mode and number of clients."""
    with connect(rig.postgres) as client:
        client.query(f"DROP TABLE IF EXISTS events; CREATE TABLE events ({COLUMNS})")
    rows = []
    with rig.millstream() as server:
        with connect(server) as client:
            client.query(f"CREATE FOREIGN TABLE events ({COLUMNS}) SERVER stream")
            client.query("CREATE VIEW sums AS SELECT key, sum(value) FROM events GROUP BY key")
        for mode, aim in AIMS.items():
            for clients in (1, 8, 32):
                ours, theirs = [], []
                for _ in range(rig.rounds):
                    ours.append(rig.pgbench(server, SCRIPT, clients, mode))
                    theirs.append(rig.pgbench(rig.postgres, SCRIPT, clients, mode))
                case = f"{mode}, {clients} client{'s' * (clients > 1)}"
                peer = statistics.median(theirs)
                text = f"{aim:g} of PostgreSQL"
                rows.append(Row(case, statistics.median(ours), "tps", peer, "PostgreSQL", aim, text, runs=tuple(ours)))
    return rows
