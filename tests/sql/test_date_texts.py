"""Date and time texts, written and generated: each has the same value as in PostgreSQL, or raises the same error."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import psycopg
import pytest

from catalog.values.errors import SqlError
from catalog.values.times.timestamps import parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_timetz
from catalog.values.times.timetz import unpacked
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

#: Each line has several texts, separated by bars.
WRITTEN: Final = (
    '01/Jan/2024:10:11:12 +0000|2024-060|2024-02-29 10:11:12 EST5EDT|"2024-01-01"',
    "2024-01-01 00:00:00.000000 +0000 UTC|2024-01-01 00:00 GMT+0100|1700000000|2024-01-01T10:11:12Z",
    "20240101T101112Z|20240101T101112+02|20240101 101112|20240101 1011|20240101101112|2024.060|2024-366",
    "2023-366|2024/060|2024/02/30|2024-13-01|2024-00-01|0000-01-01|01-02-03|1-2-3|13/02/2024|02/13/2024",
    "2024-2-3 1:2:3|2024-02-03 24:00:00|2024-02-03 24:00:01|2024-02-03 23:59:60|2024-02-03 23:60:00",
    "2024-02-03 10:11 PM|2024-02-03 13:11 PM|2024-02-03 0:11 PM|2024-02-03 12:00 AM|Jan 2 2024|2 Jan 2024",
    "2024 Jan 2|2-Jan-2024|Jan-2-2024|2024-Jan-2|02Jan2024|2Jan24|Jan2,2024|January 2, 2024 BC|2024-01-01 BC",
    "44-03-15 BC|Fri Jan 5 10:00:00 2024|Fri Jan 05 10:00:00 2024 PST|Fri, 05 Jan 2024 10:00:00 GMT",
    "Fri, 05 Jan 2024 10:00:00 +0200|Fri Jan 05 2024 10:00:00 GMT+0100 (CET)|J2451187|j2451187.5|Julian 2451187",
    "J2451187 04:05:06|J2451187-08|J 2451187+01|2024-01-01 10:00 Europe/Berlin|2024-01-01 10:00 europe/berlin",
    "2024-01-01 10:00 America/New_York|2024-01-01 10:00 Nowhere/Land|2024-01-01 10:00 nowhere",
    "2024-01-01 10:00 MSK|2024-07-01 10:00 CET|2024-07-01 10:00 MET DST|2024-07-01 10:00 CEST",
    "2024-01-01 10:00 Zulu|2024-01-01 10:00 z|2024-01-01 10:00:00.5|2024-01-01 10:00:00.",
    "2024-01-01 10:00:00.1234567|2024-01-01 10:00:00,5|2024-01-01 10:00.5|2024-01-01 10|2024-01-01 10:",
    "2024-01-01 1010|2024-01-01 101010.5|2024-01-01 10:00 +1|2024-01-01 10:00 +16|2024-01-01 10:00 +15:59:59",
    "2024-01-01 10:00 +0530|2024-01-01 10:00 -05:30|2024-01-01 10:00 + 5|2024-01-01 10:00 +5:",
    "2024-01-01 10:00 +05:60|2024-01-01 10:00 +123456|2024-01-01 +02|2024-01-01+02|2024-01-01-02",
    "2024-01-01 10:00-02|2024-01-01 -2:00|10:00 2024-01-01|10:00:00 Jan 1 2024|1 January 10:00 2024|infinity",
    '-infinity|  Infinity |+infinity|"infinity"|infinity 10:00|epoch|epoch 10:00|EPOCH|allballs',
    "2024-01-01 allballs|now x|2024-01-01 at 10:00|on 2024-01-01|y2001m12d27|y2001m12d27h04m05s06.789",
    "y2024 m02 d03|20011225|011225|990108|99-01-08|1/8/1999|1999/1/8|1.8.1999|1999.1.8|08.Jan.1999|8-JAN-99",
    "1999 01 08|01 08 1999|2024-01|2024|24|01-2024|Jan 2024|2024-01-01 2024-01-02|10:00|10:00 10:00|1e5|abc|",
    "   |,|2024-01-01x|2024-01-01 x|2024-01-01T|2024-01-01T10|T10:00|2024-01-01 T10:00|2024-01-01 t 101010",
    "2024-01-01T101010-08|2024-01-01 101010-08|040506-08|04:05:06-08:00:01|2024-01-01 04:05:06 PST8PDT",
    "2024-01-01 GMT0|2024-01-01 UTC+3|2024-01-01 utc-3|2024-01-01 10:00 UTC+3|2024-01-01 10:00 <+03>-3",
    "2024-01-01 10:00 FOO+3|2024-01-01 10:00 FOO-3:30|2024-01-01 10:00 FOO+3:30:15|2024-01-01 10:00 FO+3",
    "2024-01-01 10:00 FOO+168|2024-01-01 10:00 FOO+167|2024-01-01 10:00 Etc/GMT+5|2024-01-01 10:00 UTC UTC",
    "2024-01-01 10:00 utc +2|2024-01-01 10:00 AD|2024-01-01 10:00 AD BC|2024-W05-3|99999-01-01|10000-01-01",
    "294277-01-01|300000-01-01|5874898-01-01|2024-02-30|2023-02-29|2024-04-31|99999999999-01-01",
    "2024-99999999999-01|2024-01-01 99999999999:00|2024-01-01 25:00|2024-01-01 10:60|2024-01-01 10:00:61",
    "2024-01-01 996060|2024-01-01 100|2024-01-01 10101|Monday 2024-01-01|Mon|weds 2024-01-03|Sept 5 2024",
    "sept-5-2024|5/sep/2024|5.sept.2024|2024-sep|2024/sep/5|05-06-2024|05 06 2024|5 6 24|2024-01-01 12:00:00 AM",
    "2024-01-01 am 12:00|am|2024-01-01 am|0001-01-01|1-01-01|001-01-01|0099-01-01|99-1-1|100-1-1",
    "2024-01-01 00:00:00+00:00:00|2024-01-01 00:00:00 +00:00 UTC|(2024-01-01)|[2024-01-01]|2024-01-01;10:00",
    "2024_01_01|2024:01:01|2024:01:01 10:11:12|20240101_101112|2024-01-01_10:11:12|1,2,2024|2024,01,01",
    "2024-01-01 dst|2024-01-01 est dst|est 2024-01-01|est|america/new_york|10:00 est 2024-01-01|2024-1-1 jan",
    "jan 2024-1-1|jan-1|feb 29 2023|29 feb 24|31/12/99|12/31/99|99/12/31|12-31-1999 23:59:59.9999999",
    "1999-12-31 23:59:59.9999995|2024-01-01 10:11:12.999999999",
)
SEPARATORS: Final = ("-", "/", ".", " ", "", "  ", ", ")
YEARS: Final = ("2024", "24", "99", "1999", "0044", "12345", "5", "2023", "1", "069", "70", "0")
MONTHS: Final = ("1", "01", "12", "13", "Jan", "february", "SEPT", "2", "02", "00", "oct")
DAYS: Final = ("1", "01", "29", "30", "31", "32", "366", "060", "0", "15")
TIMES: Final = (
    *("10:11:12", "1:2", "24:00", "101112", "1011", "10:11:12.5", "T10:11", "t101112", "23:59:60", "12:30 PM"),
    *("12:30am", "13:00 pm", "101112.25", "10:11.5", "25:00", "", "", "", "at 10:00", "h10m11", "10"),
)
ZONES: Final = (
    *("", "", "", "Z", "+02", "-0330", "+05:30", "UTC", "EST", "EDT", "MSK", "Europe/Prague", "EST5EDT", "GMT+2"),
    *("utc+3", "+16", "-15:59", "foo", "BST", "MET DST", "+1:2:3", "Asia/Kolkata", "AD", "BC", "PM", "IST"),
)
OTHERS: Final = ("Mon", "Friday", "BC", "x", '"', "(x)", "CET", "10", ",", "on", "T", "dst", "2024")
#: A PostgreSQL function that gives a text's value, or "!" and the SQLSTATE.
TRIED: Final = """
CREATE FUNCTION tried(x text, kind text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    EXECUTE format('SELECT (%L::%s)::text', x, kind) INTO found;
    RETURN found;
EXCEPTION WHEN OTHERS THEN RETURN '!' || SQLSTATE;
END $$
"""
SIZE: Final = 400


def generated(seed: int) -> list[str]:
    """Dates, times and zones in any order, sometimes with a word at a wrong place."""
    chance = random.Random(seed)
    found = []
    for _ in range(SIZE):
        day = [chance.choice(parts) for parts in (YEARS, MONTHS, DAYS)]
        chance.shuffle(day)
        between = chance.choice(SEPARATORS)
        parts = [between.join(day), chance.choice(TIMES), chance.choice(ZONES)]
        if chance.random() < 0.15:
            chance.shuffle(parts)
        if chance.random() < 0.15:
            parts.insert(chance.randrange(4), chance.choice(OTHERS))
        found.append(chance.choice((" ", " ", "", "T", " , ")).join(filter(None, parts)))
    return found


def shown(value: Any) -> str:
    """A value as PostgreSQL shows it, in UTC."""
    if isinstance(value, float):
        return "infinity" if value > 0 else "-infinity"
    if isinstance(value, int):
        micros, west = unpacked(value)
        minutes, seconds = divmod(micros // 1_000_000, 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{_decimals(micros % 1_000_000)}{_offset(-west)}"
    written = value.isoformat(*[" "] * hasattr(value, "hour") * hasattr(value, "year"))
    whole, _, decimals = written.removesuffix("+00:00").partition(".")
    return whole + (f".{decimals.rstrip('0')}" if decimals else "") + ("+00" if written.endswith("+00:00") else "")


def _decimals(micros: int) -> str:
    return f".{micros:06}".rstrip("0") if micros else ""


def _offset(east: int) -> str:
    minutes, seconds = divmod(abs(east) // 1, 60)
    text = f"{'-' if east < 0 else '+'}{minutes // 60:02}"
    return text + (f":{minutes % 60:02}" if minutes % 60 or seconds else "") + (f":{seconds:02}" if seconds else "")


def found(parse: Callable[[str], Any], text: str) -> str:
    try:
        return shown(parse(text))
    except SqlError as error:
        return f"!{error.sqlstate}"


@pytest.mark.parametrize("seed", [None, 1, *(pytest.param(seed, marks=pytest.mark.whole) for seed in range(2, 12))])
@pytest.mark.parametrize("order", ["MDY", "DMY", "YMD"])
def test_as_postgresql_reads_them(postgres: Postgres, order: str, seed: int | None) -> None:
    texts = [text for line in WRITTEN for text in line.split("|")] if seed is None else generated(seed)
    readers: dict[str, Callable[[str], Any]] = {
        "date": lambda text: parse_date(text, order),
        "timestamp": lambda text: parse_timestamp(text, order),
        "timestamptz": lambda text: parse_timestamptz(text, "UTC", order),
        "time": lambda text: parse_time(text, order),
        "timetz": lambda text: parse_timetz(text, "UTC", order),
    }
    with postgres.connect() as judge:
        judge.execute(f"SET datestyle = 'ISO, {order}'".encode())
        judge.execute("SET timezone = 'UTC'")
        judge.execute("DROP FUNCTION IF EXISTS tried")
        judge.execute(TRIED)
        different = []
        for kind, parse in readers.items():
            wanted = judge.execute("SELECT tried(x, %s) FROM unnest(%s::text[]) x", (kind, texts)).fetchall()
            for text, (value,) in zip(texts, wanted, strict=True):
                ours = found(parse, text)
                if ours not in (value, "!0A000"):
                    different.append((kind, text, ours, value))
        judge.execute("DROP FUNCTION tried")
    assert not different, different[:20]


def test_in_columns_and_in_copy(postgres: Postgres) -> None:
    texts = [text for line in WRITTEN for text in line.split("|")][::6]
    with (
        Millstream(settings={"spark_enabled": False}) as server,
        server.connect() as ours,
        postgres.connect() as theirs,
    ):
        for connection in (ours, theirs):
            connection.execute("CREATE TABLE date_texts (z timestamptz)")
            connection.execute("SET timezone = 'UTC'")
        different = [
            (text, *outcomes)
            for text in texts
            if len(set(outcomes := [(_cast(each, text), _copied(each, text)) for each in (ours, theirs)])) > 1
            and "!0A000" not in outcomes[0]
        ]
        theirs.execute("DROP TABLE date_texts")
    assert not different, different[:20]


def _cast(connection: psycopg.Connection[Any], text: str) -> str:
    try:
        found = connection.execute("SELECT x::timestamptz::text FROM (SELECT %s::text AS x) v", (text,)).fetchone()
    except psycopg.Error as error:
        return f"!{error.sqlstate}"
    assert found is not None
    return str(found[0])


def _copied(connection: psycopg.Connection[Any], text: str) -> str:
    try:
        with connection.cursor() as cursor, cursor.copy("COPY date_texts FROM STDIN") as copy:
            copy.write(f"{text}\n")
    except psycopg.Error as error:
        return f"!{error.sqlstate}"
    found = connection.execute("SELECT z::text FROM date_texts").fetchone()
    connection.execute("DELETE FROM date_texts")
    assert found is not None
    return str(found[0])
