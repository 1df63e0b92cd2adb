"""A job's statements in Spark SQL: typed and named like the state, merged by its key; their leaves."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from catalog.values.types import BOOL, INT4, INT8, INTERVAL, TEXT, TIME, numeric
from executor.spark.printing.dialect import SparkPrinter
from executor.spark.printing.statements import print_statements, reason
from planner.algebra.nodes import AggregateCall, ColumnRef, InZone, Limit, Scan, Sort, SortKey, Values
from planner.algebra.walk import walk
from planner.incremental.programs.program import State, Statement
from tests.spark.build import call, column, delta, grouped, listed, lit, snapshot, where


def text(pair: tuple[Statement, State]) -> str:
    """The only statement's SQL, with columns numbered from 1 in order of appearance."""
    ((_, sql),) = print_statements((pair[0],), (pair[1],)).statements
    numbers: dict[str, str] = {}
    for word in sql.replace("`", " ").split():
        if word.startswith("c1") and word[1:].isdigit():
            numbers.setdefault(word, f"x{len(numbers) + 1}")
    for old, new in numbers.items():
        sql = sql.replace(f"`{old}`", f"`{new}`")
    return sql


def total(name: str) -> tuple[Statement, State]:
    leaf, c = delta("k", name)
    kinds = {"n": numeric(38, 2), "b": numeric(38, 0), "i": INT8}
    return grouped("g", leaf, [c["k"]], [AggregateCall("sum", (c[name],), kinds[name])], ["sum"])


def test_a_grouping_by_the_state_s_key_is_printed_once() -> None:
    assert text(total("i")) == (
        "SELECT CAST(`x1` AS INT) AS `x2`, CAST(`x3` AS BIGINT) AS `x4` FROM"
        " (SELECT `x1`, `x3` FROM (SELECT `x5` AS `x1`, SUM(`x6`) AS `x3` FROM"
        " (SELECT `d16400`.`k` AS `x5`, `d16400`.`i` AS `x6` FROM `d16400`) AS `q1` GROUP BY 1) AS `q2`) AS `run`"
    )


def test_bigints_are_added_as_two_halves() -> None:
    assert (
        "CAST(CAST(SUM(SHIFTRIGHT(`x6`, 32)) AS DECIMAL(20,0)) * 4294967296L"
        " + CAST(SUM(`x6` & 4294967295L) AS DECIMAL(20,0)) AS DECIMAL(38,0))"
    ) in text(total("b"))


def test_digits_of_numerics_are_added_as_two_halves() -> None:
    high, low = "SUM(SHIFTRIGHT(__UNSCALED(`x6`), 32))", "SUM(__UNSCALED(`x6`) & 4294967295L)"
    assert (
        f"CAST(CASE WHEN {high} BETWEEN -67108864L AND 67108864L AND {low} < 288230376151711744L"
        f" THEN CAST({high} * 4294967296L + {low} AS DECIMAL(18,0)) * CAST('0.01' AS DECIMAL(2,2))"
        f" ELSE (CAST({high} AS DECIMAL(20,0)) * 4294967296L + CAST({low} AS DECIMAL(20,0)))"
        " * CAST('0.01' AS DECIMAL(2,2)) END AS DECIMAL(38,2))"
    ) in text(total("n"))


def test_behind_a_connect_endpoint_spark_adds_decimals_itself() -> None:
    statement, state = total("n")
    ((_, sql),) = print_statements((statement,), (state,), partial(SparkPrinter, has_unscaled=False)).statements
    assert "SUM(`c" in sql
    assert "UNSCALED" not in sql


def test_a_coarser_grouping_than_the_key_is_merged() -> None:
    statement, state = total("i")
    wider = replace(
        state,
        key=(),
        merge=((state.columns[0], AggregateCall("max", (ColumnRef(state.columns[0]),), INT4)), *state.merge),
    )
    sql = text((statement, wider))
    assert sql.startswith("SELECT CAST(MAX(`x1`) AS INT) AS `x1`, CAST(SUM(`x2`) AS BIGINT) AS `x2` FROM (SELECT CAST(")
    assert "GROUP BY `" not in sql


def test_two_statements_of_a_state_are_one_run() -> None:
    (first, state), (second, _) = total("i"), total("i")
    ((name, sql),) = print_statements((first, second), (state,)).statements
    assert name == "g"
    assert sql.count(" UNION ALL ") == 1
    assert sql.endswith(f"GROUP BY `c{state.key[0].id}`")


def test_views_list_each_leaf_with_all_columns_read() -> None:
    first, c = delta("k", "i")
    second, d = delta("k", "t")
    side, s = snapshot("side", {"key": INT4})
    pairs = [listed("a", first, [c["k"], c["i"]]), listed("b", second, [d["t"]]), listed("c", side, [s["key"]])]
    views = print_statements([item for item, _ in pairs], [item for _, item in pairs]).views
    assert [(view.name, view.source, view.columns) for view in views] == [
        ("d16400", 16400, (("k", "INT"), ("i", "INT"), ("t", "STRING"))),
        ("s_side", "side", (("key", "INT"),)),
    ]


def test_order_names_where_nulls_go() -> None:
    leaf, c = delta("k", "i")
    keys = (SortKey(c["k"]), SortKey(c["i"], descending=True, nulls_first=True))
    sql = text(listed("l", Limit(Sort(leaf, keys), lit(5, INT4), None), [c["k"]]))
    assert "ORDER BY `x3` ASC NULLS LAST, `x4` DESC NULLS FIRST LIMIT 5" in sql
    assert sql.count("ORDER BY") == sql.count("NULLS LAST") == sql.count("NULLS FIRST")


def test_string_literals_are_text_whatever_is_in_them() -> None:
    leaf, c = delta("t")
    sql = text(listed("l", where(leaf, call("eq", BOOL, c["t"], lit("a'b\\c`${x}", TEXT))), [c["t"]]))
    assert "'a\\'b\\\\c`${x}'" in sql


def test_reasons_name_what_is_missing() -> None:
    leaf, c = delta("k", "t")
    table = column("a", INT4)
    cases = {
        "function lower is not supported on Spark": listed("l", leaf, [call("lower", TEXT, c["t"])]),
        "reading table orders is not supported on Spark": listed(
            "l", Scan(1, "orders", "table", (table,), ("a",)), [ColumnRef(table)]
        ),
        "type interval is not supported on Spark": listed("l", leaf, [lit(None, INTERVAL)]),
        "type time without time zone is not supported on Spark": listed("l", leaf, [lit(None, TIME)]),
        "aggregate stddev_samp(integer) is not supported on Spark": grouped(
            "g", leaf, [], [AggregateCall("stddev_samp", (c["k"],), numeric(38, 20))], ["sum"]
        ),
        "the time zone of another view is not supported on Spark": listed("l", InZone(leaf, "Asia/Tokyo"), [c["t"]]),
    }
    for wanted, (statement, state) in cases.items():
        assert reason((statement,), (state,)) == wanted


def test_literal_rows_print() -> None:
    values = Values(
        (column("a", INT4), column("b", TEXT)), ((lit(1, INT4), lit("x", TEXT)), (lit(None, INT4), lit("y", TEXT)))
    )
    statement, state = listed("l", values, [ColumnRef(item) for item in values.columns])
    ((_, sql),) = print_statements((statement,), (state,)).statements
    first, second = (f"`c{item.id}`" for item in values.columns)
    assert f"VALUES (1, 'x'), (CAST(NULL AS INT), 'y') AS `q1`({first}, {second})" in sql
    assert any(isinstance(node, Values) for node in walk(statement.relation))
