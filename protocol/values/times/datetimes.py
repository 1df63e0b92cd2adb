"""date, time, timestamp and timestamptz: ISO text, and counts from 2000-01-01 in binary.

Arrow converts columns in ISO form; ``catalog.values.times.timestamps`` reads other texts. A timestamptz is an instant
in UTC; its text shows the session's local time and offset. Arrow values outside of the years 1 to 9999 (and DuckDB's
infinities) are printed as PostgreSQL prints them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from functools import lru_cache, partial
from math import inf
from struct import error as StructError
from struct import unpack
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.times.timestamps import (
    carried_day,
    carried_moment,
    parse_date,
    parse_time,
    parse_timestamp,
    parse_timestamptz,
)
from catalog.values.times.timetz import offset_text
from catalog.values.times.zones import arrow_zone, is_ruled
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import (
    Codec,
    ColumnError,
    Vector,
    bad_binary,
    by_value,
    fast_or_exact,
    fixed,
    from_vector,
    network_vector,
    offsets,
    vector,
)
from protocol.values.styles import ISO, dates_of, order_of, zone_of
from protocol.values.times.date_styles import restyled
from protocol.values.times.zone_clocks import east, has_rules, is_later

Text = Callable[[pa.Array, SqlType, str], pa.Array]

_EPOCH_DAYS: Final = 10_957  # days from 1970-01-01 to 2000-01-01
_EPOCH: Final = _EPOCH_DAYS * 86_400_000_000
_DAY: Final = 86_400_000_000
#: The days and microseconds of the years 1 to 9999.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_FIRST_MOMENT, _LAST_MOMENT = _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1

_YEAR: Final = r"(?:[1-9]\d{3}|0[1-9]\d{2}|00[1-9]\d|000[1-9])"
_DATE: Final = rf"{_YEAR}-\d{{2}}-\d{{2}}"
#: Any zone for which Arrow has rules.
_RULED_DATE: Final = r"(?:1\d{3}|20[0-2]\d|203[0-6]|0[1-9]\d{2}|00[1-9]\d|000[1-9])-\d{2}-\d{2}"
_CLOCK: Final = r"\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?"
_OFFSET: Final = r"(?:[+-](?:0\d|1[0-5])(?::?[0-5]\d)?|Z)"


def _date_text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    days = vector(array, "<i4").astype(np.int64)
    unusual = (days < _FIRST_DAY) | (days > _LAST_DAY)
    if not unusual.any():
        return array.cast(pa.string())
    usual = from_vector(np.where(unusual, 0, days).astype("<i4"), pa.date32(), array).cast(pa.string())
    return _patch(usual, unusual, array, [_far_date(int(day)) for day in days[unusual]])


def _patch(text: pa.Array, unusual: Vector, like: pa.Array, replacements: list[str]) -> pa.Array:
    patched = pc.replace_with_mask(text, pa.array(unusual), pa.array(replacements, pa.string()))
    return pc.if_else(pc.is_valid(like), patched, constant(None))


def _far_date(days: int) -> str:
    """A date outside of the years 1 to 9999 (days_from_civil's inverse, by Howard Hinnant)."""
    if abs(days) == 2**31 - 1:
        return "infinity" if days > 0 else "-infinity"
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + 400 * era + (month <= 2)
    shown = f"{year if year > 0 else 1 - year:04}-{month:02}-{day_of_year - (153 * shifted + 2) // 5 + 1:02}"
    return shown if year > 0 else f"{shown} BC"


def _far_timestamp(microseconds: int, suffix: str = "") -> str:
    if abs(microseconds) >= 2**63 - 1:
        return "infinity" if microseconds > 0 else "-infinity"
    days, rest = divmod(microseconds, _DAY)
    shown, before_christ, _ = _far_date(days).partition(" BC")
    time = (datetime.min + timedelta(microseconds=rest)).time().isoformat()
    time = time.rstrip("0") if "." in time else time
    return f"{shown} {time}{suffix}{before_christ}"


def _without_fraction_zeros(array: pa.Array, coarse: pa.DataType) -> pa.Array:
    """Texts with six decimals, without the trailing zeros of the fraction."""
    if not (vector(array, "<i8") % 1_000_000).any():
        return array.cast(coarse).cast(pa.string())
    return pc.utf8_rtrim(pc.utf8_rtrim(array.cast(pa.string()), "0"), ".")


def _time_text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return _without_fraction_zeros(array, pa.time32("s"))


def _timestamp_text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    moments = vector(array, "<i8")
    unusual = (moments < _FIRST_MOMENT) | (moments > _LAST_MOMENT)
    if not unusual.any():
        return _without_fraction_zeros(array, pa.timestamp("s"))
    usual = from_vector(np.where(unusual, 0, moments), pa.timestamp("us"), array)
    text = _without_fraction_zeros(usual, pa.timestamp("s"))
    return _patch(text, unusual, array, [_far_timestamp(int(moment)) for moment in moments[unusual]])


def _timestamptz_text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    moments = vector(array, "<i8")
    # A day's distance from the limits keeps local times within them, too.
    unusual = (moments < _FIRST_MOMENT + _DAY) | (moments > _LAST_MOMENT - _DAY)
    if unusual.any():
        usual = from_vector(np.where(unusual, 0, moments), array.type, array)
        far = [_far_timestamp(int(moment), "+00") for moment in moments[unusual]]
        return _patch(_timestamptz_text(usual, type_, timezone), unusual, array, far)
    name = zone_of(timezone)
    zone = arrow_zone(name)
    naive = array.cast(pa.timestamp("us", tz="UTC")).view(pa.int64()).view(pa.timestamp("us"))
    if zone == "UTC" and not is_ruled(name):
        return pc.binary_join_element_wise(
            _without_fraction_zeros(naive, pa.timestamp("s")), constant("+00"), constant("")
        )
    local = pc.local_timestamp(array.cast(pa.timestamp("us", tz=zone)))
    seconds = (vector(local, "<i8") - moments) // 1_000_000
    later = is_later(moments // 1_000_000, name)
    if later.any():
        seconds[later] = east(moments[later] // 1_000_000, name)
        local = from_vector(moments + seconds * 1_000_000, local.type, array)
    shifts, codes = np.unique(seconds, return_inverse=True)
    shown = pa.array([offset_text(int(shift)) for shift in shifts], pa.string()).take(pa.array(codes))
    return pc.binary_join_element_wise(_without_fraction_zeros(local, pa.timestamp("s")), shown, constant(""))


def _in_style(text: Text) -> Text:
    """A codec's text function with the session's DateStyle applied."""

    def styled(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
        shown = text(array, type_, timezone)
        return shown if dates_of(timezone) == ISO else restyled(shown, array, timezone)

    return styled


def _date_binary(array: pa.Array, type_: SqlType) -> pa.Array:
    days = vector(array, "<i4").astype(np.int64)
    infinite = np.abs(days) == 2**31 - 1
    shifted = np.where(infinite, np.where(days > 0, 2**31 - 1, -(2**31)), days - _EPOCH_DAYS)
    return fixed(shifted.astype(">i4"), array)


def _time_binary(array: pa.Array, type_: SqlType) -> pa.Array:
    return fixed(vector(array, "<i8").astype(">i8"), array)


def _timestamp_binary(array: pa.Array, type_: SqlType) -> pa.Array:
    moments = vector(array, "<i8")
    infinite = np.abs(moments) == 2**63 - 1
    shifted = np.where(infinite, np.where(moments > 0, 2**63 - 1, -(2**63)), moments - _EPOCH)
    return fixed(shifted.astype(">i8"), array)


def _number(layout: str, data: bytes, type_: SqlType) -> int:
    try:
        value: int = unpack(layout, data)[0]
    except StructError:
        raise bad_binary(str(type_)) from None
    return value


def _infinite(value: int, bits: int) -> float | None:
    """The infinities that the least and the greatest number of this many bits stand for."""
    return inf if value == 2 ** (bits - 1) - 1 else -inf if value == -(2 ** (bits - 1)) else None


def _date_from_binary(data: bytes, type_: SqlType) -> date | float:
    days = _number(">i", data, type_)
    if (infinite := _infinite(days, 32)) is not None:
        return infinite
    try:
        return date(2000, 1, 1) + timedelta(days=days)
    except OverflowError:
        raise SqlError("22008", "date out of range") from None


def _time_from_binary(data: bytes, type_: SqlType) -> clock:
    value = _number(">q", data, type_)
    if not 0 <= value < _DAY:
        raise SqlError("22008", "time out of range")
    return (datetime.min + timedelta(microseconds=value)).time()


def _timestamp_from_binary(data: bytes, type_: SqlType) -> datetime | float:
    zone, microseconds = UTC if type_.name == "timestamptz" else None, _number(">q", data, type_)
    if (infinite := _infinite(microseconds, 64)) is not None:
        return infinite
    try:
        return datetime(2000, 1, 1, tzinfo=zone) + timedelta(microseconds=microseconds)
    except OverflowError:
        raise SqlError("22008", "timestamp out of range") from None


def _column_from_binary(binaries: pa.Array, type_: SqlType, dtype: str, epoch: int, first: int, last: int) -> pa.Array:
    values = network_vector(binaries, ">" + dtype, str(type_)).astype(np.int64)
    wrong = (values < first - epoch) | (values > last - epoch)
    result = values + epoch
    if wrong.any():
        limits = np.iinfo(dtype)
        infinite = ((values == limits.max) | (values == limits.min)) & (type_.name != "time")
        if (wrong & ~infinite).any():
            index = int(np.flatnonzero(wrong & ~infinite)[0])
            raise ColumnError(index, SqlError("22008", f"{type_.name} out of range"))
        result = np.where(infinite, np.where(values > 0, limits.max, -limits.max), result)
    return from_vector(result.astype("<" + dtype), type_.arrow, binaries)


def _date_column(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    def parse(text: str) -> object:
        return carried_day(parse_date(text, order_of(timezone)))

    return fast_or_exact(strings, f"^{_DATE}$", lambda a: a.cast(pa.date32()), parse, pa.date32())


def _time_column(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    def convert(texts: pa.Array) -> pa.Array:
        moments = pc.binary_join_element_wise(constant("1970-01-01"), texts, constant(" ")).cast(pa.timestamp("us"))
        return moments.cast(pa.int64()).cast(pa.time64("us"))

    def parse(text: str) -> object:
        return parse_time(text, order_of(timezone))

    return fast_or_exact(strings, f"^{_CLOCK}$", convert, parse, pa.time64("us"))


#: The lengths of ISO timestamps. Arrow also accepts an hour without minutes (13) and hhmm (15), which PostgreSQL does
#: not.
_TIMESTAMP_LENGTHS: Final = np.zeros(64, bool)
_TIMESTAMP_LENGTHS[[0, 10, 16, 19, *range(21, 27)]] = True


def _timestamp_column(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    if _TIMESTAMP_LENGTHS[np.minimum(np.diff(offsets(strings)), 63)].all():
        try:
            moments = strings.cast(type_.arrow)
        except pa.ArrowInvalid:
            pass
        else:
            earliest = pc.min(moments.cast(pa.int64())).as_py()
            if earliest is None or earliest >= _FIRST_MOMENT:
                return moments

    def parse(text: str) -> object:
        return carried_moment(parse_timestamp(text, order_of(timezone)))

    plain = f"^{_DATE}(?:[ T]{_CLOCK})?$"
    return fast_or_exact(strings, plain, lambda a: a.cast(type_.arrow), parse, type_.arrow)


def _timestamptz_column(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    @lru_cache(1024)  # far values are mostly one last day that means infinity
    def parse(text: str) -> object:
        return carried_moment(parse_timestamptz(text, zone_of(timezone), order_of(timezone)))

    name = zone_of(timezone)
    zone = arrow_zone(name)
    first = next((text for text in strings[:100].to_pylist() if text is not None), "")
    with_offset = len(first) > 10 and ("+" in first or "Z" in first or "-" in first[10:])
    if with_offset:
        plain = f"^{_DATE}[ T]{_CLOCK}{_OFFSET}$"
        return fast_or_exact(strings, plain, lambda a: a.cast(type_.arrow), parse, type_.arrow)

    def convert(texts: pa.Array) -> pa.Array:
        local = texts.cast(pa.timestamp("us"))
        # Arrow raises for a local time that a clock change skips or repeats; the exact way then reads it.
        return pc.assume_timezone(local, zone).cast(type_.arrow)

    if is_ruled(name):
        return by_value(strings, parse, type_.arrow)
    dates = _RULED_DATE if has_rules(zone) else _DATE
    try:
        return fast_or_exact(strings, f"^{dates}(?:[ T]{_CLOCK})?$", convert, parse, type_.arrow)
    except pa.ArrowInvalid:
        return by_value(strings, parse, type_.arrow)


def _zoneless(parse: Callable[[str, str], object]) -> Callable[[str, SqlType, str], object]:
    return lambda text, type_, timezone: parse(text, order_of(timezone))


_MOMENTS: Final = partial(_column_from_binary, dtype="i8", epoch=_EPOCH, first=_FIRST_MOMENT, last=_LAST_MOMENT)

CODECS: Final[dict[str, Codec]] = {
    "date": Codec(
        text=_in_style(_date_text),
        binary=_date_binary,
        from_text=_zoneless(parse_date),
        from_binary=_date_from_binary,
        column_from_text=_date_column,
        column_from_binary=partial(
            _column_from_binary, dtype="i4", epoch=_EPOCH_DAYS, first=_FIRST_DAY, last=_LAST_DAY
        ),
    ),
    "time": Codec(
        text=_time_text,
        binary=_time_binary,
        from_text=_zoneless(parse_time),
        from_binary=_time_from_binary,
        column_from_text=_time_column,
        column_from_binary=partial(_column_from_binary, dtype="i8", epoch=0, first=0, last=_DAY - 1),
    ),
    "timestamp": Codec(
        text=_in_style(_timestamp_text),
        binary=_timestamp_binary,
        from_text=_zoneless(parse_timestamp),
        from_binary=_timestamp_from_binary,
        column_from_text=_timestamp_column,
        column_from_binary=_MOMENTS,
    ),
    "timestamptz": Codec(
        text=_in_style(_timestamptz_text),
        binary=_timestamp_binary,
        from_text=lambda text, type_, timezone: parse_timestamptz(text, zone_of(timezone), order_of(timezone)),
        from_binary=_timestamp_from_binary,
        column_from_text=_timestamptz_column,
        column_from_binary=_MOMENTS,
    ),
}
