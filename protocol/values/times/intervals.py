"""interval: microseconds, days and months in binary, and the output styles of text.

Owns: ``postgres``, ``postgres_verbose``, ``iso_8601`` and ``sql_standard`` (datetime.c, EncodeInterval), column by
column, and the different input rule of the last one.
"""

from __future__ import annotations

from struct import error as StructError
from struct import unpack
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.interval_fields import FULL_RANGE
from catalog.values.times.intervals import Interval, carried_interval
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import (
    Codec,
    ColumnError,
    Vector,
    bad_binary,
    by_value,
    fixed,
    offsets,
    validity,
    value_bytes,
)
from protocol.values.styles import ISO_8601, SQL_STANDARD, VERBOSE, intervals_of
from protocol.values.times.precision import INTERVALS

_WIRE: Final = np.dtype([("microseconds", ">i8"), ("days", ">i4"), ("months", ">i4")])
_HOUR: Final = 3_600_000_000


def _fields(array: pa.Array) -> tuple[Vector, Vector, Vector]:
    """Months, days and microseconds; the values at nulls are arbitrary."""
    values = np.frombuffer(array.buffers()[1], INTERVALS)[array.offset : array.offset + len(array)]
    months, days, nanoseconds = values["months"], values["days"], values["nanoseconds"]
    return months.astype(np.int64), days.astype(np.int64), nanoseconds // 1000


class _Printer:
    """EncodeInterval over columns; keeps which rows have printed a field, and whether their last field was negative."""

    def __init__(self, count: int) -> None:
        self.text = pa.array([""], pa.string()).take(pa.array(np.zeros(count, np.int32)))
        self.empty = np.ones(count, bool)
        self.negative = np.zeros(count, bool)

    def add(self, values: Vector, unit: str) -> None:
        """Appends a field in the rows where it is not zero."""
        if not values.any():
            return
        shown = values != 0
        plus = pc.if_else(pa.array(self.negative & (values > 0)), constant("+"), constant(""))
        plural = pc.if_else(pa.array(values != 1), constant(f" {unit}s"), constant(f" {unit}"))
        field = pc.binary_join_element_wise(
            self.blank(), plus, pa.array(values).cast(pa.string()), plural, constant("")
        )
        self.append(pc.if_else(pa.array(shown), field, constant("")))
        self.empty &= ~shown
        self.negative = np.where(shown, values < 0, self.negative)

    def blank(self) -> pa.Array:
        """The blank before the next field, in the rows that have one."""
        return pc.if_else(pa.array(self.empty), constant(""), constant(" "))

    def append(self, text: pa.Array) -> None:
        """Appends a text to every row."""
        self.text = pc.binary_join_element_wise(self.text, text, constant(""))


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    if not len(array):
        return pa.array([], pa.string())
    months, days, microseconds = _fields(array)
    show = _STYLES.get(intervals_of(timezone), _postgres)
    return pc.if_else(pc.is_valid(array), show(months, days, microseconds), constant(None))


def _postgres(months: Vector, days: Vector, microseconds: Vector) -> pa.Array:
    """1 year 2 mons -3 days +04:05:06.7: each field has its sign, and a plus follows a negative field."""
    printer = _Printer(len(months))
    years = np.fix(months / 12).astype(np.int64)
    printer.add(years, "year")
    printer.add(months - 12 * years, "mon")
    printer.add(days, "day")
    shown = printer.empty | (microseconds != 0)
    if shown.any():
        signs = pc.if_else(pa.array(printer.negative), constant("+"), constant(""))
        sign = pc.if_else(pa.array(microseconds < 0), constant("-"), signs)
        clock = pc.binary_join_element_wise(printer.blank(), sign, _clock(np.abs(microseconds)), constant(""))
        printer.append(pc.if_else(pa.array(shown), clock, constant("")))
    return printer.text


