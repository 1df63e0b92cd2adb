"""Aggregates over all values of a group in an order, in Spark SQL, for queries.

Owns: ``GATHERED``: string_agg, array_agg, json_agg, percentiles and mode(), where they are not one function of Spark's.
A group's values are collected as one array (``COLLECT_LIST``) and sorted, and PostgreSQL's result is computed from the
array. Sort keys that are not values themselves are kept beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace
from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.types import SqlType
from executor.printing.nodes import Expr, function
from executor.spark.printing.aggregates.sums import Around
from executor.spark.printing.nodes import let
from planner.algebra.nodes import AggregateCall, Literal, SortKey
from planner.lowering.documents import separator

_STRINGS: Final = frozenset(("text", "varchar", "bpchar", "name"))
#: Values of which equality or order in Spark is not PostgreSQL's.
_UNORDERED: Final = frozenset(("json", "jsonb"))
#: Types of which Spark's own percentile_cont is meant.
_DOUBLE: Final = "float8"

Gathering = Callable[[Any, AggregateCall, list[Expr], list[Expr], Around], Expr]


def _require_ordered(node: AggregateCall, kind: SqlType) -> None:
    if kind.element is not None or kind.row is not None or kind.name in _UNORDERED:
        raise unsupported(f"{node.function}() of {kind} in the order of its values")


def _present(value: Expr, around: Around) -> Around:
    """Of the rows alone that have the value."""
    present = exp.Not(this=exp.Paren(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.null())))
    where = present if around.where is None else exp.And(this=exp.Paren(this=around.where), expression=present)
    return replace(around, where=where)


def _collected(dialect: Any, fields: Sequence[tuple[str, Expr]], around: Around) -> str:
    """The rows' fields as an array of structs; an empty one of no row."""
    parts = ", ".join(f"'{name}', {dialect.generate(value)}" for name, value in fields)
    text: str = dialect.generate(around.call("COLLECT_LIST", exp.Var(this=f"NAMED_STRUCT({parts})")))
    return text


def _sorted(
    dialect: Any, fields: Sequence[tuple[str, Expr]], keys: Sequence[SortKey], order: Sequence[Expr], around: Around
) -> str:
    """The same in an order."""
    beside = [(f"k{place}", key.this) for place, key in enumerate(order)]
    found = _collected(dialect, [*fields, *beside], around)
    return f"ARRAY_SORT({found}, (l, r) -> {_comparison(keys)})" if keys else found


def _comparison(keys: Sequence[SortKey]) -> str:
    """-1, 0 or 1 for the structs l and r."""
    branches = []
    for place, key in enumerate(keys):
        left, right = f"l.k{place}", f"r.k{place}"
        null, less = (-1 if key.nulls_first else 1), (1 if key.descending else -1)
        branches += [
            f"WHEN {left} IS NULL AND {right} IS NOT NULL THEN {null}",
            f"WHEN {left} IS NOT NULL AND {right} IS NULL THEN {-null}",
            f"WHEN {left} < {right} THEN {less} WHEN {left} > {right} THEN {-less}",
        ]
    return f"CASE {' '.join(branches)} ELSE 0 END"


def _unless_empty(items: str) -> str:
    """The array, NULL where it is empty."""
    return f"GET(FILTER(ARRAY({items}), a -> SIZE(a) > 0), 0)"


def _array_agg(dialect: Any, node: AggregateCall, arguments: list[Expr], order: list[Expr], around: Around) -> Expr:
    """All values, NULLs too; NULL for no row."""
    if node.arguments[0].type.element is not None:
        raise unsupported(f"aggregate array_agg({node.arguments[0].type})")
    if node.distinct:
        return _distinct_values(dialect, node, arguments[0], order, around)
    rows = _sorted(dialect, [("v", arguments[0])], node.order_by, order, around)
    return exp.Var(this=f"TRANSFORM({_unless_empty(rows)}, s -> s.v)")


