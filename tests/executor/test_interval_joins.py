"""Joins of streams whose times bound each other: which conditions do, what leaves the states, rows without partners,
late rows, and what such a view may not have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.options import Options
from executor.spark.printing.statements import reason
from executor.upkeep.paths import PathTask, Sources
from executor.views.runtime import ViewRuntime
from executor.views.storage import RUNS
from planner.incremental.plan import Planned, plan
from planner.incremental.programs.documents import decode_program, encode_program
from planner.statements.statement import CreateView
from tests.executor.client import Client, open_database
from tests.rig.sampling import sample

SECOND, MINUTE, HOUR, DAY = 10**6, 60 * 10**6, 3600 * 10**6, 86400 * 10**6
STREAMS = """
    CREATE FOREIGN TABLE a (k int, at timestamp, tz timestamptz, x int, d date) SERVER stream
        OPTIONS (watermark 'at - interval ''10 seconds''');
    CREATE FOREIGN TABLE b (k int, at timestamp, tz timestamptz, x int, d date) SERVER stream OPTIONS (watermark 'at');
    CREATE FOREIGN TABLE z (k int, at timestamp, tz timestamptz, x int, d date) SERVER stream OPTIONS (watermark 'tz');
    CREATE FOREIGN TABLE p (k int, at timestamp, tz timestamptz, x int, d date) SERVER stream;
    CREATE TABLE t (id int, name text);
"""
VIEW = (
    "CREATE VIEW v AS SELECT a.k, count(*) AS n, sum(b.x) AS x FROM a JOIN b ON a.k = b.k "
    "AND b.at BETWEEN a.at AND a.at + interval '1 minute' GROUP BY a.k"
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database whose background work the test runs."""
    opened = Database(Options(tmp_path, spark_enabled=False))
    Client(opened).run(STREAMS)
    yield opened
    opened.close()


def planned(client: Client, query: str) -> Planned:
    statement = client.bind(f"CREATE VIEW v AS {query}")
    assert isinstance(statement, CreateView)
    return plan(statement.query, watermarks=statement.watermarks)


def ages(found: Planned) -> dict[str, int | None]:
    """By stream, how long after its rows the other stream's latest time is when they leave."""
    return {item.stream: max((mark.age for mark in item.marks), default=None) for item in found.joined}


# Which conditions bound what ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "a", "b"),
    [
        ("b.at BETWEEN a.at AND a.at + interval '1 hour'", HOUR, 10 * SECOND),
        ("b.at >= a.at AND a.at > b.at - interval '1 hour'", HOUR, 10 * SECOND),
        ("b.at - interval '1 hour' < a.at - interval '1 minute' AND a.at = a.at", 59 * MINUTE, None),
        ("b.at - a.at BETWEEN interval '-1 minute' AND interval '1 hour'", HOUR, MINUTE + 10 * SECOND),
        ("interval '1 hour' >= b.at - a.at AND a.at - b.at + interval '1 day' < '25 hours'", HOUR, HOUR + 10 * SECOND),
        ("a.at = b.at", 0, 10 * SECOND),
        ("NOT (b.at > a.at + interval '1 day')", DAY, None),
        ("b.at <= a.at - interval '5 minutes' AND b.at > a.at - interval '1 hour'", -5 * MINUTE, HOUR + 10 * SECOND),
        ("b.at <= a.at + interval '2 hours' AND b.at <= a.at + interval '1 hour'", HOUR, None),
        ("a.at <= b.at", None, 10 * SECOND),
        ("b.at <= a.at + interval '1 month'", None, None),
        ("b.at <= a.at + a.x * interval '1 hour'", None, None),
        ("b.at < a.at OR b.at < a.at + interval '1 hour'", None, None),
        ("b.at <> a.at AND b.x < a.x", None, None),
        ("b.tz <= a.tz AND a.tz <= b.tz", None, None),
        ("b.d <= a.d", None, None),
        ("b.at <= a.tz::timestamp", None, None),
        ("b.at <= a.at + interval '1 hour' + (now() - now())", None, None),
    ],
)
def test_when_rows_leave(database: Database, condition: str, a: int | None, b: int | None) -> None:
    found = planned(Client(database), f"SELECT a.k, count(*) FROM a, b WHERE a.k = b.k AND {condition} GROUP BY a.k")
    assert ages(found) == ({} if a is b is None else {"a": a, "b": b})
    assert len(found.collected) == (2 if a is b is None else 0)
    assert len(found.program.expiries) == (a is not None) + (b is not None)
    assert decode_program(json.loads(json.dumps(encode_program(found.program)))) == found.program


