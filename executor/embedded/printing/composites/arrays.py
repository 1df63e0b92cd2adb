"""Arrays in DuckDB: lists, whose functions treat NULL and bounds differently from PostgreSQL's.

Owns: ``ARRAYS``, the functions of arrays. A lambda over the list computes the elements; values from outside are bound
before, as a lambda must not contain a subquery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from catalog.values.types import BOOL, TEXT, SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import called, cast_to, each, macro
from executor.printing.nodes import Build, Expr, function
from planner.algebra.nodes import Call, Literal


def _array(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return cast_to(printer, exp.Array(expressions=arguments), node.type)


def _quantified(name: str) -> Build:
    """Whether a comparison is true for any element, or for all, in three-valued logic."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        comparison, left, items = node.arguments
        assert isinstance(comparison, Literal)
        assert items.type.element is not None
        call = Call(str(comparison.value), (left, Literal(None, items.type.element)), BOOL)
        bound = exp.Struct(expressions=[_field("x", arguments[1]), _field("items", arguments[2])])
        outer = exp.Identifier(this="q", quoted=True)
        results = each(_member(outer, "items"), lambda item: printer.call(call, [_member(outer, "x"), item]))
        body = exp.Lambda(this=called(f"ms_{name}", results), expressions=[outer])
        answers = function("list_transform", exp.Array(expressions=[bound]), body)
        return function("list_extract", answers, exp.Literal.number(1))

    return build


def _element(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The parameter of a ``for_each`` lambda; nested lambdas have different names."""
    (depth,) = node.arguments
    assert isinstance(depth, Literal)
    return exp.Column(this=exp.Identifier(this=f"element{depth.value}", quoted=True))


def _for_each(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    items, element, result = arguments
    return function("list_transform", items, exp.Lambda(this=result, expressions=[element.this]))


def _field(name: str, value: Expr) -> Expr:
    return exp.PropertyEQ(this=exp.Identifier(this=name, quoted=True), expression=value)


def _member(outer: Expr, name: str) -> Expr:
    return exp.Column(this=exp.Identifier(this=name, quoted=True), table=outer.copy())


def _named(name: str) -> Build:
    return lambda printer, arguments, node: called(name, *arguments)


def _retyped(name: str) -> Build:
    return lambda printer, arguments, node: cast_to(printer, called(name, *arguments), node.type)


def _flipped(name: str) -> Build:
    return lambda printer, arguments, node: called(name, arguments[1], arguments[0])


def _appended(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return called("ms_array_cat", arguments[0], _single(printer, arguments[1], node.type))


def _prepended(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return called("ms_array_cat", _single(printer, arguments[0], node.type), arguments[1])


def _joined(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """Concatenation; a NULL array keeps its type."""
    absent = [isinstance(item, Literal) and item.value is None for item in node.arguments]
    typed = [
        cast_to(printer, item, node.type) if is_null else item for item, is_null in zip(arguments, absent, strict=True)
    ]
    return called("ms_array_cat", *typed)


def _single(printer: EntryPoints, value: Expr, kind: SqlType) -> Expr:
    return cast_to(printer, exp.Array(expressions=[value]), kind)


def _alike(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """A scale for each element; arrays with a shape get the shape of the result."""
    items, scale = arguments
    if node.arguments[0].type.name == "shaped":
        return called("ms_shaped_alike", items, scale)
    found = called("ms_scales_alike", items, scale)
    return called("ms_shaped", found) if node.type.name == "shaped" else found


def _position(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    name = "ms_array_position" if len(arguments) == 2 else "ms_array_position_from"
    return cast_to(printer, macro(name, *arguments), node.type)


def _to_string(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """array_to_string: elements by their output functions."""
    element = node.arguments[0].type.element
    assert element is not None
    shown_items = each(arguments[0], lambda item: printer.shown(item, element))
    null = arguments[2] if len(arguments) == 3 else cast_to(printer, exp.null(), TEXT)
    return macro("ms_array_to_string", shown_items, arguments[1], null)


def _from_string(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    null = arguments[2] if len(arguments) == 3 else cast_to(printer, exp.null(), TEXT)
    return macro("ms_string_to_array", arguments[0], arguments[1], null)


ARRAYS: Final[Mapping[str, Build]] = {
    "array": _array,
    "any": _quantified("any"),
    "all": _quantified("all"),
    "for_each": _for_each,
    "element": _element,
    "subscript": _named("ms_subscript"),
    "slice": _named("ms_slice"),
    "cardinality": _retyped("len"),
    "array_ndims": _retyped("ms_array_ndims"),
    "array_dims": _named("ms_array_dims"),
    "array_length": _retyped("ms_array_length"),
    "array_lower": _retyped("ms_array_lower"),
    "array_append": _appended,
    "array_prepend": _prepended,
    "array_cat": _joined,
    "array_remove": _named("ms_array_remove"),
    "array_replace": _named("ms_array_replace"),
    "scales_without": _named("ms_scales_without"),
    "scales_with": _named("ms_scales_with"),
    "scales_alike": _alike,
    "scales_once": _named("ms_scales_once"),
    "array_position": _position,
    "array_positions": _retyped("ms_array_positions"),
    "bucket_of": _retyped("ms_bucket_of"),
    "array_to_string": _to_string,
    "string_to_array": _from_string,
    "trim_array": _named("ms_trim_array"),
    **{f"percentile_{kind}_at": _named(f"ms_percentile_{kind}_at") for kind in ("cont", "disc")},
    "array_contains": _named("ms_array_contains"),
    "array_contained": _flipped("ms_array_contains"),
    "array_overlaps": _named("list_has_any"),
    "array_has": _flipped("list_contains"),
}
