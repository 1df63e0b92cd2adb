"""JSON in DuckDB's SQL: calls of the engine's functions ``doc_*``, and documents built as text.

Owns: ``JSONS``, the builders, and the form of each type's values within a document (datum_to_json in json.c).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from catalog.values.json_documents import quoted
from catalog.values.opaque import KEYED
from catalog.values.types import SqlType
from executor.embedded.printing.composites import array_shapes
from executor.embedded.printing.composites.rows import fields, unless_null
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import bound, cast_to, each, macro
from executor.printing.nodes import Build, Expr, case, chain, function, operand, text
from planner.algebra.nodes import Call
from planner.bind.conversion.row_types import check_ordered

_NUMBERS: Final = frozenset(("int2", "int4", "int8", "numeric"))
_FLOATS: Final = frozenset(("float4", "float8"))


def written(printer: EntryPoints, value: Expr, kind: SqlType) -> Expr:
    """A value as a document; NULL remains NULL."""
    if kind.name == "shaped" and (inner := kind.element) is not None:
        return array_shapes.written(value, lambda items: _items_of(printer, items, inner), "doc_shaped")
    if kind.element is not None:
        return _list(printer, value, kind.element, ",")
    if kind.row is not None:
        return bound(value, lambda row: unless_null(row, _object(printer, row, kind)))
    if kind.name in ("json", "jsonb"):
        return value
    if kind.name == "hstore":
        return function("hs_json", value)
    shown = printer.shown(value, kind) if kind.name in ("bpchar", "xml") else printer.to_text(value, kind)
    if kind.name in _NUMBERS or kind.name == "bool":
        return shown
    if kind.name in _FLOATS:
        return case([(function("isfinite", value.copy()), shown)], function("doc_quoted", shown.copy()))
    if kind.name in ("timestamp", "timestamptz"):
        shown = function("replace", shown, text(" "), text("T"))
    if kind.name == "timestamptz":
        shown = function("regexp_replace", shown, text(r"([+-]\d\d)$"), text(r"\1:00"))
    return function("doc_quoted", shown)


def _items_of(printer: EntryPoints, items: Expr, element: SqlType) -> Expr:
    """A list's elements as documents."""
    return each(items, lambda item: or_null(written(printer, item, element)))


def _list(printer: EntryPoints, value: Expr, element: SqlType, separator: str) -> Expr:
    items = _items_of(printer, value, element)
    on_lines = separator != "," and (element.element is not None or element.row is not None)
    joined = macro("ms_json_lines", items) if on_lines else function("array_to_string", items, text(separator))
    return operand(chain(exp.DPipe, [text("["), joined, text("]")]))


