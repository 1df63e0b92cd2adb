"""Set-returning functions in FROM, in ROWS FROM, and in the select list.

Owns: the list of these functions and their calls. A call becomes a function whose value is an array, and an ``Unnest``
makes rows of it. The sets of one select list advance in step; a set that has ended gives NULL.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from catalog.values.errors import unsupported
from catalog.values.types import BOOL, INT4, TEXT, SqlType, array, record
from planner.algebra.nodes import Call, Case, Cast, ColumnRef, Literal, Scalar
from planner.bind.calls.families import json_functions as jsons
from planner.bind.calls.operator_calls.array_shapes import opened
from planner.bind.calls.overloading.choice import choose_overload
from planner.bind.calls.overloading.named_arguments import by_position
from planner.bind.calls.overloading.overloads import Overload, Table, signatures
from planner.bind.calls.overloading.polymorphic import coerced, result
from planner.bind.calls.system.catalog_calls import TABLE_NAMES, bind_lists
from planner.bind.conversion.array_items import is_shaped
from planner.bind.conversion.coercion import array_of, coerce, common_numeric
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Environment

_STAMPS: Final = "; timestamp timestamp interval > timestamp; timestamptz timestamptz interval > timestamptz"
_SIGNATURES: Final[dict[str, str]] = {
    "generate_series": "series: "
    + "; ".join(f"{kind} {kind} > {kind}; {kind} {kind} {kind} > {kind}" for kind in ("int4", "int8", "numeric"))
    + _STAMPS,
    "generate_subscripts": "array_subscripts: anyarray int4 > int4; anyarray int4 bool > int4",
    "unnest": "=: anyarray > anyelement | multirange_parts: anymultirange > anyrange",
    "regexp_split_to_table": "regexp_split_to_array: text text > text; text text text > text",
    "regexp_matches": "=: text text > text; text text text > text",
    "string_to_table": "string_to_array: text text > text; text text text > text",
}
FUNCTIONS: Final[dict[str, Table]] = {name: signatures(name, text) for name, text in _SIGNATURES.items()}


#: The clause of what a function in FROM takes.
FROM: Final = "functions in FROM"
NAMES: Final = frozenset(FUNCTIONS) | frozenset(jsons.SETS) | TABLE_NAMES


class SetColumn(Struct, frozen=True):
    """A column of a function in FROM: its values as an array; ``fixed`` where no alias of the table renames it."""

    name: str
    values: Scalar
    fixed: bool = False


def is_set(node: Any) -> bool:
    """Whether a parse node is a call of a set-returning function."""
    return type(node).__name__ == "FuncCall" and names_of(node.funcname)[-1] in NAMES


def bind_in_expression(env: Environment, node: Any) -> Scalar:
    """A call in an expression: registered with the query level, whose row then has its value as a column."""
    require_allowed(env, node)
    columns = bind_columns(env, node)
    found = [_registered(env, node, column.values) for column in columns]
    return found[0] if len(found) == 1 else _row(env, node, found, columns)


def rows_in_expression(env: Environment, node: Any, values: Scalar) -> Scalar:
    """A call in an expression whose rows are the elements of an array."""
    require_allowed(env, node)
    return _registered(env, node, values)


def _registered(env: Environment, node: Any, values: Scalar) -> ColumnRef:
    assert env.sets is not None
    name = names_of(node.funcname)[-1]
    found = ColumnRef(env.sets.add(env.binding, name, values))
    env.binding.remember(found, node, name)
    return found


def require_allowed(env: Environment, node: Any) -> None:
    """Raises 0A000 where no set may be called."""
    hint = "You might be able to move the set-returning function into a LATERAL FROM item."
    for inside, words in ((env.in_aggregate, "aggregate"), (env.in_window, "window")):
        if inside:
            message = f"{words} function calls cannot contain set-returning function calls"
            raise env.error("0A000", message, node, hint=hint)
    if env.clause == FROM:
        raise env.error("0A000", "set-returning functions must appear at top level of FROM", node)
    if env.sets is None:
        where = hint if env.clause in ("CASE", "COALESCE") else None
        raise env.error("0A000", f"set-returning functions are not allowed in {env.clause}", node, hint=where)


def _row(env: Environment, node: Any, columns: list[ColumnRef], described: tuple[SetColumn, ...]) -> Scalar:
    """The row of a set's columns, NULL where the set has ended before others of its select list."""
    if names_of(node.funcname)[-1] not in jsons.SETS:
        raise unsupported(
            f"{names_of(node.funcname)[-1]}() in a select list", "Put it into FROM.", env.binding.position(node)
        )
    kind = record(*((column.name, ref.type) for column, ref in zip(described, columns, strict=True)))
    row = Call("row", tuple(columns), kind)
    return Case(((Call("is_null", (columns[0],), BOOL), Literal(None, kind)),), row, kind)


def bind_columns(env: Environment, node: Any) -> tuple[SetColumn, ...]:
    """What a function in FROM yields, column by column; one that returns no set is a set of one."""
    if not is_set(node):
        scalar = env.bind(node)
        if scalar.type.name == "unknown":
            scalar = coerce(env.binding, scalar, TEXT) or scalar
        return (SetColumn("", array_of([scalar], scalar.type)),)
    node = by_position(env, node)
    name = names_of(node.funcname)[-1]
    if name in TABLE_NAMES:
        return tuple(SetColumn(label, values, True) for label, values in bind_lists(env, node))
    if name in jsons.SETS:
        return tuple(SetColumn(label, values, bool(label)) for label, values in jsons.bind_set(env, node))
    arguments = [env.bind(item) for item in node.args or ()]
    chosen = choose_overload(env, name, arguments, node, FUNCTIONS[name])
    if chosen.name == "array_subscripts" and is_shaped(arguments[0]):
        return (SetColumn(name, Call("shaped_subscripts", tuple(arguments), array(INT4))),)
    given = coerced(env, chosen, opened(chosen.name, arguments), node.args or ())
    return (SetColumn(name, _values(env, chosen, given, node)),)


def _values(env: Environment, chosen: Overload, arguments: list[Scalar], node: Any) -> Scalar:
    if chosen.name == "unnest":
        return arguments[0]
    kind = result(chosen, arguments)
    if chosen.name == "regexp_matches":
        return Call(
            chosen.name, (*arguments, *([Literal("", TEXT)] if len(arguments) == 2 else [])), array(array(TEXT))
        )
    if chosen.name == "series":
        return _series(env, arguments, kind, node)
    return Call(chosen.name, tuple(arguments), array(kind))


def _series(env: Environment, arguments: list[Scalar], kind: SqlType, node: Any) -> Scalar:
    """generate_series(first, last, step); numerics of one number of digits."""
    if kind.name == "numeric":
        kind = common_numeric([item.type for item in arguments])
        arguments = [Cast(item, kind) if item.type != kind else item for item in arguments]
    if len(arguments) == 2:
        arguments = [*arguments, _one(env, kind)]
    return Call("series", tuple(arguments), array(kind))


def _one(env: Environment, kind: SqlType) -> Scalar:
    found = coerce(env.binding, Literal("1", SqlType("unknown")), kind)
    assert found is not None, "every number type reads 1"
    return found
