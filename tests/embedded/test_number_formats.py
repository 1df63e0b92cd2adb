"""to_char() and to_number() of random numbers, texts and patterns, beside PostgreSQL's own."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.embedded.engine import EmbeddedEngine
from tests.embedded.sql import evaluate
from tests.rig.postgres import Postgres

SEED = 5
CASES = 1500
JUDGE = """
CREATE FUNCTION pg_temp.tried(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text; state text; message text; detail text;
BEGIN
    EXECUTE 'SELECT ' || command INTO answer;
    RETURN coalesce(answer, 'NULL');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
    RETURN concat_ws('|', state, message, nullif(detail, ''));
END $$
"""
WORDS = (
    *"99990000,,..DGGSLV",
    *("MI", "PL", "PR", "SG", "TH", "th", "FM", "fm", "B", "RN", "rn", "EEEE", "9999", "0000"),
)
TEXTS = (" ", "x", '"ab"', '"9"', '\\"', "-", "ä")
NUMBERS = (
    "0",
    "1",
    "-1",
    "12.5",
    "-0.05",
    "0.99",
    "1234",
    "-987654",
    "3.14159",
    "0.5",
    "99.999",
    "4000",
    "1234567",
    "-0.004",
)
STARTS = ("", "", "FM", "FM", "999", "S999.99", "9,999.00", "FM990.99", "999PR", "MI999", "999.99MI", "FM9999.0999")


def _pattern(source: random.Random) -> str:
    found = source.choice(STARTS)
    for _ in range(source.randint(0, 6)):
        found += source.choice(TEXTS) if source.random() < 0.15 else source.choice(WORDS)
    return found


def _text(source: random.Random) -> str:
    return "".join(source.choice("0123456789012345..,+-< >x$ä") for _ in range(source.randint(0, 9)))


def _call(source: random.Random) -> str:
    pattern = _pattern(source).replace("'", "''")
    if source.random() < 0.4:
        return f"to_number('{_text(source)}', '{pattern}')"
    kind = source.choice(("int4", "int8", "numeric", "numeric", "float8", "float4"))
    number = source.choice(NUMBERS)
    if kind.startswith("int"):
        number = number.partition(".")[0]
    elif kind.startswith("float"):
        number = source.choice((number, number, number, "NaN", "Infinity", "-Infinity", "1e20", "1.5e-7"))
    return f"to_char('{number}'::{kind}, '{pattern}')"


def _found(engine: EmbeddedEngine, call: str) -> Any:
    try:
        ((value,),) = evaluate(engine, f"SELECT {call}")
        return "NULL" if value is None else value
    except SqlError as error:
        return "|".join(item for item in (error.sqlstate, error.message, error.detail) if item is not None)


@pytest.mark.slow
@pytest.mark.postgres
def test_random_patterns_are_written_and_read_as_by_postgresql(
    postgres: Postgres, engine: EmbeddedEngine, whole: bool
) -> None:
    source = random.Random(SEED)
    calls = list(dict.fromkeys(_call(source) for _ in range(CASES if whole else CASES // 3)))
    with postgres.connect() as judge:
        judge.execute(JUDGE)
        told = judge.execute("SELECT pg_temp.tried(c) FROM unnest(%s::text[]) AS u(c)", (calls,)).fetchall()
    different = []
    for call, (wanted,) in zip(calls, told, strict=True):
        found = _found(engine, call)
        is_same = found == Decimal(wanted) if isinstance(found, Decimal) and "|" not in wanted else found == wanted
        if not is_same:
            different.append((call, found, wanted))
    assert not different, f"{len(different)}:\n" + "\n".join(map(repr, different[:25]))