def _items(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    element = node.arguments[0].type.element
    assert element is not None
    return _list(printer, arguments[0], element, ", ")


def _object(printer: EntryPoints, row: Expr, kind: SqlType) -> Expr:
    """A row as an object, by its fields' names."""
    pairs = [(text(name), or_null(written(printer, item, each))) for name, each, item in fields(row, kind)]
    return _joined("{", [_pair(key, ":", item) for key, item in pairs], ",", "}")


def or_null(value: Expr) -> Expr:
    """The document null in place of NULL."""
    return function("coalesce", value, text("null"))


def _to_json(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return written(printer, arguments[0], node.arguments[0].type)


def _value(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return or_null(_to_json(printer, arguments, node))


def _pair(key: Expr, colon: str, value: Expr) -> list[Expr]:
    """The parts of the text of a key and its value; a constant key is written here."""
    if isinstance(key, exp.Literal) and key.is_string:
        return [text(quoted(key.this) + colon), operand(value)]
    return [function("doc_key", key), text(colon), operand(value)]


def _joined(opening: str, items: list[list[Expr]], separator: str, closing: str) -> Expr:
    """Items, given by their parts, as one text; adjacent constants are merged."""
    between = [text(separator)]
    pieces = [piece for item in items for piece in (*between, *item)][bool(items) :]
    joined: list[Expr] = []
    for piece in (text(opening), *pieces, text(closing)):
        last = joined[-1] if joined else None
        if isinstance(piece, exp.Literal) and piece.is_string and isinstance(last, exp.Literal) and last.is_string:
            joined[-1] = text(last.this + piece.this)
        else:
            joined.append(piece)
    return operand(chain(exp.DPipe, joined))


def _fields(opening: str, colon: str, separator: str) -> Build:
    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        return _joined(opening, [_pair(key, colon, value) for key, value in pairs], separator, "}")

    return build


def _items_object(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """An object from an array of keys and values by turns: the array's items as texts, and as documents."""
    element = node.arguments[0].type.element
    assert element is not None
    keys = each(arguments[0], lambda item: printer.to_text(item, element))
    return function("doc_turns", keys, _items_of(printer, arguments[0].copy(), element))


def _elements(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return _joined("[", [[operand(item)] for item in arguments], ", ", "]")


def _named(name: str) -> Build:
    return lambda printer, arguments, node: function(name, *arguments)


def _part(suffix: str) -> Build:
    """One function for a key, another for an index."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        document, key = node.arguments
        by_place = "doc_b_at" if document.type.name == "jsonb" else "doc_at"
        return function(f"{by_place if key.type.name == 'int4' else 'doc_get'}{suffix}", *arguments)

    return build


def _remove(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    kind = node.arguments[1].type
    if kind.name == "int4":
        return function("doc_remove_at", *arguments)
    keys = arguments[1] if kind.element is not None else exp.Array(expressions=[arguments[1]])
    null = operand(exp.Is(this=operand(arguments[1].copy()), expression=exp.null()))
    removed = function("doc_remove", arguments[0], keys)
    return removed if kind.element is not None else case([(null, cast_to(printer, exp.null(), node.type))], removed)


def _contained(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return function("doc_contains", arguments[1], arguments[0])


def _set(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return function("doc_set", *arguments, *([exp.true()] if len(arguments) == 3 else []))


def ordered(value: Expr, kind: SqlType) -> Expr:
    """The value by which a value is compared: for jsonb, bytes that compare as documents do."""
    check_ordered(kind)
    return function("doc_order", value) if kind.name == "jsonb" else value


def sort_key(value: Expr, kind: SqlType) -> Expr:
    """The value by which a value is sorted: keys for jsonb, addresses and geometric types."""
    found = ordered(value, kind)
    return function(f"{KEYED[kind.name]}_order", found) if kind.name in KEYED else found


def keyed_value(key: Expr, kind: SqlType) -> Expr:
    """The value of which ``sort_key`` has made a key."""
    if kind.name != "jsonb" and kind.name not in KEYED:
        return key
    value: Expr = key.expressions[0]
    return value


def _silent(name: str) -> Build:
    return lambda printer, arguments, node: function(name, *arguments, text("{}"), exp.true(), text(""))


def _by_path(name: str) -> Build:
    return lambda printer, arguments, node: function(name, *arguments, text(""))


def _in_zone(name: str) -> Build:
    return lambda printer, arguments, node: function(name, *arguments, text(printer.timezone))


#: Operations by paths.
_PATHS: Final = ("path_exists", "path_match", "path_first", "path_array", "path_all")


JSONS: Final[Mapping[str, Build]] = {
    "to_json": _to_json,
    "json_value": _value,
    "json_build_array": _elements,
    "json_items": _items,
    "json_build_object": _fields("{", " : ", ", "),
    "json_items_object": _items_object,
    "json_lined": _named("doc_lined"),
    "json_row": _fields("{", ":", ","),
    "json_record": _named("doc_record"),
    "json_records": _named("doc_records"),
    "json_get": _part(""),
    "json_get_text": _part("_text"),
    "json_path": _named("doc_path"),
    "json_path_text": _named("doc_path_text"),
    "json_typeof": _named("doc_type"),
    "json_key": _named("doc_key"),
    "json_order": _named("doc_order"),
    "json_array_length": _named("doc_length"),
    "json_elements": _named("doc_elements"),
    "json_elements_text": _named("doc_elements_text"),
    "json_assign": _named("doc_assign"),
    "json_array_text": _named("doc_array_text"),
    "json_keys": _named("doc_keys"),
    "json_values": _named("doc_values"),
    "json_values_text": _named("doc_values_text"),
    "json_contains": _named("doc_contains"),
    "json_contained": _contained,
    "json_exists": _named("doc_exists"),
    "json_exists_any": _named("doc_exists_any"),
    "json_exists_all": _named("doc_exists_all"),
    "json_concat": _named("doc_concat"),
    "json_remove": _remove,
    "json_remove_path": _named("doc_remove_path"),
    "jsonb_set": _set,
    "jsonb_set_lax": lambda printer, arguments, node: function(
        "doc_set_lax", *arguments, *(exp.true(), text("use_json_null"))[len(arguments) - 3 :]
    ),
    "jsonb_insert": lambda printer, arguments, node: function(
        "doc_insert", *arguments, *([exp.false()] if len(arguments) == 3 else [])
    ),
    "json_object": lambda printer, arguments, node: function(
        "doc_object" if len(arguments) == 1 else "doc_paired", *arguments
    ),
    "json_strip_nulls": _named("doc_strip_text"),
    "jsonb_strip_nulls": _named("doc_strip_nulls"),
    "jsonb_pretty": _named("doc_pretty"),
    "path_found": _silent("doc_path_exists"),
    "path_holds": _silent("doc_path_match"),
    **{name: _by_path(f"doc_{name}") for name in _PATHS},
    **{f"{name}_tz": _in_zone(f"doc_{name}") for name in _PATHS},
}
