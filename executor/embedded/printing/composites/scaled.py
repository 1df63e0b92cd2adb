"""Numerics with their own display scale, as texts, and character values with their blanks (``planner.scales``), also
within arrays and rows.

Owns: ``scaled_text``, and ``written_scale``, which reads the scale from a text. The scales of an array or a row have
the structure of the value.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from catalog.values.scales import is_padded, is_unconstrained
from catalog.values.types import INT4, NUMERIC, QUOTIENT, TEXT, UNCONSTRAINED, SqlType, array
from executor.embedded.printing.composites import array_shapes, rows
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import bound, cast_to, each, macro
from executor.embedded.printing.numbers.arithmetic import own_text
from executor.printing.nodes import Expr, case, function, number, operand
from planner.algebra.nodes import Call, Literal, Parameter
from planner.scales.nested import has_scales


def scaled_text(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """A number as text with its own display scale, also each number within an array or a row."""
    value, scale = arguments
    return _shown(printer, value, scale, node.arguments[0].type)


def written_scale(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The scale with which a value is written: a parameter keeps its digits and blanks until it is cast to its type, a
    literal is written in the query. For an array or a row prepared for output, a second argument has the type."""
    argument, value = node.arguments[0], arguments[0]
    if len(node.arguments) == 2:
        return _written_scale(printer, value, node.arguments[1].type, shown=True)
    if isinstance(argument, Literal) and is_padded(argument.type) and argument.value is not None:
        return number(len(str(argument.value)))
    if isinstance(argument, Literal) and isinstance(argument.value, Decimal):
        exponent = argument.value.as_tuple().exponent
        return exp.Literal.number(max(-exponent, 0) if isinstance(exponent, int) else 0)
    if isinstance(argument, Parameter):
        given = value.find(exp.Parameter)
        assert given is not None
        return _written_scale(printer, given, argument.type)
    return _written_scale(printer, value, NUMERIC)


def _written_scale(printer: EntryPoints, written: Expr, kind: SqlType, shown: bool = False) -> Expr:
    """The decimals of a number's text, also of each within an array or a row. A value prepared for output may have more
    decimals than a numeric of undeclared scale keeps, whatever its type."""
    if kind.name == "shaped" and kind.element is not None:
        items, shape = array_shapes.parts(written)
        inner = _written_scale(printer, items, array(kind.element), shown)
        return rows.unless_null(written, array_shapes.struct([inner, shape]))
    if kind.element is not None:
        element = kind.element
        return rows.unless_null(
            written, each(written.copy(), lambda item: _written_scale(printer, item, element, shown))
        )
    if kind.row is not None:
        fields = (
            _written_scale(printer, value, each_kind, shown) for _, each_kind, value in rows.fields(written, kind)
        )
        return rows.unless_null(written, rows.struct(list(fields)))
    if is_padded(kind):
        return cast_to(printer, function("length", written), SqlType("int4"))
    if shown and kind.name == "numeric":
        return macro("ms_shown_scale", written)
    if not is_unconstrained(kind):
        return exp.Null()
    return macro("ms_written_scale", cast_to(printer, written, TEXT))


def _shown(printer: EntryPoints, value: Expr, scale: Expr, kind: SqlType) -> Expr:
    if kind.row is not None or kind.element is not None:
        body = _row if kind.row is not None else _array if kind.name == "array" else _shaped
        both = rows.struct([value, scale])  # bound together, since one binding hides another
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


def _array(printer: EntryPoints, items: Expr, scales: Expr, kind: SqlType) -> Expr:
    element = kind.element
    assert element is not None
    pairs = function("list_zip", items.copy(), scales)
    shown = each(pairs, lambda pair: _shown(printer, _part(pair, 1), _part(pair, 2), element))
    return rows.unless_null(items, shown)


def _shaped(printer: EntryPoints, value: Expr, scales: Expr, kind: SqlType) -> Expr:
    """An array of any number of dimensions: its items with its shape."""
    assert kind.element is not None
    (items, shape), (own, _) = array_shapes.parts(value), array_shapes.parts(scales)
    return rows.unless_null(value, array_shapes.struct([_array(printer, items, own, array(kind.element)), shape]))


def _part(pair: Expr, place: int) -> Expr:
    return function("struct_extract", operand(pair.copy()), number(place))


def _row(printer: EntryPoints, row: Expr, scales: Expr, kind: SqlType) -> Expr:
    fields = [
        _shown(printer, value, rows.field(scales.copy(), place), each_kind) if has_scales(each_kind) else value
        for place, (_, each_kind, value) in enumerate(rows.fields(row, kind), 1)
    ]
    return rows.unless_null(row, rows.struct(fields))