def test_a_day_may_be_longer_in_a_time_zone(database: Database) -> None:
    condition = "z.tz <= a.tz + interval '1 day' AND z.tz - a.tz <= interval '1 day'"
    query = "SELECT count(*) FROM a JOIN z ON {}"
    assert ages(planned(Client(database), query.format(condition))) == {"a": DAY, "z": None}
    assert ages(planned(Client(database), query.format(condition.partition(" AND ")[0]))) == {"a": 2 * DAY, "z": None}


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        (
            "b.at BETWEEN a.at AND a.at + interval '1 hour' AND c.at BETWEEN b.at AND b.at + interval '1 minute'",
            {"a": [HOUR, HOUR + MINUTE], "b": [10 * SECOND, MINUTE], "c": [10 * SECOND, 0]},
        ),
        (
            "b.at <= a.at + interval '1 hour' AND c.at <= b.at AND c.at <= a.at + interval '1 minute'",
            {"a": [HOUR, MINUTE], "b": [], "c": []},
        ),
        ("b.at <= a.at AND c.at <= a.tz::timestamp", {}),
        ("b.at = a.at AND c.at <= b.at AND a.x = c.x", {"a": [0, 0], "b": [10 * SECOND, 0], "c": []}),
        ("b.at = a.at AND c.x = b.x", {}),
    ],
)
def test_when_rows_of_three_streams_leave(database: Database, conditions: str, found: dict[str, list[int]]) -> None:
    client = Client(database)
    client.run("CREATE FOREIGN TABLE c (k int, at timestamp, x int) SERVER stream OPTIONS (watermark 'at')")
    joined = planned(client, f"SELECT count(*) FROM a, b, c WHERE {conditions}").joined
    assert {item.stream: [mark.age for mark in item.marks] for item in joined} == found


BETWEEN = "b.at BETWEEN a.at AND a.at + interval '1 minute'"


