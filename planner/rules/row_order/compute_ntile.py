"""ntile by a computed number, of what every engine has: those that take one use that of each row, not of the first one.

    ntile(n)    of the row's number i of c, with q = c / n and r = c % n: the first r buckets have q + 1 rows
                    i <= r * (q + 1):  (i - 1) / (q + 1) + 1        else:  (i - 1 - r) / q + 1

n is that of a partition's first row, as in PostgreSQL; where that is NULL and another is not, 0A000.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT4, INT8, TEXT, SqlType
from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Literal,
    Project,
    Relation,
    Scalar,
    Window,
    WindowCall,
)
from planner.algebra.walk import calls_of, transform_relations
from planner.rules.row_order.number_rows import is_constant

_ZERO: Final = Literal(0, INT8)
_ONE: Final = Literal(1, INT8)
_WRONG: Final = {"ntile": "22014", "nth_value": "22016"}


def compute_ntile(relation: Relation) -> Relation:
    """The relation without such calls."""
    return transform_relations(relation, partial(_change, Fresh(relation)), calls_of("ntile"))


def _change(fresh: Fresh, node: Any) -> Any:
    if not isinstance(node, Window) or not any(_is_computed(call) for _, call in node.calls):
        return node
    parts: list[tuple[Column, WindowCall]] = []
    outputs: list[tuple[Column, Scalar]] = []
    for column, call in node.calls:
        made, value = _parts(call, fresh) if _is_computed(call) else (((column, call),), ColumnRef(column))
        parts += made
        outputs.append((column, value))
    passed = ((column, ColumnRef(column)) for column in node.input.columns)
    return Project(replace(node, calls=tuple(parts)), (*passed, *outputs))


def _is_computed(call: WindowCall) -> bool:
    return call.function == "ntile" and not is_constant(call.arguments[0])


def _parts(call: WindowCall, fresh: Fresh) -> tuple[tuple[tuple[Column, WindowCall], ...], Scalar]:
    """The calls that one is made of, and what it is of them."""
    (number,) = call.arguments
    bare = WindowCall("row_number", (), INT8, call.partition, call.order_by, mode="rows")
    whole = WindowCall("count", (), INT8, call.partition)
    named = (
        ("row_number", bare),
        ("rows", whole),
        ("known", replace(whole, arguments=(number,))),
        ("buckets", replace(bare, function="first_value", arguments=(number,), type=number.type)),
    )
    calls = tuple((fresh.column(name, item.type), item) for name, item in named)
    row, rows, known, first = (ColumnRef(column) for column, _ in calls)
    value = checked(call, first, Cast(Call("add", (_bucket(row, rows, Cast(first, INT8)), _ONE), INT8), INT4))
    others = Call("and", (Call("is_null", (first,), BOOL), Call("gt", (known, _ZERO), BOOL)), BOOL)
    unclear = _error("0A000", "ntile of a number that is NULL in a partition's first row only is not supported", INT4)
    return calls, Case(((others, unclear),), value, INT4)


def _bucket(row: Scalar, rows: Scalar, buckets: Scalar) -> Scalar:
    """A row's bucket, from zero on."""
    size, rest = Call("div", (rows, buckets), INT8), Call("mod", (rows, buckets), INT8)
    larger, before = Call("add", (size, _ONE), INT8), Call("sub", (row, _ONE), INT8)
    in_larger = Call("le", (row, Call("mul", (rest, larger), INT8)), BOOL)
    behind = Call("div", (Call("sub", (before, rest), INT8), size), INT8)
    return Case(((in_larger, Call("div", (before, larger), INT8)),), behind, INT8)


def checked(call: WindowCall, number: Scalar, value: Scalar) -> Scalar:
    """The value, NULL where the call's number is, or the error of one below one."""
    error = _error(_WRONG[call.function], f"argument of {call.function} must be greater than zero", call.type)
    is_wrong = Call("lt", (number, Literal(1, number.type)), BOOL)
    is_null = Call("is_null", (number,), BOOL)
    return Case(((is_null, Literal(None, call.type)), (is_wrong, error)), value, call.type)


def _error(state: str, message: str, kind: SqlType) -> Call:
    return Call("error", (Literal(state, TEXT), Literal(message, TEXT)), kind)
