"""Materialized and maintained views over tables: which are continuous, what readers see, and what may be altered."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.database.database import Database
from tests.executor.client import Client, open_database
from tests.rig.sampling import sample

TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, n numeric, w text); CREATE TABLE names (g int, name text);"
    "INSERT INTO t VALUES (1, 1, 1.50, 'a'), (2, 1, 2, 'b'), (3, 2, 3.25, 'c'); INSERT INTO names VALUES (1, 'one')"
)
QUERY = "SELECT g, count(*) AS rows, sum(n) AS total, max(w) AS last, avg(n) AS mean FROM t GROUP BY g"
JOINED = "SELECT name, total FROM m JOIN names USING (g)"
READ, READ_JOINED = "SELECT * FROM m ORDER BY g", "SELECT * FROM joined ORDER BY name"
VIEWS = f"CREATE MATERIALIZED VIEW m AS {QUERY}; CREATE MATERIALIZED VIEW joined AS {JOINED}"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as database:
        Client(database).run(TABLES)
        yield database


def view_of(client: Client, name: str) -> View:
    """A view as it is defined now."""
    found = client.session.catalog.at("public", name)
    assert isinstance(found, View)
    return found


def refused(client: Client, text: str) -> SqlError:
    """The error of a statement."""
    with pytest.raises(SqlError) as raised:
        client.run(text)
    return raised.value


def require_equal(client: Client) -> None:
    """Both views show what their queries give."""
    assert client.run(READ) == client.run(f"{QUERY} ORDER BY g")
    assert client.run(READ_JOINED) == client.run(f"SELECT name, total FROM ({QUERY}) m JOIN names USING (g) ORDER BY 1")


# --- which views -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        "SELECT * FROM t ORDER BY w DESC LIMIT 2",
        "SELECT t.g, rank() OVER (ORDER BY n), name FROM t LEFT JOIN names USING (g)",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT i FROM r JOIN t ON id = i"
        " ORDER BY i",
        "SELECT g, (SELECT max(name) FROM names WHERE names.g = t.g) AS name FROM t",
        "SELECT g FROM t EXCEPT ALL SELECT g FROM names",
        "SELECT DISTINCT ON (g) g, w FROM t ORDER BY g, w DESC",
        "SELECT unnest(array_agg(w ORDER BY w)) AS w FROM t",
        "SELECT count(*) FROM t",
    ],
)
def test_is_continuous(database: Database, query: str) -> None:
    client = Client(database)
    client.run(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert view_of(client, "v").derived
    assert not client.notices
    assert sorted(map(repr, client.run("SELECT * FROM v"))) == sorted(map(repr, client.run(query)))
    client.run("INSERT INTO t VALUES (9, 1, 0.5, 'z')")
    assert sorted(map(repr, client.run("SELECT * FROM v"))) == sorted(map(repr, client.run(query)))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS one",
        "SELECT relname FROM pg_class WHERE relname = 't'",
        "SELECT twice(g) FROM t",
        "SELECT ROW(g, w)::pair AS p FROM t",
        "SELECT 'sad'::mood::text AS m FROM t",
        "SELECT ctid::text AS place FROM t",
    ],
)
def test_is_computed_at_each_read(database: Database, query: str) -> None:
    client = Client(database)
    client.run(
        "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql RETURN n * 2; CREATE TYPE pair AS (a int, b text)"
    )
    client.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    client.run(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert not view_of(client, "v").continuous
    assert len(client.run("SELECT * FROM v")) == len(client.run(query))
    assert not client.notices
    client.run(f"CREATE VIEW w WITH (maintained) AS {query}")
    assert not view_of(client, "w").continuous
    assert client.notices == ['view "w" is computed at each read: its query cannot be maintained']


def test_what_is_drawn_and_what_is_temporary(database: Database) -> None:
    client = Client(database)
    assert refused(client, "CREATE MATERIALIZED VIEW v AS SELECT random() FROM t").sqlstate == "0A000"
    client.run("CREATE TEMPORARY TABLE own (a int); CREATE VIEW v WITH (maintained) AS SELECT a FROM own")
    assert client.run("SELECT * FROM v") == []
    client.run("CREATE TEMPORARY VIEW w WITH (maintained) AS SELECT g FROM t")
    assert len(client.run("SELECT * FROM w")) == 3


@pytest.mark.parametrize(("option", "continuous"), [("", True), (" = on", True), (" = false", False)])
def test_the_option(database: Database, option: str, continuous: bool) -> None:
    client = Client(database)
    client.run(f"CREATE VIEW v WITH (maintained{option}) AS {QUERY}")
    view = view_of(client, "v")
    assert (view.continuous, view.derived, view.materialized) == (continuous, continuous, False)
    assert view.options == (("maintained", "true" if continuous else "false"),)
    assert client.run("SELECT * FROM v ORDER BY g") == client.run(f"{QUERY} ORDER BY g")
    other = "false" if continuous else "true"
    assert refused(client, f"ALTER VIEW v SET (maintained = {other})").sqlstate == "0A000"
    client.run(f"ALTER VIEW v SET (maintained{option})")
    client.run("CREATE VIEW plain AS SELECT g FROM t")
    assert not view_of(client, "plain").continuous


def test_wrong_options(database: Database) -> None:
    client = Client(database)
    assert refused(client, "CREATE VIEW v WITH (maintained = 7) AS SELECT g FROM t").sqlstate == "22023"
    message = refused(client, "CREATE VIEW v WITH (maintained) AS SELECT g FROM t WITH CHECK OPTION").message
    assert message.startswith("WITH CHECK OPTION of a continuous view")
    client.run("CREATE VIEW v WITH (maintained, security_invoker) AS SELECT g FROM t")
    assert not view_of(client, "v").continuous
    client.run("CREATE VIEW w WITH (maintained) AS SELECT g FROM t; ALTER VIEW w SET (security_invoker)")
    assert not view_of(client, "w").continuous
    assert database.core.find_view(view_of(client, "w").oid) is None
    assert len(client.run("SELECT * FROM w")) == 3


# --- who sees what ---------------------------------------------------------------------------------------------------


def change(client: Client, source: random.Random) -> None:
    """One change of the tables."""
    key, group = source.randrange(30), source.randrange(4)
    client.run(
        source.choice(
            [
                f"INSERT INTO t VALUES ({key}, {group}, {key}.25, 'w{key}') ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
                f"UPDATE t SET g = {group}, n = NULL WHERE id % 3 = {group}",
                f"DELETE FROM t WHERE id = {key}",
                f"INSERT INTO names VALUES ({group}, 'name {key}')",
                f"DELETE FROM names WHERE g = {group}",
                "TRUNCATE names",
            ]
        )
    )


@pytest.mark.parametrize("seed", sample(range(3), (0,)))
def test_reads_equal_the_query(database: Database, seed: int, whole: bool) -> None:
    source, writer, reader = random.Random(seed), Client(database), Client(database)
    writer.run(VIEWS)
    for _ in range(25 if whole else 9):
        outside = reader.run(READ), reader.run(READ_JOINED)
        writer.run("BEGIN")
        change(writer, source)
        require_equal(writer)
        writer.run("SAVEPOINT s")
        inside = writer.run(READ), writer.run(READ_JOINED)
        change(writer, source)
        require_equal(writer)
        assert (reader.run(READ), reader.run(READ_JOINED)) == outside
        if source.random() < 0.5:
            writer.run("ROLLBACK TO s")
            assert (writer.run(READ), writer.run(READ_JOINED)) == inside
        writer.run(source.choice(["COMMIT", "ROLLBACK"]))
        require_equal(writer)
        require_equal(reader)
        assert reader.run(READ) == writer.run(READ)


@pytest.mark.parametrize(
    "level",
    sample(["REPEATABLE READ", "REPEATABLE READ READ ONLY", "SERIALIZABLE"], ("SERIALIZABLE",)),
)
def test_a_snapshot_stays(database: Database, level: str, whole: bool) -> None:
    source, writer, reader = random.Random(5), Client(database), Client(database)
    writer.run(VIEWS)
    reader.run(f"BEGIN ISOLATION LEVEL {level}")
    wanted = reader.run(READ), reader.run(READ_JOINED)
    for _ in range(10 if whole else 5):
        change(writer, source)
        require_equal(writer)
        assert (reader.run(READ), reader.run(READ_JOINED)) == wanted
    writer.run("CREATE MATERIALIZED VIEW later AS SELECT g, total FROM m")
    groups = [(row[0], row[2]) for row in wanted[0]]
    assert reader.run("SELECT * FROM later ORDER BY g") == groups
    reader.run("COMMIT")
    require_equal(reader)


def test_what_a_transaction_has_created(database: Database) -> None:
    client, other = Client(database), Client(database)
    client.run("BEGIN; CREATE TABLE own (g int, name text); INSERT INTO own VALUES (1, 'x')")
    client.run(f"{VIEWS}; CREATE VIEW maintained WITH (maintained) AS SELECT own.g, total FROM m JOIN own USING (g)")
    client.run("CREATE VIEW plain AS SELECT total FROM maintained")
    require_equal(client)
    assert client.run("SELECT * FROM plain") == [("3.50",)]
    client.run("INSERT INTO t VALUES (7, 1, 1, 'q'); ALTER TABLE t RENAME COLUMN n TO number")
    assert client.run("SELECT * FROM maintained") == [(1, "4.50")]
    assert refused(other, READ).sqlstate == "42P01"
    client.run("COMMIT")
    for each in (client, other):
        assert each.run("SELECT * FROM maintained") == [(1, "4.50")]
        assert each.run("SELECT * FROM plain") == [("4.50",)]
        assert each.run(READ_JOINED) == [("one", "4.50")]
    assert view_of(other, "maintained").derived


def test_a_creation_that_is_undone(database: Database) -> None:
    client = Client(database)
    client.run(f"BEGIN; SAVEPOINT s; CREATE MATERIALIZED VIEW m AS {QUERY}")
    assert len(client.run(READ)) == 2
    client.run("ROLLBACK TO s; CREATE MATERIALIZED VIEW m AS SELECT g FROM names; COMMIT")
    assert client.run("SELECT * FROM m") == [(1,)]
    client.run("BEGIN; DROP MATERIALIZED VIEW m; ROLLBACK")
    assert client.run("SELECT * FROM m") == [(1,)]


def test_results_are_kept_until_a_table_changes(database: Database) -> None:
    client = Client(database)
    client.run(VIEWS)
    runtime = database.core.view(view_of(client, "m").oid)
    client.run(READ)
    before = runtime._result
    client.run("UPDATE names SET name = 'eins'")
    client.run(READ)
    assert runtime._result is before
    client.run("UPDATE t SET n = 1 WHERE id = 1")
    client.run(READ)
    assert runtime._result is not before


# --- WITH NO DATA ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [QUERY, "SELECT g, ctid::text AS place FROM t"], ids=["continuous", "ordinary"])
def test_with_no_data(database: Database, query: str) -> None:
    client = Client(database)
    client.run(f"CREATE MATERIALIZED VIEW v AS {query} WITH NO DATA")
    client.run("CREATE VIEW above AS SELECT g FROM v; EXPLAIN SELECT * FROM v")
    populated = "SELECT ispopulated FROM pg_matviews WHERE matviewname = 'v'"
    unread = 'materialized view "v" has not been populated'
    for read in ("SELECT * FROM v", "SELECT * FROM above", "INSERT INTO names SELECT g FROM v"):
        error = refused(client, read)
        assert (error.sqlstate, error.message) == ("55000", unread)
        assert error.hint == "Use the REFRESH MATERIALIZED VIEW command."
    assert refused(client, "CREATE MATERIALIZED VIEW w AS SELECT g FROM v").message == unread
    client.run("CREATE MATERIALIZED VIEW w AS SELECT g FROM v WITH NO DATA")
    assert refused(client, "REFRESH MATERIALIZED VIEW w").message == unread
    assert client.run(populated) == [(False,)]
    client.run("BEGIN; REFRESH MATERIALIZED VIEW v")
    assert len(client.run("SELECT g FROM v")) == len(client.run(query))
    client.run("ROLLBACK")
    assert refused(client, "SELECT * FROM v").message == unread
    client.run("REFRESH MATERIALIZED VIEW v; REFRESH MATERIALIZED VIEW w")
    assert len(client.run("SELECT g FROM above")) == len(client.run("SELECT g FROM w")) == len(client.run(query))
    assert client.run(populated) == [(True,)]
    client.run("REFRESH MATERIALIZED VIEW v WITH NO DATA")
    assert refused(client, "SELECT * FROM above").message == unread
    assert client.run("SELECT relispopulated FROM pg_class WHERE relname = 'v'") == [(False,)]
    assert refused(client, "REFRESH MATERIALIZED VIEW CONCURRENTLY v").sqlstate == "0A000"
    assert len(client.run("SELECT g FROM w")) == len(client.run(query)), "it has rows of its own"


def test_views_over_streams_are_always_populated(database: Database) -> None:
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (g int) SERVER stream")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) FROM s GROUP BY g WITH NO DATA")
    assert client.notices == ['materialized view "v" over streams is always fresh, WITH NO DATA is ignored']
    assert client.run("SELECT * FROM v") == []
    assert refused(client, "REFRESH MATERIALIZED VIEW v WITH NO DATA").sqlstate == "0A000"


# --- definitions -----------------------------------------------------------------------------------------------------


def test_altered_tables(database: Database) -> None:
    client = Client(database)
    client.run(VIEWS)
    client.run(
        "ALTER TABLE t RENAME COLUMN n TO number; ALTER TABLE t RENAME TO rows; ALTER TABLE rows ADD COLUMN z int"
    )
    wanted = [("one", "3.50")]
    assert client.run(READ_JOINED) == wanted
    client.run(
        "BEGIN; ALTER TABLE rows RENAME COLUMN number TO n; ALTER MATERIALIZED VIEW m RENAME COLUMN total TO sum"
    )
    assert client.run(READ_JOINED) == wanted
    client.run("UPDATE rows SET n = 5 WHERE id = 1")
    assert client.run(READ_JOINED) == [("one", "7")]
    client.run("ROLLBACK")
    assert client.run(READ_JOINED) == wanted
    client.run("CREATE SCHEMA other; ALTER TABLE rows SET SCHEMA other; ALTER MATERIALIZED VIEW m SET SCHEMA other")
    client.run("ALTER MATERIALIZED VIEW other.m RENAME TO sums; ALTER TABLE other.rows DROP COLUMN z")
    assert client.run(READ_JOINED) == wanted
    assert refused(client, "ALTER TABLE other.rows ALTER COLUMN number TYPE float8").sqlstate == "0A000"
    assert refused(client, "ALTER TABLE other.rows DROP COLUMN number").sqlstate == "2BP01"
    assert view_of(client, "joined").derived
    client.run("ALTER TABLE other.rows DROP COLUMN number CASCADE")
    assert client.session.catalog.at("public", "joined") is None
    assert not database.core.runtimes()


@pytest.mark.parametrize("statement", ["DROP CONSTRAINT t_pkey", "ALTER COLUMN g DROP NOT NULL"])
def test_what_programs_rely_on(database: Database, statement: str) -> None:
    client = Client(database)
    client.run(VIEWS)
    client.run(f"ALTER TABLE t {statement}")
    assert not view_of(client, "m").continuous
    assert not view_of(client, "joined").continuous
    assert not database.core.runtimes()
    require_equal(client)
    client.run("REFRESH MATERIALIZED VIEW m; REFRESH MATERIALIZED VIEW joined")
    assert view_of(client, "joined").derived
    client.run("INSERT INTO t VALUES (8, 3, 1, 'x')")
    require_equal(client)


def test_a_type_with_other_attributes(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TYPE pair AS (a int, b text); CREATE TABLE pairs (id int, p pair)")
    client.run("INSERT INTO pairs VALUES (1, ROW(2, 'x')); CREATE MATERIALIZED VIEW v AS SELECT id FROM pairs")
    client.run("ALTER TYPE pair ADD ATTRIBUTE c int")
    assert client.run("SELECT * FROM v") == [(1,)]


def test_replaced_views(database: Database) -> None:
    client = Client(database)
    client.run("CREATE VIEW below AS SELECT g, n FROM t; CREATE MATERIALIZED VIEW v AS SELECT g, n FROM below")
    client.run("CREATE MATERIALIZED VIEW above AS SELECT g FROM v")
    client.run("CREATE OR REPLACE VIEW below AS SELECT g, n + 1 AS n, id FROM t WHERE g = 2")
    assert client.run("SELECT * FROM v") == [(2, "4.25")]
    assert not view_of(client, "above").continuous
    client.run("REFRESH MATERIALIZED VIEW v; REFRESH MATERIALIZED VIEW above")
    assert view_of(client, "v").derived
    assert client.run("SELECT * FROM above") == [(2,)]


def test_replaced_maintained_views(database: Database) -> None:
    client = Client(database)
    client.run("CREATE VIEW v AS SELECT g FROM t")
    client.run("CREATE OR REPLACE VIEW v WITH (maintained) AS SELECT g, n FROM t WHERE g = 2")
    assert view_of(client, "v").derived
    client.run(
        "COMMENT ON VIEW v IS 'said'; CREATE OR REPLACE VIEW v WITH (maintained) AS SELECT g, n, w FROM t WHERE g = 2"
    )
    assert client.run("SELECT * FROM v") == [(2, "3.25", "c")]
    assert (view_of(client, "v").derived, view_of(client, "v").comment) == (True, "said")
    kept = view_of(client, "v")
    client.run("CREATE OR REPLACE VIEW v WITH (maintained) AS SELECT t.g, t.n, t.w FROM t WHERE g = 2")
    assert view_of(client, "v") == kept
    assert refused(client, "CREATE OR REPLACE VIEW v WITH (maintained) AS SELECT g FROM t").sqlstate == "42P16"
    client.run("CREATE VIEW above AS SELECT w FROM v; CREATE VIEW high WITH (maintained) AS SELECT w FROM v")
    client.run("CREATE OR REPLACE VIEW v WITH (maintained) AS SELECT g, n, w, id FROM t WHERE g = 1")
    assert client.notices == ['view "v" is computed at each read until REFRESH MATERIALIZED VIEW']
    assert (
        client.run("SELECT * FROM above ORDER BY w") == client.run("SELECT * FROM high ORDER BY w") == [("a",), ("b",)]
    )
    client.run("REFRESH MATERIALIZED VIEW v; REFRESH MATERIALIZED VIEW high")
    assert view_of(client, "v").derived
    assert client.run("SELECT * FROM high ORDER BY w") == [("a",), ("b",)]
    client.run("CREATE OR REPLACE VIEW v AS SELECT g, n, w, id FROM t WHERE g = 2")
    assert not view_of(client, "v").continuous
    assert client.run("SELECT * FROM high") == [("c",)]


def test_replaced_and_refreshed_in_one_transaction(database: Database) -> None:
    client = Client(database)
    client.run("CREATE VIEW below AS SELECT g FROM t; CREATE MATERIALIZED VIEW v AS SELECT g FROM below")
    client.run("BEGIN; CREATE OR REPLACE VIEW below AS SELECT g FROM t WHERE g = 2; REFRESH MATERIALIZED VIEW v")
    assert client.run("SELECT * FROM v") == [(2,)]
    client.run("COMMIT")
    assert client.run("SELECT * FROM v") == [(2,)]


def test_views_over_streams_read_tables_through_them(database: Database) -> None:
    client = Client(database)
    client.run(f"CREATE FOREIGN TABLE s (g int) SERVER stream; {VIEWS}")
    client.run(
        "CREATE VIEW above AS SELECT x.g, c, total FROM (SELECT g, count(*) AS c FROM s GROUP BY g) x JOIN m USING (g)"
    )
    query = "SELECT m.rows, count(*) AS c FROM s JOIN m USING (g) GROUP BY m.rows"
    client.run(f"CREATE VIEW below AS {query}; CREATE VIEW once WITH (tables = 'frozen') AS {query}")
    assert any('"t" is joined below the grouping' in notice for notice in client.notices)
    client.run("CREATE MATERIALIZED VIEW over AS SELECT total, c FROM above; INSERT INTO s VALUES (1), (1), (2)")
    client.run("UPDATE t SET n = 10, g = 2 WHERE id = 1")
    assert client.run("SELECT * FROM above ORDER BY g") == [(1, 2, "2"), (2, 1, "13.25")]
    assert client.run("SELECT * FROM once ORDER BY rows") == [(1, 1), (2, 2)]
    above = "SELECT m.rows, sum(c)::bigint FROM above JOIN m USING (g) GROUP BY m.rows ORDER BY rows"
    assert client.run("SELECT * FROM below ORDER BY rows") == client.run(above)
    assert client.run("SELECT * FROM over ORDER BY c") == [("13.25", 1), ("2", 2)]
    assert view_of(client, "over").derived
    kept = view_of(client, "above")
    client.run(
        "CREATE OR REPLACE VIEW above AS SELECT x.g, c, total FROM (SELECT g, count(*) AS c FROM s GROUP BY g) x"
        " JOIN m USING (g)"
    )
    assert view_of(client, "above") == kept
    reader = Client(database)
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    wanted = reader.run("SELECT * FROM over ORDER BY c")
    client.run("INSERT INTO s VALUES (1), (2); UPDATE t SET n = 7")
    assert len(client.run("SELECT * FROM over")) == 2
    assert reader.run("SELECT * FROM over ORDER BY c") == wanted


def test_nothing_is_maintained_in_the_background(database: Database) -> None:
    client = Client(database)
    client.run(VIEWS)
    require_equal(client)
    (m, _) = client.run("SELECT name, durable_lsn, fresh_lsn, error_sqlstate FROM millstream.views ORDER BY name DESC")
    assert m == ("m", None, None, None)
    assert client.run("SELECT * FROM millstream.states") == []
    assert all(not runtime.paths for runtime in database.core.runtimes())
    runtime = database.core.view(view_of(client, "m").oid)
    assert runtime.held is None
    plan: Any = client.run("EXPLAIN SELECT * FROM m")
    assert ("Continuous View m",) in plan


# --- starts ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_restart(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(f"{TABLES}; {VIEWS}; CREATE MATERIALIZED VIEW empty AS SELECT g FROM t WITH NO DATA")
    client.run("CREATE VIEW maintained WITH (maintained) AS SELECT g FROM m; ALTER TABLE t RENAME COLUMN n TO number")
    client.run("CREATE MATERIALIZED VIEW plain AS SELECT name FROM names; ALTER TABLE names ADD PRIMARY KEY (g)")
    client.run("ALTER TABLE names DROP CONSTRAINT names_pkey")
    wanted = client.run(READ), client.run(READ_JOINED)
    database.close()
    for _ in range(2):
        database = open_database(tmp_path)
        client = Client(database)
        assert (client.run(READ), client.run(READ_JOINED)) == wanted
        assert client.run("SELECT * FROM maintained ORDER BY g") == [(1,), (2,)]
        assert refused(client, "SELECT * FROM empty").sqlstate == "55000"
        assert client.run("SELECT * FROM plain") == [("one",)]
        client.run("REFRESH MATERIALIZED VIEW plain")
        assert view_of(client, "plain").derived
        database.close()
    database = open_database(tmp_path)
    client = Client(database)
    client.run("INSERT INTO t VALUES (5, 1, 4, 'e')")
    assert client.run(READ_JOINED) == [("one", "7.50")]
    client.run("DROP TABLE t, names CASCADE")
    assert not database.core.runtimes()
    assert not list((tmp_path / "shared" / "state").iterdir())
    database.close()


@pytest.mark.parametrize("between", ["", "CREATE VIEW other AS SELECT g FROM s;"])
def test_a_view_is_there_again_after_the_savepoint_before_its_drop(client: Client, between: str) -> None:
    client.run("CREATE FOREIGN TABLE s (g int, v int) SERVER stream")
    client.run("BEGIN; CREATE VIEW grouped AS SELECT g, sum(v) AS v FROM s GROUP BY g; SAVEPOINT a; DROP VIEW grouped")
    client.run(f"{between} ROLLBACK TO a; COMMIT; INSERT INTO s VALUES (1, 2), (1, 3)")
    assert client.run("SELECT * FROM grouped") == [(1, 5)]


def test_a_subquery_over_a_view_compares_a_column_outside_with_a_value(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE rows (k int, v text); INSERT INTO rows VALUES (1, 'c'), (2, 'd')")
    client.run("CREATE TABLE others (a int); INSERT INTO others VALUES (1), (2)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM rows")
    assert client.run("SELECT a FROM others WHERE ('c', a) IN (SELECT v, 1 FROM v)") == [(1,)]
    assert client.run("SELECT a FROM others WHERE NOT EXISTS (SELECT FROM v WHERE a = 1 AND k = 2)") == [(2,)]
    assert client.run("SELECT a, v FROM others, LATERAL (SELECT v FROM v WHERE a = 1 AND k = 2) x") == [(1, "d")]
