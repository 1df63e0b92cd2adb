"""The results of set-returning functions in DuckDB: lists, and for generate_series of integers a table.

Owns: ``SETS``, the builders of these lists, and ``table``, which needs no memory for a long series.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.types import VECTORS
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import cast_to, macro
from executor.printing.nodes import Build, Expr, case, column_name, function, identifier, number, operand, text
from planner.algebra.nodes import Call, Cast, Literal, Unnest, Values
from planner.algebra.walk import RELATIONS, used_columns, walk

_INTEGERS: Final = ("int4", "int8")
#: The most digits of a numeric step for which its product with a number of steps stays within 38 digits.
_STEP: Final = 20


def table(printer: EntryPoints, node: Unnest, alias: str) -> Expr | None:
    """generate_series(first, last, step) of integers in FROM, with arguments that use no other item of FROM."""
    if len(node.items) != 1 or node.ordinality is not None or node.input != Values((), ((),)):
        return None
    ((column, call),) = node.items
    if not isinstance(call, Call) or call.function != "series" or column.type.name not in _INTEGERS:
        return None
    if used_columns(call) or any(isinstance(item, RELATIONS) for item in walk(call)):
        return None
    bigint = exp.DataType(this=exp.DataType.Type.BIGINT)
    bounds = [exp.Cast(this=printer.expression(item), to=bigint.copy()) for item in call.arguments]
    value = exp.Column(this=identifier("i"))
    rows = exp.Alias(
        this=function("generate_series", *bounds),
        alias=exp.TableAlias(this=identifier(f"{alias}s"), columns=[identifier("i")]),
    )
    outputs = [exp.Alias(this=cast_to(printer, value, column.type), alias=identifier(column_name(column)))]
    select = exp.Select(expressions=outputs, from_=exp.From(this=rows))
    return exp.Subquery(this=select, alias=exp.TableAlias(this=identifier(alias)))


def _series(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """generate_series() as a list; each timestamp is the one before it plus the step, as in PostgreSQL."""
    element = node.type.element
    assert element is not None
    if element.name == "numeric":
        if element.precision > _STEP:
            raise unsupported("generate_series() of numerics of many digits", "Cast to numeric(20, s).")
        return cast_to(printer, macro("ms_numeric_series", *arguments), node.type)
    if element.name == "timestamptz" and printer.timezone != "UTC":
        return cast_to(printer, macro("ms_zoned_moments", *arguments, text(printer.timezone)), node.type)
    name = "ms_series" if element.name in _INTEGERS else "ms_moments"
    return cast_to(printer, macro(name, *arguments), node.type)


def _subscripts(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    values = node.arguments[0]
    while isinstance(values, Cast):
        values = values.argument
    is_vector = values.type.name in VECTORS  # it begins at 0, like the subscripts of the vector
    low, dimension = number(0 if is_vector else 1), node.arguments[1]
    if len(arguments) == 2:
        count = function("len", arguments[0])
        places = function("generate_series", low, exp.Sub(this=count, expression=number(1)) if is_vector else count)
        if not (isinstance(dimension, Literal) and dimension.value == 1):
            places = case([(exp.EQ(this=operand(arguments[1]), expression=number(1)), places)], None)
        return cast_to(printer, places, node.type)
    return cast_to(printer, macro("ms_array_subscripts", arguments[0], arguments[1], arguments[2], low), node.type)


SETS: Final[Mapping[str, Build]] = {
    "series": _series,
    "array_subscripts": _subscripts,
}
