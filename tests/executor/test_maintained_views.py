"""Rows of views that follow the changes of tables, states and other views: equal to the query computed from scratch.

Each view is made with ``method = 'incremental'``, so that its rows are kept from its first read on, and the test looks
that they are. The judge is the same query, which reads the tables as they are.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.core.plans import PlanCache
from executor.database.database import Database
from executor.maintained import kept_rows, read_costs
from planner.incremental.dataflow import first_rows
from tests.executor.client import Client, open_database
from tests.executor.view_queries import MAINTAINED, NOT_MAINTAINED, PARTLY, TABLES, bag, names, row
from tests.rig.benchmarks import queries
from tests.rig.sampling import sample
from tests.rig.tpcds import TABLES as TPCDS_TABLES


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


def create(client: Client, queries: tuple[str, ...]) -> None:
    client.run(TABLES)
    for place, query in enumerate(queries):
        client.run(f"CREATE MATERIALIZED VIEW v{place}{names(client, query)} WITH (method = 'incremental') AS {query}")


def kept(database: Database) -> set[str]:
    """The views whose rows are kept, without the parts that they share."""
    known, parts = database.read_services.maintained._known.items(), database.core.parts
    return {item.runtime.view.name for oid, item in known if item.kept is not None and oid not in parts}


SETS = {
    "a": "g = CASE WHEN v > 0 THEN 1 ELSE 2 END, v = v + 1",
    "b": "w = w - 1, k = g, m = m * 10",
    "c": "t = 'y', x = x || 1",
}


def change(drawn: random.Random) -> str:
    table, kind = drawn.choice("abc"), drawn.random()
    if kind < 0.5:
        rows = ", ".join(row(drawn, table) for _ in range(drawn.randint(1, 4)))
        return f"INSERT INTO {table} VALUES {rows}{' ON CONFLICT DO NOTHING' if table == 'a' else ''}"
    where = f"k % {drawn.randint(2, 6)} = {drawn.randint(0, 3)}"
    if kind < 0.75:
        return f"UPDATE {table} SET {SETS[table]} WHERE {where}"
    return f"DELETE FROM {table} WHERE {where}" if kind < 0.97 else f"TRUNCATE {table}"


@pytest.mark.parametrize("view_sharing", ["off", "on"])
@pytest.mark.parametrize("seed", sample(range(8), (0,)))
def test_views_equal_their_queries(tmp_path: Path, seed: int, view_sharing: str, whole: bool) -> None:
    with closing(open_database(tmp_path, view_sharing=view_sharing)) as database:
        _require_equal_views(database, random.Random(seed), whole)


def _require_equal_views(database: Database, drawn: random.Random, whole: bool) -> None:
    client, queries = Client(database), MAINTAINED + PARTLY
    create(client, queries)
    for _ in range(12 if whole else 4):
        for _ in range(drawn.randint(1, 3)):
            client.run(change(drawn))
        for place, query in enumerate(queries):
            if drawn.random() < 0.6:
                assert bag(client.run(f"SELECT * FROM v{place}")) == bag(client.run(query)), query
    for place in range(len(queries)):
        client.run(f"SELECT * FROM v{place}")
    assert kept(database) == {f"v{place}" for place in range(len(queries))}


@pytest.mark.parametrize("query", NOT_MAINTAINED)
def test_what_is_as_quick_to_compute_is_not_kept(database: Database, query: str) -> None:
    client = Client(database)
    create(client, (query,))
    client.run("INSERT INTO a VALUES (1, 1, 1)")
    assert bag(client.run("SELECT * FROM v0")) == bag(client.run(query))
    assert kept(database) == set()


@pytest.mark.parametrize("query", [MAINTAINED[2], MAINTAINED[9]])
def test_the_option_refuses_what_is_computed_at_each_read(database: Database, query: str) -> None:
    client = Client(database)
    client.run(TABLES)
    client.run(f"CREATE MATERIALIZED VIEW good WITH (refresh_policy = 'incremental') AS {query}")
    for bad in (PARTLY[0], PARTLY[1]):
        with pytest.raises(SqlError, match="computed at each read") as caught:
            client.run(f"CREATE MATERIALIZED VIEW bad WITH (refresh_policy = 'incremental') AS {bad}")
        assert caught.value.sqlstate == "0A000"
    for option in ("refresh_policy = 'incremental'", "method = 'incremental'", "tables = 'frozen'"):
        with pytest.raises(SqlError, match=f"an ordinary view with {option}") as caught:
            client.run(f"CREATE VIEW bad WITH ({option}) AS {query}")
        assert caught.value.sqlstate == "0A000"


#: Of TPC-DS: windows over groups, first rows of them, ROLLUP, EXISTS, set operations, full joins.
TPCDS = ("q10", "q14", "q44", "q49", "q51", "q67", "q70")


@pytest.mark.parametrize("name", sample(sorted(path.stem for path in queries("tpcds")), TPCDS))
def test_each_part_of_the_queries_of_tpcds_follows_changes(database: Database, name: str) -> None:
    client = Client(database)
    for table, columns in TPCDS_TABLES.items():
        client.run(f"CREATE TABLE {table} ({columns})")
    (text,) = (path.read_text(encoding="utf-8") for path in queries("tpcds") if path.stem == name)
    client.run(f"CREATE MATERIALIZED VIEW v WITH (refresh_policy = 'incremental') AS {text}")


def test_a_system_view_shows_how_each_part_is_maintained(database: Database) -> None:
    client = Client(database)
    create(client, (MAINTAINED[9], PARTLY[1], NOT_MAINTAINED[1]))
    client.run("CREATE FOREIGN TABLE s (k int, v int) SERVER stream")
    client.run("CREATE VIEW grouped AS SELECT k, count(*) FROM s GROUP BY k")
    client.run("CREATE VIEW joined WITH (method = 'incremental') AS SELECT a.t, s.v FROM s JOIN a USING (k)")
    client.run("INSERT INTO s VALUES (1, 2); INSERT INTO a VALUES (1, 1, 1, 'x')")
    client.run("SELECT * FROM joined, grouped")
    found: dict[str, list[Any]] = {}
    client.run("UPDATE a SET t = 'y'")
    client.run("SELECT * FROM joined")
    measured = "changes, rows_read, rows_inserted, rows_deleted, milliseconds > 0"
    of_nodes = f"SELECT part, {measured} FROM millstream.paths WHERE view = 'joined' AND part ~ '^node' AND changes > 0"
    nodes = sorted(client.run(of_nodes))
    assert nodes == [("node 1", 1, 0, 1, 1, True), ("node 2", 1, 2, 1, 1, True)]
    of_state = f"SELECT {measured} FROM millstream.paths WHERE view = 'grouped' AND reads = 's'"
    assert client.run(of_state) == [(1, 1, 1, 0, True)]
    assert any(
        "Last Run: 1 row read, 1 inserted, 0 deleted" in line for (line,) in client.run("EXPLAIN SELECT * FROM grouped")
    )
    for view, *about in client.run("SELECT view, method, reads, rows, reason FROM millstream.paths"):
        found.setdefault(view, []).append(tuple(about))
    assert ("split", "s", 1, None) in found["grouped"]
    assert ("collect", "s", 1, None) in found["joined"]
    assert ("delta propagation through projection, inner join", "0, 1", 1, None) in found["joined"]
    assert [reason for *_, reason in found["v0"]] == [None] * len(found["v0"])
    for view in ("v1", "v2"):
        assert [(method, bool(reason)) for method, *_, reason in found[view]][-1] == ("recomputation", True)


def test_rows_are_found_by_any_column(database: Database) -> None:
    client = Client(database)
    create(client, ("SELECT a.g, b.t, sum(b.w) s FROM a JOIN b ON a.k = b.k GROUP BY a.g, b.t",))
    client.run("INSERT INTO a SELECT i, i % 5, i, 'x' FROM generate_series(1, 200) i")
    client.run("INSERT INTO b SELECT i, 1, i, 't' || i % 3 FROM generate_series(1, 200) i")
    client.run("SELECT * FROM v0")
    client.run("UPDATE b SET w = w + 1 WHERE k = 7")
    query = "SELECT * FROM v0 WHERE g = {} AND t = '{}'"
    rows = [client.run(query.format(group, text)) for group in range(5) for text in ("t0", "t1", "t2", "t3")]
    assert bag(row for each in rows for row in each) == bag(client.run("SELECT * FROM v0"))
    assert client.run("SELECT s FROM v0 WHERE t = 't9'") == []
    assert len(client.run("SELECT s FROM v0 WHERE t = 't1' AND s > 0")) == 5


def test_a_view_over_views_follows_stream_and_tables(database: Database) -> None:
    client = Client(database)
    client.run(TABLES)
    client.run("CREATE FOREIGN TABLE s (k int, v int) SERVER stream")
    client.run("CREATE VIEW one AS SELECT k, count(*) n, sum(v) v, max(v) m FROM s GROUP BY k")
    options = "WITH (method = 'incremental')"
    client.run(f"CREATE MATERIALIZED VIEW two {options} AS SELECT one.*, a.g FROM one JOIN a ON a.k = one.k")
    client.run(f"CREATE MATERIALIZED VIEW three {options} AS SELECT g, sum(n) n, max(m) m FROM two GROUP BY g")
    drawn = random.Random(7)
    scratch = (
        "SELECT a.g, sum(x.n), max(m) FROM a JOIN (SELECT k, count(*) n, max(v) m FROM all_rows GROUP BY k) x"
        " ON x.k = a.k GROUP BY a.g"
    )
    client.run("CREATE TABLE all_rows (k int, v int)")
    for _ in range(20):
        rows = ", ".join(f"({drawn.randint(1, 6)}, {drawn.randint(0, 9)})" for _ in range(3))
        client.run(f"INSERT INTO s VALUES {rows}; INSERT INTO all_rows VALUES {rows}")
        client.run(f"INSERT INTO a VALUES ({drawn.randint(1, 6)}, {drawn.randint(1, 3)}) ON CONFLICT DO NOTHING")
        client.run(f"UPDATE a SET g = {drawn.randint(1, 3)} WHERE k = {drawn.randint(1, 6)}")
        assert bag(client.run("SELECT * FROM three")) == bag(client.run(scratch))
    assert kept(database) == {"two", "three"}


def test_infinite_times_follow_changes(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (k int PRIMARY KEY, at timestamp, d date, c time)")
    query = "SELECT k, coalesce(lead(at) OVER (PARTITION BY k % 2 ORDER BY k), 'infinity') AS until, d, c FROM t"
    client.run(f"CREATE MATERIALIZED VIEW v WITH (method = 'incremental') AS {query}")
    for change in (
        "INSERT INTO t SELECT i, '2026-01-01', '-infinity', '10:00' FROM generate_series(1, 9) i",
        "UPDATE t SET at = '-infinity', d = 'infinity' WHERE k = 4",
        "DELETE FROM t WHERE k = 5",
    ):
        client.run(change)
        texts = "SELECT k, until::text, d::text, c::text FROM"
        assert bag(client.run(f"{texts} v")) == bag(client.run(f"{texts} ({query}) x"))
        assert kept(database) == {"v"}


def test_other_queries_do_not_displace_kept_rows(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server has seen more queries than it remembers the plans of."""
    client = Client(database)
    create(client, ("SELECT a.g, b.t, count(*) FROM a JOIN b USING (k) GROUP BY a.g, b.t",))
    client.run("INSERT INTO a VALUES (1, 1, 1)")
    client.run("SELECT * FROM v0")
    (known,) = database.read_services.maintained._known.values()
    rows = known.kept
    monkeypatch.setattr(database.core, "plans", PlanCache(2))
    for value in range(4):
        client.run(f"SELECT g + {value} FROM a WHERE k > {value}")
        client.run(f"INSERT INTO b VALUES (1, 1, {value}, 'x')")
        assert client.run("SELECT * FROM v0") == [(1, "x", value + 1)]
    assert database.read_services.maintained._known[known.runtime.view.oid].kept is rows is not None


