"""Dates and timestamps in DateStyle's other output styles: their ISO texts, rearranged as EncodeDateTime() writes them.

Owns: SQL (``12/17/1997 07:37:16.5 PST``), Postgres (``Wed Dec 17 07:37:16.5 1997 PST``) and German (``17.12.1997
07:37:16.5 PST``). Infinite values look the same in every style.
https://www.postgresql.org/docs/15/datatype-datetime.html#DATATYPE-DATETIME-OUTPUT
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.times.zones import arrow_zone
from protocol.compute import constant, pc
from protocol.values import styles
from protocol.values.codec import vector
from protocol.values.styles import dates_of, order_of, zone_of
from protocol.values.times.zone_clocks import is_later
from protocol.values.times.zone_clocks import names as later_names

_PARTS: Final = (
    r"^(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)(?P<clock> [0-9:.]+)?(?P<offset>[+-][0-9:]+)?(?P<era> BC)?$"
)
_MONTHS: Final = pa.array(["", *(dt.date(2000, month, 1).strftime("%b") for month in range(1, 13))])
_WEEKDAYS: Final = pa.array(["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"])  # counted from 1970-01-01
#: Seconds since 1970 of a day within the years 1 to 9999.
_FIRST, _LAST = -719_161 * 86_400, 2_932_896 * 86_400


def restyled(shown: pa.Array, values: pa.Array, word: str) -> pa.Array:
    """The ISO texts ``shown`` of dates or timestamps, rewritten in the style that the session's string names."""
    year, month, day, clock, _, era = pc.extract_regex(shown, _PARTS).flatten()
    zone = constant("")
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        zone = pc.binary_join_element_wise(constant(" "), _abbreviations(values, zone_of(word)), constant(""))
    first, second = (day, month) if order_of(word) == "DMY" else (month, day)
    match dates_of(word):
        case styles.SQL:
            pieces = [first, constant("/"), second, constant("/"), year, clock, zone, era]
        case styles.GERMAN:
            pieces = [day, constant("."), month, constant("."), year, clock, zone, era]
        case _ if pa.types.is_date(values.type):
            pieces = [first, constant("-"), second, constant("-"), year, era]
        case _:
            name = _MONTHS.take(month.cast(pa.int8()))
            first, second = (day, name) if order_of(word) == "DMY" else (name, day)
            blank = constant(" ")
            pieces = [_weekdays(year, month, day, era), blank, first, blank, second, clock, blank, year, zone, era]
    found = pc.binary_join_element_wise(*pieces, constant(""))
    return pc.coalesce(found, shown)


def _abbreviations(instants: pa.Array, zone: str) -> pa.Array:
    """The zone's abbreviation at each instant: CET, CEST. Instants outside of the years 1 to 9999 are shown in UTC."""
    moments = vector(instants, "<i8") // 1_000_000
    usual = (moments > _FIRST) & (moments < _LAST)
    name = arrow_zone(zone)
    later = usual & is_later(moments, zone)
    seconds = pa.array(np.where(usual & ~later, moments, 0), pa.timestamp("s", tz=name))
    names = pc.strftime(seconds, "%Z")
    if later.any():
        names = pc.replace_with_mask(names, pa.array(later), pa.array(later_names(moments[later], zone), pa.string()))
    return names if usual.all() else pc.if_else(pa.array(usual), names, constant("UTC"))


def _weekdays(year: pa.Array, month: pa.Array, day: pa.Array, era: pa.Array) -> pa.Array:
    """The weekdays' names for days of the proleptic Gregorian calendar (days_from_civil, by Howard Hinnant)."""
    years, months, days = (np.asarray(part.fill_null("1").cast(pa.int64())) for part in (year, month, day))
    years = np.where(np.asarray(pc.equal(era, constant(" BC")).fill_null(constant(False))), 1 - years, years)
    shifted = years - (months <= 2)
    era_of, year_of_era = np.divmod(shifted, 400)
    day_of_year = (153 * (months + np.where(months > 2, -3, 9)) + 2) // 5 + days - 1
    number = era_of * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    return _WEEKDAYS.take(pa.array(number % 7))
