"""A slow, obvious evaluator of algebra: the judge of rules and programs.

One nested loop per operator, following the SQL standard; values are Python's (numerics as Decimal, exact), NULL is
None. Covers only the functions that the tests of this folder use.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Delta,
    Exists,
    Filter,
    InSubquery,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    SortKey,
    Values,
    Window,
)
from planner.algebra.walk import is_dependent

Row = dict[Column, Any]
#: Rows of leaves by table, stream or trace name; each row by source names.
Data = Mapping[str, list[dict[str, Any]]]

_STRICT: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mod": operator.mod,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "not": operator.not_,
    "neg": operator.neg,
    "abs": abs,
    "square": lambda value: value * value,
    "concat": operator.add,
    "div": lambda left, right: Fraction(left) / Fraction(right),
}
_TESTS: dict[str, Callable[[Any], bool]] = {
    "is_null": lambda value: value is None,
    "is_not_null": lambda value: value is not None,
    "is_true": lambda value: value is True,
    "is_false": lambda value: value is False,
    "is_not_true": lambda value: value is not True,
    "is_not_false": lambda value: value is not False,
}


class TooManyRows(Exception):
    """A scalar subquery returned more than one row (21000)."""


def evaluate(relation: Relation, data: Data, outer: Row | None = None) -> list[tuple[Any, ...]]:
    """The relation's rows, columns in order."""
    return [tuple(row[column] for column in relation.columns) for row in _rows(relation, data, outer or {})]


