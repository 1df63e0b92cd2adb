"""Types: text of literals, numeric results, coercion, casts."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from catalog.values.times.intervals import parse_interval
from catalog.values.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    QUOTIENT,
    SPREAD,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    SqlType,
    array,
    numeric,
)
from planner.algebra.nodes import Call, Cast, Column, ColumnRef, Literal, Parameter
from planner.bind.conversion.literals import value_of
from tests.planner.binding import Database, aggregates, standard


@pytest.fixture(scope="module")
def database() -> Database:
    return standard()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (" t ", BOOL, True),
        ("off", BOOL, False),
        (" -12 ", INT4, -12),
        ("1.5e2", numeric(10, 2), Decimal("150.00")),
        ("1.005", numeric(10, 2), Decimal("1.01")),
        ("-1.005", numeric(10, 2), Decimal("-1.01")),
        ("-Infinity", FLOAT8, -math.inf),
        ("abc  ", SqlType("varchar", (3,)), "abc"),
        ("ab   ", SqlType("bpchar", (5,)), "ab"),
        ("\\x00ff", BYTEA, b"\x00\xff"),
        (r"a\\b\001é", BYTEA, b"a\\b\x01" + "é".encode()),
        ("1998-12-01", DATE, dt.date(1998, 12, 1)),
        ("19981201", DATE, dt.date(1998, 12, 1)),
        ("10:20", TIME, dt.time(10, 20)),
        ("2020-01-01 10:20:30.5", TIMESTAMP, dt.datetime(2020, 1, 1, 10, 20, 30, 500000)),
        ("2020-01-01T10:20:30+02:30", TIMESTAMPTZ, dt.datetime(2020, 1, 1, 7, 50, 30, tzinfo=dt.UTC)),
        ("2020-07-01 12:00 Europe/Berlin", TIMESTAMPTZ, dt.datetime(2020, 7, 1, 10, tzinfo=dt.UTC)),
        ("1 year 2 mons -3 days 04:05:06.5", INTERVAL, (14, -3, 14706500000)),
        ("{A0EEBC99-9c0b4ef8bb6d6bb9bd380a11}", UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ('{"b":1.50,"a":[true , null]}', JSON, '{"b":1.50,"a":[true , null]}'),
        ('{"bb":1.50,"a":[true , null]}', JSONB, '{"a": [true, null], "bb": 1.50}'),
        ('{1,NULL,"3"}', array(INT4), (1, None, 3)),
        ("{}", array(TEXT), ()),
    ],
)
def test_text_is_read_as_postgresql_reads_it(text: str, kind: SqlType, value: Any) -> None:
    assert value_of(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind", "sqlstate"),
    [
        ("x", INT4, "22P02"),
        ("40000", INT2, "22003"),
        ("1e400", FLOAT8, "22003"),
        ("123.456", numeric(4, 2), "22003"),
        ("1" * 30, NUMERIC, "22003"),
        ("abcd", SqlType("varchar", (3,)), "22001"),
        ("maybe", BOOL, "22P02"),
        ("2020-02-30", DATE, "22008"),
        ("yesterdayish", DATE, "22007"),
        ("25:00", TIME, "22008"),
        ("1 fortnight", INTERVAL, "22007"),
        ("", INTERVAL, "22007"),
        ("zz", UUID, "22P02"),
        ("{", JSON, "22P02"),
        ("NaN", JSON, "22P02"),
        ("1,2", array(INT4), "22P02"),
        ("2020-01-01 Nowhere/At_All", TIMESTAMPTZ, "22023"),
    ],
)
def test_bad_text_is_an_error(text: str, kind: SqlType, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        value_of(text, kind)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("text", "fields", "value"),
    [
        ("90", 1 << 3, (0, 90, 0)),
        ("3", 1 << 2, (36, 0, 0)),
        ("1 day 5 hours", 1 << 3, (0, 1, 0)),
        ("5", 1 << 11, (0, 0, 300000000)),
    ],
)
def test_fields_of_an_interval_give_bare_numbers_their_unit(
    text: str, fields: int, value: tuple[int, int, int]
) -> None:
    assert parse_interval(text, fields) == value


@given(st.integers(-2000, 2000), st.integers(-9999, 9999), st.integers(-(10**12), 10**12))
def test_intervals_read_back(months: int, days: int, microseconds: int) -> None:
    assert parse_interval(f"{months} mons {days} days {microseconds} microseconds") == (months, days, microseconds)


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
def test_timestamps_read_back(moment: dt.datetime) -> None:
    assert value_of(moment.isoformat(" "), TIMESTAMP) == moment


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_numbers_read_back(number: Decimal) -> None:
    assert value_of(str(number), numeric(14, 4)) == number


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("n + n", numeric(11, 2)),
        ("n - 1", numeric(11, 2)),
        ("n * n", numeric(20, 4)),
        ("n * 1.5", numeric(12, 3)),
        ("n * (1 - n)", numeric(21, 4)),
        ("n / 3", SqlType("numeric", QUOTIENT)),
        ("n % 3", numeric(3, 2)),
        ("nu * nu", NUMERIC),
        ("nu + n", NUMERIC),
        ("i * n", numeric(20, 2)),
        ("-n", numeric(10, 2)),
        ("round(n)", numeric(9, 0)),
        ("round(n, 1)", numeric(10, 1)),
        ("ceil(n)", numeric(9, 0)),
        ("abs(n)", numeric(10, 2)),
        ("1.50", numeric(3, 2)),
        ("5", INT4),
        ("coalesce(n, 1)", numeric(12, 2)),
        ("case when bo then n else 1.234 end", numeric(11, 3)),
        ("i + s", INT4),
        ("d * n", FLOAT8),
        ("da + iv", TIMESTAMP),
        ("da - da", INT4),
    ],
)
def test_results_have_the_digits_of_the_rules(database: Database, expression: str, kind: SqlType) -> None:
    assert database.query(f"select {expression} from a").outputs[0].type == kind


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("sum(n)", numeric(38, 2)),
        ("sum(i)", SqlType("int8")),
        ("sum(b)", numeric(38, 0)),
        ("avg(i)", SqlType("numeric", QUOTIENT)),
        ("avg(d)", FLOAT8),
        ("min(v)", TEXT),
        ("stddev(n)", SqlType("numeric", SPREAD)),
        ("array_agg(da)", array(DATE)),
        ("sum(n * n)", numeric(38, 4)),
    ],
)
def test_aggregates_have_the_types_of_the_rules(database: Database, call: str, kind: SqlType) -> None:
    found = next(iter(aggregates(database.query(f"select {call} from a"))))
    assert found.type == kind


def test_aggregates_of_doubles_come_with_the_greatest_size(database: Database) -> None:
    for text in ("select sum(d) from a", "select avg(d), stddev(d) from a"):
        greatest = [call for call in aggregates(database.query(text)) if call.function == "max"]
        assert [str(getattr(item.arguments[0], "function", "")) for item in greatest] == ["abs"]


def test_aggregates_carry_their_clauses(database: Database) -> None:
    text = "select string_agg(distinct t, ',' order by t desc) filter (where bo) from a"
    (call,) = aggregates(database.query(text))
    assert (call.function, call.distinct, call.filter is not None) == ("string_agg", True, True)
    assert [(key.descending, key.nulls_first) for key in call.order_by] == [(True, True)]


def test_operands_of_one_family_get_the_wider_type(database: Database) -> None:
    found: Any = database.scalar("select i + b from a")
    assert [type(item) for item in found.arguments] == [Cast, ColumnRef]
    compared: Any = database.scalar("select da < ts from a")
    assert [item.type for item in compared.arguments] == [TIMESTAMP, TIMESTAMP]


def test_literals_take_their_operands_type_at_once(database: Database) -> None:
    found: Any = database.scalar("select da <= '1998-12-01' from a")
    assert found.arguments[1] == Literal(dt.date(1998, 12, 1), DATE)
    assert database.scalar("select 5::numeric(4,1)") == Literal(Decimal("5.0"), numeric(4, 1))
    assert database.scalar("select '7'::int") == Literal(7, INT4)


def test_literals_use_the_sessions_time_zone(database: Database) -> None:
    bound: Any = database.bind("select timestamptz '2020-01-01 12:00'", time_zone="Europe/Berlin").statement
    (_, scalar), *_ = bound.relation.outputs
    assert scalar.value == dt.datetime(2020, 1, 1, 11, tzinfo=dt.UTC)


def test_lists_are_one_call(database: Database) -> None:
    found: Any = database.scalar("select i in (1, 2, 3) from a")
    assert (found.function, len(found.arguments)) == ("in", 4)
    assert database.scalar("select i = any ('{1,2,3}') from a") == found
    assert database.scalar("select i not in (1) from a").function == "not"  # type: ignore[union-attr]


def test_like_with_escape_uses_the_backslash(database: Database) -> None:
    found: Any = database.scalar(r"select t like 'a!%\b' escape '!' from a")
    assert found.arguments[1].value == r"a\%\\b"


def test_parameters_are_inferred_from_their_use(database: Database) -> None:
    bound = database.bind("select i from a where t = $1 and n > $2 and da between $3 and $4 limit $5")
    assert bound.parameters == (TEXT, NUMERIC, DATE, DATE, SqlType("int8"))


def test_declared_parameters_keep_their_type(database: Database) -> None:
    assert database.bind("select i from a where i = $1", (SqlType("int8"),)).parameters == (SqlType("int8"),)
    with pytest.raises(SqlError) as caught:
        database.bind("select i from a where i = $1", (TEXT,))
    assert caught.value.sqlstate == "42883"


def test_an_unused_parameter_has_no_type(database: Database) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind("select $2::int")
    assert (caught.value.sqlstate, caught.value.message) == ("42P18", "could not determine data type of parameter $1")


def test_expressions_of_the_catalog_bind(database: Database) -> None:
    from planner.bind import Context, bind_expression

    column = Column(1, "x", INT4)
    context = Context(database.catalog)
    assert bind_expression("x > 5", [column], context) == Call("gt", (ColumnRef(column), Literal(5, INT4)), BOOL)
    assert bind_expression("'7'", (), context, INT4) == Literal(7, INT4)
    assert not isinstance(bind_expression("now()", (), context, TIMESTAMP), Parameter)