@pytest.mark.parametrize(
    "definition",
    [
        "ALTER TABLE a ADD COLUMN more int DEFAULT 3",
        "ALTER TABLE a RENAME COLUMN v TO w",
        "ALTER TABLE a RENAME TO other",
        "CREATE INDEX ON a (g)",
        "ALTER TABLE a DROP COLUMN t",
    ],
)
def test_definitions_do_not_disturb_kept_rows(database: Database, definition: str) -> None:
    client = Client(database)
    create(client, ("SELECT g, sum(v) s FROM a GROUP BY g",))
    client.run("INSERT INTO a VALUES (1, 1, 1), (2, 1, 5)")
    assert client.run("SELECT * FROM v0") == [(1, 6)]
    client.run(definition)
    table = "other" if "other" in definition else "a"
    client.run(f"INSERT INTO {table} VALUES (3, 1, 10)")
    assert client.run("SELECT * FROM v0") == [(1, 16)]
    client.run(f"DELETE FROM {table} WHERE k = 1")
    assert client.run("SELECT * FROM v0") == [(1, 15)]


def test_rows_are_given_back_and_made_again(database: Database) -> None:
    client = Client(database)
    create(client, ("SELECT g, sum(v) s FROM a GROUP BY g",))
    client.run("INSERT INTO a VALUES (1, 1, 1)")
    client.run("SELECT * FROM v0")
    budget = database.core.trace_budget
    held = budget.held
    budget.limit = 0
    budget.keep()
    assert kept(database) == set()
    assert budget.held < held
    budget.limit = 1 << 30
    client.run("INSERT INTO a VALUES (2, 1, 1)")
    assert client.run("SELECT * FROM v0") == [(1, 2)]
    assert kept(database) == {"v0"}


