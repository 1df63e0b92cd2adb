"""Tables and their definitions in DuckDB's file.

Owns: the statements that create, drop and describe a table, and which definitions DuckDB cannot store.
"""

from __future__ import annotations

import json
from typing import Final

from catalog.codec import encode
from catalog.objects import Table
from catalog.values.errors import unsupported
from executor.embedded.connection import Connection
from executor.embedded.printing.dialect import STORE, type_text
from executor.printing.nodes import quoted
from executor.tables.changes import stored

_DEFINITIONS: Final = f"{STORE}.main.__tables"


def create_table(connection: Connection, table: Table) -> None:
    """Creates a table without rows. Raises 0A000."""
    require_storable(table)
    columns = ", ".join(f"{quoted(column.name)} {type_text(column.type)}" for column in table.stored)
    connection.execute(f"CREATE TABLE {stored(table)}({columns or '__no_column BOOLEAN'})")
    connection.execute(f"INSERT INTO {_DEFINITIONS} VALUES ({table.oid}, '{_document(table)}')")


def drop_table(connection: Connection, table: Table) -> None:
    """Drops a table and its rows."""
    connection.execute(f"DROP TABLE {stored(table)}")
    connection.execute(f"DELETE FROM {_DEFINITIONS} WHERE oid = {table.oid}")


def define_table(connection: Connection, table: Table) -> None:
    """Stores another definition for a table with the same columns."""
    connection.execute(f"UPDATE {_DEFINITIONS} SET definition = '{_document(table)}' WHERE oid = {table.oid}")


def _document(table: Table) -> str:
    return json.dumps(encode(table)).replace("'", "''")


def require_storable(table: Table) -> None:
    """Raises 0A000 for columns whose names DuckDB does not distinguish."""
    lowered = [column.name.lower() for column in table.stored]
    if len(set(lowered)) < len(lowered) or "rowid" in lowered:
        raise unsupported('columns that differ only in case, or one called "rowid"', "Choose other names.")
