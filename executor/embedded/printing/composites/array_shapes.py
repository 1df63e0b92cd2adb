"""Expressions over arrays of any number of dimensions, which are structs of a list and a shape in DuckDB.

Owns: ``SHAPED``, the builders of their functions, and the conversion of such arrays to and from lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from catalog.values.types import INT4, INT8, TEXT, SqlType, array, shaped
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import bound, called, cast_to, macro
from executor.printing.nodes import Build, Expr, function
from planner.algebra.nodes import Call


def is_shaped(kind: SqlType) -> bool:
    """Whether values of a type carry their shape."""
    return kind.name == "shaped"


def shaped_type(items: Expr, shape: Expr) -> Expr:
    """The type of the struct, from the types of its fields."""
    fields = [
        exp.ColumnDef(this=exp.Identifier(this=name, quoted=True), kind=kind)
        for name, kind in (("items", items), ("shape", shape))
    ]
    return exp.DataType(this=exp.DataType.Type.STRUCT, expressions=fields, nested=True)


def parts(value: Expr) -> tuple[Expr, Expr]:
    """The list of an array's elements, and its shape."""
    return macro("ms_items", value.copy()), macro("ms_shape", value.copy())


def struct(fields: list[Expr]) -> Expr:
    """An array with these elements and this shape, neither of which is NULL."""
    names = (exp.Identifier(this=name, quoted=True) for name in ("items", "shape"))
    return exp.Struct(
        expressions=[exp.PropertyEQ(this=name, expression=field) for name, field in zip(names, fields, strict=True)]
    )


def with_shape(items: Expr, shape: Expr) -> Expr:
    """An array with these elements and this shape; NULL if either is NULL."""
    return macro("ms_with_shape", items, shape)


def over_items(value: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The array with its list of elements changed."""
    return bound(
        value, lambda given: with_shape(change(macro("ms_items", given.copy())), macro("ms_shape", given.copy()))
    )


def cast(
    printer: EntryPoints,
    argument: Expr,
    source: SqlType,
    target: SqlType,
    listed: Callable[[Expr, SqlType, SqlType], Expr],
) -> Expr:
    """A cast to or from arrays of any number of dimensions; ``listed`` casts lists of elements."""
    assert target.element is not None
    element = array(target.element)
    if is_shaped(target) and source.element is None:  # from a text
        items = listed(function("shape_items", argument), array(TEXT), element)
        found = with_shape(items, function("shape_read", argument.copy()))
    elif is_shaped(target) and is_shaped(source):
        assert source.element is not None
        inner = array(source.element)
        found = over_items(argument, lambda items: listed(items, inner, element))
    elif is_shaped(target):
        found = macro("ms_shaped", listed(argument, source, element))
    else:
        assert source.element is not None
        return listed(macro("ms_as_list", argument), array(source.element), element)
    return exp.Cast(this=found, to=printer.type(target))


def written(value: Expr, shown: Callable[[Expr], Expr], name: str = "shape_written") -> Expr:
    """An array's text, or another text that a function computes from its shape; ``shown`` computes the list of the
    elements' texts."""
    return bound(
        value,
        lambda given: function(name, shown(macro("ms_items", given.copy())), macro("ms_shape", given.copy())),
    )


def _named(name: str) -> Build:
    return lambda printer, arguments, node: called(name, *arguments)


def _retyped(name: str) -> Build:
    return lambda printer, arguments, node: cast_to(printer, called(name, *arguments), node.type)


def _places(printer: EntryPoints, places: list[Expr]) -> Expr:
    return cast_to(printer, exp.Array(expressions=places), array(INT4))


def _at(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return macro("ms_shaped_at", arguments[0], _places(printer, arguments[1:]))


def _slice(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    value, *bounds = arguments
    half = len(bounds) // 2
    low, high = (_places(printer, side) for side in (bounds[:half], bounds[half:]))
    return macro("ms_shaped_slice", value, low, high)


def _over_arrays(name: str) -> Build:
    """A function of a list of arrays, all converted to one form."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        inner = node.arguments[0].type.element
        assert inner is not None
        assert inner.element is not None
        given = arguments[0]
        if not is_shaped(inner):
            kind = exp.Identifier(this="a", quoted=True)
            one = exp.Lambda(this=macro("ms_shaped", exp.Column(this=kind)), expressions=[kind.copy()])
            given = cast_to(printer, function("list_transform", given, one), array(shaped(inner.element)))
        return cast_to(printer, macro(name, given), node.type)

    return build


def _empty(printer: EntryPoints, kind: SqlType) -> Expr:
    assert kind.element is not None
    return cast_to(printer, exp.Array(expressions=[]), array(kind.element))


def _put(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The array with a new element, or with new elements of a slice."""
    value, given, *bounds = arguments
    is_slice = is_shaped(node.arguments[1].type)
    half = len(bounds) // 2
    low, high = (
        cast_to(printer, exp.Array(expressions=side), array(INT8))
        for side in ((bounds[:half], bounds[half:]) if is_slice else (bounds, bounds))
    )
    values = macro("ms_items", given) if is_slice else exp.Array(expressions=[given])
    whether = exp.Boolean(this=is_slice)
    return cast_to(
        printer, macro("ms_shaped_put", value, _empty(printer, node.type), values, low, high, whether), node.type
    )


def _fill(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    value, sizes, *lowers = arguments
    units = exp.Lambda(this=exp.Literal.number(1), expressions=[exp.Identifier(this="a", quoted=True)])
    given = lowers or [cast_to(printer, function("list_transform", sizes.copy(), units), array(INT4))]
    found = macro("ms_filled", _empty(printer, node.type), value, function("shape_filled", sizes, *given))
    return cast_to(printer, found, node.type)


SHAPED: Final[Mapping[str, Build]] = {
    "shaped_items": _named("ms_items"),
    "shaped_ndims": _retyped("ms_shaped_ndims"),
    "shaped_dims": _named("ms_shaped_dims"),
    "shaped_length": _retyped("ms_shaped_length"),
    "shaped_lower": _retyped("ms_shaped_lower"),
    "shaped_upper": _retyped("ms_shaped_upper"),
    "shaped_subscripts": lambda printer, arguments, node: cast_to(
        printer, macro("ms_shaped_subscripts", *arguments, *([exp.false()] if len(arguments) == 2 else [])), node.type
    ),
    "shaped_at": _at,
    "shaped_slice": _slice,
    "shaped_cat": _named("ms_shaped_cat"),
    "shaped_replace": _named("ms_shaped_replace"),
    "shaped_put": _put,
    "stacked": _over_arrays("ms_stacked"),
    "gathered": _over_arrays("ms_gathered"),
    "array_fill": _fill,
}