def test_a_row_that_fails_fails_the_view_while_it_is_there(database: Database) -> None:
    client = Client(database)
    create(client, ("SELECT g, sum(10 / v) s FROM a GROUP BY g",))
    client.run("INSERT INTO a VALUES (1, 1, 5)")
    assert client.run("SELECT * FROM v0") == [(1, 2)]
    client.run("INSERT INTO a VALUES (2, 1, 0)")
    with pytest.raises(SqlError, match="division by zero"):
        client.run("SELECT * FROM v0")
    client.run("DELETE FROM a WHERE k = 2")
    assert client.run("SELECT * FROM v0") == [(1, 2)]


def test_many_changes_are_computed_anew(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "FEW", 10)
    client = Client(database)
    create(client, ("SELECT g, sum(v) s FROM a GROUP BY g",))
    client.run("INSERT INTO a VALUES (0, 1, 0)")
    client.run("SELECT * FROM v0")
    client.run("INSERT INTO a SELECT i, 1, i FROM generate_series(1, 100) i")
    assert client.run("SELECT * FROM v0") == [(1, 5050)]
    assert kept(database) == set()
    client.run("INSERT INTO a VALUES (200, 2, 0)")
    assert bag(client.run("SELECT * FROM v0")) == {(1, 5050): 1, (2, 0): 1}
    assert kept(database) == set()  # a trial too many would cost more than it brings
    client.run("INSERT INTO a VALUES (201, 2, 0)")
    client.run("SELECT * FROM v0")
    assert kept(database) == {"v0"}


