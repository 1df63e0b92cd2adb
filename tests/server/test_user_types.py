"""Enums and domains with real clients: asyncpg, psycopg, psql, values in both formats, restarts."""

from __future__ import annotations

import asyncio
import enum
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.types import TypeInfo
from psycopg.types.enum import EnumInfo, register_enum

from tests.rig.server import DATABASE, USER, Millstream

pytestmark = pytest.mark.slow  # a server of its own

DEFINITIONS = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE SCHEMA other",
    "CREATE TYPE other.color AS ENUM ('red', 'blue')",
    "CREATE DOMAIN posint AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN glad AS mood CHECK (VALUE > 'sad')",
    "CREATE TABLE t (id int, m mood, ms mood[], p posint, g glad, c other.color, cs other.color[])",
    "INSERT INTO t VALUES (0, 'ok', '{ok,NULL}', 1, 'happy', 'red', '{blue}')",
)


class Mood(enum.Enum):
    sad = 1
    ok = 2
    happy = 3


class Color(enum.Enum):
    red = 1
    blue = 2


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings={"spark_enabled": False}) as server:
        with server.connect() as client:
            for text in DEFINITIONS:
                client.execute(text.encode())
        yield server


@pytest.fixture
def client(server: Millstream) -> Iterator[psycopg.Connection[Any]]:
    with server.connect() as client:
        for name, kind in (("mood", Mood), ("other.color", Color)):
            info = EnumInfo.fetch(client, name)
            assert info is not None
            assert info.labels == [item.name for item in kind]
            register_enum(info, client, kind)
        yield client


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_knows_enums(client: psycopg.Connection[Any], binary: bool) -> None:
    row = (1, Mood.ok, [Mood.sad, Mood.happy], 7, Mood.happy, Color.red, [Color.blue])
    marks = ", ".join(["%b" if binary else "%t"] * len(row))
    client.execute(f"INSERT INTO t VALUES ({marks})".encode(), row)
    assert client.execute("SELECT * FROM t WHERE id = 1", binary=binary).fetchone() == row
    found = client.execute("SELECT id FROM t WHERE m = %s AND cs = %s", (Mood.ok, [Color.blue]), binary=binary)
    assert sorted(found.fetchall()) == [(0,), (1,)]
    client.execute("DELETE FROM t WHERE id = 1")


def test_psycopg_copies_enums(client: psycopg.Connection[Any]) -> None:
    row = (2, Mood.ok, [Mood.sad], 7, Mood.happy, Color.red, [Color.blue])
    with client.cursor().copy("COPY t FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "mood", "mood[]", "int4", "mood", "color", "color[]"])
        copy.write_row(row)
    assert client.execute("SELECT * FROM t WHERE id = 2").fetchone() == row
    client.execute("DELETE FROM t WHERE id = 2")


def test_a_domain_has_oids_of_its_own(client: psycopg.Connection[Any]) -> None:
    info = TypeInfo.fetch(client, "posint")
    assert info is not None
    assert (info.name, info.regtype, info.array_oid) == ("posint", "posint", info.oid - 1)
    with pytest.raises(psycopg.errors.CheckViolation):
        client.execute("INSERT INTO t (p) VALUES (%s)", (0,))
    with pytest.raises(psycopg.errors.CheckViolation):
        client.execute("INSERT INTO t (g) VALUES (%s)", (Mood.sad,))


def test_asyncpg_introspects_enums(server: Millstream) -> None:
    async def run() -> None:
        client = await asyncpg.connect(host="127.0.0.1", port=server.port, user=USER, database=DATABASE)
        try:
            row = (3, "ok", ["ok", None, "happy"], 5, "happy", "red", ["blue"])
            await client.execute("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7)", *row)
            assert tuple(await client.fetchrow("SELECT * FROM t WHERE id = 3")) == row
            statement = await client.prepare("SELECT $1::mood, $2::mood[], $3::posint, $4::other.color[]")
            assert [item.name for item in statement.get_parameters()] == ["mood", "mood[]", "int4", "color[]"]
            assert tuple(await statement.fetchrow("ok", ["sad"], 3, ["red"])) == ("ok", ["sad"], 3, ["red"])
            assert await client.fetchval("SELECT count(*) FROM t WHERE id = 3 AND m = ANY ($1)", ["ok", "sad"]) == 1
            await client.set_type_codec("mood", encoder=lambda item: item.name, decoder=Mood.__getitem__, format="text")
            found = await client.fetchrow("SELECT m, ms FROM t WHERE id = 3 AND m = $1", Mood.ok)
            assert tuple(found) == (Mood.ok, [Mood.ok, None, Mood.happy])
            with pytest.raises(asyncpg.CheckViolationError):
                await client.execute("INSERT INTO t (p) VALUES ($1)", -1)
            with pytest.raises(asyncpg.InvalidTextRepresentationError):
                await client.execute("INSERT INTO t (c) VALUES ($1)", "green")
            await client.execute("DELETE FROM t WHERE id = 3")
        finally:
            await client.close()

    asyncio.run(run())


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_lists_types(server: Millstream) -> None:
    def shown(command: str) -> list[str]:
        done = subprocess.run(["psql", "-XAt", server.dsn(), "-c", command], capture_output=True, text=True, timeout=60)
        assert not done.stderr, done.stderr
        return done.stdout.splitlines()

    assert shown(r"\dT+ mood")[0].startswith("public|mood|mood|4|sad")
    assert shown(r"\dT")[1] == "public|mood|"
    assert [line.split("|")[:3] for line in shown(r"\dD")] == [
        ["public", "glad", "mood"],
        ["public", "posint", "integer"],
    ]
    assert "cs|other.color[]|||" in shown(r"\d t")


def test_oids_and_definitions_survive_a_crash(server: Millstream) -> None:
    query = (
        "SELECT typname, oid, typarray FROM pg_type WHERE typname IN ('mood', 'color', 'posint', 'glad', '_mood') "
        "UNION ALL SELECT enumlabel, oid, enumtypid FROM pg_enum ORDER BY 1"
    )
    with server.connect() as client:
        client.execute("COMMENT ON TYPE mood IS 'how it feels'")
        client.execute("ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok'")
        before = client.execute(query.encode()).fetchall()
    server.kill9()
    server.restart()
    with server.connect() as client:
        assert client.execute(query.encode()).fetchall() == before
        assert client.execute("SELECT obj_description('mood'::regtype, 'pg_type')").fetchone() == ("how it feels",)
        client.execute("INSERT INTO t (g) VALUES ('fine')")
        with pytest.raises(psycopg.errors.CheckViolation):
            client.execute("INSERT INTO t (g) VALUES ('sad')")
        client.execute("DROP TYPE mood CASCADE")
    server.kill9()
    server.restart()
    with server.connect() as client:
        cursor = client.execute("SELECT * FROM t WHERE id = 0")
        assert [item.name for item in cursor.description or ()] == ["id", "p", "c", "cs"]
        assert cursor.fetchone() == (0, 1, "red", "{blue}")
