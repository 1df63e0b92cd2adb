"""hstore in asyncpg, psycopg 3, psycopg2 and SQLAlchemy: its oids are looked up, and values are passed in both
formats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import pytest
from psycopg.types import TypeInfo
from psycopg.types.hstore import register_hstore
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, func, insert, inspect, select
from sqlalchemy.dialects.postgresql import HSTORE

from tests.rig.server import DATABASE, USER, Millstream

pytestmark = pytest.mark.slow

#: The row (10, k=>v) in COPY's binary format.
BINARY_ROW = (
    b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2" + b"\0\0\0\4\0\0\0\x0a"
    b"\0\0\0\x0e" + b"\0\0\0\1" + b"\0\0\0\1k" + b"\0\0\0\1v" + b"\xff\xff"
)
VALUES: list[dict[str, str | None]] = [{"a": "1", "bb": None}, {}, {'q"\\': "x, =>ä", "": ""}]


@pytest.fixture(autouse=True)
def extension(server: Millstream) -> Iterator[None]:
    """The extension hstore, and a table with a column of this type."""
    with server.connect() as connection:
        connection.execute("CREATE EXTENSION hstore")
        connection.execute("CREATE TABLE pairs (id int PRIMARY KEY, h hstore, many hstore[])")
    yield
    with server.connect() as connection:
        connection.execute("DROP EXTENSION hstore CASCADE; DROP TABLE pairs")


def test_asyncpg_codec(server: Millstream) -> None:
    async def work() -> None:
        connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user=USER, database=DATABASE)
        try:
            await connection.set_builtin_type_codec("hstore", codec_name="pg_contrib.hstore")
            row = await connection.fetchrow("SELECT '{}'::json, 'a=>1'::hstore")
            assert tuple(row) == ("{}", {"a": "1"})
            for value in VALUES:
                assert await connection.fetchval("SELECT $1::hstore", value) == value
            rows = [(place, value, VALUES) for place, value in enumerate(VALUES)]
            await connection.copy_records_to_table("pairs", records=rows)
            found = await connection.fetch("SELECT id, h, many FROM pairs ORDER BY id")
            assert [tuple(item) for item in found] == rows
            assert await connection.fetchval("SELECT id FROM pairs WHERE h @> $1", {"a": "1"}) == 0
        finally:
            await connection.close()

    asyncio.run(work())


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_adapter(server: Millstream, binary: bool) -> None:
    with server.connect() as connection:
        info = TypeInfo.fetch(connection, "hstore")
        assert info is not None and info.regtype == "hstore"
        register_hstore(info, connection)
        cursor: Any = connection.cursor(binary=binary)
        for place, value in enumerate(VALUES):
            cursor.execute("INSERT INTO pairs VALUES (%s, %s, %s)", (place, value, VALUES))
        assert cursor.execute("SELECT h, many FROM pairs ORDER BY id").fetchall() == [(item, VALUES) for item in VALUES]
        with cursor.copy("COPY (SELECT h FROM pairs ORDER BY id) TO STDOUT") as copy:
            copy.set_types(["hstore"])
            assert [row[0] for row in copy.rows()] == VALUES
        with cursor.copy(f"COPY pairs (id, h) FROM STDIN {'(FORMAT binary)' if binary else ''}") as copy:
            copy.write(BINARY_ROW if binary else '10\t"k"=>"v"\n')
        assert cursor.execute("SELECT h FROM pairs WHERE id = 10").fetchone() == ({"k": "v"},)
        with pytest.raises(psycopg.DataError), connection.transaction():
            cursor.execute("INSERT INTO pairs VALUES (11, '')")
            cursor.execute("SELECT hstore(ARRAY['a', 'b', 'c'])")


def test_psycopg2_registers(server: Millstream) -> None:
    connection: Any = psycopg2.connect(server.dsn())
    try:
        psycopg2.extras.register_hstore(connection)
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::hstore, %s::hstore[]", (VALUES[2], VALUES))
            assert cursor.fetchone() == (VALUES[2], VALUES)
    finally:
        connection.close()


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_sqlalchemy_type(server: Millstream, driver: str) -> None:
    engine = create_engine(f"postgresql+{driver}://{USER}@127.0.0.1:{server.port}/{DATABASE}")
    table = Table("pairs", MetaData(), Column("id", Integer, primary_key=True), Column("h", HSTORE))
    try:
        with engine.begin() as connection:
            for place, value in enumerate(VALUES):
                connection.execute(insert(table).values(id=place, h=value))
            assert connection.scalars(select(table.c.h).order_by(table.c.id)).all() == VALUES
            wanted = select(table.c.id, table.c.h["a"], table.c.h.keys()).where(table.c.h.has_key("a"))
            assert connection.execute(wanted).one() == (0, "1", ["a", "bb"])
            assert connection.scalar(select(func.count()).where(table.c.h.contains({"a": "1"}))) == 1
            changed = table.update().where(table.c.id == 0).values({table.c.h["c"]: "3"})
            connection.execute(changed)
            assert connection.scalar(select(table.c.h).where(table.c.id == 0)) == {**VALUES[0], "c": "3"}
        kinds = {item["name"]: item["type"] for item in inspect(engine).get_columns("pairs")}
        assert isinstance(kinds["h"], HSTORE)
    finally:
        engine.dispose()