def _distinct_values(dialect: Any, node: AggregateCall, value: Expr, order: list[Expr], around: Around) -> Expr:
    """The distinct values, one NULL among them, sorted as PostgreSQL finds them."""
    kind = node.arguments[0].type
    _require_ordered(node, kind)
    if any(key.expression != node.arguments[0] for key in node.order_by[:1]):
        raise unsupported("array_agg(DISTINCT) in another order")
    is_up = not (node.order_by and node.order_by[0].descending)
    nulls_first = bool(node.order_by) and node.order_by[0].nulls_first
    found = around.call("COLLECT_LIST", exp.Distinct(expressions=[value.copy()]))
    values = f"SORT_ARRAY({dialect.generate(found)}, {is_up})"
    null = exp.Paren(this=exp.Is(this=exp.Paren(this=value), expression=exp.null()))
    array = dialect.generate(dialect.type(node.type))
    nulls = (
        f"IF(COALESCE({dialect.generate(around.call('BOOL_OR', null))}, FALSE),"
        f" CAST(ARRAY(NULL) AS {array}), CAST(ARRAY() AS {array}))"
    )
    parts = (nulls, values) if nulls_first else (values, nulls)
    return exp.Var(this=_unless_empty(f"CONCAT({', '.join(parts)})"))


def _string_agg(dialect: Any, node: AggregateCall, arguments: list[Expr], order: list[Expr], around: Around) -> Expr:
    """Each value with its own delimiter before it, but the first's; LISTAGG where they have one."""
    kind, delimiter = node.arguments[0].type, node.arguments[1]
    if kind.name in _STRINGS and isinstance(delimiter, Literal) and isinstance(delimiter.value, str):
        return _listed(dialect, node, arguments, order, around)
    if node.distinct:
        raise unsupported("string_agg(DISTINCT) with a computed delimiter")
    value, between = arguments
    around = _present(value, around)
    if kind.name == "bytea":
        value, between = function("HEX", value), function("HEX", between)
    elif kind.name not in _STRINGS:
        raise unsupported(f"aggregate string_agg({kind})")
    between = function("COALESCE", between, exp.Var(this="''"))
    rows = _sorted(dialect, [("v", value), ("d", between)], node.order_by, order, around)
    parts = f"TRANSFORM({_unless_empty(rows)}, (s, i) -> IF(i = 0, s.v, CONCAT(s.d, s.v)))"
    joined = f"ARRAY_JOIN({parts}, '')"
    return exp.Var(this=f"UNHEX({joined})" if kind.name == "bytea" else joined)


def _listed(dialect: Any, node: AggregateCall, arguments: list[Expr], order: list[Expr], around: Around) -> Expr:
    """LISTAGG, or over a window an array's strings; distinct values come sorted, as PostgreSQL finds them."""
    if around.over is not None:
        items = dialect.generate(around.call("COLLECT_LIST", arguments[0]))
        delimiter = dialect.generate(arguments[1])
        return exp.Var(this=f"ARRAY_JOIN({_unless_empty(items)}, {delimiter})")
    if node.distinct:
        if any(key.expression != node.arguments[0] for key in node.order_by):
            raise unsupported("string_agg(DISTINCT) in another order")
        order = order or [exp.Ordered(this=arguments[0].copy(), desc=False, nulls_first=False)]
    items = [exp.Distinct(expressions=arguments[:1])] if node.distinct else arguments[:1]
    return _within(dialect, "LISTAGG", [*items, arguments[1]], order, around)


def _documents(dialect: Any, node: AggregateCall, arguments: list[Expr], order: list[Expr], around: Around) -> Expr:
    """json_agg over values that are documents already; rows come one to a line."""
    if node.distinct or node.type.name == "jsonb":
        raise unsupported(f"aggregate {node.function}{'(DISTINCT)' if node.distinct else '()'}")
    item = node.arguments[0]
    between = separator(item).replace("\n", "\\n")
    rows = _sorted(dialect, [("v", arguments[0])], node.order_by, order, around)
    joined = f"ARRAY_JOIN(TRANSFORM({_unless_empty(rows)}, s -> s.v), '{between}')"
    return exp.Var(this=f"CONCAT('[', {joined}, ']')")


