"""Which expressions Spark passes to the embedded engine's kernel, and that their results equal the engine's."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, FLOAT8, INT4, INTERVAL, TEXT, TIME, array, numeric, record
from executor.carriers import packed, unpacked
from executor.embedded.kernel import evaluate
from executor.spark.printing.query_dialect import QueryPrinter
from executor.spark.printing.statements import Printed, print_statements
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Case,
    ColumnRef,
    Relation,
    ScalarSubquery,
    SetOperation,
    Sort,
    SortKey,
    Window,
    WindowCall,
)
from planner.incremental.programs.program import State, Statement
from planner.lowering import lowered
from tests.spark.build import call, column, join, listed, lit, snapshot, where

KINDS = {"k": INT4, "n": numeric(9, 2), "t": TEXT, "iv": INTERVAL, "ti": TIME, "ivs": array(INTERVAL)}


def printed(relation: Relation, **outputs: Any) -> Printed:
    columns = list(outputs.values()) or [ColumnRef(item) for item in relation.columns]
    return adhoc(*listed("q", lowered(relation), columns))


def adhoc(statement: Statement, state: State, has_kernel: bool = True) -> Printed:
    return print_statements((statement,), (state,), partial(QueryPrinter, has_kernel=has_kernel))


def sql(found: Printed) -> str:
    """The statement with short function names, in the order of their occurrence."""
    ((_, text),) = found.statements
    for place, function in enumerate(found.functions):
        text = text.replace(function.name, f"F{place}")
    return text


def hexadecimal(value: Any) -> Any:
    return call("to_hex", TEXT, value)


def test_what_spark_computes_stays_its_own() -> None:
    leaf, c = snapshot("s", KINDS)
    found = printed(where(leaf, call("gt", BOOL, c["k"], lit(1, INT4))), x=call("add", INT4, c["k"], c["k"]))
    assert found.functions == ()
    assert "> 1" in sql(found)


def test_an_expression_is_delegated_whole() -> None:
    leaf, c = snapshot("s", KINDS)
    quotient = call("div", INT4, lit(10, INT4), c["k"])
    guarded = Case(((call("ne", BOOL, c["k"], lit(0, INT4)), hexadecimal(quotient)),), c["t"], TEXT)
    found = printed(leaf, x=guarded)
    assert f"F0(`c{c['k'].column.id}`, `c{c['t'].column.id}`)" in sql(found)
    assert "CASE" not in sql(found)
    (function,) = found.functions
    assert function.type == "STRING"
    rows = evaluate(function.document, [pa.array([0, 2, None], pa.int32()), pa.array(["zero", "two", "none"])])
    assert rows.to_pylist() == ["zero", "5", "none"]


def test_equal_expressions_are_one_function_over_any_columns() -> None:
    leaf, c = snapshot("s", {"a": INT4, "b": INT4})
    found = printed(leaf, x=hexadecimal(c["a"]), y=hexadecimal(c["b"]), z=hexadecimal(lit(7, INT4)))
    assert len(found.functions) == 2
    assert "F1(1)" in sql(found)
    assert evaluate(found.functions[1].document, [pa.array([1, 1], pa.int32())]).to_pylist() == ["7", "7"]


def test_a_filter_keeps_what_may_stand_before_a_delegated_conjunct() -> None:
    leaf, c = snapshot("s", KINDS)
    not_zero = call("ne", BOOL, c["k"], lit(0, INT4))
    quotient = call("eq", BOOL, call("div", INT4, lit(10, INT4), c["k"]), lit(2, INT4))
    named = call("eq", BOOL, c["t"], lit("x", TEXT))
    test = call("eq", BOOL, hexadecimal(c["k"]), lit("2", TEXT))
    text = sql(printed(where(leaf, call("and", BOOL, not_zero, test, quotient, named))))
    condition = text[text.index("WHERE") :]
    assert f"`c{c['k'].column.id}` <> 0 AND `c{c['t'].column.id}` = 'x' AND F0(`c{c['k'].column.id}`)" in condition
    assert "DIV" not in condition


def test_sides_of_a_join_are_delegated_apart() -> None:
    left, a = snapshot("l", {"k": INT4, "t": TEXT})
    right, b = snapshot("r", {"k": INT4, "t": TEXT})
    on = call("eq", BOOL, hexadecimal(a["k"]), call("initcap", TEXT, b["t"]))
    text = sql(printed(join("left", left, right, on), x=a["k"]))
    assert f"ON F0(`c{a['k'].column.id}`) = F1(`c{b['t'].column.id}`)" in text
    both = call("eq", BOOL, hexadecimal(call("add", INT4, a["k"], b["k"])), lit("2", TEXT))
    assert len(printed(join("inner", left, right, both), x=a["k"]).functions) == 1


def test_intervals_are_joined_by_length() -> None:
    left, a = snapshot("l", {"k": INT4, "iv": INTERVAL})
    right, b = snapshot("r", {"iv": INTERVAL})
    joined = printed(join("full", left, right, call("eq", BOOL, a["iv"], b["iv"])), x=a["k"])
    assert joined.functions == ()
    assert sql(joined).count(".months") == 2
    days = call("make_interval", INTERVAL, lit(0, INT4), lit(0, INT4), lit(0, INT4), a["k"])
    computed = printed(join("left", left, right, call("lt", BOOL, days, b["iv"])), x=a["k"])
    assert len(computed.functions) == 1
    assert sql(computed).count(".months") == 2


def test_what_groups_orders_and_numbers_rows_gets_columns() -> None:
    leaf, c = snapshot("s", KINDS)
    key, count = column("key", TEXT), column("count", INT4)
    calls = ((count, AggregateCall("max", (hexadecimal(c["k"]),), TEXT)),)
    grouped = sql(printed(Aggregate(leaf, ((key, hexadecimal(c["k"])),), calls)))
    assert grouped.count("F0(") == 1
    assert "MAX(`c" in grouped
    ordered = sql(printed(Sort(leaf, (SortKey(hexadecimal(c["k"])),)), x=c["k"]))
    assert "ORDER BY `c" in ordered
    window = WindowCall("row_number", (), INT4, (hexadecimal(c["k"]),), (SortKey(c["iv"]),))
    numbered = sql(printed(Window(leaf, ((count, window),)), x=ColumnRef(count)))
    assert "PARTITION BY `c" in numbered
    assert ".months" in numbered


def test_subqueries_are_arguments() -> None:
    leaf, c = snapshot("s", KINDS)
    other, d = snapshot("o", {"t": TEXT})
    found = printed(leaf, x=call("concat", TEXT, hexadecimal(c["k"]), ScalarSubquery(other)))
    assert f"F0(`c{c['k'].column.id}`, (SELECT" in sql(found)
    assert d


def test_intervals_and_times_are_carried() -> None:
    leaf, c = snapshot("s", KINDS)
    found = printed(leaf, x=call("add", TIME, c["ti"], c["iv"]), y=lit((1, -2, 3), INTERVAL), z=c["ivs"])
    assert "NAMED_STRUCT('months', 1, 'days', -2, 'microseconds', 3L)" in sql(found)
    types = dict(found.views[0].columns)
    assert types["ti"] == "BIGINT"
    assert types["ivs"] == "ARRAY<STRUCT<months: INT, days: INT, microseconds: BIGINT>>"
    spans = packed(pa.array([pa.MonthDayNano([0, 0, 1_000])], pa.month_day_nano_interval()))
    moved = evaluate(found.functions[0].document, [pa.array([5]), spans])
    assert moved.to_pylist() == [6]


@pytest.mark.parametrize("grouping", ["key", "partition", "distinct", "union"])
def test_arrays_of_intervals_are_grouped_by_their_lengths_only(grouping: str) -> None:
    kind = array(INTERVAL)
    leaf, c = snapshot("s", {"ivs": kind})
    new = column("ivs", kind)
    relation: Relation
    match grouping:
        case "key":
            relation = Aggregate(leaf, ((new, c["ivs"]),), ())
        case "partition":
            relation = Window(leaf, ((new, WindowCall("row_number", (), INT4, (c["ivs"],))),))
        case "distinct":
            relation = Aggregate(leaf, (), ((new, AggregateCall("count", (c["ivs"],), INT4, distinct=True)),))
        case _:
            relation = SetOperation("union", False, leaf, leaf, (new,))
    assert "TRANSFORM(" in sql(printed(relation, x=lit(1, INT4)))
    with pytest.raises(SqlError, match=r"grouping by interval\[\] is not supported"):
        adhoc(*listed("q", relation, [lit(1, INT4)]))


def test_without_a_kernel_it_is_refused() -> None:
    number, k = snapshot("s", {"k": INT4})
    time, ti = snapshot("s", {"ti": TIME})
    with pytest.raises(SqlError, match="function to_hex is not supported"):
        adhoc(*listed("q", number, [hexadecimal(k["k"])]), has_kernel=False)
    with pytest.raises(SqlError, match="type time without time zone is not supported"):
        adhoc(*listed("q", time, [ti["ti"]]), has_kernel=False)


def test_errors_of_the_kernel_have_their_sqlstate() -> None:
    leaf, c = snapshot("s", {"n": numeric(9, 2)})
    (function,) = printed(leaf, x=call("sqrt", numeric(38, 20), c["n"])).functions
    with pytest.raises(SqlError) as caught:
        evaluate(function.document, [pa.array([-1], pa.decimal128(9, 2))])
    assert caught.value.sqlstate == "2201F"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([(1, 2, 3_000), None, (-1, 0, 0)], pa.month_day_nano_interval()),
        ([[(1, 2, 3_000), None], None, []], pa.list_(pa.month_day_nano_interval())),
        ([[1, None], None, [], [3]], pa.list_(pa.time64("us"))),
        ([["a"], None], pa.list_(pa.string())),
        (
            [{"f1": (1, 2, 3_000), "f2": [1]}, None, {"f1": None, "f2": [None, 2]}],
            pa.struct([("f1", pa.month_day_nano_interval()), ("f2", pa.list_(pa.time64("us")))]),
        ),
    ],
)
@pytest.mark.parametrize("skipped", [0, 1])
def test_carriers_give_back_what_they_were_given(values: list[Any], kind: pa.DataType, skipped: int) -> None:
    given = pa.array(values, kind).slice(skipped)
    assert unpacked(packed(given), kind).equals(given)


def test_rows_group_but_where_they_hold_intervals() -> None:
    kind, spans = record(("a", INT4), ("b", TEXT)), record(("a", INTERVAL))
    leaf, c = snapshot("s", {"r": kind, "spans": spans})
    found = sql(printed(Aggregate(leaf, ((column("r", kind), c["r"]),), ()), x=lit(1, INT4)))
    assert "GROUP BY" in found
    with pytest.raises(SqlError, match="grouping by record is not supported"):
        grouped = Aggregate(leaf, ((column("spans", spans), c["spans"]),), ())
        adhoc(*listed("q", grouped, [lit(1, INT4)]))


@pytest.mark.slow
def test_a_long_chain_of_doubles_is_the_kernel_s() -> None:
    leaf, c = snapshot("s", {"f": FLOAT8})

    def chain(count: int) -> Any:
        value: Any = c["f"]
        for _ in range(count):
            value = call("mul", FLOAT8, value, c["f"])
        return value

    assert printed(leaf, x=chain(24)).functions == ()
    found = printed(leaf, x=chain(300))
    assert evaluate(found.functions[0].document, [pa.array([1.0, None])]).to_pylist() == [1.0, None]
    with pytest.raises(SqlError, match="of this length"):
        print_statements(*((item,) for item in listed("q", leaf, [chain(25)])))
