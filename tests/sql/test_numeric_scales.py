"""Numeric columns of undeclared precision show PostgreSQL's decimals, for random values and queries.

Values come from literals, parameters, COPY, and INSERT ... SELECT; queries are expressions, aggregates and windows over
them. Results are compared as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import psycopg
import pytest
from psycopg.types.string import TextLoader

from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

Connection = psycopg.Connection[tuple[object, ...]]
_UNARY = ("-{0}", "abs({0})", "round({0}, 2)", "trunc({0}, 1)", "ceil({0})", "{0} * 1.50", "{0} + 0.100", "{0} % 7")
_BINARY = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "coalesce({0}, {1})", "greatest({0}, {1})", "least({0}, {1})"),
    *("CASE WHEN k % 2 = 0 THEN {0} ELSE {1} END", "nullif({0}, {1})"),
)
_AGGREGATES = (
    *("sum({0})", "min({0})", "max({0})", "avg({0})", "sum({0}) FILTER (WHERE k % 2 = 0)"),
    *("round(sum(({0})::bigint), 1)", "trunc(sum(({0})::bigint) * 3, 2)"),
)
_LEAVES = ("x", "y", "z", "k", "2", "1.250")


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings={"spark_enabled": False}) as found:
        yield found


@pytest.mark.parametrize("seed", sample(range(4), (0, 3)))
def test_random_numerics_show_their_decimals(server: Millstream, postgres: Postgres, seed: int) -> None:
    source = Random(seed)
    values = [[_number(source) for _ in range(2)] for _ in range(24)]
    queries = [_query(source) for _ in range(40)]
    with server.connect() as ours, postgres.connect() as theirs:
        for connection in (ours, theirs):
            connection.adapters.register_loader("numeric", TextLoader)
            _fill(connection, f"scales_{seed}", values)
        for query in queries:
            found, wanted = (connection.execute(query.encode()).fetchall() for connection in (ours, theirs))
            assert found == wanted, query
        for connection in (ours, theirs):
            connection.execute(f"DROP SCHEMA scales_{seed} CASCADE".encode())


def test_scales_outlive_a_crash() -> None:
    with Millstream(settings={"spark_enabled": False}) as server:
        with server.connect() as connection:
            connection.adapters.register_loader("numeric", TextLoader)
            connection.execute("CREATE TABLE t (k int, x numeric)")
            connection.execute("INSERT INTO t VALUES (1, 1.10), (2, 2.500), (3, NULL)")
            connection.execute("ALTER TABLE t ADD COLUMN y numeric DEFAULT 7.0")
            connection.execute("UPDATE t SET x = x * 2.0 WHERE k = 1")
        server.kill9()
        server.start()
        with server.connect() as connection:
            connection.adapters.register_loader("numeric", TextLoader)
            rows = connection.execute("SELECT k, x, y FROM t ORDER BY k").fetchall()
    assert rows == [(1, "2.200", "7.0"), (2, "2.500", "7.0"), (3, None, "7.0")]


def test_an_extreme_value_of_unknown_scale_has_no_other_values_decimals(server: Millstream) -> None:
    with server.connect() as connection:
        connection.adapters.register_loader("numeric", TextLoader)
        connection.execute("CREATE TABLE e (k int, x numeric)")
        connection.execute("INSERT INTO e VALUES (1, 1.000)")
        connection.execute("INSERT INTO e SELECT 2, (SELECT 7.0 / x * 0.5 FROM e)")
        [values] = connection.execute("SELECT x FROM e WHERE k = 2").fetchall()
        assert connection.execute("SELECT max(x) FROM e").fetchall() == [values] == [("3.5",)]
        assert connection.execute("SELECT max(x) OVER () FROM e LIMIT 1").fetchall() == [values]


def test_spreads_of_zero_in_a_continuous_view(server: Millstream) -> None:
    with server.connect() as connection:
        connection.adapters.register_loader("numeric", TextLoader)
        connection.execute("CREATE FOREIGN TABLE readings (k int, n numeric(8, 2)) SERVER stream")
        values = "variance(n) AS v, stddev_pop(k) AS d, avg(n) AS a"
        connection.execute(f"CREATE VIEW spreads AS SELECT k, {values} FROM readings GROUP BY k".encode())
        connection.execute("INSERT INTO readings VALUES (1, 0), (1, 0), (2, 1.25), (2, 1.75)")
        rows = connection.execute("SELECT * FROM spreads ORDER BY k").fetchall()
        assert rows == [
            (1, "0", "0", "0.00000000000000000000"),
            (2, "0.12500000000000000000", "0", "1.5000000000000000"),
        ]
        assert connection.execute("SELECT v::text, d || '' FROM spreads WHERE k = 1").fetchall() == [("0", "0")]


def test_copied_arrays_and_rows_keep_their_decimals(server: Millstream) -> None:
    line = "{1.10,NULL,2}\t{{1.0,2.50},{3,4.000}}\t(7.70,{1.00})\n"
    nulls = "\\N\t[0:1]={2.0,3}\t(,)\n\\N\t\\N\t\\N\n{}\t{}\t\\N\n"
    with server.connect() as connection, connection.cursor() as cursor:
        connection.execute("CREATE TYPE priced AS (x numeric, past numeric[])")
        connection.execute("CREATE TABLE copied (a numeric[], b numeric[][], c priced)")
        with cursor.copy("COPY copied FROM STDIN") as copy:
            copy.write(line + nulls)
        with cursor.copy("COPY copied TO STDOUT (FORMAT binary)") as copy:
            sent = b"".join(copy)
        connection.execute("TRUNCATE copied")
        with cursor.copy("COPY copied FROM STDIN (FORMAT binary)") as copy:
            copy.write(sent)
        with cursor.copy("COPY copied TO STDOUT") as copy:
            assert sorted(b"".join(copy).decode().splitlines()) == sorted((line + nulls).splitlines())


def test_no_column_of_a_stream_or_view_is_called_as_the_scales_of_another(server: Millstream) -> None:
    with server.connect() as connection:
        connection.execute("CREATE FOREIGN TABLE sold (k int, x numeric) SERVER stream")
        connection.execute("CREATE VIEW sums AS SELECT k, sum(x) AS x, count(*) AS n FROM sold GROUP BY k")
        for statement in (
            "CREATE FOREIGN TABLE other (x numeric, __scale_x int) SERVER stream",
            "ALTER FOREIGN TABLE sold ADD COLUMN __scale_x int",
            "CREATE VIEW other AS SELECT k, sum(x) AS x, count(*) AS __scale_x FROM sold GROUP BY k",
            "ALTER VIEW sums RENAME COLUMN n TO __scale_x",
        ):
            with pytest.raises(psycopg.errors.ReservedName):
                connection.execute(statement.encode())
        connection.execute("INSERT INTO sold VALUES (1, 1.50)")
        assert connection.execute("SELECT k, x::text, n FROM sums").fetchall() == [(1, "1.50", 1)]


def _number(source: Random) -> str | None:
    """A number of up to five digits before and four after the point; trailing zeros are likely."""
    if source.random() < 0.1:
        return None
    digits = str(source.choice((0, source.randint(0, 9), source.randint(0, 99_999))))
    decimals = "".join(source.choice("0005137") for _ in range(source.randint(0, 4)))
    sign = "-" if source.random() < 0.3 else ""
    return f"{sign}{digits}.{decimals}" if decimals else f"{sign}{digits}"


def _fill(connection: Connection, schema: str, values: list[list[str | None]]) -> None:
    """A table of the values, inserted in four ways."""
    connection.execute(f"CREATE SCHEMA {schema}".encode())
    connection.execute(f"SET search_path = {schema}".encode())
    connection.execute("CREATE TABLE v (k int PRIMARY KEY, x numeric, y numeric, z numeric(8, 3))")
    rows = list(enumerate(values))
    literals = ", ".join(f"({k}, {x or 'NULL'}, {y or 'NULL'}, {k}.5)" for k, (x, y) in rows[:8])
    connection.execute(f"INSERT INTO v VALUES {literals}".encode())
    for k, (x, y) in rows[8:12]:
        connection.execute("INSERT INTO v VALUES (%s, %s::numeric, %s::numeric, 1)", (k, x, y))
    with connection.cursor().copy("COPY v (k, x, y) FROM STDIN") as copy:
        for k, (x, y) in rows[12:]:
            copy.write_row((k, x, y))
    connection.execute("INSERT INTO v SELECT k + 100, x * 1.0, y + x, z FROM v WHERE k < 6")
    connection.execute("UPDATE v SET y = round(x / 2, 3) WHERE k % 5 = 3")


def _expression(source: Random, depth: int) -> str:
    if depth == 0:
        return source.choice(_LEAVES)
    if source.random() < 0.4:
        return "(" + source.choice(_UNARY).format(_numeric(source, depth - 1)) + ")"
    return "(" + source.choice(_BINARY).format(_numeric(source, depth - 1), _numeric(source, depth - 1)) + ")"


def _numeric(source: Random, depth: int) -> str:
    """An expression that is numeric for any leaves."""
    found = _expression(source, depth)
    return f"{found}::numeric" if found in ("k", "2") else found


def _query(source: Random) -> str:
    value = _numeric(source, source.randint(0, 2))
    if source.random() < 0.2:  # with at most 20 decimals, and not used in further computations
        value = f"((1000000 + {value}) / nullif({source.choice('xyk')}, 0))"
    match source.randint(0, 5):
        case 0 | 1 | 2:
            return f"SELECT k, x, {value}, ({value})::text, scale({value}) FROM v ORDER BY v.k"
        case 3:
            aggregate = source.choice(_AGGREGATES).format(source.choice(("x", "x + y", "x * z", "-y")))
            return f"SELECT k % 3, {aggregate} FROM v GROUP BY 1 ORDER BY 1"
        case 4:
            call = source.choice(("sum({0})", "lag({0})", "first_value({0})", "last_value({0})")).format(value)
            return f"SELECT k, x, {call} OVER (ORDER BY k) FROM v ORDER BY v.k"
        case _:
            return f"SELECT k, 1, x FROM v UNION ALL SELECT k, 2, {value} FROM v ORDER BY 1, 2"
