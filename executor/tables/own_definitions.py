"""The definitions of tables as one transaction sees them: the committed ones, with its own changes.

Owns: how an entry of the journal that changes definitions is carried out in DuckDB, the first time and when the journal
is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from catalog.objects import Table
from executor.embedded.connection import Connection
from executor.tables import changes as tools
from executor.tables.definitions.altering import apply_step
from executor.tables.definitions.creation import create_table, define_table, drop_table, require_storable
from executor.tables.journal import Altered, Created, Defined, DefinitionChange, Dropped, Rebuilt


class OwnDefinitions:
    """Those of one transaction, by oid."""

    def __init__(self, committed: Callable[[], Mapping[int, Table]]) -> None:
        self._committed = committed
        #: Tables whose definitions the transaction has changed; None for dropped tables.
        self.changed: dict[int, Table | None] = {}
        self._seen: tuple[Mapping[int, Table], Mapping[int, Table]] | None = None

    @property
    def seen(self) -> Mapping[int, Table]:
        """All of them."""
        committed = self._committed()
        if not self.changed:
            return committed
        if self._seen is None or self._seen[0] is not committed:
            seen = {oid: table for oid, table in committed.items() if oid not in self.changed}
            seen |= {oid: table for oid, table in self.changed.items() if table is not None}
            self._seen = committed, seen
        return self._seen[1]

    def forget(self) -> None:
        """The transaction has changed none."""
        self.changed, self._seen = {}, None

    def apply(self, connection: Connection, entry: DefinitionChange) -> None:
        """Carries an entry out. Raises 0A000."""
        match entry:
            case Created(table=table):
                create_table(connection, table)
            case Dropped(table=table):
                drop_table(connection, table)
            case Defined(table=table):
                define_table(connection, table)
            case Altered(table=table, steps=steps):
                require_storable(table)
                for step in steps:
                    apply_step(connection, table, step)
                define_table(connection, table)
            case Rebuilt(table=table, rows=rows):
                drop_table(connection, self.seen[table.oid])
                create_table(connection, table)
                tools.apply_by_value(connection, table, rows.slice(0, 0), rows)
        self.changed[table.oid] = None if isinstance(entry, Dropped) else table
        self._seen = None