def _iso(months: Vector, days: Vector, microseconds: Vector) -> pa.Array:
    """P1Y2M3DT4H5M6.7S without fields that are zero; each part has its own sign, and an empty interval is PT0S."""
    years, clock = np.fix(months / 12).astype(np.int64), np.abs(microseconds)
    signs = np.sign(microseconds)
    parts = [(years, "Y"), (months - 12 * years, "M"), (days, "D")]
    timed = [(signs * (clock // _HOUR), "H"), (signs * (clock // 60_000_000 % 60), "M")]
    seconds = pc.binary_join_element_wise(pa.array(clock // 1_000_000 % 60).cast(pa.string()), _fraction(clock), "")
    minus = pc.if_else(pa.array(signs < 0), constant("-"), constant(""))
    second = pc.binary_join_element_wise(minus, seconds, constant("S"), constant(""))
    pieces = [pc.if_else(pa.array((months == 0) & (days == 0) & (clock == 0)), constant("PT0S"), constant("P"))]
    pieces += [_iso_part(values, unit) for values, unit in parts]
    pieces.append(pc.if_else(pa.array(clock != 0), constant("T"), constant("")))
    pieces += [_iso_part(values, unit) for values, unit in timed]
    pieces.append(pc.if_else(pa.array(clock % 60_000_000 != 0), second, constant("")))
    return pc.binary_join_element_wise(*pieces, constant(""))


def _verbose(months: Vector, days: Vector, microseconds: Vector) -> pa.Array:
    """@ 1 year 2 mons 3 secs: if the first field is negative, its sign is dropped and the text ends with ago."""
    is_before = np.where(months != 0, months, np.where(days != 0, days, microseconds)) < 0
    sign = np.where(is_before, -1, 1)
    years, clock = np.fix(months / 12).astype(np.int64), np.abs(microseconds)
    signs = sign * np.sign(microseconds)
    fields = [(sign * years, "year"), (sign * (months - 12 * years), "mon"), (sign * days, "day")]
    fields += [(signs * (clock // _HOUR), "hour"), (signs * (clock // 60_000_000 % 60), "min")]
    minus = pc.if_else(pa.array(signs < 0), constant(" -"), constant(" "))
    unit = pc.if_else(pa.array(clock % 60_000_000 == 1_000_000), constant(" sec"), constant(" secs"))
    whole = pa.array(clock // 1_000_000 % 60).cast(pa.string())
    seconds = pc.binary_join_element_wise(minus, whole, _fraction(clock), unit, constant(""))
    pieces = [pc.if_else(pa.array((months == 0) & (days == 0) & (clock == 0)), constant("@ 0"), constant("@"))]
    pieces += [_verbose_part(values, name) for values, name in fields]
    pieces.append(pc.if_else(pa.array(clock % 60_000_000 != 0), seconds, constant("")))
    pieces.append(pc.if_else(pa.array(is_before), constant(" ago"), constant("")))
    return pc.binary_join_element_wise(*pieces, constant(""))


def _verbose_part(values: Vector, unit: str) -> pa.Array:
    """A number with its unit where it is not zero."""
    units = pc.if_else(pa.array(values == 1), constant(f" {unit}"), constant(f" {unit}s"))
    shown = pc.binary_join_element_wise(constant(" "), pa.array(values).cast(pa.string()), units, constant(""))
    return pc.if_else(pa.array(values != 0), shown, constant(""))


def _iso_part(values: Vector, unit: str) -> pa.Array:
    """A number with its unit where it is not zero."""
    shown = pc.binary_join_element_wise(pa.array(values).cast(pa.string()), constant(unit), constant(""))
    return pc.if_else(pa.array(values != 0), shown, constant(""))


def _sql(months: Vector, days: Vector, microseconds: Vector) -> pa.Array:
    """1-2, 3 4:05:06.7 or 4:05:06.7 with one sign in front. An interval that SQL does not have, with both months and
    time or with both signs, is written with three signed parts: +1-2 -3 +4:05:06.7."""
    values = (months, days, microseconds)
    is_negative, is_positive = ((np.less(values, 0)).any(axis=0), (np.greater(values, 0)).any(axis=0))
    is_mixed = (is_negative & is_positive) | ((months != 0) & ((days != 0) | (microseconds != 0)))
    years, rest, clock = np.abs(months) // 12, np.abs(months) % 12, np.abs(microseconds)
    year_month = pc.binary_join_element_wise(pa.array(years).cast(pa.string()), pa.array(rest).cast(pa.string()), "-")
    parts = (year_month, pa.array(np.abs(days)).cast(pa.string()), _clock(clock, 1))
    signed = [
        pc.binary_join_element_wise(pc.if_else(pa.array(value < 0), constant("-"), constant("+")), part, constant(""))
        for value, part in zip(values, parts, strict=True)
    ]
    day_time = pc.binary_join_element_wise(*parts[1:], constant(" "))
    plain = pc.if_else(pa.array(months != 0), year_month, pc.if_else(pa.array(days != 0), day_time, parts[2]))
    minus = pc.if_else(pa.array(is_negative), constant("-"), constant(""))
    shown = pc.if_else(
        pa.array(is_mixed),
        pc.binary_join_element_wise(*signed, constant(" ")),
        pc.binary_join_element_wise(minus, plain, constant("")),
    )
    return pc.if_else(pa.array(is_negative | is_positive), shown, constant("0"))


def _fraction(microseconds: Vector) -> pa.Array:
    """The point and the digits after it, without trailing zeros; empty for whole seconds."""
    digits = pc.utf8_lpad(pa.array(microseconds % 1_000_000).cast(pa.string()), 6, "0")
    point = pc.binary_join_element_wise(constant("."), digits, constant(""))
    return pc.if_else(pa.array(microseconds % 1_000_000 != 0), pc.utf8_rtrim(point, "0"), constant(""))


#: All styles but ``postgres``.
_STYLES: Final = {ISO_8601: _iso, VERBOSE: _verbose, SQL_STANDARD: _sql}


def _clock(microseconds: Vector, width: int = 2) -> pa.Array:
    """hh:mm:ss and the fraction without trailing zeros; the hours have at least ``width`` digits."""
    hours, rest = pa.array(microseconds // _HOUR).cast(pa.string()), microseconds % _HOUR
    minutes = pc.utf8_lpad(pa.array(rest // 60_000_000).cast(pa.string()), 2, "0")
    parts = [pc.utf8_lpad(hours, width, "0"), minutes]
    seconds = pc.utf8_lpad(pa.array(rest // 1_000_000 % 60).cast(pa.string()), 2, "0")
    fraction = rest % 1_000_000
    if fraction.any():
        digits = pc.utf8_lpad(pa.array(fraction).cast(pa.string()), 6, "0")
        seconds = pc.utf8_rtrim(pc.utf8_rtrim(pc.binary_join_element_wise(seconds, digits, constant(".")), "0"), ".")
    return pc.binary_join_element_wise(*parts, seconds, constant(":"))


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
    result = np.empty(len(array), _WIRE)
    result["months"], result["days"], result["microseconds"] = _fields(array)
    return fixed(result, array)


def _from_binary(data: bytes, type_: SqlType) -> Interval:
    try:
        microseconds, days, months = unpack(">qii", data)
    except StructError:
        raise bad_binary("interval") from None
    if abs(microseconds) > (2**63 - 1) // 1000:
        raise SqlError("22008", "interval out of range")
    return months, days, microseconds


def _read(text: str, type_: SqlType, timezone: str) -> Interval:
    """A text's interval in nanoseconds; a number without a unit counts in the smallest field that the type keeps."""
    fields = type_.modifiers[0] if type_.modifiers else FULL_RANGE
    return carried_interval(text, fields, intervals_of(timezone) == SQL_STANDARD)


def _from_text(text: str, type_: SqlType, timezone: str) -> Interval:
    months, days, nanoseconds = _read(text, type_, timezone)
    return months, days, nanoseconds // 1000


def _column_from_text(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return by_value(strings, lambda text: pa.MonthDayNano(list(_read(text, type_, timezone))), type_.arrow)


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    filled = binaries.fill_null(bytes(16))
    wrong = np.flatnonzero(np.diff(offsets(filled)) != 16)
    if len(wrong):
        raise ColumnError(int(wrong[0]), bad_binary("interval"))
    wire = value_bytes(filled).view(_WIRE)
    result = np.empty(len(binaries), INTERVALS)
    for name in ("months", "days"):
        result[name] = wire[name]
    result["nanoseconds"] = wire["microseconds"].astype("<i8") * 1000
    return pa.Array.from_buffers(type_.arrow, len(binaries), [validity(binaries), pa.py_buffer(result)])


CODECS: Final[dict[str, Codec]] = {
    "interval": Codec(
        text=_text,
        binary=_binary,
        from_text=_from_text,
        from_binary=_from_binary,
        column_from_text=_column_from_text,
        column_from_binary=_column_from_binary,
    )
}
