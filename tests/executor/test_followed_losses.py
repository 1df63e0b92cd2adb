"""Rows that leave states by watermarks: views whose rows are kept follow these losses, and keep no row for longer.

Each view is compared with one of the same query that is computed anew at each read, over random rows, of which some are
late or have no time, through maintenance, merges of runs and restarts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from executor.database.database import Database
from executor.options import Options
from executor.upkeep.paths import PathTask, Sources
from tests.executor.client import Client
from tests.rig.sampling import sample

STREAMS: Final = """
    CREATE FOREIGN TABLE a (k int, at timestamp, x int) SERVER stream OPTIONS (watermark 'at - interval ''2 min''');
    CREATE FOREIGN TABLE b (k int, at timestamp, x int) SERVER stream OPTIONS (watermark 'at');
    CREATE TABLE t (id int, name text);
    INSERT INTO t VALUES (0, 'x'), (1, 'y'), (1, 'z');
"""
ON: Final = "a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '5 min'"
#: By name, options and a query.
VIEWS: Final = {
    "left": ("", f"SELECT a.k, a.at, a.x, b.x AS y FROM a LEFT JOIN b ON {ON}"),
    "full": ("", f"SELECT a.k, a.x, b.k AS l, b.x AS y FROM a FULL JOIN b ON {ON}"),
    "missing": ("", f"SELECT a.k, a.x FROM a WHERE NOT EXISTS (SELECT FROM b WHERE {ON} AND a.x <> b.x)"),
    "groups": ("", f"SELECT a.k, count(*), sum(b.x), max(a.x) FROM a LEFT JOIN b ON {ON} GROUP BY a.k"),
    "named": ("", f"SELECT name, a.x, b.x AS y FROM a LEFT JOIN b ON {ON} LEFT JOIN t ON id = a.k"),
    "rows": ("retention = '6 min'", "SELECT k, at, x, lag(x) OVER (PARTITION BY k ORDER BY at, x) FROM a"),
    "pairs": ("retention = '9 min'", "SELECT a.k, a.x, b.x AS y FROM a JOIN b ON a.k = b.k AND a.x > b.x"),
    "windows": ("retention = '10 min'", "SELECT tumble(at, '3 min') AS w, k, count(*), max(x) FROM a GROUP BY 1, 2"),
    "above": (
        "retention = '7 min'",
        "SELECT w, n, rank() OVER (PARTITION BY w ORDER BY n) FROM (SELECT date_trunc('minute', at) AS w, k, "
        "count(DISTINCT x) AS n FROM b GROUP BY 1, 2) g WHERE n > 1",
    ),
    "final": (
        "retention = '8 min', emit = 'final'",
        "SELECT hop(at, '2 min', '4 min') AS w, k, sum(x) FROM a GROUP BY 1, 2",
    ),
}  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database whose background work the test runs."""
    opened = Database(Options(tmp_path, spark_enabled=False))
    Client(opened).run(STREAMS)
    yield opened
    opened.close()


def create(name: str, options: str, more: str, query: str) -> str:
    """The statement that creates a view."""
    return f"CREATE VIEW {name} WITH ({', '.join(filter(None, (options, more)))}) AS {query}"


def settle(database: Database) -> None:
    """Maintains all paths, and merges the runs of states."""
    for runtime in database.core.runtimes():
        for progress in runtime.paths:
            sources = Sources(tuple(database.core.streams[oid] for oid in progress.path.inputs))
            database.maintenance.embedded.run(sources, PathTask(runtime, progress))
        database.core.storage.compact(runtime.view.oid, runtime.program.states, database.core.engine)
        for state in runtime.states.values():
            state.compact()


def insert(client: Client, drawn: random.Random, minute: int) -> None:
    """A few rows about some minute, in one transaction."""
    client.run("BEGIN")
    for _ in range(drawn.randint(1, 5)):
        at = minute - drawn.choice((0, 0, 1, 1, 2, 3, 5, 12))
        time = "NULL" if drawn.random() < 0.05 else f"timestamp '2024-01-01' + interval '{at} min'"
        client.run(f"INSERT INTO {drawn.choice('ab')} SELECT {drawn.randint(0, 3)}, {time}, {drawn.randint(0, 4)}")
    client.run("COMMIT")


def require_equal(client: Client) -> None:
    """Each view is its query over what there is."""
    for name in VIEWS:
        found, expected = (sorted(client.run(f"SELECT * FROM {kind}_{name}"), key=str) for kind in ("kept", "anew"))
        assert found == expected, name


@pytest.mark.parametrize("seed", sample(range(12), (0, 1)))
def test_kept_rows_are_those_of_the_query(tmp_path: Path, seed: int, whole: bool) -> None:
    drawn, steps = random.Random(seed), 90 if whole else 30
    minute = 0
    with closing(Database(Options(tmp_path, spark_enabled=False))) as first:
        client = Client(first)
        client.run(STREAMS)
        for name, (options, query) in VIEWS.items():
            followed = "method = 'incremental', refresh_policy = 'incremental'"
            client.run(create(f"kept_{name}", options, followed, query))
            client.run(create(f"anew_{name}", options, "method = 'recompute'", query))
    for _ in range(3):
        with closing(Database(Options(tmp_path, spark_enabled=False))) as database:
            client = Client(database)
            for _ in range(steps // 3):
                minute += drawn.choice((0, 0, 1, 1, 2, 9))
                insert(client, drawn, minute)
                if drawn.random() < 0.2:
                    settle(database)
                if drawn.random() < 0.5:
                    require_equal(client)
            require_equal(client)


@pytest.mark.parametrize("name", ["left", "rows", "pairs", "windows"])
def test_the_kept_rows_do_not_grow(database: Database, name: str) -> None:
    """What is kept of a state goes with the rows that the state loses."""
    client = Client(database)
    options, query = VIEWS[name]
    client.run(create("v", options, "method = 'incremental'", query))
    counts = []
    for minute in range(60):
        for stream in "ab":
            client.run(
                f"INSERT INTO {stream} VALUES ({minute % 2}, timestamp '2024-01-01' + interval '{minute} min', 1)"
            )
        client.run("SELECT * FROM v")
        lines = [row[0].strip() for row in client.run("EXPLAIN SELECT * FROM v") if isinstance(row, tuple)]
        kept = [int(line.removeprefix("Rows Kept: ")) for line in lines if line.startswith("Rows Kept: ")]
        joined = minute + 1 if name == "left" else 0  # the joined rows, and those that will have no partner, stay
        counts.append(sum(kept) - min(joined, max(kept, default=0)))
    assert counts[-1] <= counts[20] + 3, counts


def test_explain_shows_no_condition_on_what_has_gone(database: Database) -> None:
    client = Client(database)
    client.run(f"CREATE VIEW v WITH (method = 'incremental') AS {VIEWS['left'][1]}")
    client.run("SELECT * FROM v")
    lines = [row[0] for row in client.run("EXPLAIN SELECT * FROM v") if isinstance(row, tuple)]
    nodes = lines[next(place for place, line in enumerate(lines) if "Method: by changes" in line) :]
    assert not any("max" in line or "cross" in line.lower() for line in nodes)
    assert sum("changes of state" in line for line in nodes) == 4