@pytest.mark.parametrize(
    ("query", "streams"),
    [
        (f"SELECT count(*) FROM a JOIN b ON {BETWEEN}", "ab"),
        ("SELECT count(*) FROM a l JOIN a r ON r.k = l.k AND r.at BETWEEN l.at AND l.at + interval '1 min'", "a"),
        ("SELECT count(*) FROM (SELECT k, at + interval '1 min' AS u FROM a WHERE x > 0) a JOIN b ON b.at = u", "ab"),
        (f"SELECT name, count(*) FROM a JOIN t ON a.k = id JOIN b ON b.k = a.k AND {BETWEEN} GROUP BY name", "ab"),
        (f"SELECT a.k, name FROM a JOIN b ON a.k = b.k AND {BETWEEN} LEFT JOIN t ON id = b.x", "ab"),
        (
            f"SELECT x, n FROM (SELECT b.x, count(*) AS n FROM a JOIN b ON {BETWEEN} GROUP BY b.x) g JOIN p USING (x)",
            "ab",
        ),
        ("SELECT count(*) FROM p JOIN b ON p.k = b.k AND b.at <= p.at AND p.at <= b.at", "p"),
        (f"SELECT count(*) FROM a LEFT JOIN b ON {BETWEEN}", "ab"),
        (f"SELECT b.x FROM a RIGHT JOIN b ON {BETWEEN}", "ab"),
        (f"SELECT a.x, b.x AS y FROM a FULL JOIN b ON {BETWEEN}", "ab"),
        (f"SELECT x FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND {BETWEEN})", "ab"),
        (f"SELECT a.k, name FROM a LEFT JOIN b ON a.k = b.k AND {BETWEEN} JOIN t ON id = a.x", "ab"),
        ("SELECT count(*) FROM p LEFT JOIN b ON p.k = b.k AND b.at <= p.at AND p.at <= b.at", "p"),
        ("SELECT count(*) FROM b LEFT JOIN p ON p.k = b.k AND b.at <= p.at AND p.at <= b.at", ""),
        (f"SELECT count(*) FROM a LEFT JOIN b ON {BETWEEN} AND EXISTS (SELECT FROM t WHERE id = b.x)", ""),
        (f"SELECT a.x, name FROM a JOIN t ON id = a.k LEFT JOIN b ON {BETWEEN}", "ab"),
        (f"SELECT a.x, name FROM a LEFT JOIN t ON id = a.k JOIN b ON {BETWEEN} AND b.k = a.k", "ab"),
        (f"SELECT a.x, name FROM a LEFT JOIN t ON id = a.k JOIN b ON {BETWEEN} AND (b.k = t.id OR name > '')", "ab"),
        (f"SELECT a.x, name FROM a JOIN t ON id = a.k LEFT JOIN b ON {BETWEEN} AND b.k = t.id", ""),
        (f"SELECT name FROM b RIGHT JOIN (SELECT a.*, name FROM a LEFT JOIN t ON id = k) a ON {BETWEEN}", "ab"),
        (f"SELECT count(*) FROM b RIGHT JOIN (SELECT a.* FROM a LEFT JOIN t ON id = k) a ON {BETWEEN}", "ab"),
        (f"SELECT a.x FROM a JOIN b ON {BETWEEN} WHERE a.k IN (SELECT id FROM t) OR a.x > 2", "ab"),
        (f"SELECT a.x FROM a LEFT JOIN b ON {BETWEEN} WHERE EXISTS (SELECT FROM t WHERE id = a.k)", "ab"),
        (f"SELECT a.x FROM a FULL JOIN b ON {BETWEEN} WHERE EXISTS (SELECT FROM t WHERE id = a.k)", "ab"),
        (f"SELECT a.x, b.x AS y FROM a LEFT JOIN (SELECT b.* FROM b JOIN t ON id = k) b ON {BETWEEN}", ""),
        (f"SELECT a.x, z.x AS y FROM a LEFT JOIN b ON {BETWEEN} LEFT JOIN z ON z.k = a.k", ""),
        (f"SELECT a.x FROM a LEFT JOIN b ON {BETWEEN} UNION ALL SELECT x FROM p", ""),
        (f"SELECT a.k, lag(b.x) OVER (ORDER BY a.at, b.at, b.x) FROM a LEFT JOIN b ON {BETWEEN}", ""),
        (f"SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE {BETWEEN})", "ab"),
        (f"SELECT x FROM a WHERE k IN (SELECT k FROM b WHERE {BETWEEN})", "ab"),
        (f"SELECT x FROM a WHERE k NOT IN (SELECT k FROM b WHERE {BETWEEN})", "ab"),
        (f"SELECT x FROM a WHERE k > 1 OR EXISTS (SELECT FROM b WHERE {BETWEEN})", ""),
        (f"SELECT x, name FROM a JOIN t ON id = k WHERE EXISTS (SELECT FROM b WHERE {BETWEEN})", "ab"),
        (f"SELECT count(*) FROM a JOIN b ON {BETWEEN} JOIN z ON z.k = a.k", ""),
        (f"SELECT count(*) FROM a JOIN b ON {BETWEEN} JOIN z ON z.tz = a.tz AND a.tz >= z.tz", ""),
        (f"SELECT count(*) FROM a JOIN b ON {BETWEEN} JOIN b c ON c.at BETWEEN b.at AND b.at + interval '1 min'", "ab"),
        (f"SELECT a.x, b.x AS y, c.x AS z FROM a JOIN b ON {BETWEEN} JOIN b c ON c.at = a.at", "ab"),
        (f"SELECT count(*) FROM a JOIN b ON {BETWEEN}, b c, b d WHERE c.at = b.at AND d.at = c.at", "ab"),
        (f"SELECT count(*) FROM a JOIN b ON {BETWEEN}, b c, b d, b e, b f WHERE b.at = ALL (ARRAY[c.at, d.at])", ""),
        (f"SELECT a.k, lag(b.x) OVER (ORDER BY a.at, b.at, b.x) FROM a JOIN b ON {BETWEEN}", ""),
        (f"SELECT b.x FROM a JOIN b ON {BETWEEN} UNION ALL SELECT x FROM p", ""),
        ("SELECT count(*) FROM a JOIN b ON a.k = b.k", ""),
    ],
)
def test_which_joins_let_rows_go(database: Database, query: str, streams: str) -> None:
    found = planned(Client(database), query)
    assert {item.stream for item in found.joined if item.marks} == set(streams)
    assert found.program == plan_without(database, query) or streams


def plan_without(database: Database, query: str) -> object:
    statement = Client(database).bind(f"CREATE VIEW v AS {query}")
    assert isinstance(statement, CreateView)
    return plan(statement.query).program


def test_other_options_keep_their_rules(database: Database) -> None:
    """With retention the rows go by it."""
    client = Client(database)
    client.run(VIEW.replace("VIEW v", "VIEW o WITH (retention = '1 hour')").replace("GROUP BY a.k", "GROUP BY 1"))
    assert "interval" not in methods(database)
    client.run("DROP VIEW o")
    with pytest.raises(SqlError, match="emit"):
        client.run(VIEW.replace("VIEW v", "VIEW v WITH (emit = 'final')"))
    client.run(VIEW)
    with pytest.raises(SqlError) as raised:
        client.run("ALTER VIEW v SET (on_error = 'skip')")
    assert (raised.value.sqlstate, "on_error = 'skip'" in raised.value.message) == ("0A000", True)
    with pytest.raises(SqlError) as raised:
        client.run("ALTER VIEW v SET (retention = '1 hour')")
    assert raised.value.sqlstate == "0A000"
    client.run("ALTER VIEW v SET (tables = 'live', method = 'recompute')")
    client.run("ALTER VIEW v RESET (tables)")
    assert client.run(f"CREATE OR REPLACE {VIEW.removeprefix('CREATE ')}") == "CREATE VIEW"


