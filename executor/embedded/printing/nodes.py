"""Nodes that only DuckDB knows: casts to its types, and calls of our macros whose arguments are evaluated once.

A macro's argument is pasted wherever the macro names it. Arguments other than columns and constants are therefore bound
by a lambda over a list of one struct, so that nested macros do not multiply their text:

    macro('f', a + 1, b)    list_extract(list_transform([{'a0': a + 1}], LAMBDA m : f(m.a0, b)), 1)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from catalog.values.times.zones import fixed_offset, is_region
from catalog.values.types import OIDS, OPAQUE, SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.printing.nodes import Expr, function, number, text
from planner.algebra.nodes import Call, Scalar
from planner.algebra.walk import walk

#: Types whose values are texts, integers and floats in DuckDB.
TEXTS: Final = frozenset(("text", "varchar", "bpchar", "name", "unknown", "void", "char")) | OPAQUE
INTEGERS: Final = frozenset(("int2", "int4", "int8", "xid", "cid", "xid8")) | OIDS
FLOATS: Final = frozenset(("float4", "float8"))
#: Functions whose text, or whose macro in DuckDB, names an argument several times.
_REPEATING: Final = frozenset(("nullif", "to_char", "read_moment"))
_SIMPLE: Final = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Parameter)


def is_simple(node: Expr) -> bool:
    if isinstance(node, exp.Cast | exp.Paren | exp.Neg):
        return is_simple(node.this)
    return isinstance(node, _SIMPLE)


def _variable() -> Expr:
    return exp.Identifier(this="m", quoted=True)


def macro(name: str, *arguments: Expr) -> Expr:
    """A macro's call."""
    fields: list[Expr] = []
    passed: list[Expr] = []
    for argument in arguments:
        if is_simple(argument):
            passed.append(argument)
            continue
        field = exp.Identifier(this=f"a{len(fields)}", quoted=True)
        fields.append(exp.PropertyEQ(this=field, expression=argument))
        passed.append(exp.Column(this=field.copy(), table=_variable()))
    call = function(name, *passed)
    if not fields:
        return call
    each = exp.Lambda(this=call, expressions=[_variable()])
    bound = function("list_transform", exp.Array(expressions=[exp.Struct(expressions=fields)]), each)
    return function("list_extract", bound, exp.Literal.number(1))


def bound(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """``body`` of a value that is evaluated once, even if ``body`` names it several times."""
    if is_simple(value):
        return body(value)
    name = exp.Identifier(this="v", quoted=True)
    each = exp.Lambda(this=body(exp.Column(this=name.copy())), expressions=[name])
    return function("list_extract", function("list_transform", exp.Array(expressions=[value]), each), number(1))


def once(value: Expr, source: Scalar, body: Callable[[Expr], Expr]) -> Expr:
    """``body`` of a value that it repeats. The value is bound if it contains a repetition itself, which would double
    its text at each level; otherwise it is written out, which the engine computes faster."""
    return bound(value, body) if repeats(source) else body(value)


def repeats(scalar: Scalar) -> bool:
    """Whether a scalar's text repeats one of its arguments."""
    return any(isinstance(node, Call) and node.function in _REPEATING for node in walk(scalar))


def in_zone(zone: str, value: Expr) -> Expr:
    """The local time in a zone at an instant, or the instant of a local time. For a zone that is neither known to
    DuckDB by name nor given as hours and minutes, by the kernel."""
    if is_region(zone):
        return function("timezone", text(zone), value)
    east = fixed_offset(zone)
    if east is None or east.total_seconds() % 60:
        return macro("ms_in_zone", value, text(zone))
    minutes = int(abs(east).total_seconds()) // 60
    sign = "-" if east.total_seconds() < 0 else "+"
    return function("timezone", text(f"GMT{sign}{minutes // 60:02}:{minutes % 60:02}"), value)


def local(printer: EntryPoints, value: Expr) -> Expr:
    """A timestamptz as the session's local timestamp, or the reverse."""
    return in_zone(printer.timezone, value)


def each(items: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """A list with ``body`` applied to each element."""
    name = exp.Identifier(this="e", quoted=True)
    return function("list_transform", items, exp.Lambda(this=body(exp.Column(this=name)), expressions=[name.copy()]))


def called(name: str, *arguments: Expr) -> Expr:
    """A call of a function of DuckDB or of a macro."""
    return macro(name, *arguments) if name.startswith("ms_") else function(name, *arguments)


def cast_to(printer: EntryPoints, value: Expr, sql_type: SqlType) -> Expr:
    """CAST(value AS type)."""
    return exp.Cast(this=value, to=printer.type(sql_type))


def decimal(precision: int, scale: int) -> Expr:
    """The type DECIMAL(precision, scale)."""
    sizes = [exp.DataTypeParam(this=exp.Literal.number(size)) for size in (precision, scale)]
    return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=sizes)
