"""Few rows grouped with numpy: the same runs as the engine's, for random values and edge values."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.small import grouped_statements, grouping_of
from executor.small.grouped_statements import ROWS
from tests.executor.client import Client

STREAM = (
    "CREATE FOREIGN TABLE s (k text, c char(3), h int2, i int, b bigint, d numeric(12,3), w numeric(38,6), u numeric,"
    " f float8, t date, z timestamptz, o bool) SERVER stream"
)
#: Columns and texts of views whose statements numpy computes, with all kinds of expressions that it supports.
VIEWS = (
    (
        10,
        (
            "SELECT k, count(*), count(k), sum(i), avg(h), sum(d * (1 - d)), sum(b), avg(d), min(i), max(d)"
            " FROM s GROUP BY k"
        ),
    ),
    (
        10,
        (
            "SELECT count(*), sum(i + 1), sum(d - h), min(t), max(z), bool_and(o), bool_or(o), sum(f), avg(f), max(f)"
            " FROM s WHERE t <= DATE '1999-12-31' AND (d BETWEEN -1 AND 1000 OR i < 7 OR o)"
        ),
    ),
    (
        6,
        ("SELECT t, c, o, sum(CASE WHEN d > 0 THEN d WHEN o THEN 1 END), count(f), min(f * 2) FROM s GROUP BY t, c, o"),
    ),
    (
        4,
        (
            "SELECT c, sum(d) FILTER (WHERE o), count(*) FILTER (WHERE d IS NOT NULL), min(b) FILTER (WHERE NOT o)"
            " FROM s WHERE k IN ('a', 'ä') OR c = 'x' OR k <> 'b' GROUP BY c"
        ),
    ),
    (5, ("SELECT d, sum(coalesce(i, h, 0)), sum(w), max(w), sum(u) FROM s WHERE i IN (1, 7, -1) OR w <> 0 GROUP BY d")),
    (4, ("SELECT z, stddev(h), var_pop(d), sum(i::float8 * 0.5) FROM s WHERE z < '2001-01-01' OR f >= -1 GROUP BY z")),
    (
        4,
        (
            "SELECT c, round((stddev(f) / 1e12)::numeric, 8), round((var_pop(f) FILTER (WHERE o) / 1e24)::numeric, 8),"
            " count(*) FROM s GROUP BY c"
        ),
    ),
    (
        3,
        ("SELECT k, round(corr(f, f * f)::numeric, 8), regr_count(f, f) FROM s WHERE i < 9 GROUP BY k"),
    ),
    (
        4,
        (
            "SELECT k, sum(greatest(i, h, 7)), sum(least(d, d - 1)), max(greatest(t, DATE '1994-01-01'))"
            " FROM s GROUP BY k"
        ),
    ),
    (2, ("SELECT k, sum(x) FROM (SELECT k, d * 2 AS x, f FROM s WHERE o IS NOT NULL) AS q WHERE x > -3 GROUP BY k")),
    (4, ("SELECT o, sum(b * 2 - h), sum(-1 + b), count(*) FROM s WHERE NOT (o AND i > 3) OR d IS NULL GROUP BY o")),
)


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


def _row(chance: random.Random) -> str:
    number = chance.choice((0, 1, -1, 7, 30_000, chance.randrange(-(10**4), 10**4)))
    values: list[object] = [
        chance.choice(("a", "b", "", "ä", "b ")),
        chance.choice(("x", "xy", "")),
        number,
        number * chance.choice((1, 1000)),
        chance.choice((number * 10**7, 10**15, -(10**15), 5)),
        Decimal(chance.choice((number, 999_999_999_999, -999_999_999_999, 1, 50))).scaleb(-3),
        chance.choice((number, Decimal(10) ** 10 + number, Decimal("0.000001"))),
        Decimal(number).scaleb(-2),
        chance.choice((0.5, -2.25, 2.0**40, 3.0)),
        chance.choice(("1994-01-01", "0001-01-01", "9999-12-31")),
        chance.choice(("1994-01-01 00:00+00", "2001-02-03 04:05:06.789+02")),
        chance.choice((True, False)),
    ]
    return f"({', '.join(_literal(None if chance.random() < 0.15 else value) for value in values)})"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "text"), VIEWS)
def test_runs_are_what_the_engine_makes_of_them(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch, width: int, text: str
) -> None:
    client.run(STREAM)
    columns = ", ".join(f"x{number}" for number in range(width))
    client.run(f"CREATE VIEW quick ({columns}) AS {text}; CREATE VIEW slow ({columns}) AS {text}")
    quick, _ = database.core.runtimes()
    statements = [statement for path in quick.program.paths for statement in path.statements]
    found = [grouping_of(statement.relation) for statement in statements]
    assert None not in found
    chance = random.Random(text)
    computed = 0
    for number in range(10):
        monkeypatch.setattr(grouped_statements, "ROWS", ROWS)
        count = chance.randrange(1, 5) if number < 5 else 60
        client.run(f"INSERT INTO s VALUES {', '.join(_row(chance) for _ in range(count))}")
        lsn = database.core.sequencer.visible
        path = quick.paths[0]
        delta = quick.runner.inputs[path.path.inputs[0]].delta(path.reached, lsn)
        computed += sum(item is not None and item.run(delta) is not None for item in found)
        rows = client.run("SELECT * FROM quick")
        monkeypatch.setattr(grouped_statements, "ROWS", -1)
        assert sorted(rows, key=repr) == sorted(client.run("SELECT * FROM slow"), key=repr)
    assert computed > 0


def test_what_only_an_engine_knows_is_left_to_it(database: Database, client: Client) -> None:
    client.run(STREAM)
    for number, text in enumerate(
        (
            "SELECT upper(k) AS k, count(*) FROM s GROUP BY 1",
            "SELECT f, count(*) FROM s GROUP BY f",
            "SELECT k, sum(i / 2) FROM s GROUP BY k",
            "SELECT k, count(*) FROM s WHERE k < 'b' GROUP BY k",
            "SELECT k, max(k) FROM s GROUP BY k",
            "SELECT k, string_agg(k, ',') FROM s GROUP BY k",
        )
    ):
        client.run(f"CREATE VIEW v{number} AS {text}")
    for runtime in database.core.runtimes():
        statements = [statement for path in runtime.program.paths for statement in path.statements]
        assert None in [grouping_of(statement.relation) for statement in statements], runtime.view.name


@pytest.mark.parametrize(
    ("view", "row", "state"),
    [
        ("sum(i * i)", "i) VALUES (2147483647", "22003"),
        ("sum(h * h)", "h) VALUES (200", "22003"),
    ],
)
def test_an_overflow_is_the_engine_s_error(client: Client, view: str, row: str, state: str) -> None:
    client.run(STREAM)
    client.run(f"CREATE VIEW v AS SELECT {view} FROM s")
    client.run(f"INSERT INTO s ({row})")
    with pytest.raises(SqlError) as raised:
        client.run("SELECT * FROM v")
    assert raised.value.sqlstate == state


@pytest.mark.parametrize(
    ("view", "values", "expected"),
    [
        ("sum(b)", "(9223372036854775807), (9223372036854775807)", Decimal(2) * (2**63 - 1)),
        ("sum(b * 1.5)", "(9223372036854775807), (-9223372036854775807)", Decimal(0)),
        ("min(b)", "(-9223372036854775808), (NULL)", -(2**63)),
        ("count(*) FILTER (WHERE b < 0)", "(-9223372036854775808), (1)", 1),
    ],
)
def test_what_64_bits_do_not_hold_is_exact_all_the_same(
    client: Client, view: str, values: str, expected: object
) -> None:
    client.run(STREAM)
    client.run(f"CREATE VIEW v AS SELECT {view} AS x FROM s")
    client.run(f"INSERT INTO s (b) VALUES {values}")
    assert client.run("SELECT x FROM v") == [(expected,)]


def test_no_number_and_infinity_go_to_the_engine(client: Client) -> None:
    client.run(STREAM)
    client.run("CREATE VIEW v AS SELECT min(f) AS a, max(f) AS b, count(*) FILTER (WHERE f > 1) AS n FROM s")
    client.run("INSERT INTO s (f) VALUES ('NaN'), ('-Infinity'), (1)")
    assert client.run("SELECT a = '-Infinity', b = 'NaN', n FROM v") == [(True, True, 1)]


def test_an_infinite_sum_is_the_engine_s(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.run(STREAM)
    client.run("CREATE VIEW v AS SELECT sum(f) AS x FROM s; CREATE VIEW w AS SELECT sum(f) AS x FROM s")
    client.run("INSERT INTO s (f) VALUES ('1e308'), ('1e308')")
    outcomes = []
    for rows, view in ((ROWS, "v"), (-1, "w")):
        monkeypatch.setattr(grouped_statements, "ROWS", rows)
        try:
            outcomes.append(repr(client.run(f"SELECT x FROM {view}")))
        except SqlError as error:
            outcomes.append(error.sqlstate)
    assert outcomes[0] == outcomes[1]


def test_rows_of_several_batches_and_none_that_count(client: Client) -> None:
    client.run(STREAM)
    client.run(
        "CREATE VIEW v AS SELECT count(*), sum(i) FROM s WHERE i > 5;"
        "CREATE VIEW w AS SELECT k, count(*) FROM s WHERE i > 5 GROUP BY k"
    )
    for number in range(5):
        client.run(f"INSERT INTO s (k, i) SELECT 'a', {number}")
    assert client.run("SELECT * FROM v") == [(0, None)]
    assert client.run("SELECT * FROM w") == []
    for number in range(5, 9):
        client.run(f"INSERT INTO s (k, i) SELECT 'a', {number}")
    assert client.run("SELECT * FROM v") == [(3, 21)]
    assert client.run("SELECT * FROM w") == [("a", 3)]