def methods(database: Database) -> set[str]:
    return {item.method for path in program(database).paths for item in path.statements}


# Rows that fail -------------------------------------------------------------------------------------------------------

FAILING = (
    "CREATE VIEW v WITH (on_error = '{}') AS SELECT a.k, b.x, q FROM a JOIN (SELECT k, at, x, 12 / x AS q FROM b) b "
    "ON a.k = b.k AND 12 / a.x > 1 AND b.at BETWEEN a.at AND a.at + interval '1 minute'"
)


@pytest.mark.parametrize(("policy", "expected"), [("skip", [(1, 3, 4)] * 3), ("null", [(1, 0, None), (1, 3, 4)] * 2)])
def test_rows_that_fail_beside_others(
    database: Database, tmp_path: Path, policy: str, expected: list[tuple[object, ...]]
) -> None:
    """A row of either stream; one that is left out is not seen by the watermark either."""
    client = Client(database)
    client.run(FAILING.format(policy))
    assert "interval" in methods(database)
    client.run("BEGIN")
    insert(database, "a", 100, x=2)
    client.run(
        "INSERT INTO a (k, at, x) VALUES (1, '2024-01-01 00:01:41', 2), (1, '2024-01-01 00:01:42', 0); "
        "INSERT INTO b (k, at, x) VALUES (1, '2024-01-01 00:02:40', 0), (1, '2024-01-01 00:02:40', 3)"
    )
    client.run("COMMIT")
    settle(database)
    insert(database, "a", 100, x=0)
    insert(database, "b", 500, k=2, x=0)
    insert(database, "b", 161, x=3)  # late where the row before counts
    rejected = "SELECT stream, number, sqlstate FROM millstream.rejected ORDER BY 1, 2"
    assert client.run("SELECT * FROM v ORDER BY 1, 2") == sorted(expected, key=str)
    numbered = [(stream, number, "22012") for stream in "ab" for number in (1, 2)]
    assert client.run(rejected) == (numbered if policy == "skip" else [])
    settle(database)
    database.close()
    with closing(Database(Options(tmp_path, spark_enabled=False))) as again:
        insert(again, "b", 162, x=0)
        assert Client(again).run("SELECT * FROM v ORDER BY 1, 2") == sorted(expected, key=str)
        assert len(Client(again).run(rejected)) == (5 if policy == "skip" else 0)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.k, sum(a.x / b.x) FROM a JOIN b ON {BETWEEN} GROUP BY a.k",
        f"SELECT a.k, count(*) FROM a JOIN b ON a.x / b.x > 1 AND {BETWEEN} GROUP BY a.k",
        f"SELECT a.k, count(*) FROM a JOIN b ON CASE WHEN b.x > 0 THEN 1 / a.x END > 1 AND {BETWEEN} GROUP BY a.k",
        "SELECT a.k, count(*) FROM a JOIN b ON b.at - a.at BETWEEN interval '0' AND interval '1 min' GROUP BY a.k",
    ],
)
def test_an_expression_over_both_rows_that_may_fail_is_refused(database: Database, query: str) -> None:
    with pytest.raises(SqlError) as raised:
        Client(database).run(f"CREATE VIEW v WITH (on_error = 'skip') AS {query}")
    assert (raised.value.sqlstate, raised.value.hint) == (
        "0A000",
        "Compute it in a subquery of the stream's rows alone, or leave on_error out.",
    )


@pytest.mark.parametrize(
    ("policy", "kind", "expected"),
    [
        ("skip", "LEFT", [(1, 2, 3), (2, 4, None)]),
        ("null", "LEFT", [(1, 0, None), (1, 2, 3), (2, 4, None)]),
        ("skip", "FULL", [(1, 2, 3), (2, 4, None), (None, None, 5)]),
        ("null", "FULL", [(1, 0, None), (1, 2, 3), (2, 4, None), (None, None, 0), (None, None, 5)]),
    ],
)
def test_rows_that_fail_beside_outer_joins(
    database: Database, tmp_path: Path, policy: str, kind: str, expected: list[tuple[object, ...]]
) -> None:
    """A row that is left out has no partner, and is none that lacks one; with NULL it may lack one."""
    client = Client(database)
    query = f"SELECT a.k, a.x, b.x AS y FROM a {kind} JOIN b ON a.k = b.k AND {BETWEEN} AND 12 / a.x > 2 / b.x"
    client.run(f"CREATE VIEW v WITH (on_error = '{policy}') AS {query}")
    assert "interval" in methods(database)
    insert(database, "a", 100, x=2)
    insert(database, "a", 100, x=0)
    insert(database, "a", 100, k=2, x=4)
    insert(database, "b", 159, x=0)
    insert(database, "b", 160, x=3)
    insert(database, "b", 500, k=7, x=5)
    insert(database, "b", 400, k=7, x=0)  # late, whether it fails or not
    assert client.run("SELECT * FROM v ORDER BY 1, 2, 3") == expected
    settle(database)
    rejected = "SELECT stream, number, sqlstate FROM millstream.rejected ORDER BY 1, 2"
    assert len(client.run(rejected)) == (2 if policy == "skip" else 0)
    database.close()
    with closing(Database(Options(tmp_path, spark_enabled=False))) as again:
        assert Client(again).run("SELECT * FROM v ORDER BY 1, 2, 3") == expected