def test_by_default_rows_are_kept_where_that_is_quicker(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_costs, "WORTH_SECONDS", 1e-9)
    monkeypatch.setattr(read_costs, "OUTLAY_SECONDS", 0.0)
    client = Client(database)
    client.run(TABLES)
    client.run("CREATE MATERIALIZED VIEW v0 AS SELECT g, sum(v) s FROM a GROUP BY g")
    client.run("CREATE MATERIALIZED VIEW v1 WITH (method = 'recompute') AS SELECT g, sum(v) s FROM a GROUP BY g")

    def read() -> set[str]:
        client.run("UPDATE a SET v = v + 1")
        assert client.run("SELECT * FROM v0") == client.run("SELECT * FROM v1")
        return kept(database)

    client.run("INSERT INTO a VALUES (1, 1, 1)")
    assert [read(), read(), read()] == [set(), set(), {"v0"}]
    known = next(item for item in database.read_services.maintained._known.values() if item.kept is not None)
    known.costs._computed.recent = [1e9]
    assert [read() for _ in range(read_costs.TRIALS)][-1] == {"v0"}
    known.costs._computed.recent = [0.0]
    assert read() == set()


def test_explain_names_the_method_of_each_operator(database: Database) -> None:
    client = Client(database)
    create(client, ("SELECT a.g, sum(b.w), max(b.t) FROM a JOIN b ON a.k = b.k GROUP BY a.g ORDER BY 2",))
    before = "\n".join(line for (line,) in client.run("EXPLAIN SELECT * FROM v0"))
    assert "Method: by changes, from the first read on" in before
    client.run("INSERT INTO a VALUES (1, 1, 1); INSERT INTO b VALUES (1, 1, 1)")
    client.run("SELECT * FROM v0")
    after = "\n".join(line for (line,) in client.run("EXPLAIN SELECT * FROM v0"))
    for words in (
        "Method: by changes",
        "changes of table a",
        "inner join",
        "grouping, from which rows are taken back",
        "recomputation of touched keys of a grouping",
        "Rows Kept: 1",
        "Followed: soon after changes",
    ):
        assert words in after, words
    assert "Computed at Each Read" not in after


