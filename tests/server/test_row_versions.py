"""xmin and ctid of tables' rows: optimistic locking by clients, for every way of reading and changing rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream

_TABLE = "CREATE TABLE kept (id int PRIMARY KEY, n numeric, at timestamptz, j jsonb, s text, b bytea, a int[])"
_READ = "SELECT s, xmin FROM kept WHERE id = %s"
_CHANGE = "UPDATE kept SET s = %s WHERE id = %s AND xmin = %s RETURNING xmin"


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings={"spark_enabled": False}) as running:
        yield running


def version(client: psycopg.Connection[Any], key: int) -> str:
    """The version of a row as a client keeps it."""
    ((_, found),) = client.execute(_READ, [key], prepare=True).fetchall()
    return str(found)


def test_no_update_is_lost(server: Millstream) -> None:
    with server.connect() as one, server.connect() as two:
        one.autocommit = two.autocommit = True
        one.execute(_TABLE)
        one.execute(
            "INSERT INTO kept SELECT i, i / 4.0, now(), '{}', 'made', '\\x01', ARRAY[i] FROM generate_series(1, 9) i"
        )
        for number in range(20):  # as often as it takes to keep plans and answers
            read = version(one, 3), version(two, 3)
            assert read[0] == read[1]
            ((new,),) = one.execute(_CHANGE, [f"one {number}", 3, read[0]], prepare=True).fetchall()
            assert new != read[0] and new == version(two, 3)
            assert two.execute(_CHANGE, ["lost", 3, read[1]], prepare=True).fetchall() == []
            assert one.execute(_READ, [3], prepare=True).fetchall() == [(f"one {number}", new)]


def test_a_version_is_the_same_however_it_is_read(server: Millstream) -> None:
    with server.connect() as client:
        client.autocommit = True
        for number in range(5):  # by key, without an engine
            client.execute("UPDATE kept SET s = %s WHERE id = %s", [f"by key {number}", 5], prepare=True)
            by_key = version(client, 5)
            ((scanned,),) = client.execute("SELECT xmin FROM kept ORDER BY id = 5 DESC LIMIT 1").fetchall()
            ((joined,),) = client.execute("SELECT k.xmin FROM kept k JOIN (VALUES (5)) v (i) ON k.id = v.i").fetchall()
            assert by_key == scanned == joined
        with client.transaction():
            client.execute("UPDATE kept SET s = 'in a block' WHERE id = 5")
            inside = version(client, 5)
        assert inside == version(client, 5) != by_key
    server.restart()
    with server.connect() as client:
        assert version(client, 5) == inside


def test_a_place_is_one_row_only(server: Millstream) -> None:
    with server.connect() as client:
        client.execute("CREATE TABLE alike AS SELECT 'same' AS s FROM generate_series(1, 100000)")
        (found,) = client.execute("SELECT count(DISTINCT ctid) FROM alike").fetchall()
        assert found == (100000,)
        (place,) = client.execute("SELECT ctid FROM alike LIMIT 1").fetchall()
        assert client.execute("UPDATE alike SET s = 'other' WHERE ctid = %s", place).rowcount == 1
        assert client.execute("SELECT count(*) FROM alike WHERE s = 'other'").fetchone() == (1,)


@pytest.mark.parametrize("text", ["xmin::text::bigint", "CAST(xmin::text AS numeric)", "k.xmin::text::int"])
def test_versions_have_no_order(server: Millstream, text: str) -> None:
    with server.connect() as client, pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
        client.execute(f"SELECT {text} FROM kept k")
    assert raised.value.diag.message_primary == "xmin as a number that grows is not supported"
    assert raised.value.diag.message_hint is not None


def test_returned_rows_have_no_place(server: Millstream) -> None:
    with server.connect() as client, pytest.raises(psycopg.errors.FeatureNotSupported, match="the system column ctid"):
        client.execute("UPDATE kept SET s = 'x' WHERE id = 1 RETURNING ctid")
