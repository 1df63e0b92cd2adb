"""Every operation that ``executor.small`` knows, over values of each type, against the embedded engine.

The operations come from the evaluators' own tables, so that one without a case here fails. An evaluator may leave any
row to the engine; its own answers must equal the engine's, to the sign of a zero.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pytest

from catalog.catalog import Catalog
from catalog.values.errors import SqlError
from catalog.values.types import FLOAT8, INT4, INT8, NUMERIC, QUOTIENT, TEXT, SqlType, array, numeric
from executor.embedded.engine import EmbeddedEngine
from executor.small import grouped_statements, grouping_of, merge_of, small_of, value_expressions, vector_operations
from executor.small.ordering import TEXTS
from executor.small.values import FOLDS, KEYS, ORDERED
from executor.small.vector_columns import family
from executor.small.vector_expressions import NULL_TESTS, TEXT_TESTS
from planner.algebra.functions import COMPARISONS, OPERATORS
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Delta,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    Snapshot,
    Sort,
    SortKey,
)
from planner.algebra.partial_aggregates import sum_type
from planner.algebra.walk import transform_relations
from planner.incremental.programs.program import State
from planner.incremental.programs.state_relations import merged
from planner.rules import optimise
from planner.statements.definitions import CreateTable
from planner.statements.statement import Query
from tests.embedded.sql import bound

_DAYS: Final = (dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1999, 2, 28))
_MOMENTS: Final = tuple(dt.datetime(day.year, day.month, day.day, 23, 59, 59, 999999) for day in _DAYS)
_FLOATS: Final = (0.0, -0.0, 1.0, -2.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan)
#: Values by SQL type; columns are named a0, b0, a1, b1, ... in this order.
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "smallint": (0, 1, -1, 2**15 - 1, -(2**15), 7),
    "integer": (0, 1, -1, 2**31 - 1, -(2**31), 7),
    "bigint": (0, 1, -1, 2**63 - 1, -(2**63), 7),
    "numeric(12,3)": tuple(map(Decimal, ("0.000", "1.000", "-0.001", "999999999.999", "-999999999.999", "7.500"))),
    "numeric(38,6)": tuple(map(Decimal, ("0.000000", "-1.000000", "0.000001", "9" * 20 + ".999999", "7.500000"))),
    "numeric": tuple(Decimal(item).quantize(Decimal(1).scaleb(-18)) for item in ("0", "1", "-7.5", "123456789.000001")),
    "double precision": _FLOATS,
    "real": (0.0, -0.0, 1.0, -2.5, 3.0e38, math.inf, math.nan),
    "boolean": (True, False),
    "text": ("", "a", "a ", "ä", "B", "\U0001f600"),
    "varchar(5)": ("", "a", "a ", "ä", "B"),
    "char(3)": ("", "a", "ab", "ä"),
    "date": _DAYS,
    "time": (dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999999)),
    "timestamp": _MOMENTS,
    "timestamptz": tuple(item.replace(tzinfo=dt.UTC) for item in _MOMENTS),
    "uuid": (str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))),
    "bytea": (b"", b"\x00", b"a"),
    "interval": (pa.MonthDayNano((1, 0, 0)), pa.MonthDayNano((0, 30, 0)), pa.MonthDayNano((0, 0, 1000))),
}
PLACES: Final = {name: place for place, name in enumerate(VALUES)}
_MIXED: Final = (
    ("smallint", "integer"),
    ("integer", "bigint"),
    ("integer", "numeric(12,3)"),
    ("numeric(12,3)", "numeric(38,6)"),
    ("bigint", "numeric"),
    ("integer", "double precision"),
    ("real", "double precision"),
    ("date", "timestamp"),
    ("text", "char(3)"),
)
#: Pairs of types whose values operators may take together.
PAIRS: Final = (*((name, name) for name in VALUES), *_MIXED, *((right, left) for left, right in _MIXED[:4]))
#: Types for comparisons other than =, which treat types like = does.
_FEW: Final = (*((name, name) for name in ("integer", "numeric(12,3)", "double precision", "date")), *_MIXED[2:5])
#: Operations with boolean results.
_TESTS: Final = (*COMPARISONS, *NULL_TESTS, "and", "or", "not", "in")


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedEngine]:
    found = EmbeddedEngine(1)
    yield found
    found.close()


@lru_cache(1)
def _catalog() -> Catalog:
    columns = ", ".join(f"a{place} {name}, b{place} {name}" for place, name in enumerate(VALUES))
    statement = bound(f"CREATE TABLE t (k integer, {columns})")
    assert isinstance(statement, CreateTable)
    return Catalog().add(statement.table)


def _kind(name: str) -> SqlType:
    (found,) = (item.type for item in _catalog().at("public", "t").columns if item.name == f"a{PLACES[name]}")
    return found


def _relation(select: str, leaf: Callable[[Scan], Relation]) -> Relation | None:
    """The planned relation of a query of the table, over another leaf; None if PostgreSQL refuses the query."""
    try:
        statement = bound(select, _catalog())
        assert isinstance(statement, Query)
        relation = optimise(statement.relation)
    except SqlError:
        return None
    return transform_relations(relation, lambda node: leaf(node) if isinstance(node, Scan) else node)


def _snapshot(scan: Scan) -> Snapshot:
    return Snapshot("t", scan.columns, scan.sources)


def _delta(scan: Scan) -> Delta:
    return Delta(1, "t", scan.columns, scan.sources)


def _values(kind: str) -> tuple[Any, ...]:
    return (*VALUES[kind], None)


def _is_odd(value: Any) -> bool:
    """Whether evaluators leave a value to the engine."""
    return isinstance(value, float) and not math.isfinite(value)


def _pairs(kinds: tuple[str, str]) -> list[tuple[Any, Any]]:
    """All pairs of values, but only some with values that are left to the engine."""
    sides = [[item for item in _values(kind) if not _is_odd(item)] for kind in kinds]
    odd = [[item for item in _values(kind) if _is_odd(item)] for kind in kinds]
    beside = [*((item, sides[1][0]) for item in odd[0]), *((sides[0][0], item) for item in odd[1])]
    return [*itertools.product(*sides), *beside, *zip(*odd, strict=False)]


def _table(leaf: Snapshot | Delta, rows: Sequence[tuple[Any, Any]], kinds: tuple[str, str]) -> pa.Table:
    """Rows with values of two types, and a number for each row."""
    found: dict[str, Sequence[Any]] = {"k": range(len(rows))}
    found |= {
        f"{side}{PLACES[kind]}": [row[at] for row in rows]
        for at, (side, kind) in enumerate(zip("ab", kinds, strict=True))
    }
    arrays = [
        pa.array(found.get(source, [None] * len(rows)), column.type.arrow)
        for column, source in zip(leaf.columns, leaf.sources, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=list(leaf.sources))


def _leaf(relation: Relation) -> Snapshot | Delta:
    while not isinstance(relation, Snapshot | Delta):
        (relation,) = (relation.input,)  # type: ignore[union-attr]
    return relation


def _answered(run: Callable[[pa.Table], pa.Table | None], table: pa.Table) -> list[pa.Table]:
    """The largest parts of a table's rows for which an evaluator answers."""
    if run(table) is not None:
        return [table]
    if table.num_rows <= 1:
        return []
    half = table.num_rows // 2
    return [part for side in (table.slice(0, half), table.slice(half)) for part in _answered(run, side)]