def _values(dialect: Any, node: AggregateCall, order: list[Expr], around: Around) -> str:
    """The values that are not NULL, sorted."""
    key = node.order_by[0]
    _require_ordered(node, key.expression.type)
    if node.function != "percentile_cont" and key.expression.type != (node.type.element or node.type):
        raise unsupported(f"{node.function}() of {node.type}")  # an interval's key is its length
    values = dialect.generate(around.call("COLLECT_LIST", order[0].this))
    return f"SORT_ARRAY({values}, {not key.descending})"


def _percentile(dialect: Any, node: AggregateCall, arguments: list[Expr], order: list[Expr], around: Around) -> Expr:
    kind, fraction = node.order_by[0].expression.type, node.arguments[0]
    if kind.name == _DOUBLE and isinstance(fraction, Literal) and isinstance(fraction.value, float):
        return _within(dialect, node.function.upper(), arguments, order, around)
    if node.function == "percentile_cont" and kind.name != _DOUBLE:
        raise unsupported(f"aggregate {node.function}() WITHIN GROUP (ORDER BY {kind})")
    one = _discrete if node.function == "percentile_disc" else _continuous
    values = let({"l": _values(dialect, node, order, around), "p": dialect.generate(arguments[0])}, "{}")
    if fraction.type.element is None:
        return exp.Var(this=values.replace("{}", one("v.l", "v.p")))
    return exp.Var(this=values.replace("{}", f"TRANSFORM(v.p, p -> {one('v.l', 'p')})"))


def _discrete(values: str, fraction: str) -> str:
    """The first value that so many of all are not above."""
    place = f"GREATEST(CAST(CEIL({fraction} * SIZE({values})) AS INT), 1) - 1"
    return f"IF({fraction} IS NULL, NULL, GET({values}, {_checked(fraction, place)}))"


def _continuous(values: str, fraction: str) -> str:
    """Between the two values around the place."""
    place = _checked(fraction, f"{fraction} * (SIZE({values}) - 1)")
    low, high = "GET(w.l, CAST(FLOOR(w.r) AS INT))", "GET(w.l, CAST(CEIL(w.r) AS INT))"
    between = f"IF({low} = {high}, {low}, {low} + (w.r - FLOOR(w.r)) * ({high} - {low}))"
    return f"TRANSFORM(ARRAY(NAMED_STRUCT('l', {values}, 'r', {place})), w -> {between})[0]"


def _checked(fraction: str, value: str) -> str:
    words = f"CONCAT('22003:percentile value ', CAST({fraction} AS STRING), ' is not between 0 and 1')"
    wrong = f"{fraction} < 0D OR {fraction} > 1D OR ISNAN({fraction})"
    return f"IF({wrong}, RAISE_ERROR({words}), {value})"


def _mode(dialect: Any, node: AggregateCall, arguments: list[Expr], order: list[Expr], around: Around) -> Expr:
    """The most frequent value; of several, the first in order: the first longest run of the sorted values."""
    kind = dialect.generate(dialect.type(node.type))
    start = f"NAMED_STRUCT('v', CAST(NULL AS {kind}), 'n', 0L, 'b', CAST(NULL AS {kind}), 'm', 0L)"
    count = "IF(a.n > 0L AND a.v = x, a.n + 1L, 1L)"
    step = f"NAMED_STRUCT('v', x, 'n', {count}, 'b', IF({count} > a.m, x, a.b), 'm', GREATEST({count}, a.m))"
    values = _values(dialect, node, order, around)
    return exp.Var(this=f"AGGREGATE({values}, {start}, (a, x) -> {step}, a -> a.b)")


def _within(dialect: Any, name: str, arguments: list[Expr], order: list[Expr], around: Around) -> Expr:
    """name(arguments) WITHIN GROUP (ORDER BY order) FILTER (WHERE ...)."""
    call = dialect.generate(function(name, *arguments))
    if order:
        call += f" WITHIN GROUP (ORDER BY {', '.join(map(dialect.generate, order))})"
    if around.where is not None:
        call += f" FILTER (WHERE {dialect.generate(around.where)})"
    return exp.Var(this=call)


GATHERED: Final[Mapping[str, Gathering]] = {
    "string_agg": _string_agg,
    "array_agg": _array_agg,
    "json_agg": _documents,
    "jsonb_agg": _documents,
    "percentile_cont": _percentile,
    "percentile_disc": _percentile,
    "mode": _mode,
}
