"""Scripts of SQL, run statement by statement on Millstream and on a real PostgreSQL.

Each statement must give the same rows, columns' names and types and command tag, or the same SQLSTATE, position and,
for a table's constraint, its names. Queries also run on Spark, which may refuse them. Each engine runs some queries of
every script, and all with ``--whole``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from math import isnan
from pathlib import Path
from typing import Any
from zlib import crc32

import psycopg
import pytest
from pglast import split
from psycopg.pq import TransactionStatus
from psycopg.types.string import TextLoader

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.sql"))
QUERY = re.compile(r"(?i)(\s|--.*\n)*(SELECT|WITH|VALUES|\()")
#: Words of queries whose effects other statements see.
CHANGES = re.compile(r"(?i)\b(INTO|UPDATE|DELETE|MERGE|nextval|setval|set_config)\b")
#: Every how many queries one runs in a sample, chosen by its text; the others do not run.
EVERY = 24
EVERY_ON_SPARK = 48
#: Scripts whose numerics must show the same decimals; elsewhere they are compared by value.
AS_WRITTEN = (
    *("numeric_arrays", "numeric_chosen", "numeric_mixed", "numeric_nested", "numeric_roots", "numeric_scales"),
    *("numeric_quotients", "numeric_spreads", "numeric_stored"),
)
#: Types whose bounds may be infinite dates, which Python lacks.
RANGES = ("daterange", "tsrange", "tstzrange", "datemultirange", "tsmultirange", "tstzmultirange")
Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a statement."""

    tag: str | None
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[object, ...], ...]
    error: tuple[str | None, ...] | None = None
    message: str | None = field(default=None, compare=False)


@pytest.fixture(scope="module")
def servers(postgres: Postgres) -> Iterator[tuple[Millstream, Postgres]]:
    with Millstream(settings={"spark_enabled": False}) as server:
        yield server, postgres


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script: Path, servers: tuple[Millstream, Postgres], whole: bool) -> None:
    with servers[0].connect() as ours, servers[1].connect() as theirs:
        different = compared(script, ours, theirs, outcome, 1 if whole else EVERY)
    assert not different, "\n\n".join(different)


@pytest.mark.spark
@pytest.mark.sample(12)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_on_spark(script: Path, spark_server: Millstream, postgres: Postgres, whole: bool) -> None:
    with spark_server.connect() as ours, postgres.connect() as theirs:
        different = compared(script, ours, theirs, outcome_on_spark, 1 if whole else EVERY_ON_SPARK)
    assert not different, "\n\n".join(different)


def in_sample(statement: str, every: int) -> bool:
    """Whether a statement is needed by others, or in the sample."""
    return not QUERY.match(statement) or CHANGES.search(statement) is not None or crc32(statement.encode()) % every == 0


def compared(
    script: Path,
    ours: Connection,
    theirs: Connection,
    run: Callable[[Connection, str], Outcome],
    every: int,
) -> list[str]:
    """The differences; ``run`` executes a statement on Millstream. Only a sample of the queries runs."""
    for connection in (ours, theirs):
        connection.execute(f"CREATE SCHEMA script_{script.stem}".encode())
        connection.execute(f"SET search_path = script_{script.stem}".encode())
        for kind in RANGES:
            connection.adapters.register_loader(kind, TextLoader)
        if script.stem in AS_WRITTEN:
            connection.adapters.register_loader("numeric", TextLoader)
    different = []
    for statement in split(script.read_text(), with_parser=False):
        if not in_sample(statement, every):
            continue
        found, wanted = run(ours, statement), outcome(theirs, statement)
        if found != wanted:
            different.append(f"{statement}\n  found  {found}\n  wanted {wanted}")
    for connection in (ours, theirs):
        connection.execute(f"DROP SCHEMA script_{script.stem} CASCADE".encode())
    return different


def outcome_on_spark(connection: Connection, statement: str) -> Outcome:
    """A statement's outcome on Spark; the embedded engine runs statements that Spark refuses, and all in a
    transaction."""
    if connection.info.transaction_status != TransactionStatus.IDLE or not QUERY.match(statement):
        return outcome(connection, statement)
    # not prepared by the driver, which would drop all prepared statements, including the script's, after a DROP
    connection.execute("SET query_engine = 'spark'", prepare=False)
    found = outcome(connection, statement)
    connection.execute("RESET query_engine", prepare=False)
    return outcome(connection, statement) if found.error is not None and found.error[0] == "0A000" else found


def outcome(connection: Connection, statement: str, *, is_bag: bool | None = None) -> Outcome:
    """A statement's outcome; rows without ORDER BY are compared as a bag, or as ``is_bag`` says."""
    try:
        cursor = connection.execute(statement.encode())
    except psycopg.Error as error:
        diag = error.diag
        about: tuple[str | None, ...] = (diag.table_name, diag.column_name, diag.constraint_name, diag.datatype_name)
        # PostgreSQL does not define this order for its catalogs, nor which column a domain's new constraint checks
        # first.
        if (diag.table_name or "pg_").startswith("pg_") or statement.startswith("ALTER DOMAIN"):
            about = ()
        message = f"{diag.message_primary} {diag.message_detail or ''}"
        return Outcome(None, (), (), (error.sqlstate, diag.statement_position, *about), message)
    if cursor.description is None:
        return Outcome(cursor.statusmessage, (), ())
    columns = tuple((item.name, _type(item)) for item in cursor.description)
    rows = [tuple(map(plain, row)) for row in cursor.fetchall()]
    if is_bag or (is_bag is None and "ORDER BY" not in statement.rpartition(")")[2]):
        rows.sort(key=repr)
    return Outcome(cursor.statusmessage, columns, tuple(rows))


def _type(column: psycopg.Column) -> str:
    """A column's type; types that a script declares, or an extension creates, have different oids on each server."""
    return column.type_display if column.type_code < 16384 else "a user's type"


def plain(value: Any) -> object:
    """A value that compares as the client sees it: numbers by value, doubles to 12 digits, NaN equal to NaN."""
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, float):
        return "NaN" if isnan(value) else float(f"{value:.12g}")
    return value.normalize() if isinstance(value, Decimal) and value.is_finite() else value