def test_an_outer_join_with_an_expression_over_both_rows_that_may_fail_keeps_all_rows(database: Database) -> None:
    view = f"CREATE VIEW v WITH (on_error = 'skip') AS SELECT a.x FROM a LEFT JOIN b ON a.x / b.x > 1 AND {BETWEEN}"
    with pytest.raises(SqlError, match="0A000"):
        Client(database).run(view)


def program(database: Database):  # type: ignore[no-untyped-def]
    (runtime,) = database.core.runtimes()
    return runtime.program


# What CREATE VIEW and EXPLAIN say -------------------------------------------------------------------------------------


def test_notices_say_what_leaves_and_what_grows(database: Database) -> None:
    client = Client(database)
    client.run(VIEW)
    assert client.notices == [
        'the view keeps the rows of stream "a" until those of "b" that may still come join none of them',
        'the view keeps the rows of stream "b" until those of "a" that may still come join none of them',
    ]
    client.notices.clear()
    client.run("CREATE VIEW w AS SELECT a.x FROM a JOIN b ON b.at <= a.at")
    assert client.notices == [
        'the view keeps the joined rows of streams "a" and "b": no grouping takes them in',
        'the view keeps the rows of stream "a" until those of "b" that may still come join none of them',
        'the view keeps the rows of stream "b" to join them with those of "a"',
    ]


def test_explain_says_by_what_states_are_bounded(database: Database) -> None:
    client = Client(database)
    planned_lines = lines(client, f"EXPLAIN {VIEW}")
    client.run(VIEW)
    for found in (planned_lines, lines(client, "EXPLAIN SELECT * FROM v")):
        kept = [line for line in found if line.startswith("Kept: ")]
        assert [line.partition("::interval after ")[2] for line in kept] == ["at", "at"]
        assert sum("without rows that come too late, rows collected" in line for line in found) == 2
        assert sum("count of the rows that come too late" in line for line in found) == 2
        assert "Stream Pipeline of a, b" in found
        assert "Point Key: k" in found
    (path,) = program(database).paths
    assert reason(path.statements, program(database).states) is not None
    paths = client.run("SELECT method, reads FROM millstream.paths WHERE reads <> '' ORDER BY 1, 2")
    alone = [(method, stream) for method in ("interval", "late", "split") for stream in "ab"]
    assert paths == sorted([*alone, ("split", "a, b")])


def lines(client: Client, text: str) -> list[str]:
    return [row[0].strip() for row in client.run(text) if isinstance(row, tuple)]


# States ---------------------------------------------------------------------------------------------------------------


def settle(database: Database) -> ViewRuntime:
    """Maintains the one view's one path."""
    (runtime,) = database.core.runtimes()
    inputs = runtime.paths[0].path.inputs
    sources = Sources(tuple(database.core.streams[oid] for oid in inputs))
    database.maintenance.embedded.run(sources, PathTask(runtime, runtime.paths[0]))
    return runtime


def insert(database: Database, stream: str, second: int, k: int = 1, x: int = 1) -> None:
    at = f"timestamp '2024-01-01' + {second} * interval '1 second'"
    Client(database).run(f"INSERT INTO {stream} (k, at, x) SELECT {k}, {at}, {x}")


def rows(database: Database) -> object:
    return Client(database).run("SELECT * FROM v ORDER BY 1")


@pytest.mark.slow
@pytest.mark.parametrize("reads", sample([True, False], (True,)))
def test_the_kept_rows_do_not_grow(database: Database, tmp_path: Path, reads: bool) -> None:
    """Of ten minutes the states have the rows of one, and what has come since runs were merged."""
    Client(database).run(VIEW)
    pairs = 0
    for number in range(30 * (RUNS + 2)):
        insert(database, "a", 2 * number)
        insert(database, "b", 2 * number + 1)
        pairs += min(number + 1, 30)
        if reads and number % 10 == 0:
            assert rows(database) == [(1, pairs, pairs)]
        if number % 10 == 0:
            runtime = settle(database)
    assert rows(database) == [(1, pairs, pairs)]
    settle(database)
    database.core.storage.compact(runtime.view.oid, runtime.program.states, database.core.engine)
    kept = [item for item in runtime.program.states if item.kind == "concatenate"]
    stored = [sum(run.num_rows for run in database.core.storage.read(runtime.view.oid, item)) for item in kept]
    assert len(stored) == 2
    assert max(stored) <= 30 + 10 * (RUNS + 1) + 10
    held = Client(database).run("SELECT max(rows) FROM millstream.states WHERE kind = 'concatenate'")
    assert held[0][0] <= 30 + 10 * (RUNS + 1) + 10  # type: ignore[index]
    database.close()
    with closing(Database(Options(tmp_path, spark_enabled=False))) as again:
        assert rows(again) == [(1, pairs, pairs)]
        insert(again, "b", 2 * number + 3, x=10)
        assert rows(again) == [(1, pairs + 29, pairs + 290)]


