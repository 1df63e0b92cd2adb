"""Rows in DuckDB: structs with fields f1, f2, ... (``catalog.values.types``), which DuckDB compares as PostgreSQL
compares rows.

Owns: ``ROWS``, the functions of rows; the text of a struct's type, and a row's text (record_out() in rowtypes.c).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from catalog.values.errors import unsupported
from catalog.values.types import SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import bound, macro
from executor.printing.nodes import Build, Expr, case, chain, function, operand, text
from planner.algebra.nodes import Call, Literal


def _name(place: int) -> Expr:
    return exp.Identifier(this=f"f{place}", quoted=True)


def struct(fields: list[Expr]) -> Expr:
    """The row with these fields."""
    pairs = [exp.PropertyEQ(this=_name(place), expression=field) for place, field in enumerate(fields, 1)]
    return exp.Struct(expressions=pairs)


def field(row: Expr, place: int) -> Expr:
    """A row's field by its number, from 1."""
    return function("struct_extract", row, text(f"f{place}"))


def struct_type(kinds: list[Expr]) -> Expr:
    """The type of rows with fields of these types."""
    fields = [exp.ColumnDef(this=_name(place), kind=kind) for place, kind in enumerate(kinds, 1)]
    return exp.DataType(this=exp.DataType.Type.STRUCT, expressions=fields, nested=True)


def fields(row: Expr, kind: SqlType) -> list[tuple[str, SqlType, Expr]]:
    """The fields of a row, which is repeated for each: name, type and value."""
    assert kind.row is not None
    return [(name, kind, field(row.copy(), place)) for place, (name, kind) in enumerate(kind.row.fields, 1)]


def row_text(row: Expr, kind: SqlType, shown: Callable[[Expr, SqlType], Expr]) -> Expr:
    """A row's text; ``shown`` writes a value."""
    return bound(row, lambda value: unless_null(value, _text(value, kind, shown)))


def _text(row: Expr, kind: SqlType, shown: Callable[[Expr, SqlType], Expr]) -> Expr:
    pieces: list[Expr] = [text("(")]
    for place, (_, each, value) in enumerate(fields(row, kind)):
        pieces += [text(",")] * bool(place) + [macro("ms_row_item", shown(value, each))]
    return operand(chain(exp.DPipe, [*pieces, text(")")]))


def unless_null(value: Expr, written: Expr) -> Expr:
    """The written form of a value; NULL for NULL."""
    null = operand(exp.Is(this=operand(value.copy()), expression=exp.null()))
    return case([(null, exp.null())], written)


def cast_row(printer: EntryPoints, row: Expr, source: SqlType, target: SqlType) -> Expr:
    """A row converted to a type with the same fields."""
    kinds, others = ([each.oid for _, each in kind.row.fields] for kind in (source, target) if kind.row is not None)
    if kinds != others:
        raise unsupported(f"a cast from {source} to {target}", "Cast its fields one by one.")
    return exp.Cast(this=row, to=printer.type(target))


def _row(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return struct(arguments)


def _field(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    place = node.arguments[1]
    assert isinstance(place, Literal)
    assert isinstance(place.value, int)
    return field(arguments[0], place.value)


ROWS: Final[Mapping[str, Build]] = {"row": _row, "field": _field}