def test_zeros_of_both_signs_are_two_values(database: Database) -> None:
    """Also where the engine makes one of equal rows, since Arrow does not group by lists and intervals."""
    client = Client(database)
    client.run("CREATE TABLE t (g int, v float8, r float4, a float8[], i interval)")
    client.run("INSERT INTO t SELECT 1, 0, 0, '{0, 1}', '1 day' FROM generate_series(1, 2); INSERT INTO t VALUES (1)")
    query = "SELECT v, r, a, i, row_number() OVER (PARTITION BY g ORDER BY v, r) n FROM t"
    client.run(f"CREATE MATERIALIZED VIEW kept_rows WITH (method = 'incremental') AS {query}")
    texts = "SELECT v::text, r::text, a::text, i::text, n FROM {}"
    for change in ("v = -v", "a = '{-0, 1}'", "r = -r, a = '{0, 1}'", "i = '24 hours'", "v = 0"):
        client.run(f"UPDATE t SET {change} WHERE v = 0")
        found = client.run(texts.format("kept_rows"))
        assert bag(found) == bag(client.run(texts.format(f"({query}) x")))
    assert kept(database) == {"kept_rows"}


def test_transactions_do_not_see_what_others_alone_see(database: Database) -> None:
    one, other = Client(database), Client(database)
    create(one, (PARTLY[0],))
    one.run("INSERT INTO a VALUES (1, 1, 1); INSERT INTO b VALUES (1), (2)")
    one.run("BEGIN")
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert other.run("SELECT count(*) FROM v0") == [(1,)]
    one.run("INSERT INTO a VALUES (2, 2, 2)")
    assert one.run("SELECT count(*) FROM v0") == [(2,)]
    assert other.run("SELECT count(*) FROM v0") == [(1,)]


