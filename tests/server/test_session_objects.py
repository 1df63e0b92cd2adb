"""The same text in sessions with different objects and settings: each gets its own columns and rows, whatever another
session's use of the text has left in a cache. A real PostgreSQL is the judge.

The sessions take turns, several times, so that one session has filled each cache when the next one asks: plans,
descriptions, answers, requests known by their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from psycopg.pq import DiagnosticField, ExecStatus

from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

_COMMON: Final = """
CREATE SCHEMA sa; CREATE SCHEMA sb;
CREATE TABLE sa.t (id int PRIMARY KEY, a text); CREATE TABLE sb.t (id int PRIMARY KEY, b int, c text);
INSERT INTO sa.t VALUES (1, 'a1'), (2, 'a2'); INSERT INTO sb.t VALUES (1, 10, 'b1'), (2, 20, 'b2');
CREATE VIEW sa.v AS SELECT id AS va FROM sa.t; CREATE VIEW sb.v AS SELECT c AS vb FROM sb.t;
CREATE SEQUENCE sa.s; CREATE SEQUENCE sb.s START 100;
CREATE TYPE sa.mood AS ENUM ('sad', 'ok'); CREATE TYPE sb.mood AS ENUM ('ok', 'good');
CREATE DOMAIN sa.d AS int CHECK (value > 0); CREATE DOMAIN sb.d AS text;
CREATE FUNCTION sa.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION sb.f() RETURNS text LANGUAGE sql AS $$SELECT 'fb'$$;
CREATE TABLE sa.moments (id int PRIMARY KEY, ts timestamptz, loc timestamp, d date, i interval);
INSERT INTO sa.moments VALUES (1, '2020-06-01 12:00+00', '2020-06-01 12:00', '2020-06-01', '1 day 02:00');
CREATE ROLE session_one; CREATE ROLE session_two;
GRANT USAGE ON SCHEMA sa TO session_one; GRANT SELECT ON ALL TABLES IN SCHEMA sa TO session_one;
GRANT USAGE ON SCHEMA sb TO session_two; GRANT SELECT ON ALL TABLES IN SCHEMA sb TO session_two;
"""
_DROPPED: Final = "DROP SCHEMA sa, sb CASCADE; DROP ROLE session_one; DROP ROLE session_two"
_CURSOR: Final = "DECLARE c CURSOR WITH HOLD FOR "
#: The objects of each session, and the texts that all of them send.
_CASES: Final[dict[str, tuple[dict[str, str], tuple[str, ...]]]] = {
    "cursors": (
        {
            "none": "SELECT 1",
            "a count": f"{_CURSOR} SELECT 7::bigint AS count",
            "two columns": f"{_CURSOR} SELECT * FROM (VALUES ('a', 1::float8), ('b', 2)) v (name, val)",
            "a text": f"{_CURSOR} SELECT 'x'::text AS only_text UNION ALL SELECT 'y'",
        },
        ("FETCH c", "MOVE 0 c", "FETCH ALL IN c", "SELECT name, is_holdable FROM pg_cursors WHERE name <> ''"),
    ),
    "prepared statements": (
        {
            "none": "SELECT 1",
            "a count": "PREPARE p AS SELECT 7::bigint AS count",
            "two columns": "PREPARE p AS SELECT * FROM (VALUES ('a', 1::float8), ('b', 2)) v (name, val)",
            "a parameter": "PREPARE p (int) AS SELECT $1 + 1 AS plus",
            "a row": "PREPARE p AS UPDATE sa.t SET a = a WHERE id = 1 RETURNING a",
            "no rows": "PREPARE p AS UPDATE sa.t SET a = a WHERE id = 1",
        },
        ("EXECUTE p", "EXECUTE p (41)", "SELECT parameter_types::text FROM pg_prepared_statements WHERE name = 'p'"),
    ),
    "relations": (
        {
            "none": "SELECT 1",
            "one schema": "SET search_path = sa",
            "another": "SET search_path = sb",
            "both": "SET search_path = sb, sa",
            "no schema": "SET search_path = ''",
            "a temporary table": "CREATE TEMP TABLE t (id int, y text); INSERT INTO t VALUES (1, 'temp')",
            "a temporary text": "CREATE TEMP TABLE t (id text); INSERT INTO t VALUES ('temp')",
            "temporary others": "CREATE TEMP VIEW t AS SELECT 1.5 AS id; CREATE TEMP SEQUENCE s START 77",
            "a role": "SET ROLE session_one; SET search_path = sb, sa",
            "another role": "SET ROLE session_two; SET search_path = sa, sb",
            "a user": 'SET SESSION AUTHORIZATION session_two; SET search_path = "$user", sa, sb',
        },
        (
            *("SELECT * FROM t", "SELECT * FROM t WHERE id = '1'", "TABLE v", "COPY t TO STDOUT"),
            *("SELECT nextval('s')", "SELECT last_value FROM s", "SELECT f()", "SELECT 'ok'::mood", "SELECT '1'::d"),
            *("SELECT enum_range(NULL::mood)", "SELECT to_regclass('t')::text", "SELECT 'sb.t'::regclass"),
            *("SELECT to_regtype('mood')::text", "SELECT pg_get_viewdef('sa.v'::regclass)"),
            "UPDATE t SET id = id WHERE id = '1' RETURNING *",
            "SELECT a.attname FROM pg_attribute a WHERE attrelid = to_regclass('t') AND attnum > 0 ORDER BY attnum",
        ),
    ),
    "settings": (
        {
            "none": "SELECT 1",
            "New York": "SET TimeZone = 'America/New_York'",
            "Kolkata": "SET TimeZone = 'Asia/Kolkata'",
            "German dates": "SET DateStyle = 'German, DMY'",
            "SQL dates": "SET DateStyle = 'SQL, MDY'",
            "ISO intervals": "SET IntervalStyle = 'iso_8601'",
            "SQL intervals": "SET IntervalStyle = 'sql_standard'",
            "one": "SET app.x = 'one'",
            "two": "SET app.x = 'two'",
        },
        (
            "SELECT ts, loc, d, i FROM sa.moments WHERE id = 1",
            "SELECT ts::date, extract(hour FROM ts), date_trunc('day', ts), ts::timestamp FROM sa.moments",
            "SELECT loc::timestamptz, loc < ts, ts + '1 day' FROM sa.moments",
            "SELECT array_agg(ts), to_char(min(ts), 'HH24 TZ') FROM sa.moments",
            "SELECT row(ts, i, d) FROM sa.moments",
            *("SELECT '01/02/2020'::date", "SELECT '2020-06-01 12:00'::timestamptz", "SELECT '1 day -2:00'::interval"),
            "SELECT timestamp '2020-06-01 12:00'::timestamptz",
            *("SELECT current_setting('app.x', true), current_setting('TimeZone')", "SHOW TimeZone", "SHOW DateStyle"),
        ),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def servers(running: Millstream, postgres: Postgres) -> Iterator[tuple[str, str]]:
    """Connection strings of both, with what all sessions see."""
    found = running.dsn(), postgres.dsn()
    for dsn in found:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(_COMMON.encode())
    yield found
    for dsn in found:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(_DROPPED.encode())


@pytest.mark.parametrize("case", sample(_CASES, ("cursors", "prepared statements")))
def test_no_session_gets_what_another_would(case: str, servers: tuple[str, str]) -> None:
    found, wanted = (_taking_turns(dsn, *_CASES[case]) for dsn in servers)
    wrong = [f"{key}: {found[key]}, expected {wanted[key]}" for key in wanted if found[key] != wanted[key]]
    assert not wrong, "\n".join(wrong)


def _taking_turns(dsn: str, sessions: dict[str, str], texts: tuple[str, ...]) -> dict[tuple[str, ...], object]:
    """The results of each session for each text in each protocol, in several rounds."""
    found: dict[tuple[str, ...], object] = {}
    clients = {name: psycopg.connect(dsn, autocommit=True) for name in sessions}
    try:
        for name, client in clients.items():
            client.execute(sessions[name].encode())
        for text in texts:
            for way in ("simple", "extended", "prepared"):
                for turn, order in enumerate((list(clients), list(reversed(clients)), list(clients))):
                    for name in order:
                        found[text, way, str(turn), name] = _asked(clients[name], text, way, turn)
    finally:
        for client in clients.values():
            client.close()
    return found


def _asked(client: psycopg.Connection[Any], text: str, way: str, turn: int) -> object:
    link = client.pgconn
    if way == "simple":
        return _told(link, link.exec_(text.encode()))
    if way == "extended":
        return _told(link, link.exec_params(text.encode(), []))
    name = f"{turn} {text}"[:60].encode()
    made = link.prepare(name, text.encode())
    if made.status == ExecStatus.FATAL_ERROR:  # PostgreSQL finds this out when it runs, after the description
        return _told(link, made)
    return _told(link, link.exec_prepared(name, []))


def _told(link: Any, result: Any) -> object:
    """Columns and rows, or the error."""
    if result.status == ExecStatus.FATAL_ERROR:
        return result.error_field(DiagnosticField.SQLSTATE), result.error_field(DiagnosticField.MESSAGE_PRIMARY)
    if result.status == ExecStatus.COPY_OUT:
        data = []
        while (piece := link.get_copy_data(0))[0] > 0:
            data.append(bytes(piece[1]))
        while link.get_result() is not None:
            pass
        return data
    columns = [(result.fname(place), _type(result.ftype(place))) for place in range(result.nfields)]
    return columns, [[result.get_value(row, place) for place in range(result.nfields)] for row in range(result.ntuples)]


def _type(oid: int) -> object:
    """A type's name; user-defined types have different oids on each server."""
    return oid if oid < 16384 else "a user's"
