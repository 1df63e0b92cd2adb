"""Enums that move together with continuous views, and composite types within their programs."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from tests.executor.client import Client
from tests.executor.moving import Servers
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

READ = "SELECT m, c, t FROM v ORDER BY m"
LABELS = "SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum"


@pytest.fixture
def a(servers: Servers) -> Client:
    client = servers.client("a")
    client.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE FOREIGN TABLE s (m mood, k int) SERVER stream;"
        "CREATE VIEW v AS SELECT m, count(*) AS c, array_agg(m::text || k) AS t FROM s GROUP BY m;"
        "INSERT INTO s VALUES ('happy', 1), ('sad', 2), ('happy', 3)"
    )
    return client


def test_there_and_back(servers: Servers, a: Client) -> None:
    servers.client("b").run("CREATE TABLE other (x int); CREATE TYPE first AS ENUM ('x')")  # other oids
    for number, target in enumerate("bcb"):
        servers.migrate("a", target)
        there = servers.client(target)
        a.run(f"INSERT INTO s VALUES ('sad', {number})")
        for _ in range(2):
            assert there.run(READ) == a.run(READ)
            found = there.run("SELECT m::text AS label, c FROM v WHERE m < 'happy' OR m = 'happy'::mood ORDER BY m")
            assert found == [("sad", number + 2), ("happy", 2)]
            about = "SELECT t.typname, count(*) FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid"
            assert there.run(f"{about} WHERE attname = 'm' AND typtype = 'e' GROUP BY 1") == [("mood", 2)]
            servers.stop(target)
            there = servers.client(target)
        servers.migrate(target, "a")
        assert a.run("SELECT sum(c) FROM v") == [(4 + number,)]
        wait_until(lambda t=target: not servers[t].core.streams, what="the replica's end")
        assert there.bind("SELECT 1") is not None
        assert there.run("SELECT count(*) FROM pg_type WHERE typname = 'mood'") == [(0,)]


def test_on_to_a_third_server(servers: Servers, a: Client) -> None:
    servers.client("c").run("CREATE TYPE first AS ENUM ('x')")
    servers.migrate("a", "b")
    servers.migrate("b", "c")
    a.run("INSERT INTO s VALUES ('sad', 7)")
    assert servers.client("c").run(READ) == a.run(READ)
    servers.migrate("c", "a")
    assert a.run("SELECT m::text AS label, c FROM v ORDER BY m") == [("sad", 2), ("happy", 2)]


def test_they_stay_as_they_are_while_a_view_is_away(servers: Servers, a: Client) -> None:
    servers.migrate("a", "b")
    b = servers.client("b")
    for client in (a, b):
        for change in ("ADD VALUE 'ok'", "RENAME VALUE 'sad' TO 'low'", "RENAME TO temper"):
            with pytest.raises(SqlError, match=r"55000|0A000: renaming a label that view v keeps"):
                client.run(f"ALTER TYPE mood {change}")
    with pytest.raises(SqlError, match="2BP01"):
        b.run("DROP TYPE mood")


def test_what_is_of_them_stays_and_follows(servers: Servers, a: Client) -> None:
    """A table on the guest's server, while the view is at home and its enum gets another label."""
    servers.migrate("a", "b")
    b = servers.client("b")
    b.run("CREATE TABLE own (m mood); INSERT INTO own VALUES ('happy')")
    servers.migrate("b", "a")
    wait_until(lambda: not servers["b"].core.streams, what="the replica's end")
    a.run("ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy'; INSERT INTO s VALUES ('ok', 9)")
    assert b.run(LABELS) == [("sad,happy",)]
    servers.migrate("a", "b")
    assert b.run(LABELS) == [("sad,ok,happy",)]
    assert b.run(READ) == a.run(READ)
    assert b.run("SELECT m::text, c FROM v NATURAL JOIN own") == [("happy", 2)]
    b.run("INSERT INTO own VALUES ('ok')")
    servers.migrate("b", "a")
    wait_until(lambda: not servers["b"].core.streams, what="the replica's end")
    assert b.run("SELECT m::text AS label FROM own ORDER BY m") == [("ok",), ("happy",)]
    assert a.run("SELECT t FROM v WHERE m = 'ok'") == [(["ok9"],)]


@pytest.mark.parametrize(
    ("own", "stays"),
    [
        ("CREATE TABLE own (mood int, moody int); CREATE TYPE moods AS ENUM ('mood')", False),
        ("CREATE FUNCTION own(x text) RETURNS bool AS $$ SELECT x::\nmood = 'sad' $$ LANGUAGE sql", True),
        ("CREATE TABLE own (x text DEFAULT 'sad'::mood::text)", True),
        ("CREATE TABLE own (x text CHECK (x::mood > 'sad'))", True),
        ("CREATE VIEW own AS SELECT ARRAY['sad'::mood] AS x", True),
    ],
)
def test_what_mentions_them(own: str, stays: bool, servers: Servers, a: Client) -> None:
    """A different object with the enum's name does not depend on it, and neither does a longer name."""
    servers.migrate("a", "b")
    b = servers.client("b")
    b.run(own)
    servers.migrate("b", "a")
    wait_until(lambda: not servers["b"].core.streams, what="the replica's end")
    assert b.run("SELECT count(*) FROM pg_type WHERE typname = 'mood'") == [(int(stays),)]


def test_a_label_that_came_later_where_the_home_rebuilds_it(servers: Servers, a: Client) -> None:
    """The rebuilt program has the labels of the view's creation, and the one that left has the new label."""
    a.run("ALTER TYPE mood ADD VALUE 'ok'; INSERT INTO s VALUES ('ok', 9)")
    servers.migrate("a", "b")
    for path in servers["a"].core.shared.folder.glob("views/*/*/t0.parquet"):
        path.write_bytes(b"")
    a.run("INSERT INTO s VALUES ('ok', 10)")
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("v") == "a", what="the take-over")
    assert a.run("SELECT t FROM v WHERE m = 'ok'") == [(["ok9", "ok10"],)]


def test_a_name_that_is_taken(servers: Servers, a: Client) -> None:
    servers.client("b").run("CREATE TYPE mood AS ENUM ('other')")
    with pytest.raises(SqlError, match='42710: server "b" cannot take over view "v": type "mood" already exists'):
        servers.migrate("a", "b")
    assert a.run("SELECT sum(c) FROM v") == [(3,)]


def test_a_composite_type_within_a_program(servers: Servers, a: Client) -> None:
    a.run("CREATE TYPE pair AS (x int, y int)")
    a.run("CREATE VIEW w AS SELECT k % 2 AS k, (ROW(sum(k), 1)::pair).x AS x FROM s GROUP BY 1")
    servers.migrate("a", "b", "w")
    a.run("INSERT INTO s VALUES ('sad', 7), ('sad', 2)")
    assert servers.client("b").run("SELECT k, x FROM w ORDER BY k") == [(0, 2), (1, 7)]
    assert servers.client("b").run(LABELS) == [("sad,happy",)], "of its stream"
    servers.migrate("b", "a", "w")
    assert a.run("SELECT k, x FROM w ORDER BY k") == [(0, 2), (1, 7)]