def test_first_rows_are_made_anew_where_none_are_left_to_spare(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_rows, "_LEAST", 6)
    client, query = Client(database), "SELECT k, v FROM a WHERE g = 1 ORDER BY v, k OFFSET 1 LIMIT 2"
    create(client, (query,))
    client.run("INSERT INTO a SELECT i, 1, i % 10, 'x' FROM generate_series(1, 60) i")
    for place in range(1, 60, 2):
        assert client.run("SELECT * FROM v0") == client.run(query)
        client.run(f"DELETE FROM a WHERE k IN ({place}, {60 - place})")
        client.run(
            f"INSERT INTO a SELECT i, 1, {place} % 7, 'y' FROM generate_series({100 * place}, {100 * place} + 9) i"
        )
    assert client.run("SELECT * FROM v0") == client.run(query)
    assert kept(database) == {"v0"}


#: Values that Python lacks, or takes for others: rows with them pass a dataflow as Arrow's.
ODD_TIMES = ("'infinity'", "'-infinity'", "'2024-02-29 12:00:00.5'", "'0001-01-01'", "NULL")
ODD_DOUBLES = ("'NaN'", "'-Infinity'", "'-0'", "0", "1.5", "NULL")


@pytest.mark.parametrize("seed", range(3))
def test_rows_with_values_that_python_lacks_follow_changes(database: Database, seed: int) -> None:
    drawn, client = random.Random(seed), Client(database)
    client.run("CREATE TABLE h (k integer, until timestamp, x float8); CREATE TABLE p (k integer, n numeric(9,2))")
    queries = (
        "SELECT h.k, until, x, p.n FROM h JOIN p ON h.k = p.k WHERE until > '2020-01-01' OR x = 0",
        "SELECT until, count(*) AS rows, sum(n) AS n FROM h JOIN p ON h.k = p.k GROUP BY until",
        "SELECT k, max(until) AS until, count(DISTINCT x) AS x FROM h GROUP BY k",
        "SELECT k, until, x FROM h WHERE NOT EXISTS (SELECT FROM p WHERE p.k = h.k)",
    )
    for place, query in enumerate(queries):
        client.run(f"CREATE MATERIALIZED VIEW v{place} WITH (method = 'incremental') AS {query}")
        client.run(f"SELECT count(*) FROM v{place}")
    for _ in range(25):
        k = drawn.randint(1, 4)
        client.run(
            drawn.choice(
                (
                    f"INSERT INTO h VALUES ({k}, {drawn.choice(ODD_TIMES)}, {drawn.choice(ODD_DOUBLES)})",
                    f"INSERT INTO p VALUES ({k}, {drawn.randint(-9, 9)}.25)",
                    f"UPDATE h SET until = {drawn.choice(ODD_TIMES)} WHERE k = {k}",
                    f"UPDATE h SET x = {drawn.choice(ODD_DOUBLES)} WHERE k = {k}",
                    f"DELETE FROM {drawn.choice('hp')} WHERE k = {k}",
                )
            )
        )
        for place, query in enumerate(queries):
            shown = "SELECT v::text FROM ({}) v ORDER BY 1"
            assert client.run(shown.format(f"SELECT * FROM v{place}")) == client.run(shown.format(query)), query
    assert kept(database) == {"v0", "v1", "v2", "v3"}


def test_an_integer_is_a_decimal_in_a_column_of_numerics(database: Database) -> None:
    """The average of a group that a change makes was a thousandth: the grouping below had its sum as an integer."""
    client = Client(database)
    client.run("CREATE TABLE h (g integer, k integer)")
    sums = "SELECT g, k, sum(k)::numeric(12,3) AS s FROM h GROUP BY g, k"
    query = f"SELECT g, avg(s) AS a, sum(s) AS s FROM ({sums}) x GROUP BY g"
    client.run(f"CREATE MATERIALIZED VIEW averages WITH (method = 'incremental') AS {query}")
    assert client.run("SELECT * FROM averages") == []
    client.run("INSERT INTO h VALUES (3, 5)")
    assert bag(client.run("SELECT g, a::text, s::text FROM averages")) == bag([(3, "5.0000000000000000", "5.000")])
    client.run("INSERT INTO h VALUES (3, 5), (3, 4)")
    assert bag(client.run("SELECT g, a::text, s::text FROM averages")) == bag([(3, "7.0000000000000000", "14.000")])
