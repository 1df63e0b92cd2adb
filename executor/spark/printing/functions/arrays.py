"""Arrays in Spark SQL, for queries: constructors, subscripts, sizes, ANY and ALL.

Owns: ``ARRAYS``, the functions of arrays that Spark computes as PostgreSQL does. Subscripts count from 1 and give NULL
beyond the ends. NULL is an element like any other, and NULL instead of an array concatenates like an empty array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.types import BOOL, SqlType, array
from executor.printing.nodes import Build, Expr
from executor.spark.printing.nodes import cast, literal_int, once, refuse
from planner.algebra.nodes import Call, Literal

#: Elements whose text in an array is what Spark's cast makes.
_PLAIN: Final = frozenset(("int2", "int4", "int8", "text", "varchar", "name", "uuid"))


def _array(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    items = ", ".join(map(dialect.generate, arguments))
    return cast(exp.Var(this=f"ARRAY({items})"), dialect.generate(dialect.type(node.type)))


def _pattern(text: str) -> Build:
    def build(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
        return once(dialect, arguments, node, text)

    return build


def _quantified(name: str) -> Build:
    """Whether the comparison holds for any element, or for all, in three-valued logic."""

    def build(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
        comparison, left, items = node.arguments
        assert isinstance(comparison, Literal)
        assert items.type.element is not None
        call = Call(str(comparison.value), (left, Literal(None, items.type.element)), BOOL)
        test = dialect.generate(dialect.call(call, [arguments[1], exp.Var(this="e")]))
        return exp.Var(this=f"{name}({dialect.generate(arguments[2])}, e -> {test})")

    return build


def _length(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """Of the only dimension; an empty array has none."""
    if literal_int(node, 1) != 1:
        raise refuse(node, "of another dimension than the first")
    return once(dialect, arguments[:1], node, "IF({0} IS NULL, NULL, NULLIF(SIZE({0}), 0))")


def _put_together(left: str, right: str) -> Build:
    """Arrays or elements one after another."""

    def build(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
        kind = dialect.generate(dialect.type(node.type))
        parts = [f"COALESCE({item}, CAST(ARRAY() AS {kind}))" for item in (left, right)]
        joined = f"CONCAT({', '.join(parts)})"
        if left == "{0}" and right == "{1}":
            joined = f"IF({{0}} IS NULL AND {{1}} IS NULL, NULL, {joined})"
        return once(dialect, arguments, node, joined)

    return build


def _to_string(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    element = node.arguments[0].type.element
    if element is None or element.name not in _PLAIN:
        raise refuse(node)
    items = cast(arguments[0], "ARRAY<STRING>")
    return exp.Var(this=f"ARRAY_JOIN({', '.join(map(dialect.generate, [items, *arguments[1:]]))})")


def _series(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """generate_series() of integers."""
    element = node.type.element
    if element is None or element.name not in ("int4", "int8"):
        raise refuse(node)
    kind = dialect.generate(dialect.type(node.type))
    numbers = "SEQUENCE(CAST({0} AS BIGINT), CAST({1} AS BIGINT), CAST({2} AS BIGINT))"
    error = "RAISE_ERROR('22023:step size cannot equal zero')"
    return once(
        dialect,
        arguments,
        node,
        f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL WHEN {{2}} = 0 THEN {error}"
        f" WHEN ({{1}} < {{0}}) = ({{2}} < 0) OR {{0}} = {{1}} THEN CAST({numbers} AS {kind})"
        f" ELSE CAST(ARRAY() AS {kind}) END",
    )


ARRAYS: Final[Mapping[str, Build]] = {
    "array": _array,
    "any": _quantified("EXISTS"),
    "all": _quantified("FORALL"),
    "subscript": _pattern("IF({1} < 1, NULL, GET({0}, {1} - 1))"),
    "cardinality": _pattern("IF({0} IS NULL, NULL, SIZE({0}))"),
    "array_length": _length,
    "array_append": _put_together("{0}", "ARRAY({1})"),
    "array_prepend": _put_together("ARRAY({0})", "{1}"),
    "array_cat": _put_together("{0}", "{1}"),
    "array_to_string": _to_string,
    "series": _series,
}


def require_plain(kind: SqlType) -> None:
    """Raises 0A000 for an array of arrays, which no element of PostgreSQL's is."""
    if kind.element is not None and kind.element.element is not None:
        raise unsupported(f"type {kind}")


def ordered(value: str, kind: SqlType, depth: int = 0) -> str:
    """A value's SQL as what is ordered like it: a NULL in an array or row is greater than any other element or field,
    and of arrays of several dimensions those of equal elements go by their shapes. Below ``depth`` arrays."""
    if kind.name in ("json", "jsonb"):
        raise unsupported(f"ORDER BY {kind}")
    if kind.row is not None:
        fields = [(place, f"({value}).f{place}", field) for place, (_, field) in enumerate(kind.row.fields, 1)]
        parts = (f"'n{at}', {item} IS NULL, 'v{at}', {ordered(item, field, depth)}" for at, item, field in fields)
        return f"IF({value} IS NULL, NULL, NAMED_STRUCT({', '.join(parts)}))"
    if kind.element is None:
        return value
    if kind.name == "shaped":
        items = ordered(f"({value}).items", array(kind.element), depth)
        return f"IF({value} IS NULL, NULL, NAMED_STRUCT('v', {items}, 's', ({value}).shape))"
    item = f"e{depth}"
    below = ordered(item, kind.element, depth + 1)
    return f"TRANSFORM({value}, {item} -> NAMED_STRUCT('n', {item} IS NULL, 'v', {below}))"
