"""Numerics as texts with decimals of their own, texts with their blanks (``planner.scales``), also in arrays and rows.

Owns: ``scaled_text``; scales come in the form that the value has.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from catalog.values.scales import is_padded
from catalog.values.types import INT4, QUOTIENT, TEXT, UNCONSTRAINED, SqlType, array
from executor.embedded.functions.composites import array_shapes
from executor.embedded.printing.casts import own_text
from executor.embedded.printing.composites import rows
from executor.embedded.printing.composites.arrays import each
from executor.embedded.printing.nodes import bound, cast_to, macro
from executor.printing.nodes import Expr, case, function, number, operand
from planner.algebra.scalars import Call
from planner.scales.nested import has_scales


def scaled_text(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    """A number with its own decimals, and likewise each that is in an array or a row."""
    value, scale = arguments
    return _shown(printer, value, scale, node.arguments[0].type)


def _shown(printer: Any, value: Expr, scale: Expr, kind: SqlType) -> Expr:
    if kind.row is not None or kind.element is not None:
        body = _row if kind.row is not None else _array if kind.name == "array" else _shaped
        both = rows.struct([value, scale])  # bound together: one binding hides another
        return bound(both, lambda pair: body(printer, rows.field(pair, 1), rows.field(pair.copy(), 2), kind))
    if is_padded(kind):
        return macro("ms_padded", value, scale)
    digits = cast_to(printer, value, TEXT)
    if kind.modifiers == QUOTIENT:
        return function("quotient_shown", digits, cast_to(printer, scale, INT4))
    shown = macro("ms_scaled_text", digits, scale, exp.Literal.number(kind.scale))
    if kind.modifiers == UNCONSTRAINED or isinstance(scale, exp.Literal):
        return shown
    unknown = exp.Is(this=operand(scale.copy()), expression=exp.Null())
    return case([(unknown, own_text(digits.copy(), kind))], shown)


def _array(printer: Any, items: Expr, scales: Expr, kind: SqlType) -> Expr:
    element = kind.element
    assert element is not None
    pairs = function("list_zip", items.copy(), scales)
    shown = each(pairs, lambda pair: _shown(printer, _part(pair, 1), _part(pair, 2), element))
    return rows.unless_null(items, shown)


def _shaped(printer: Any, value: Expr, scales: Expr, kind: SqlType) -> Expr:
    """An array of any dimensions: its items in its shape."""
    assert kind.element is not None
    (items, shape), (own, _) = array_shapes.parts(value), array_shapes.parts(scales)
    return rows.unless_null(value, array_shapes.struct([_array(printer, items, own, array(kind.element)), shape]))


def _part(pair: Expr, place: int) -> Expr:
    return function("struct_extract", operand(pair.copy()), number(place))


def _row(printer: Any, row: Expr, scales: Expr, kind: SqlType) -> Expr:
    fields = [
        _shown(printer, value, rows.field(scales.copy(), place), each_kind) if has_scales(each_kind) else value
        for place, (_, each_kind, value) in enumerate(rows.fields(row, kind), 1)
    ]
    return rows.unless_null(row, rows.struct(fields))
