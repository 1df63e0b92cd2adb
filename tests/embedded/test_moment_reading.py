"""to_date() and to_timestamp() of random texts and patterns, beside PostgreSQL's own."""

from __future__ import annotations

import datetime as dt
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Final

import pytest

from catalog.values.errors import SqlError
from catalog.values.times.pattern_reading import read_date, read_instant
from catalog.values.times.patterns import moment_reader
from executor.embedded.engine import EmbeddedEngine
from tests.embedded.sql import evaluate
from tests.rig.postgres import Postgres

SEED = 11
CASES = 12_000
ZONE: Final = "America/New_York"
JUDGE = """
CREATE FUNCTION pg_temp.read(name text, t text, p text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; hint text;
BEGIN
    IF name = 'date' THEN RETURN to_date(t, p)::text; END IF;
    RETURN (to_timestamp(t, p) AT TIME ZONE 'UTC')::text;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    RETURN concat_ws('|', state, message, nullif(detail, ''), nullif(hint, ''));
END $$
"""
#: Fields, and functions that make texts for them.
FIELDS: Final[dict[str, Callable[[random.Random], str]]] = {
    "YYYY": lambda source: f"{source.choice((1, 97, 999, 1999, 2024, 2024, 2000, 0, 12345)):04}",
    "YYY": lambda source: str(source.randint(0, 1999)),
    "YY": lambda source: f"{source.randint(0, 110):02}",
    "Y": lambda source: str(source.randint(0, 12)),
    "Y,YYY": lambda source: source.choice(("1,999", "2,024", "2,24", "0,097", "2024")),
    "CC": lambda source: str(source.randint(0, 21)),
    "MM": lambda source: f"{source.randint(0, 13):02}",
    "Mon": lambda source: source.choice(("Jan", "FEB", "may", "Sept", "x")),
    "MONTH": lambda source: source.choice(("January", "FEBRUARY", "may", "Jun")),
    "RM": lambda source: source.choice(("I", "viii", "XII", "IX")),
    "DD": lambda source: f"{source.randint(0, 32):02}",
    "DDD": lambda source: f"{source.randint(0, 367):03}",
    "D": lambda source: str(source.randint(0, 8)),
    "Day": lambda source: source.choice(("Sunday", "monday", "Fri")),
    "DY": lambda source: source.choice(("Sun", "mon", "FRI")),
    "IYYY": lambda source: str(source.choice((2020, 2005, 1999, 97))),
    "IY": lambda source: f"{source.randint(0, 99):02}",
    "IW": lambda source: f"{source.randint(0, 54):02}",
    "ID": lambda source: str(source.randint(0, 8)),
    "IDDD": lambda source: f"{source.randint(0, 372):03}",
    "WW": lambda source: f"{source.randint(0, 54):02}",
    "W": lambda source: str(source.randint(0, 6)),
    "Q": lambda source: str(source.randint(0, 5)),
    "J": lambda source: str(source.choice((2451545, 2460000, 0, 1721426, 12))),
    "HH24": lambda source: f"{source.randint(0, 24):02}",
    "HH": lambda source: f"{source.randint(0, 13):02}",
    "HH12": lambda source: str(source.randint(1, 12)),
    "MI": lambda source: f"{source.randint(0, 60):02}",
    "SS": lambda source: f"{source.randint(0, 60):02}",
    "SSSS": lambda source: str(source.choice((0, 59, 3600, 86399, 86400))),
    "SSSSS": lambda source: str(source.choice((0, 59, 3600, 86399, 86400))),
    "MS": lambda source: source.choice(("1", "25", "025", "123", "1234")),
    "US": lambda source: source.choice(("1", "25", "123456", "1234567")),
    "FF1": lambda source: source.choice(("1", "25", "99")),
    "FF3": lambda source: source.choice(("1", "123", "1235", "999999")),
    "FF6": lambda source: source.choice(("1", "123456", "000001")),
    "AM": lambda source: source.choice(("AM", "pm", "a.m.", "x")),
    "p.m.": lambda source: source.choice(("A.M.", "p.m.", "pm")),
    "BC": lambda source: source.choice(("BC", "ad", "B.C.")),
    "a.d.": lambda source: source.choice(("A.D.", "b.c.")),
    "TZH": lambda source: source.choice(("+05", "-3", "00", "16", " 2", "-03")),
    "TZM": lambda source: source.choice(("30", "00", "60")),
    "TZ": lambda source: "UTC",
}
#: The beginnings of most patterns, so that most have a year.
STARTS: Final = (
    *("YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS", "DD Mon YYYY", "YYYYMMDD", "YYYYMMDDHH24MISS", "IYYY-IW-ID", "YYYY DDD"),
    *("YYYY-MM-DD HH:MI:SS AM", 'YYYY-MM-DD"T"HH24:MI:SS.MS', "YYYY-MM-DD HH24:MI:SS.US", "MM/DD/YY", "FMDD FMMonth"),
    *(
        "YYYY",
        "Y,YYY",
        "FXYYYY-MM-DD",
        "CC YY",
        "BC YYYY",
        "YYYY-MM-DD HH24:MI TZH:TZM",
        "YYYY-MM-DD HH12:MI",
        "",
        "",
        "",
    ),
)
BETWEEN: Final = (" ", "-", "/", ":", "", "", ", ", "  ", '"T"', "x", '" at "', '\\"', "ä", "1", "FX", "FM ")
SKIPPED: Final = (" ", "-", "", "  ", "+", "x", " - ", "ä", "9", "/", "\t")


