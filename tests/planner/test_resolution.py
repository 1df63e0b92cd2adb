"""Which operator or function a call means, compared with a real PostgreSQL for random names and argument types."""

from __future__ import annotations

import random
from collections.abc import Sequence

import psycopg
import pytest

from catalog import postgres as catalog
from planner.bind.conversion import resolution as r
from tests.rig.postgres import Postgres

#: Types of every category except ranges.
NAMES = (
    *("bool", "bytea", "int2", "int4", "int8", "text", "oid", "json", "jsonb", "float4", "float8", "varchar"),
    *("bpchar", "name", "date", "time", "timetz", "timestamp", "timestamptz", "interval", "numeric", "uuid"),
    *("_int4", "_text", "_numeric", "_varchar", "unknown", "inet", "bit", "varbit", "money", "char", "point"),
)
OIDS = {name: catalog.type_oids()[name] for name in NAMES}
NO_FUNCTION, AMBIGUOUS = "42883", "42725"


def _null(name: str) -> str:
    return "NULL" if name == "unknown" else f'NULL::"{name}"'


def _asked(connection: psycopg.Connection[tuple[object, ...]], expression: str) -> object:
    """The oid of an expression's type, or the SQLSTATE."""
    try:
        row = connection.execute(f"SELECT pg_typeof({expression})::oid".encode()).fetchone()
    except psycopg.Error as error:
        return error.sqlstate
    assert row is not None
    return row[0]


def _operator(symbol: str, left: str, right: str) -> object:
    try:
        found = r.operator(symbol, OIDS[left], OIDS[right])
    except r.Ambiguous:
        return AMBIGUOUS
    if found is None:
        return NO_FUNCTION
    kinds = (OIDS[left], OIDS[right])
    return r.result_type(found.result, kinds, (found.left, found.right)) or NO_FUNCTION


def _function(name: str, arguments: Sequence[str]) -> object:
    kinds = [OIDS[argument] for argument in arguments]
    try:
        found = r.function_call(name, kinds)
    except r.Ambiguous:
        return AMBIGUOUS
    if found is None:
        return NO_FUNCTION
    if isinstance(found, r.TypeCall):
        return found.target
    return r.result_type(found.function.result, kinds, found.arguments)


@pytest.mark.slow
@pytest.mark.postgres
def test_operators_are_those_of_postgresql(postgres: Postgres) -> None:
    source = random.Random(15)
    symbols = sorted({str(row["oprname"]) for row in catalog.rows("pg_operator")})
    with postgres.connect() as connection:
        differing = []
        for _ in range(6000):
            symbol, left, right = source.choice(symbols), source.choice(NAMES), source.choice(NAMES)
            wanted = _asked(connection, f"{_null(left)} OPERATOR(pg_catalog.{symbol}) {_null(right)}")
            if _operator(symbol, left, right) != wanted:
                differing.append((symbol, left, right, wanted))
    assert differing == []


def _plain_functions() -> list[str]:
    """Functions of values: without side effects, and without input and output of pseudo-types."""
    prefixes = ("pg_", "any", "enum", "array_in", "range", "multirange", "cstring", "void")
    internal = {"prokind": "f", "proretset": "f", "prolang": "12"}
    names = {
        str(row["proname"])
        for row in catalog.rows("pg_proc")
        if internal.items() <= row.items() and row["provolatile"] != "v"
    }
    return sorted(name for name in names if not name.startswith(prefixes))


@pytest.mark.slow
@pytest.mark.postgres
def test_functions_are_those_of_postgresql(postgres: Postgres) -> None:
    source = random.Random(16)
    by_oid = {oid: name for name, oid in OIDS.items()}
    names = [name for name in _plain_functions() if not any(word in name for word in ("_in", "_out", "_recv", "_send"))]
    with postgres.connect() as connection:
        differing, decided = [], 0
        for _ in range(6000):
            name = source.choice(names)
            declared = source.choice(catalog.functions(name)).arguments
            arguments = [
                by_oid.get(oid, "unknown") if source.random() < 0.7 else source.choice(NAMES) for oid in declared
            ]
            if not arguments:
                continue
            wanted = _asked(connection, f'"{name}"({", ".join(map(_null, arguments))})')
            if isinstance(wanted, str) and wanted not in (NO_FUNCTION, AMBIGUOUS):
                continue  # it was chosen, and failed when it ran
            decided += 1
            if _function(name, arguments) != wanted:
                differing.append((name, arguments, wanted))
    assert decided > 4000
    assert differing == []


def test_an_exact_match_with_fewer_tricks_comes_first() -> None:
    found = r.function_call("concat", [OIDS["text"], OIDS["int4"]])
    assert isinstance(found, r.Candidate)
    assert found.spread


def test_a_type_name_called_as_a_function_is_a_cast() -> None:
    assert r.function_call("date", [r.UNKNOWN]) == r.TypeCall(OIDS["date"])
    assert r.function_call("no_such_function", [r.UNKNOWN]) is None