OUTER = "CREATE VIEW v AS SELECT a.k, a.x, b.x AS y FROM a {} JOIN b ON a.k = b.k AND " + BETWEEN


def test_a_row_without_partner_is_there_until_one_comes(database: Database) -> None:
    client = Client(database)
    client.run(OUTER.format("LEFT"))
    insert(database, "a", 100, x=1)
    insert(database, "a", 100, x=1)
    insert(database, "a", 101, k=2, x=2)
    assert rows(database) == [(1, 1, None), (1, 1, None), (2, 2, None)]
    insert(database, "b", 130, x=5)
    assert rows(database) == [(1, 1, 5), (1, 1, 5), (2, 2, None)]
    settle(database)
    insert(database, "a", 102, x=3)  # b has the row still
    insert(database, "b", 165, k=9)  # no partner of those at 100 to 104 comes any more
    assert rows(database) == [(1, 1, 5), (1, 1, 5), (1, 3, 5), (2, 2, None)]
    settle(database)
    insert(database, "b", 160, k=2)  # late
    insert(database, "a", 103, k=2, x=4)  # in time, though none of its partners can be
    client.run("INSERT INTO a VALUES (3, NULL, NULL, 6)")
    assert rows(database) == [(1, 1, 5), (1, 1, 5), (1, 3, 5), (2, 2, None), (2, 4, None), (3, 6, None)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [("jsonb", ("1", "1.0")), ("interval", ("24:00:00", "1 day")), ("numeric", ("1", "1.0")), ("text", ("a", "b"))],
)
def test_rows_that_compare_as_equal_and_look_different_have_partners_of_their_own(
    database: Database, kind: str, values: tuple[str, str]
) -> None:
    client = Client(database)
    client.run(f"CREATE FOREIGN TABLE i (j {kind}, at timestamp) SERVER stream OPTIONS (watermark 'at')")
    client.run("CREATE FOREIGN TABLE c (s text, at timestamp) SERVER stream OPTIONS (watermark 'at')")
    during = "c.at BETWEEN i.at AND i.at + interval '10 minutes'"
    client.run(
        f"CREATE VIEW v AS SELECT i.j::text, c.s FROM i LEFT JOIN c ON c.s = i.j::text AND {during};"
        f"CREATE VIEW w AS SELECT i.j::text FROM i WHERE NOT EXISTS (SELECT FROM c WHERE c.s = i.j::text AND {during})"
    )
    one, other = values
    client.run(f"INSERT INTO i VALUES ('{one}', '2024-01-01 10:00'), ('{other}', '2024-01-01 10:00')")
    client.run(f"INSERT INTO c VALUES ('{one}', '2024-01-01 10:01')")
    assert sorted(client.run("SELECT * FROM v"), key=str) == sorted([(one, one), (other, None)], key=str)
    assert client.run("SELECT * FROM w") == [(other,)]


@pytest.mark.parametrize(
    "alike",
    [
        "x.x IS NOT DISTINCT FROM y.x AND x.x IS NOT NULL",
        "x.x = y.x AND NOT (x.x IN (7, 8) OR y.x < 0)",
        "x.x = y.x AND y.x NOT IN (7, 8) IS TRUE",
    ],
)
def test_conditions_that_compare_values_are_bounded(database: Database, alike: str) -> None:
    """Equal doubles may look different, and comparisons do not tell them apart: late rows are left out."""
    client = Client(database)
    client.run("CREATE FOREIGN TABLE d (x float8, at timestamp) SERVER stream OPTIONS (watermark 'at')")
    client.run(f"CREATE VIEW v AS SELECT x FROM d x WHERE EXISTS (SELECT FROM d y WHERE {alike} AND y.at = x.at)")
    client.run("INSERT INTO d VALUES (1, '2024-01-01 10:01')")
    client.run("INSERT INTO d VALUES (2, '2024-01-01 10:00')")
    assert client.run("SELECT * FROM v") == [(1.0,)]
    assert client.run("SELECT late_rows FROM millstream.views") == [(1,)]