def bag(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows in a fixed order, to compare bags."""
    return sorted(rows, key=lambda row: [(value is None, str(type(value)), str(value)) for value in row])


def _rows(node: Relation, data: Data, outer: Row) -> list[Row]:
    match node:
        case Scan(name=name) | Delta(name=name) | Snapshot(trace=name):
            return [
                {column: row[source] for column, source in zip(node.columns, node.sources, strict=True)}
                for row in data[name]
            ]
        case Values():
            return [
                {column: _value(item, outer, data) for column, item in zip(node.columns, row, strict=True)}
                for row in node.rows
            ]
        case Filter():
            rows = _rows(node.input, data, outer)
            return [row for row in rows if _value(node.predicate, outer | row, data) is True]
        case Project():
            rows = _rows(node.input, data, outer)
            return [{column: _value(item, outer | row, data) for column, item in node.outputs} for row in rows]
        case Join():
            return _join(node, data, outer)
        case Aggregate():
            return _aggregate(node, data, outer)
        case Window():
            return _window(node, data, outer)
        case Sort():
            return _sorted(_rows(node.input, data, outer), node.keys, data, outer)
        case Limit():
            start = 0 if node.offset is None else int(_value(node.offset, outer, data))
            end = None if node.count is None else start + int(_value(node.count, outer, data))
            return _rows(node.input, data, outer)[start:end]
        case SetOperation():
            return _set_operation(node, data, outer)


def _join(node: Join, data: Data, outer: Row) -> list[Row]:
    if node.kind in ("inner", "left") and is_dependent(node.right, node.left):
        return [found for row in _rows(node.left, data, outer) for found in _beside(row, node, data, outer | row)]
    left, right = _rows(node.left, data, outer), _rows(node.right, data, outer)
    found: list[Row] = []
    met: set[int] = set()
    for row in left:
        partners = [
            (place, other)
            for place, other in enumerate(right)
            if node.predicate is None or _value(node.predicate, outer | row | other, data) is True
        ]
        if node.kind in ("semi", "anti"):
            found += [row] if bool(partners) == (node.kind == "semi") else []
            continue
        met.update(place for place, _ in partners)
        found += [row | other for _, other in partners]
        if not partners and node.kind in ("left", "full"):
            found.append(row | dict.fromkeys(node.right.columns))
    if node.kind in ("right", "full"):
        padding: Row = dict.fromkeys(node.left.columns)
        found += [padding | other for place, other in enumerate(right) if place not in met]
    return found


def _beside(row: Row, node: Join, data: Data, outer: Row) -> list[Row]:
    """A row with each row of a right side that depends on it (LATERAL)."""
    found = [
        row | other
        for other in _rows(node.right, data, outer)
        if node.predicate is None or _value(node.predicate, outer | other, data) is True
    ]
    return found or ([row | dict.fromkeys(node.right.columns)] if node.kind == "left" else [])


def _aggregate(node: Aggregate, data: Data, outer: Row) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Row]] = {} if node.keys else {(): []}
    for row in _rows(node.input, data, outer):
        key = tuple(_value(item, outer | row, data) for _, item in node.keys)
        groups.setdefault(key, []).append(row)
    found = []
    for key, rows in groups.items():
        result = dict(zip((column for column, _ in node.keys), key, strict=True))
        result.update((column, _aggregated(call, rows, data, outer)) for column, call in node.aggregates)
        found.append(result)
    return found


def _window(node: Window, data: Data, outer: Row) -> list[Row]:
    """Rows with their numbers; no other window functions are used."""
    rows = _rows(node.input, data, outer)
    for column, call in node.calls:
        assert call.function == "row_number"
        counts: dict[tuple[Any, ...], int] = {}
        rows = _sorted(rows, call.order_by, data, outer)
        for place, row in enumerate(rows):
            key = tuple(_value(item, outer | row, data) for item in call.partition)
            counts[key] = counts.get(key, 0) + 1
            rows[place] = row | {column: counts[key]}
    return rows


def _aggregated(call: AggregateCall, rows: list[Row], data: Data, outer: Row) -> Any:
    if call.filter is not None:
        rows = [row for row in rows if _value(call.filter, outer | row, data) is True]
    rows = _sorted(rows, call.order_by, data, outer)
    if not call.arguments:
        return len(rows)
    tuples = [tuple(_value(item, outer | row, data) for item in call.arguments) for row in rows]
    if call.distinct:
        tuples = list(dict.fromkeys(tuples))
        if not call.order_by:
            tuples.sort(key=lambda item: [(value is None, value) for value in item])
    if call.function == "array_agg":
        return tuple(item[0] for item in tuples) if tuples else None
    present = [item for item in tuples if item[0] is not None]
    first = [item[0] for item in present]
    if call.function == "count":
        return len(first)
    if call.function in ("spread", "paired_spread"):
        pairs = [item for item in tuples if None not in item]
        return _spread([tuple(map(Fraction, reversed(item))) for item in pairs]) if pairs else None
    if not first:
        return None
    return _folded(call.function, first, present)


def _folded(function: str, first: list[Any], present: list[tuple[Any, ...]]) -> Any:
    match function:
        case "sum":
            return functools.reduce(operator.add, first)
        case "min" | "max":
            return min(first) if function == "min" else max(first)
        case "bool_and" | "bool_or":
            return all(first) if function == "bool_and" else any(first)
        case "avg":
            return _quotient(sum(map(Fraction, first)), len(first))
        case "merged_spread":
            counted = [item for item in first if item[0]]
            return functools.reduce(_combined, counted) if counted else None
        case "string_agg":
            return "".join(item[1] * bool(place) + item[0] for place, item in enumerate(present))
        case _:
            squares = sum((Fraction(item) ** 2 for item in first), Fraction(0))
            return _variance(function, len(first), sum(map(Fraction, first), Fraction(0)), squares)


def _spread(rows: list[tuple[Fraction, ...]]) -> tuple[Fraction, ...]:
    """The count, and for each column the sum and the sum of squared distances from the mean."""
    found = [Fraction(len(rows))]
    for values in zip(*rows, strict=True):
        total = sum(values, Fraction(0))
        found += [total, sum(((item - total / len(rows)) ** 2 for item in values), Fraction(0))]
    return tuple(found)


def _combined(left: tuple[Fraction, ...], right: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    n, m = left[0], right[0]
    between = n * m * (left[1] / n - right[1] / m) ** 2 / (n + m)
    return n + m, left[1] + right[1], left[2] + right[2] + between


def _quotient(total: Any, count: int) -> Fraction | None:
    return Fraction(total) / count if count else None


def _variance(kind: str, count: int, total: Fraction, squares: Fraction) -> Fraction | float | None:
    over = count - (1 if kind.endswith("samp") else 0)
    if not count or over <= 0:
        return None
    variance = (squares - Fraction(total) ** 2 / count) / over
    return variance if kind.startswith("var") else round(float(variance) ** 0.5, 12)


def _set_operation(node: SetOperation, data: Data, outer: Row) -> list[Row]:
    left, right = (
        [tuple(row[column] for column in side.columns) for row in _rows(side, data, outer)]
        for side in (node.left, node.right)
    )
    if node.kind == "union":
        result = left + right
    else:
        rest, result = list(right), []
        for row in left:
            inside = row in rest
            if inside and node.all:
                rest.remove(row)
            if inside == (node.kind == "intersect"):
                result.append(row)
    if not node.all:
        result = list(dict.fromkeys(result))
    return [dict(zip(node.columns, row, strict=True)) for row in result]


def _sorted(rows: list[Row], keys: tuple[SortKey, ...], data: Data, outer: Row) -> list[Row]:
    for key in reversed(keys):
        values = [(_value(key.expression, outer | row, data), row) for row in rows]
        nulls = [row for value, row in values if value is None]
        others = [item for item in values if item[0] is not None]
        others.sort(key=lambda item: item[0], reverse=key.descending)
        present = [row for _, row in others]
        rows = nulls + present if key.nulls_first else present + nulls
    return rows


def _value(node: Scalar, row: Row, data: Data) -> Any:
    match node:
        case Literal(value=value):
            return value
        case ColumnRef(column=column):
            return row[column]
        case Cast(argument=argument):
            return _value(argument, row, data)
        case Case():
            for when, then in node.branches:
                if _value(when, row, data) is True:
                    return _value(then, row, data)
            return _value(node.otherwise, row, data)
        case Call():
            return _call(node, row, data)
        case ScalarSubquery():
            found = evaluate(node.relation, data, row)
            if len(found) > 1:
                raise TooManyRows
            return found[0][0] if found else None
        case Exists():
            return bool(_rows(node.relation, data, row))
        case InSubquery():
            return _any_equal(
                _value(node.argument, row, data), [item[0] for item in evaluate(node.relation, data, row)]
            )
        case _:
            raise AssertionError(node)


def _any_equal(value: Any, items: list[Any]) -> bool | None:
    if not items:
        return False
    if value is not None and value in items:
        return True
    return None if value is None or None in items else False


def _call(node: Call, row: Row, data: Data) -> Any:
    if node.function == "error":
        raise TooManyRows
    arguments = [_value(item, row, data) for item in node.arguments]
    match node.function:
        case "and":
            return False if False in arguments else None if None in arguments else True
        case "or":
            return True if True in arguments else None if None in arguments else False
        case "coalesce":
            return next((item for item in arguments if item is not None), None)
        case "is_distinct":
            return arguments[0] != arguments[1]
        case "is_not_distinct":
            return arguments[0] == arguments[1]
        case "finite":
            return arguments[0]
        case "avg_final":
            return None if arguments[0] is None else _quotient(arguments[0], arguments[1])
        case "spread_final":
            kind, state = arguments
            count, total, squares = state[:3] if state else (0, 0, 0)
            return _variance(kind, count, total, squares + (total**2 / count if count else 0))
        case "variance_final":
            kind, count, total, squares = arguments
            return _variance(kind, count, total or Fraction(0), squares or Fraction(0))
        case name if name in _TESTS:
            return _TESTS[name](arguments[0])
        case name:
            return None if None in arguments else _STRICT[name](*arguments)


def merge_state(rows: list[dict[str, Any]], key: tuple[str, ...], merges: Mapping[str, str]) -> list[dict[str, Any]]:
    """A state's runs merged by key, as in a trace's snapshot: one row per key."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in key), []).append(row)
    found = []
    for values, members in groups.items():
        merged = dict(zip(key, values, strict=True))
        for name, function in merges.items():
            present = [row[name] for row in members if row[name] is not None]
            merged[name] = _folded(function, present, []) if present else None
        found.append(merged)
    return found
