"""The values of literal rows: what an INSERT into a stream stores without an engine.

Owns which expressions need none, and how a value fits its column: rounded, cut, padded and checked as PostgreSQL does.
Knows nothing of sessions or of the log. A row costs a microsecond or two of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa

from catalog.objects import Stream, null_value
from catalog.values.errors import SqlError, out_of_range
from catalog.values.nested_types import holds
from catalog.values.times.infinite_dates import is_moment, require_finite_values
from catalog.values.times.precision import fit_moment
from catalog.values.types import ROUNDED, UNCONSTRAINED, SqlType
from planner.algebra.nodes import Call, Cast, Literal, Parameter, Scalar, Value
from planner.statements.statement import Insert


def row_values(
    rows: tuple[tuple[Scalar, ...], ...], parameters: tuple[Value, ...], target: Stream
) -> list[tuple[Value, ...]] | None:
    """The values of literal rows; None when an expression needs an engine. Raises 23502, 22001, 22003 and
    0A000."""
    found = literal_rows(rows, parameters)
    if found is not None and (check := _checker(target)) is not None:
        check(found)
    return found


def literal_rows(rows: tuple[tuple[Scalar, ...], ...], parameters: tuple[Value, ...]) -> list[tuple[Value, ...]] | None:
    """The rows, if it is not known yet which columns must have values."""
    found = []
    for row in rows:
        values = []
        for item in row:
            known, value = _value(item, parameters)
            if not known:
                return None
            values.append(value)
        found.append(tuple(values))
    return found


def _checker(target: Stream) -> Callable[[list[tuple[Value, ...]]], None] | None:
    """What raises 23502 for a NULL and 0A000 for an infinite date where a stream takes none."""
    required = [(place, column.name) for place, column in enumerate(target.columns) if column.not_null]
    moments = [place for place, column in enumerate(target.columns) if holds(column.type, is_moment)]

    def check(rows: list[tuple[Value, ...]]) -> None:
        for place, name in required:
            if any(row[place] is None for row in rows):
                raise null_value(target, name)
        require_finite_values((row[place] for row in rows for place in moments), "a stream")

    return check if required or moments else None


def _value(item: Scalar, parameters: tuple[Value, ...]) -> tuple[bool, Value]:
    match item:
        case Literal(value=value):
            return True, fit(value, item.type)
        case Parameter(index=index):
            return True, fit(parameters[index], item.type)
        case Cast(argument=Literal(value=value) as argument, explicit=False) if _same_form(argument.type, item.type):
            return True, fit(value, item.type)
        case Cast(argument=Parameter(index=index) as argument, explicit=False) if _same_form(argument.type, item.type):
            return True, fit(parameters[index], item.type)
        case Call(function="written_scale", arguments=(Parameter(index=index),)):
            return True, _written_scale(parameters[index])
        case _:
            return False, None


def _written_scale(value: Value) -> int | None:
    """How many decimals a numeric is written with, as far as they are kept; a text's characters."""
    if isinstance(value, str):
        return len(value)
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    return None if value is None else min(max(-int(exponent), 0), UNCONSTRAINED[1])


def _same_form(source: SqlType, target: SqlType) -> bool:
    """Whether a value of one type is one of the other after ``fit``."""
    integers, strings = ("int2", "int4", "int8"), ("text", "varchar")
    if source.name in integers:
        return target.name in (*integers, "numeric")
    if source.name in strings:
        return target.name in strings
    return source.name == target.name and (source.name in ROUNDED or source.name in ("numeric", "bpchar"))


_INTEGER_BITS = {"int2": 15, "int4": 31, "int8": 63}
_INTEGER_NAMES = {"int2": "smallint", "int4": "integer", "int8": "bigint"}


def fit(value: Value, kind: SqlType) -> Value:
    """A value as its column's Arrow type takes it: numerics rounded to their scale, lengths and ranges checked."""
    if value is None:
        return None
    if kind.element is not None:
        assert isinstance(value, tuple)
        if kind.name == "shaped":
            items, shape = value
            return tuple(fit(item, kind.element) for item in items), shape
        return tuple(fit(item, kind.element) for item in value)
    if kind.name in _INTEGER_BITS:
        assert isinstance(value, int)
        if not -(1 << _INTEGER_BITS[kind.name]) <= value < 1 << _INTEGER_BITS[kind.name]:
            raise out_of_range(f"{_INTEGER_NAMES[kind.name]} out of range")
        return value
    if kind.name == "numeric":
        return _fit_numeric(value, kind)
    if kind.name in ("varchar", "bpchar"):
        assert isinstance(value, str)
        return _fit_text(value, kind)
    if kind.name in ROUNDED and kind.modifiers:
        value = fit_moment(value, kind)
    return _fit_interval(value) if kind.name == "interval" else value