def test_a_transaction_of_both_streams(database: Database) -> None:
    client = Client(database)
    client.run(OUTER.format("FULL"))
    client.run("BEGIN")
    client.run("INSERT INTO a (k, at, x) VALUES (1, '2024-01-01 00:00', 1), (2, '2024-01-01 00:00', 2)")
    client.run("INSERT INTO b (k, at, x) VALUES (1, '2024-01-01 00:01', 5), (3, '2024-01-01 00:09', 6)")
    client.run("COMMIT")
    assert rows(database) == [(1, 1, 5), (2, 2, None), (None, None, 6)]
    settle(database)
    assert rows(database) == [(1, 1, 5), (2, 2, None), (None, None, 6)]


def test_a_row_with_partners_is_there_once(database: Database, tmp_path: Path) -> None:
    """From its first partner on, whichever of the two comes first."""
    client = Client(database)
    client.run(f"CREATE VIEW v AS SELECT a.k, a.x FROM a WHERE EXISTS (SELECT FROM b WHERE a.k = b.k AND {BETWEEN})")
    insert(database, "a", 100, x=1)
    insert(database, "a", 100, x=1)
    insert(database, "a", 101, k=2, x=2)
    assert rows(database) == []
    insert(database, "b", 130)
    assert rows(database) == [(1, 1), (1, 1)]
    settle(database)
    insert(database, "b", 131)
    insert(database, "a", 102, x=3)  # b has the rows still
    assert rows(database) == [(1, 1), (1, 1), (1, 3)]
    client.run("BEGIN")
    client.run("INSERT INTO a (k, at, x) VALUES (3, '2024-01-01 00:02', 4), (4, '2024-01-01 00:02', 5)")
    client.run("INSERT INTO b (k, at, x) VALUES (3, '2024-01-01 00:02:40', 6), (3, '2024-01-01 00:02:41', 7)")
    client.run("COMMIT")
    assert rows(database) == [(1, 1), (1, 1), (1, 3), (3, 4)]
    insert(database, "b", 162, k=2)  # a second after the last one that could meet the row at 101
    database.close()
    with closing(Database(Options(tmp_path, spark_enabled=False))) as again:
        assert rows(again) == [(1, 1), (1, 1), (1, 3), (3, 4)]
        insert(again, "b", 170, k=4)
        assert rows(again) == [(1, 1), (1, 1), (1, 3), (3, 4), (4, 5)]


@pytest.mark.slow
@pytest.mark.parametrize("query", sample([OUTER.format("LEFT"), OUTER.format("FULL")], range(1, 2)))
def test_what_tells_of_partners_does_not_grow(database: Database, tmp_path: Path, query: str) -> None:
    """Every fourth row of a has two partners, and half the rows of b have one; the states have those of a minute."""
    counts = "SELECT count(y), count(*) FROM v"

    def expected(last: int) -> list[tuple[int, int]]:
        every = range(last + 1)
        paired = sum(number % 4 < 2 for number in every)
        alone = sum(number % 4 > 0 for number in every), ("FULL" in query) * sum(number % 4 > 1 for number in every)
        return [(paired + alone[1], paired + sum(alone))]

    client = Client(database)
    client.run(query)
    last = 30 * (RUNS + 2) - 1
    for number in range(last + 1):
        insert(database, "a", 2 * number, k=number)
        insert(database, "b", 2 * number + 1, k=number - number % 4 if number % 4 < 2 else -1)
        if number % 10 == 0:
            assert client.run(counts) == expected(number)
            runtime = settle(database)
    settle(database)
    database.core.storage.compact(runtime.view.oid, runtime.program.states, database.core.engine)
    expiring = {item.state for item in runtime.program.expiries}
    kept = [item for item in runtime.program.states if item.name in expiring]
    stored = [sum(run.num_rows for run in database.core.storage.read(runtime.view.oid, item)) for item in kept]
    assert len(stored) == (4 if "FULL" in query else 3)
    assert max(stored) <= 30 + 10 * (RUNS + 1) + 10
    database.close()
    with closing(Database(Options(tmp_path, spark_enabled=False))) as again:
        assert Client(again).run(counts) == expected(last)
        insert(again, "b", 2 * last + 3, k=last)
        ((paired, every),) = expected(last)
        assert Client(again).run(counts) == [(paired + 1, every)]