def _pattern(source: random.Random) -> str:
    found = source.choice(STARTS)
    for _ in range(source.choice((0, 0, 0, 1, 1, 2, 3))):
        word = source.choice(tuple(FIELDS))
        word = source.choice((word, word, word.lower()))
        prefix, suffix = (
            source.choice(("", "", "", "", "FM", "TM", "fm")),
            source.choice(("", "", "", "", "", "th", "TH", "SP")),
        )
        found += source.choice(BETWEEN) + prefix + word + suffix
    return found


def _text(source: random.Random, pattern: str) -> str:
    """A text that mostly fits a pattern."""
    found, place, is_usual = "", 0, source.random() < 0.4
    words = sorted(FIELDS, key=len, reverse=True)
    while place < len(pattern):
        word = next((item for item in words if pattern.upper().startswith(item.upper(), place)), None)
        if word is not None:
            found += source.choice(("", "", " ", "0")) * (not is_usual) + FIELDS[word](source)
            place += len(word)
        elif pattern[place : place + 2].upper() in ("FM", "FX", "TM", "SP"):
            place += 2
        elif pattern[place : place + 2].upper() == "TH":
            found += source.choice(("th", "nd", "")) if not is_usual else "th"
            place += 2
        else:
            char = pattern[place]
            skipped = source.random() < 0.3 and not is_usual
            found += source.choice(SKIPPED) if skipped else char if char not in '"\\' else ""
            place += 1
    if is_usual or source.random() < 0.7:
        return found
    return source.choice((found[: source.randint(0, len(found))], f" {found}", f"-{found}", f"{found} x", f"{found}1"))


def _found(name: str, text: str, pattern: str) -> str:
    try:
        if name == "date":
            return read_date(text, pattern).isoformat()
        moment = read_instant(text, pattern, ZONE).replace(tzinfo=None)
        return moment.isoformat(" ")
    except SqlError as error:
        said = (error.sqlstate, error.message, error.detail, error.hint)
        return "|".join(item for item in said if item is not None)


def _wanted(name: str, told: str) -> str:
    """PostgreSQL's answer; years before Christ and beyond 9999 must be refused."""
    date = told.split("|")[0]
    if told.endswith(" BC") or ("-" in date and len(date.split("-")[0]) > 4):
        return f"0A000|a {name} before Christ or beyond the year 9999 is not supported"
    if name == "timestamp" and "-" in date:
        return dt.datetime.fromisoformat(told).isoformat(" ")
    return told


@pytest.mark.slow
@pytest.mark.postgres
def test_random_texts_are_read_as_postgresql_reads_them(
    postgres: Postgres, engine: EmbeddedEngine, whole: bool
) -> None:
    source = random.Random(SEED)
    cases = []
    for _ in range(CASES if whole else CASES // 3):
        pattern = _pattern(source)
        cases.append((source.choice(("date", "timestamp")), _text(source, pattern), pattern))
    names, texts, patterns = (list(items) for items in zip(*cases, strict=True))
    with postgres.connect() as judge:
        judge.execute(f"SET TimeZone = '{ZONE}'")
        judge.execute(JUDGE)
        told = judge.execute(
            "SELECT textsend(pg_temp.read(n, t, p)) FROM unnest(%s::text[], %s::text[], %s::text[]) AS u(n, t, p)",
            (names, texts, patterns),
        ).fetchall()
    different, read = [], defaultdict(list)
    for case, (answer,) in zip(cases, told, strict=True):
        wanted = _wanted(case[0], answer.decode(errors="replace"))
        found = _found(*case)
        if found != wanted and ("\ufffd" not in wanted or found[:5] != wanted[:5]):  # truncated within a character
            different.append((*case, found, wanted))
        if wanted[:4].isdigit() and "|" not in wanted and moment_reader(case[2]) is not None:
            read[case[0], case[2]].append((case[1], wanted))
    assert not different, f"{len(different)}:\n" + "\n".join(map(repr, different[:20]))
    assert sum(map(len, read.values())) > len(cases) / 20
    for (name, pattern), rows in read.items():
        assert _answers(engine, name, pattern, [text for text, _ in rows]) == [wanted for _, wanted in rows], pattern


def _answers(engine: EmbeddedEngine, name: str, pattern: str, texts: list[str]) -> list[str]:
    """The engine's results for texts, most of them computed without the kernel."""

    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    values = ", ".join(f"({place}, {quoted(text)})" for place, text in enumerate(texts))
    called = f"to_{name}(t, {quoted(pattern)})"
    moment = f"{called}" if name == "date" else f"{called} AT TIME ZONE 'UTC'"
    rows = evaluate(engine, f"SELECT {moment} FROM (VALUES {values}) v(i, t) ORDER BY i", ZONE)
    return [row[0].isoformat() if name == "date" else row[0].isoformat(" ") for row in rows]