def _same(left: pa.Table, right: pa.Table, approximate: bool = False) -> bool:
    if left.num_rows != right.num_rows or not all(map(_is_of, left.schema.types, right.schema.types)):
        return False
    if not approximate:
        return repr(left.to_pydict()) == repr(right.to_pydict())
    return all(map(_close, _numbers(left), _numbers(right)))


def _is_of(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether types are equal except for the names of their parts."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        return bool(one.value_type == other.value_type)
    return bool(one == other)


def _close(one: Any, other: Any) -> bool:
    """Whether doubles are nearly equal, as sums depend on the order of addition."""
    floats = isinstance(one, float) and isinstance(other, float)
    return math.isclose(one, other, rel_tol=1e-9) if floats else repr(one) == repr(other)


def _numbers(table: pa.Table) -> Iterator[Any]:
    """Values, also those in arrays. The spread of no values is NULL or zeros; all its statistics are NULL."""
    for column in table.columns:
        for value in column.to_pylist():
            yield from (
                value if isinstance(value, list) and any(value) else (None if isinstance(value, list) else value,)
            )


def _check_values(engine: EmbeddedEngine, relation: Relation | None, kinds: tuple[str, str]) -> bool:
    """Whether Python evaluates a relation over pairs of values; asserts that the result equals the engine's."""
    small = None if relation is None else small_of(relation)
    if relation is None or small is None:
        return False
    leaf = _leaf(relation)
    whole = _table(leaf, _pairs(kinds), kinds)
    parts = _answered(lambda table: small.run({"s_t": table}), whole)
    if parts:
        rows = pa.concat_tables(parts)
        found = pa.concat_tables([small.run({"s_t": part}) for part in parts])
        assert _same(found, engine.query(relation, {"s_t": rows})), (relation, kinds)
    return bool(parts)


def _check_groups(
    engine: EmbeddedEngine,
    relation: Relation | None,
    kinds: tuple[str, str],
    rows: Sequence[tuple[Any, Any]] | None = None,
    approximate: bool = False,
) -> bool:
    """Whether numpy evaluates a statement over pairs of values; asserts that the result equals the engine's."""
    while isinstance(relation, Project):
        relation = relation.input
    grouping = None if relation is None else grouping_of(relation)
    if relation is None or grouping is None:
        return False
    given = _pairs(kinds) if rows is None else rows
    parts = _answered(grouping.run, _table(_leaf(relation), given, kinds))
    if not parts:
        return False
    for part in [pa.concat_tables(parts)] if rows is None else parts:
        runs = [grouping.run(item) for item in (parts if rows is None else [part])]
        found, expected = (
            item.sort_by([(item.column_names[0], "ascending")])
            for item in (pa.concat_tables(runs), engine.query(relation, {"d1": part}))
        )
        assert _same(found, expected, approximate), (relation, kinds)
    return True


# -- expressions ---------------------------------------------------------------------------------------------------

_TWO: Final = {
    **{name: f"{{0}} {sign} {{1}}" for name, sign in OPERATORS.items()},
    "coalesce": "coalesce({0}, {1})",
    "greatest": "greatest({0}, {1})",
    "least": "least({0}, {1})",
    "in": "{0} IN ({1}, {1}, NULL)",
    "like": "{0} LIKE '%a_'",
}
_ONE: Final = {
    "not": "NOT {0}",
    "neg": "- {0}",
    "is_null": "{0} IS NULL",
    "is_not_null": "{0} IS NOT NULL",
    "abs": "abs({0})",
    "extract": "extract(year FROM {0})",
}


def _selected(name: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """The texts of an operation with the types that it accepts."""
    if name in _TWO:
        for kinds in _FEW if name in COMPARISONS and name != "eq" else PAIRS:
            yield _TWO[name].format(f"a{PLACES[kinds[0]]}", f"b{PLACES[kinds[1]]}"), kinds
    elif name in _ONE:
        for kind in VALUES:
            yield _ONE[name].format(f"a{PLACES[kind]}"), (kind, "boolean")


def _column(place: int, kind: SqlType) -> Column:
    return Column(place, f"c{place}", kind)


def one(kind: SqlType) -> Scalar:
    """The first column of an internal operation."""
    return ColumnRef(_column(1, kind))


def two(kind: SqlType) -> Scalar:
    """The second column."""
    return ColumnRef(_column(2, kind))


def _internal(name: str) -> Iterator[tuple[Call, tuple[Any, ...], tuple[Any, ...]]]:
    """Operations that only programs contain: calls over two columns, and the values of these."""
    numbers = [(kind, _kind(kind)) for kind in ("smallint", "integer", "bigint", "numeric(12,3)", "numeric")]
    if name == "avg_final":
        for text, kind in (*numbers, ("double precision", FLOAT8)):
            result = FLOAT8 if kind == FLOAT8 else numeric(*QUOTIENT)
            call = Call(name, (one(sum_type(kind)), two(INT8)), result)
            yield call, _values(text), (0, 1, 3, 7, 1000, 10**6, None)
    elif name == "quotient_scale":
        for (left, kind), (right, other) in itertools.product(numbers, repeat=2):
            yield Call(name, (one(kind), two(other), Literal(2, INT4)), INT4), _values(left), _values(right)
    elif name == "scaled_text":
        for kind in (NUMERIC, numeric(*QUOTIENT)):
            unit = Decimal(1).scaleb(-kind.scale)
            given = [Decimal(item).quantize(unit) for item in ("0", "1", "10000", "-0.5", "99999.25")]
            yield Call(name, (one(kind), two(INT4)), TEXT), (*given, None), (0, 1, 5, 20, None)
    elif name == "spread_final":
        spreads = ([0.0, 0.0, 0.0], [1.0, 5.0, 0.0], [2.0, 3.0, 0.5], [7.0, 1e10, 1e300], None)
        for statistic in ("var_pop", "var_samp", "stddev_pop", "stddev_samp"):
            yield Call(name, (Literal(statistic, TEXT), one(array(FLOAT8))), FLOAT8), spreads, (1,)
    elif name == "finite":
        yield Call(name, (one(FLOAT8), two(FLOAT8)), FLOAT8), _values("double precision"), (1.0, None)
    elif name == "square":
        yield Call(name, (one(FLOAT8),), FLOAT8), _values("double precision"), (1,)


def _check_internal(engine: EmbeddedEngine, call: Call, left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    columns = tuple(item.column for item in call.arguments if isinstance(item, ColumnRef))
    pairs = list(itertools.product(left, right))
    arrays = [pa.array([pair[column.id - 1] for pair in pairs], column.type.arrow) for column in columns]
    whole = pa.Table.from_arrays(arrays, names=[column.name for column in columns])
    relation = Project(Snapshot("t", columns, tuple(whole.column_names)), ((_column(9, call.type), call),))
    small = small_of(relation)
    if small is None:
        return False
    parts = _answered(lambda table: small.run({"s_t": table}), whole)
    if parts:
        found = pa.concat_tables([small.run({"s_t": part}) for part in parts])
        assert _same(found, engine.query(relation, {"s_t": pa.concat_tables(parts)})), call
    return bool(parts)


@pytest.mark.parametrize("name", sorted(value_expressions.OPERATIONS))
def test_values_are_those_of_the_engine(engine: EmbeddedEngine, name: str) -> None:
    found = [_check_internal(engine, *case) for case in _internal(name)]
    for text, kinds in _selected(name):
        found.append(_check_values(engine, _relation(f"SELECT k, {text} AS x FROM t", _snapshot), kinds))
    assert any(found), "no case evaluates this operation"


def _aggregated(text: str, is_test: bool) -> Relation | None:
    """A statement with one row for each value of an expression."""
    return _relation(f"SELECT k, {'bool_and' if is_test else 'max'}({text}) AS x FROM t GROUP BY k", _delta)


@pytest.mark.parametrize("name", sorted({*vector_operations.OPERATIONS, *NULL_TESTS, *TEXT_TESTS}))
def test_vectors_are_those_of_the_engine(engine: EmbeddedEngine, name: str) -> None:
    found = []
    for text, kinds in _selected(name):
        if all(family(_kind(kind)) for kind in kinds):
            found.append(_check_groups(engine, _aggregated(text, name in _TESTS), kinds))
    for call, _, _ in _internal(name):
        kinds, leaf = ("double precision", "boolean"), (Column(7, "k", INT4), _column(1, FLOAT8))
        delta = Delta(1, "t", leaf, ("k", f"a{PLACES[kinds[0]]}"))
        keys = ((leaf[0], ColumnRef(leaf[0])),)
        below = Project(delta, (*keys, (_column(3, FLOAT8), call)))
        maximum = AggregateCall("max", (ColumnRef(_column(3, FLOAT8)),), FLOAT8)
        relation = Aggregate(below, ((Column(8, "k", INT4), ColumnRef(leaf[0])),), ((_column(4, FLOAT8), maximum),))
        found.append(_check_groups(engine, relation, kinds))
    assert any(found), "no case evaluates this operation"


@pytest.mark.parametrize("text", ["'a'", "'ä'", "''", "NULL"])
@pytest.mark.parametrize("name", TEXT_TESTS)
def test_texts_are_compared_as_the_engine_does(engine: EmbeddedEngine, name: str, text: str) -> None:
    pattern = {"eq": "{0} = {1}", "ne": "{0} <> {1}", "in": "{0} IN ({1}, 'B', 'zz')"}[name]
    for kind in ("text", "varchar(5)", "char(3)"):
        relation = _aggregated(pattern.format(f"a{PLACES[kind]}", text), is_test=True)
        assert _check_groups(engine, relation, (kind, "boolean")) or text == "NULL"


@pytest.mark.parametrize("target", [name for name in VALUES if name != "interval"])
def test_casts_and_choices_are_those_of_the_engine(engine: EmbeddedEngine, target: str) -> None:
    place = PLACES[target]
    for source in VALUES:
        cast = f"CAST(a{PLACES[source]} AS {target})"
        _check_values(engine, _relation(f"SELECT k, {cast} AS x FROM t", _snapshot), (source, "boolean"))
        _check_groups(engine, _aggregated(cast, target == "boolean"), (source, "boolean"))
    choice = f"CASE WHEN b{PLACES['boolean']} THEN a{place} WHEN a{place} IS NULL THEN NULL ELSE a{place} END"
    _check_groups(engine, _aggregated(choice, target == "boolean"), (target, "boolean"))
    is_evaluated = _check_values(engine, _relation(f"SELECT k, {choice} AS x FROM t", _snapshot), (target, "boolean"))
    assert is_evaluated or target not in ("smallint", "integer", "bigint", "numeric(12,3)")


# -- aggregates, merges, orders, keys ------------------------------------------------------------------------------

#: Rows whose sums are exact in any order, so that a whole column of them can be one group.
_PLAIN: Final = {"double precision": (0.5, -2.25, 3.0, 2.0**40), "real": (0.5, -2.25, 3.0)}


def _groups(kind: str) -> list[tuple[Any, Any]]:
    """Values in three groups: without NULL, with one NULL, and with only NULLs."""
    values = _PLAIN.get(kind, VALUES[kind])
    return [*((value, True) for value in values), *((value, False) for value in (*values, None)), (None, None)]


@pytest.mark.parametrize("name", ["count", *sorted(grouped_statements.AGGREGATES)])
def test_aggregates_are_those_of_the_engine(engine: EmbeddedEngine, name: str) -> None:
    found = []
    for kind in VALUES:
        column, flag = f"a{PLACES[kind]}", f"b{PLACES['boolean']}"
        calls = [f"{name}({column})", f"{name}({column}) FILTER (WHERE {flag})"]
        if name.endswith("spread"):
            found.append(_check_spread(engine, name, kind))
            continue
        for call in calls:
            relation = _relation(f"SELECT {flag} AS g, {call} AS x FROM t GROUP BY {flag}", _delta)
            found.append(_check_groups(engine, relation, (kind, "boolean"), _groups(kind), kind in _PLAIN))
    assert any(found), "no case evaluates this aggregate"


@pytest.mark.parametrize("name", ["min", "max"])
def test_the_later_of_equal_zeros_counts(engine: EmbeddedEngine, name: str) -> None:
    kinds = ("double precision", "boolean")
    relation = _relation(f"SELECT b8 AS g, {name}(a6) AS x FROM t GROUP BY b8", _delta)
    for zeros in itertools.permutations((0.0, -0.0, 0.0)):
        _check_groups(engine, relation, kinds, [(zero, True) for zero in zeros])
    assert _check_groups(engine, relation, kinds, [(0.0, True), (1.0, True)])


def _check_spread(engine: EmbeddedEngine, name: str, kind: str) -> bool:
    value, flag = _column(1, _kind(kind)), Column(7, "g", _kind("boolean"))
    delta = Delta(1, "t", (value, flag), (f"a{PLACES[kind]}", f"b{PLACES['boolean']}"))
    call = AggregateCall(name, (ColumnRef(value),) * (2 if name.startswith("paired") else 1), array(FLOAT8))
    relation = Aggregate(delta, ((Column(8, "g", flag.type), ColumnRef(flag)),), ((_column(4, call.type), call),))
    if value.type != FLOAT8:
        assert grouping_of(relation) is None
        return False
    return _check_groups(engine, relation, (kind, "boolean"), _groups(kind), approximate=True)


_STATES: Final = {
    "merged_spread": ([2.0, 3.0, 0.5], [1.0, 5.0, 0.0], [0.0, 0.0, 0.0], None),
    "merged_paired_spread": ([2.0, 3.0, 0.5, 1.0, 2.0, -0.5], [1.0, 5.0, 0.0, 2.0, 0.0, 0.0], None),
}


@pytest.mark.parametrize("name", sorted(FOLDS))
def test_merges_are_those_of_the_engine(engine: EmbeddedEngine, name: str) -> None:
    kinds = [(_kind(kind), VALUES[kind]) for kind in VALUES]
    cases = [(array(FLOAT8), _STATES[name])] if name in _STATES else kinds
    found = False
    for kind, values in cases:
        key, value = Column(1, "k", INT4), Column(2, "x", kind)
        call = AggregateCall(name, (ColumnRef(value),), kind)
        state = State("x", "aggregate", (key, value), (key,), ((value, call),))
        merge = merge_of(state)
        if merge is None or (name == "sum" and sum_type(kind) != kind):
            continue
        parts, runs = [], []
        for number, pair in enumerate(itertools.product((*values, None), repeat=2)):
            rows = pa.table({"c1": pa.array([number] * 2, pa.int32()), "c2": pa.array(pair, kind.arrow)})
            if (made := merge.run([rows])) is not None:
                parts.append(rows)
                runs.append(made)
        expected = engine.query_few(merged(state), {"s___runs": pa.concat_tables(parts)})
        is_summed = kind.name == "array" or name == "sum"
        assert _same(pa.concat_tables(runs), expected.sort_by("c1"), is_summed), (name, kind)
        found = True
    assert found, "no case evaluates this merge"


@pytest.mark.parametrize("kind", VALUES)
def test_keys_and_orders_are_those_of_the_engine(engine: EmbeddedEngine, kind: str) -> None:
    """Equal keys are merged, and rows are sorted as the engine sorts them."""
    sql_type = _kind(kind)
    key, number = _column(1, sql_type), Column(2, "n", INT8)
    values = [*VALUES[kind], None, *VALUES[kind]]
    rows = pa.table({"c1": pa.array(values, sql_type.arrow), "c2": pa.array([1] * len(values), pa.int64())})
    total = AggregateCall("sum", (ColumnRef(number),), INT8)
    merge = merge_of(State("x", "aggregate", (key, number), (key,), ((number, total),)))
    assert (merge is not None) == (sql_type.name in KEYS)
    if merge is not None:
        merged = merge.run([rows])
        counted = engine.query(
            Aggregate(Snapshot("t", (key, number), ("c1", "c2")), ((key, ColumnRef(key)),), ((number, total),)),
            {"s_t": rows},
        )
        assert merged is None or sorted(map(repr, merged.to_pylist())) == sorted(map(repr, counted.to_pylist()))
    for descending, nulls_first in itertools.product((False, True), repeat=2):
        leaf = Snapshot("t", (key,), ("c1",))
        relation = Sort(leaf, (SortKey(ColumnRef(key), descending, nulls_first),))
        small = small_of(relation)
        assert (small is not None) == (sql_type.name in ORDERED | TEXTS)
        found = None if small is None else small.run({"s_t": rows.select(["c1"])})
        if found is not None:
            assert _same(found, engine.query(relation, {"s_t": rows.select(["c1"])})), (descending, nulls_first)