@pytest.mark.slow
def test_the_kept_rows_of_three_streams_do_not_grow(database: Database, tmp_path: Path) -> None:
    """Rows leave once both other streams have passed them."""
    client = Client(database)
    client.run("CREATE FOREIGN TABLE c (k int, at timestamp, x int) SERVER stream OPTIONS (watermark 'at')")
    client.run(
        "CREATE VIEW v AS SELECT count(*) AS n FROM a JOIN b ON a.k = b.k AND b.at BETWEEN a.at "
        "AND a.at + interval '30 seconds' JOIN c ON c.k = b.k AND c.at BETWEEN b.at AND b.at + interval '30 seconds'"
    )
    assert client.notices[0] == (
        'the view keeps the rows of stream "a" until those of "b" and "c" that may still come join none of them'
    )
    found = 0
    for number in range(30 * (RUNS + 2)):
        for stream in "abc":
            insert(database, stream, 2 * number, k=number % 3)
        found += sum(1 for b in range(16) for a in range(16) if a % 3 == b % 3 == 0 and a + b <= number and b <= number)
        if number % 10 == 0:
            assert rows(database) == [(found,)]
            runtime = settle(database)
    settle(database)
    database.core.storage.compact(runtime.view.oid, runtime.program.states, database.core.engine)
    kept = [item for item in runtime.program.states if item.kind == "concatenate"]
    stored = [sum(run.num_rows for run in database.core.storage.read(runtime.view.oid, item)) for item in kept]
    assert len(stored) == 3
    assert max(stored) <= 40 + 10 * (RUNS + 1) + 10
    assert len([mark for item in runtime.program.expiries for mark in item.marks]) == 6
    database.close()
    with closing(Database(Options(tmp_path, spark_enabled=False))) as again:
        assert rows(again) == [(found,)]


@pytest.mark.slow
def test_late_rows_are_counted_and_not_joined(database: Database, tmp_path: Path) -> None:
    client = Client(database)
    client.run(VIEW)
    late = "SELECT late_rows FROM millstream.views"
    insert(database, "a", 100)
    insert(database, "b", 130)
    insert(database, "b", 130)  # not above the watermark of b, which has no delay
    insert(database, "a", 91)  # less than ten seconds before a's latest
    insert(database, "a", 90)
    client.run("INSERT INTO a VALUES (1, NULL, NULL, 1)")
    assert rows(database) == [(1, 2, 2)]
    assert client.run(late) == [(2,)]
    times = "timestamp '2024-01-01' + (140 - i) * interval '1 second'"
    client.run(f"INSERT INTO b (k, at, x) SELECT 1, {times}, 1 FROM generate_series(0, 9) g (i)")
    assert rows(database) == [(1, 22, 22)]  # rows of one transaction do not make each other late
    settle(database)
    database.close()
    with closing(Database(Options(tmp_path, spark_enabled=False))) as again:
        assert Client(again).run(late) == [(2,)]
        insert(again, "b", 140)
        insert(again, "b", 141)
        assert rows(again) == [(1, 24, 24)]
        assert Client(again).run(late) == [(3,)]


def test_other_views_have_no_late_rows(database: Database) -> None:
    client = Client(database)
    client.run("CREATE VIEW v AS SELECT k, count(*) FROM a GROUP BY k")
    insert(database, "a", 1)
    assert client.run("SELECT late_rows FROM millstream.views") == [(None,)]


@pytest.mark.slow
def test_a_watermark_stays_as_long_as_rows_leave_by_it(database: Database) -> None:
    client = Client(database)
    client.run(VIEW)
    for change in ("SET watermark 'at - interval ''1 hour'''", "DROP watermark"):
        with pytest.raises(SqlError, match="2BP01: cannot alter the watermark of foreign table a"):
            client.run(f"ALTER FOREIGN TABLE a OPTIONS ({change})")
    client.run("ALTER FOREIGN TABLE z OPTIONS (SET watermark 'at'); DROP VIEW v")
    client.run("ALTER FOREIGN TABLE a OPTIONS (DROP watermark)")


def test_streams_begin_alike(tmp_path: Path) -> None:
    """One path reads both streams from one LSN on: with a history of one of them, rows are kept."""
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        for name, options in (("a", ", history 'all'"), ("b", ", history 'all'"), ("c", "")):
            options = f"OPTIONS (watermark 'at'{options})"
            client.run(f"CREATE FOREIGN TABLE {name} (k int, at timestamp, x int) SERVER stream {options}")
        insert(database, "a", 1)
        insert(database, "b", 2)
        insert(database, "c", 2)
        client.run(VIEW)
        client.run(VIEW.replace("VIEW v", "VIEW w").replace("JOIN b", "JOIN c b"))
        client.run(VIEW.replace("VIEW v", "VIEW u WITH (start = 'now')").replace("JOIN b", "JOIN c b"))
        insert(database, "a", 3)
        insert(database, "b", 4)
        insert(database, "c", 4)
        assert [client.run(f"SELECT n FROM {name}") for name in "vwu"] == [[(3,)], [(2,)], [(1,)]]
        bounded = {item.view.name for item in database.core.runtimes() if item.late_rows() is not None}
        assert bounded == {"v", "u"}
