"""Casts in DuckDB with PostgreSQL's results: rounding, text forms, lengths and errors.

Owns: ``cast``. A cast to text is the type's output function, and one from text its input function (with the syntax that
DuckDB reads). Rounding: numeric to integer and to a smaller scale half away from zero (like DuckDB), float to integer
half to even (like DuckDB), float to numeric by its 15 (float4: 6) significant digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.identifiers import LONGEST_NAME
from catalog.values.nested_types import delimiter_of
from catalog.values.opaque import FORMED
from catalog.values.times.precision import expressed
from catalog.values.types import (
    BITS,
    DISPLAY,
    INTERNAL,
    MULTIRANGES,
    NUMERIC,
    OIDS,
    OPAQUE,
    RANGES,
    ROUNDED,
    SPANS,
    TEXT,
    UNCONSTRAINED,
    VECTORS,
    SqlType,
    array,
)
from executor.embedded.printing.composites import array_shapes, multiranges, ranges
from executor.embedded.printing.composites.rows import cast_row, fields, row_text, struct, unless_null
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import FLOATS, INTEGERS, TEXTS, bound, each, is_simple, local, macro
from executor.embedded.printing.numbers.arithmetic import own_text
from executor.embedded.printing.times import reading, timetz
from executor.printing.nodes import Expr, case, function, number, operand, text
from planner.algebra.nodes import Cast, Literal, Value
from planner.scales.nested import shown_kind

#: The day before which a text may end with BC.
_EARLY: Final = "0001-01-03"
_DOCUMENTS: Final = frozenset(("json", "jsonb"))


def cast(printer: EntryPoints, argument: Expr, node: Cast) -> Expr:
    """One expression converted to a type."""
    source, target = node.argument.type, node.type
    if expressed(source) == target:
        return argument
    if target.name in ROUNDED and target.modifiers:
        return reading.fitted(cast(printer, argument, replace(node, type=expressed(target))), target)
    if target.element is not None:
        return _elements(printer, argument, node)
    if target.row is not None and source.row is not None:
        return _row(printer, argument, node)
    if target.name in BITS:
        return _bits(argument, node)
    if (target.name in FORMED or target.name in INTERNAL) and source.name not in OPAQUE:
        return function(f"form_{target.name}", to_text(printer, argument, source))
    if (source.name, target.name) == ("int4", "char"):
        return macro("ms_number_char", argument)
    if (source.name, target.name) == ("char", "int4"):
        return macro("ms_char_number", argument)
    if (source.name, target.name) == ("oid", "int4"):
        return macro("ms_oid_number", argument)
    if target.name in TEXTS:
        return _length(to_text(printer, argument, source), source, target, node.explicit)
    if source.name in TEXTS:
        return _from_text(printer, argument, target)
    if source.name == "numeric" == target.name:
        if target.modifiers == UNCONSTRAINED and source.scale > target.scale and not source.is_loose:
            return macro("ms_narrow18", argument)  # an implicit cast does not round
        same = source.scale == target.scale and source.precision <= target.precision and not printer.wide
        return argument if same else _to(printer, argument, source, target)
    if source.name in FLOATS and target.name == "numeric":
        written = function(
            "printf", text("%.15g" if source.name == "float8" else "%.6g"), _plain(printer, argument, "float8")
        )
        return exp.Cast(this=written, to=printer.type(target))
    if (source.name, target.name) == ("float8", "float4"):
        return macro("ms_float_real", argument)
    if target.name in OIDS and source.name in OIDS:
        return argument
    if target.name in OIDS and source.name in INTEGERS - OIDS:
        if isinstance(node.argument, Literal) and _is_oid(node.argument.value):
            return printer.literal(Literal(node.argument.value, target))
        return macro("ms_oid_wide" if source.name == "int8" else "ms_oid", argument)
    return _times(printer, argument, source, target)


def _is_oid(value: Value) -> bool:
    """Whether a value is an integer that serves as an oid unchanged."""
    return isinstance(value, int) and 0 <= value < 1 << 32


def _bits(argument: Expr, node: Cast) -> Expr:
    """A bit string, read from a text, with its declared length: an explicit cast truncates or pads it."""
    source, target = node.argument.type, node.type
    digits = argument if source.name in BITS else function(f"form_{target.name}", argument)
    if not target.modifiers or source == target:
        return digits
    size = exp.Literal.number(target.modifiers[0])
    if not node.explicit:
        return function("bits_fit", digits, text(target.name), size)
    return function("rpad", digits, size, text("0")) if target.name == "bit" else function("left", digits, size)


def _to(printer: EntryPoints, argument: Expr, source: SqlType, target: SqlType) -> Expr:
    return argument if source == target else exp.Cast(this=argument, to=printer.type(target))


def _elements(printer: EntryPoints, argument: Expr, node: Cast) -> Expr:
    """From an array of another type, element by element; a parameter already has its own digits."""
    source, target = node.argument.type, node.type
    assert target.element is not None
    if "shaped" in (source.name, target.name):
        return array_shapes.cast(
            printer,
            argument,
            source,
            target,
            lambda items, one, other: _elements(printer, items, Cast(Literal(None, one), other, node.explicit)),
        )
    if source.name in TEXTS:
        argument, source = function("array_elements", argument), array(TEXT)
    if source.element is None:
        raise unsupported(f"a cast from {source} to {target}", "Cast a constant, or use string_to_array().")
    if source.element == target.element or {source.element.name, target.element.name} <= OIDS:  # a vector as an array
        return exp.Cast(this=argument, to=printer.type(target))
    item = Cast(Literal(None, source.element), target.element, node.explicit)
    return exp.Cast(this=each(argument, lambda one: cast(printer, one, item)), to=printer.type(target))


def _row(printer: EntryPoints, argument: Expr, node: Cast) -> Expr:
    """From a row with the same fields, or from a row prepared for output, whose numbers are texts."""
    source, target = node.argument.type, node.type
    if node.explicit or source != shown_kind(target):
        return cast_row(printer, argument, source, target)
    assert source.row is not None
    assert target.row is not None
    others = [kind for _, kind in target.row.fields]

    def build(row: Expr) -> Expr:
        read = zip(fields(row, source), others, strict=True)
        items = [cast(printer, value, Cast(Literal(None, kind), other)) for (_, kind, value), other in read]
        return unless_null(row, struct(items))

    return exp.Cast(this=bound(argument, build), to=printer.type(target))


def _plain(printer: EntryPoints, argument: Expr, name: str) -> Expr:
    return exp.Cast(this=argument, to=printer.type(SqlType(name)))


def _times(printer: EntryPoints, argument: Expr, source: SqlType, target: SqlType) -> Expr:
    """Between date and time types (with the session's time zone between timestamptz and the others), and all remaining
    casts."""
    pair = (source.name, target.name)
    if pair == ("json", "jsonb"):
        return function("doc_jsonb", argument)
    if source.name == "jsonb" and (target.name in (*INTEGERS, *FLOATS) or target.name in ("numeric", "bool")):
        return jsonb_value(printer, argument, target)
    if _DOCUMENTS & set(pair) and not _DOCUMENTS.issuperset(pair):
        raise unsupported(f"a cast from {source} to {target}", "Take the text with ->> '{}' and cast that.")
    if "timetz" in pair:
        return timetz.cast(printer, argument, source, target)
    if "uuid" in pair or _DOCUMENTS & set(pair):
        return argument
    if source.name == "timestamptz" and target.name in ("timestamp", "date", "time"):
        return _times(printer, local(printer, argument), SqlType("timestamp"), target)
    if pair == ("timestamp", "time"):  # an infinite timestamp has no time of day
        return exp.TryCast(this=argument, to=printer.type(target))
    if target.name == "timestamptz" and source.name in ("timestamp", "date"):
        return local(printer, _to(printer, argument, source, SqlType("timestamp")))
    if source.name == "time" and target.name == "interval":
        return function("to_microseconds", function("epoch_us", argument))
    if source.name == "interval" and target.name == "time":  # the time of day at this distance from midnight
        midnight = _plain(printer, text("00:00:00"), "time")
        return operand(exp.Add(this=midnight, expression=macro("ms_interval_time", argument)))
    return _to(printer, argument, source, target)


def to_text(printer: EntryPoints, argument: Expr, source: SqlType) -> Expr:
    """A value's text as PostgreSQL's output function writes it."""
    if source.name in VECTORS:
        return function("array_to_string", argument, text(" "))
    if source.name == "shaped" and source.element is not None:
        element = source.element
        return array_shapes.written(argument, lambda items: _item_texts(printer, items, element))
    if source.element is not None:
        return _array_text(printer, argument, source.element)
    if source.row is not None:
        return row_text(argument, source, lambda value, kind: shown(printer, value, kind))
    if source.enum is not None:
        return _looked_up(argument, source.enum.places, source.enum.labels)
    if source.name in RANGES:
        return ranges.written(argument, source, lambda value, kind: to_text(printer, value, kind))
    if source.name in MULTIRANGES:
        return multiranges.written(argument, source, lambda value, kind: to_text(printer, value, kind))
    match source.name:
        case "bpchar":
            return function("rtrim", argument, text(" "))
        case "numeric" if source.is_loose:
            return own_text(_plain(printer, argument, "text"), source)
        case "float8" | "float4":
            return macro("ms_float_text", argument, exp.Literal.number(15 if source.name == "float8" else 6))
        case "bytea":
            return operand(exp.DPipe(this=text("\\x"), expression=function("lower", function("hex", argument))))
        case "interval":
            return macro("ms_interval_text", argument)
        case "timetz":
            return macro("ms_timetz_text", argument)
        case "money":
            return function("money_text", argument)
        case "timestamptz":
            return macro("ms_era_text", _zoned_text(printer, argument))
        case "date" | "timestamp":
            return _with_era(printer, argument, source, _plain(printer, argument, "text"))
        case "uuid" | "json" | "jsonb" | "jsonpath":
            return argument
        case name if name in TEXTS:
            return argument
        case _:
            return _plain(printer, argument, "text")


def jsonb_value(printer: EntryPoints, value: Expr, target: SqlType) -> Expr:
    """jsonb as a number or a boolean."""
    if target.name == "bool":
        return function("doc_boolean", value)
    digits = function("doc_number", value, text(DISPLAY.get(target.name, target.name)))
    if target.name in INTEGERS:
        digits = exp.Cast(this=digits, to=printer.type(NUMERIC))
    return exp.Cast(this=digits, to=printer.type(target))


def _looked_up(value: Expr, these: Sequence[int | str], those: Sequence[int | str]) -> Expr:
    """The item of ``those`` at the place where ``these`` has the value; NULL if none has it."""
    keys, values = (
        exp.Array(expressions=[text(item) if isinstance(item, str) else number(item) for item in items])
        for items in (these, those)
    )
    return function("list_extract", values, function("list_position", keys, value))


def _with_era(printer: EntryPoints, argument: Expr, source: SqlType, written: Expr) -> Expr:
    """A date's or timestamp's text with BC at its end if needed. A column's year is checked, which is quicker than
    checking the text; another expression would have to be computed twice for that."""
    moved = macro("ms_era_text", written)
    if not is_simple(argument):
        return moved
    early = exp.LT(this=argument.copy(), expression=_plain(printer, text(_EARLY), source.name))
    return case([(early, moved)], written.copy())


def _zoned_text(printer: EntryPoints, argument: Expr) -> Expr:
    shown = _plain(printer, local(printer, argument), "text")
    infinite = (function("isinf", argument.copy()), shown.copy())
    if printer.timezone == "UTC":
        return case([infinite], operand(exp.DPipe(this=shown, expression=text("+00"))))
    utc = function("timezone", text("UTC"), argument.copy())
    west = function("date_diff", text("second"), local(printer, argument.copy()), utc)
    return case([infinite], operand(exp.DPipe(this=shown, expression=macro("ms_timetz_offset", west))))


def shown(printer: EntryPoints, value: Expr, kind: SqlType) -> Expr:
    """A value's text by its output function, which for boolean and character(n) differs from the cast to text."""
    if kind.name == "bpchar" and kind.modifiers:
        return function("rpad", value, number(kind.modifiers[0]), text(" "))
    if kind.name == "xml":
        return function("xml_shown", value)
    written = to_text(printer, value, kind)
    return function("left", written, exp.Literal.number(1)) if kind.name == "bool" else written


def _array_text(printer: EntryPoints, argument: Expr, element: SqlType) -> Expr:
    if delimiter_of(element) != ",":
        raise unsupported(f"the text of an array of {element}", "Convert its elements one by one.")
    joined = function("array_to_string", _item_texts(printer, argument, element), text(","))
    return operand(exp.DPipe(this=exp.DPipe(this=text("{"), expression=joined), expression=text("}")))


def _item_texts(printer: EntryPoints, items: Expr, element: SqlType) -> Expr:
    """Elements in the form of an array's text."""
    return each(items, lambda item: macro("ms_array_item", shown(printer, item, element)))


def _length(value: Expr, source: SqlType, target: SqlType, explicit: bool) -> Expr:
    """varchar(n), char(n), name and "char": an explicit cast truncates, other casts raise 22001; a bpchar loses its
    trailing blanks."""
    if target.name == "name":
        return function("left", value, number(LONGEST_NAME))
    if target.name == "char":
        return value if source == target else macro("ms_char", value)
    if target == source:
        return value
    if not target.modifiers:
        return function("rtrim", value, text(" ")) if target.name == "bpchar" != source.name else value
    size = exp.Literal.number(target.modifiers[0])
    cut = function("left", value, size) if explicit else macro("ms_varchar", value, size, text(_word(target)))
    return function("rtrim", cut, text(" ")) if target.name == "bpchar" else cut


def _word(target: SqlType) -> str:
    return "character" if target.name == "bpchar" else "character varying"


def _row_from_text(printer: EntryPoints, argument: Expr, target: SqlType) -> Expr:
    assert target.row is not None
    kinds = [kind for _, kind in target.row.fields]

    def built(items: Expr) -> Expr:
        fields = []
        for place, kind in enumerate(kinds, 1):
            item = function("list_extract", items.copy(), number(place))
            fields.append(cast(printer, item, Cast(Literal(None, TEXT), kind)))
        return unless_null(items, struct(fields))

    row = bound(function("row_fields", argument, number(len(kinds))), built)
    return exp.Cast(this=row, to=printer.type(target))


def _from_text(printer: EntryPoints, argument: Expr, target: SqlType) -> Expr:
    """A text read as PostgreSQL's input function does."""
    if target.enum is not None:
        found = _looked_up(argument, target.enum.labels, target.enum.places)
        return exp.Cast(this=macro("ms_enum", argument.copy(), found, text(str(target))), to=printer.type(target))
    if target.row is not None:
        return _row_from_text(printer, argument, target)
    if target.name in SPANS:
        return ranges.read(printer, argument, target)
    match target.name:
        case "bool":
            return macro("ms_bool", argument)
        case "money":
            return function("money_read", argument)
        case "xid" | "cid" | "xid8":
            return function(f"form_{target.name}", argument)
        case name if name in INTEGERS:
            return exp.Cast(this=macro("ms_integer", argument, text(str(target))), to=printer.type(target))
        case name if name in FLOATS:
            return macro(f"ms_read_{name}", argument)
        case "uuid":
            return _plain(printer, exp.Cast(this=argument, to=exp.DataType(this=exp.DataType.Type.UUID)), "text")
        case "json" | "jsonb" | "jsonpath":
            return function(f"doc_{target.name}", argument)
        case "bytea":
            return macro("ms_bytea", argument)
        case "timetz":
            return timetz.read(printer, argument)
        case "date" | "time" | "timestamp" | "timestamptz" | "interval":
            return reading.read(printer, argument, target)
        case "numeric" if target.modifiers == UNCONSTRAINED:
            return macro("ms_numeric", argument)
        case _:
            return exp.Cast(this=argument, to=printer.type(target))
