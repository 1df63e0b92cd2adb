"""Dates, times and intervals read from texts as PostgreSQL's input functions do, and rounding to a type's precision.

Owns: ``FUNCTIONS`` and ``STATEMENTS``, ``moments_*`` and the macros that round and truncate.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from catalog.values.times.intervals import carried_interval
from catalog.values.times.precision import EPOCH
from catalog.values.times.timestamps import (
    carried_day,
    carried_moment,
    parse_date,
    parse_time,
    parse_timestamp,
    parse_timestamptz,
)
from catalog.values.times.zones import east_at, east_of_local, session_zone
from executor.embedded.functions.batches import Functions
from executor.embedded.functions.times.timestamp_series import moment_series


def _day(written: str) -> object:
    return carried_day(parse_date(written))


def _timestamp(written: str) -> object:
    return carried_moment(parse_timestamp(written))


def _timestamptz(written: str, zone: str) -> object:
    return carried_moment(parse_timestamptz(written, zone))


def _zone_name(instant: datetime, zone: str) -> str:
    return instant.astimezone(session_zone(zone)).tzname() or ""


FUNCTIONS: Final[Functions] = {
    "moments_series": (moment_series, "BIGINT[]"),
    "moments_east": (east_at, "BIGINT"),
    "moments_east_of_local": (east_of_local, "BIGINT"),
    "moments_zone_name": (_zone_name, "VARCHAR"),
    "moments_interval": (carried_interval, "INTERVAL"),
    "moments_date": (_day, "DATE"),
    "moments_time": (parse_time, "TIME"),
    "moments_timestamp": (_timestamp, "TIMESTAMP"),
    "moments_timestamptz": (_timestamptz, "TIMESTAMP WITH TIME ZONE"),
}


#: Whole units of a number of microseconds, halves away from zero, for values counted from any whole second.
STATEMENTS: Final = f"""
CREATE MACRO ms_in_zone(x TIMESTAMP, zone) AS CASE WHEN isfinite(x)
    THEN make_timestamptz(epoch_us(x) - moments_east_of_local(epoch_us(x), zone)) ELSE timezone('UTC', x) END,
    (x TIMESTAMPTZ, zone) AS CASE WHEN isfinite(x)
    THEN make_timestamp(epoch_us(x) + moments_east(epoch_us(x), zone)) ELSE timezone('UTC', x) END;
CREATE MACRO ms_rounded_micros(us, unit) AS CASE WHEN us < 0 THEN -((-us + unit // 2) // unit * unit)
    ELSE (us + unit // 2) // unit * unit END;
CREATE MACRO ms_rounded_epoch(us, unit) AS CAST(
    ms_rounded_micros(us - {EPOCH}, unit) + {EPOCH} AS BIGINT);
CREATE MACRO ms_rounded_timestamp(x, unit) AS CASE WHEN isfinite(x)
    THEN make_timestamp(ms_rounded_epoch(epoch_us(x), unit)) ELSE x END;
CREATE MACRO ms_rounded_timestamptz(x, unit) AS CASE WHEN isfinite(x)
    THEN make_timestamptz(ms_rounded_epoch(epoch_us(x), unit)) ELSE x END;
CREATE MACRO ms_rounded_time(x, unit) AS CASE WHEN epoch_us(x) + unit // 2 >= 86400000000
    THEN error('!0A000!the time 24:00:00 is not supported')
    ELSE CAST('00:00' AS TIME) + to_microseconds(ms_rounded_micros(epoch_us(x), unit)) END;
CREATE MACRO ms_rounded_timetz(x, unit) AS ms_timetz(ms_rounded_micros(ms_timetz_us(x), unit), ms_timetz_west(x));
CREATE MACRO ms_cut(x, unit) AS CASE WHEN x < 0 THEN -(-x // unit * unit) ELSE x // unit * unit END;
CREATE MACRO ms_fitted_interval(x, months, days, cut, rounded) AS ms_interval_total(
    ms_cut(ms_interval_months(x), months), CASE WHEN days THEN ms_interval_day(x) ELSE 0 END,
    CASE WHEN cut = 0 THEN 0 ELSE ms_rounded_micros(ms_cut(ms_interval_micros(x), greatest(cut, 1)), rounded) END);
"""
