"""Few rows in Python: the same tables as the engine's, for random values and edge values."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from catalog.values.types import BOOL, FLOAT8, INT8, NUMERIC, QUOTIENT, TEXT, SqlType, numeric
from executor.database.database import Database
from executor.embedded.engine import EmbeddedEngine
from executor.small import merge_of, small_of, values
from executor.small.quotients import quotient, scaled_text_of
from executor.small.values import CELLS, EXACT
from planner.algebra.nodes import AggregateCall, Column, ColumnRef
from planner.incremental.programs.program import State
from tests.executor.client import Client

STREAM = "CREATE FOREIGN TABLE s (k text, i int, b bigint, d numeric(12,3), f float8, t date, o bool) SERVER stream"
#: Views whose final relations Python evaluates, with all kinds of expressions that it supports.
VIEWS = (
    "SELECT k, count(*), count(d) AS n, sum(i) AS i, avg(i) AS a, sum(d) AS d, avg(d) AS e, avg(b) FROM s GROUP BY k",
    "SELECT count(*), sum(i) AS i, avg(d) AS e, min(t) AS t, max(t), bool_and(o), bool_or(o), sum(f), avg(f) FROM s",
    "SELECT t, k, sum(b), max(f), min(i) FROM s GROUP BY t, k",
    "SELECT d, sum(d) FROM s GROUP BY d HAVING sum(d) > 1 AND count(*) >= 1 OR avg(i) IS NULL AND NOT count(d) = 2",
    "SELECT o, avg(i) FROM s WHERE i <> 3 GROUP BY o HAVING avg(i) IS NOT NULL AND min(i) <= max(b)",
    "SELECT k, t, d, max(i) AS i FROM s GROUP BY k, t, d "
    "ORDER BY max(i) DESC, d NULLS FIRST, t DESC NULLS LAST, k LIMIT 3 OFFSET 1",
)


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


def _row(chance: random.Random) -> str:
    number = chance.choice((0, 1, -1, 7, 2**31 - 1, chance.randrange(-(10**6), 10**6)))
    values: list[object] = [
        chance.choice(("a", "b", "", "ä", None)),
        number,
        chance.choice((number * 10**7, 10**17, -(10**17), 5)),
        Decimal(chance.choice((number, 999_999_999_999, -999_999_999_999, 1, 50))).scaleb(-3),
        chance.choice((0.5, -2.25, 1e300, 3.0)),
        chance.choice(("1994-01-01", "0001-01-01", "9999-12-31")),
        chance.choice((True, False)),
    ]
    return f"({', '.join(_literal(None if chance.random() < 0.15 else value) for value in values)})"


@pytest.mark.slow
@pytest.mark.parametrize("text", VIEWS)
def test_views_are_what_the_engine_makes_of_them(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    client.run(STREAM)
    client.run(f"CREATE VIEW quick AS {text}; CREATE VIEW slow AS {text}")
    quick, _ = database.core.runtimes()
    assert small_of(database.core.plans.get(quick.program.final).relation) is not None
    assert all(merge_of(state) is not None for state in quick.program.states)
    chance = random.Random(text)
    for _ in range(12):
        client.run(f"INSERT INTO s VALUES {', '.join(_row(chance) for _ in range(chance.randrange(1, 5)))}")
        monkeypatch.setattr(values, "CELLS", CELLS)
        rows = client.run("SELECT * FROM quick")
        monkeypatch.setattr(values, "CELLS", -1)
        assert sorted(rows, key=repr) == sorted(client.run("SELECT * FROM slow"), key=repr)


def test_what_only_an_engine_knows_is_left_to_it(database: Database, client: Client) -> None:
    client.run(STREAM)
    for number, text in enumerate(
        (
            "SELECT k, stddev(i) FROM s GROUP BY k",
            "SELECT k, count(DISTINCT i) FROM s GROUP BY k",
            "SELECT k, count(*) FROM s GROUP BY k ORDER BY upper(k) LIMIT 3",
            "SELECT upper(k), count(*) FROM s GROUP BY k HAVING k < 'b'",
        )
    ):
        client.run(f"CREATE VIEW v{number} AS {text}")
    core = database.core
    assert [small_of(core.plans.get(item.program.final).relation) for item in core.runtimes()] == [None] * 4


def test_infinities_and_nan_go_to_the_engine(client: Client) -> None:
    client.run(STREAM)
    client.run("CREATE VIEW v AS SELECT min(f) AS a, max(f) AS b, sum(f) AS d FROM s")
    for number in ("1", "NaN", "-Infinity"):
        client.run(f"INSERT INTO s (f) VALUES ('{number}')")
        client.run("SELECT count(*) FROM v")
    assert client.run("SELECT a = '-Infinity', b = 'NaN', d = 'NaN' FROM v") == [(True, True, True)]


KEY, TOTAL, LEAST = Column(1, "k", TEXT), Column(2, "s", numeric(38, 2)), Column(3, "m", INT8)


def _state(*columns: tuple[Column, str], key: tuple[Column, ...] = (KEY,)) -> State:
    merge = tuple((column, AggregateCall(name, (ColumnRef(column),), column.type)) for column, name in columns)
    return State("x", "aggregate", (*key, *(column for column, _ in columns)), key, merge)


def test_merging_keeps_first_keys_and_ignores_nulls() -> None:
    merge = merge_of(_state((TOTAL, "sum"), (LEAST, "min")))
    assert merge is not None
    table = pa.table(
        {
            "c1": ["b", None, "b", "a", None],
            "c2": pa.array([Decimal(1), None, Decimal("0.25"), None, None], pa.decimal128(38, 2)),
            "c3": pa.array([3, 4, -1, None, 5], pa.int64()),
        }
    )
    merged = merge.run([table])
    assert merged is not None
    assert merged.schema == table.schema
    assert merged.to_pylist() == [
        {"c1": "b", "c2": Decimal("1.25"), "c3": -1},
        {"c1": None, "c2": None, "c3": 4},
        {"c1": "a", "c2": None, "c3": None},
    ]


def test_an_overflow_is_the_engine_s_error() -> None:
    merge = merge_of(_state((TOTAL, "sum"), (LEAST, "sum")))
    assert merge is not None
    most = Decimal(10) ** 35
    table = pa.table(
        {
            "c1": ["b", "b"],
            "c2": pa.array([9 * most, 9 * most], pa.decimal128(38, 2)),
            "c3": pa.array([1, 1], pa.int64()),
        }
    )
    assert merge.run([table]) is None
    small_sum = table.set_column(1, "c2", pa.array([most, most], pa.decimal128(38, 2)))
    assert merge.run([small_sum]) is not None
    assert merge.run([small_sum.set_column(2, "c3", pa.array([2**63 - 1, 1], pa.int64()))]) is None


def test_many_rows_and_odd_keys_are_the_engine_s() -> None:
    merge = merge_of(_state((LEAST, "sum")))
    assert merge is not None
    assert merge.run([pa.table({"c1": ["a"] * CELLS, "c3": pa.array([1] * CELLS, pa.int64())})]) is None
    assert merge_of(_state((LEAST, "sum"), key=(Column(9, "f", FLOAT8),))) is None
    assert merge_of(_state((Column(4, "t", TEXT), "max"))) is None
    assert merge_of(_state((Column(5, "o", BOOL), "bool_or"))) is not None


@pytest.mark.slow
def test_quotients_are_the_macros(request: pytest.FixtureRequest) -> None:
    chance = random.Random(7)
    engine = EmbeddedEngine(threads=1)
    request.addfinalizer(engine.close)
    connection = engine._instance().acquire()
    for _ in range(300):
        scale, shown = chance.choice(((0, 0), (2, 2), (6, 6), (18, 0), (20, 0)))
        left = chance.randrange(-(10 ** chance.randrange(1, 30)), 10 ** chance.randrange(1, 30))
        count = chance.randrange(1, 10 ** chance.randrange(1, 12)) * 10**scale
        sql = f"SELECT ms_divide({left}::HUGEINT, {count}::HUGEINT, {scale}, {shown})"
        if abs(left) * 10**20 // count >= 10**38:
            continue
        ((expected,),) = connection.execute(sql).fetchall()
        assert Decimal(quotient(left, count, scale, shown)).scaleb(-20) == expected, sql


@pytest.mark.parametrize("kind", (NUMERIC, SqlType("numeric", QUOTIENT)), ids=str)
def test_texts_show_at_least_the_decimals_that_are_asked_for_and_no_digit_less(kind: SqlType) -> None:
    write, chance = scaled_text_of(kind), random.Random(3)
    for _ in range(300):
        own = chance.choice((0, 1, 5, kind.scale))
        value = Decimal(chance.choice((0, 10, -1, chance.randrange(-(10**12), 10**12)))).scaleb(-own)
        stored, shown = EXACT.quantize(value, Decimal(1).scaleb(-kind.scale)), chance.choice((0, 1, 16, 20, 30))
        text = write(stored, shown)
        _, _, decimals = text.partition(".")
        assert Decimal(text) == value
        assert len(decimals) == shown or (len(decimals) > shown and decimals[-1] != "0")


def test_rows_that_are_kept_come_under_the_new_names_of_columns(client: Client) -> None:
    client.run(STREAM)
    client.run("CREATE VIEW named AS SELECT k, avg(d) AS a FROM s GROUP BY k")
    client.run("INSERT INTO s (k, d) VALUES ('x', 1.5)")
    before = client.run("SELECT k, a FROM named")
    client.run("ALTER VIEW named RENAME COLUMN a TO b")
    assert client.run("SELECT k, b FROM named") == before == [("x", "1.50000000000000000000")]