def _fit_text(text: str, kind: SqlType) -> str:
    if kind.modifiers and len(text) > kind.modifiers[0]:
        if text[kind.modifiers[0] :].strip(" "):
            raise SqlError("22001", f"value too long for type {kind}")
        text = text[: kind.modifiers[0]]
    return text.rstrip(" ") if kind.name == "bpchar" else text


def _fit_interval(value: Value) -> pa.MonthDayNano:
    assert isinstance(value, tuple)
    months, days, microseconds = value
    nanoseconds = microseconds * 1000
    if not -(1 << 63) <= nanoseconds < 1 << 63:
        raise SqlError("22008", "interval out of range")
    return pa.MonthDayNano([months, days, nanoseconds])


def _fit_numeric(value: Value, kind: SqlType) -> Decimal:
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    if not exact.is_finite():
        raise out_of_range(f"numeric field overflow: {exact} has no representation in {kind}")
    rounded = exact.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _CONTEXT) if exact else Decimal(0)
    if rounded and rounded.adjusted() >= kind.precision - kind.scale:
        raise SqlError(
            "22003",
            "numeric field overflow",
            f"A field with precision {kind.precision}, scale {kind.scale} must round to an absolute value less than "
            f"10^{kind.precision - kind.scale}.",
        )
    return rounded


_CONTEXT = Context(prec=200)


#: Makes a row's values of a statement's parameters.
Maker = Callable[[tuple[Value, ...]], tuple[Value, ...]]


def row_makers(insert: Insert) -> tuple[Maker, ...] | None:
    """One maker for each literal row of an INSERT into a stream; None when an expression needs an engine."""
    target, literals = insert.target, insert.literals
    if not isinstance(target, Stream) or literals is None or not target.has_writers:
        return None
    makers = []
    for row in literals:
        if not all(_is_plain(item) for item in row):
            return None
        makers.append(_maker(row, target))
    return tuple(makers)


def _is_plain(item: Scalar) -> bool:
    match item:
        case Literal() | Parameter():
            return True
        case Cast(argument=Literal() | Parameter() as argument, explicit=False):
            return _same_form(argument.type, item.type)
        case Call(function="written_scale", arguments=(Parameter(),)):
            return True
        case _:
            return False


def _maker(row: tuple[Scalar, ...], target: Stream) -> Maker:
    """Constants are made once; parameters whose type needs no fitting are taken as they are."""
    template = [_constant(item) for item in row]
    plain = [(place, item.index) for place, item in enumerate(row) if isinstance(item, Parameter) and _fits(item)]
    others = [(place, item) for place, item in enumerate(row) if _parameter(item) is not None and not _fits(item)]
    check = _checker(target)

    def make(parameters: tuple[Value, ...]) -> tuple[Value, ...]:
        made = template.copy()
        for place, index in plain:
            made[place] = parameters[index]
        for place, item in others:
            made[place] = _value(item, parameters)[1]
        values = tuple(made)
        if check is not None:
            check([values])
        return values

    return make


def _parameter(item: Scalar) -> Parameter | None:
    argument = item.argument if isinstance(item, Cast) else item.arguments[0] if isinstance(item, Call) else item
    return argument if isinstance(argument, Parameter) else None


def _constant(item: Scalar) -> Value:
    """The value of an expression without parameters; None for others."""
    return None if _parameter(item) is not None else _value(item, ())[1]


def _fits(item: Scalar) -> bool:
    """Whether a parameter's value is the column's as it comes."""
    return isinstance(item, Parameter) and not holds(item.type, lambda kind: kind.name in _FITTED)


#: Parameters arrive in their type's range, but a numeric has a scale, a varchar a length, an interval its Arrow form.
_FITTED = ("numeric", "varchar", "bpchar", "interval")
