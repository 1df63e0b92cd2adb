"""The sources of point reads: a continuous view's index (``executor.key_access.view_indexes``), or a table's
(``executor.key_access.table_keys``)."""

from __future__ import annotations

from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import Table, is_temporary
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.key_access.table_keys import TableKeys
from executor.key_access.view_indexes import ViewIndexes
from executor.rows.point_reads import Finder, Key, PointReader, recognise
from executor.rows.row_shapes import keys_of
from executor.traces.index import Row
from planner.statements.statement import Query


class ViewSource(Struct, frozen=True):
    """A continuous view's point key."""

    core: Core
    indexes: ViewIndexes
    oid: int

    def peek(self, key: Key) -> Row | None:
        """A row of a fresh index."""
        return self.indexes.peek(self.oid, key)

    def read(self, key: Key) -> Row | None:
        """A row of the index, brought up to date; None where an ordinary query has to answer."""
        if self.core.view(self.oid).away is not None:
            return None
        try:
            return self.indexes.read(self.oid, key)
        except SqlError as error:
            if error.sqlstate not in ("55000", "22003"):
                raise
            return None  # the view has left meanwhile, or has quotients, which an ordinary query can show

    def within(self, write: Finder, key: Key) -> Row | None:
        """None: a view's rows with a transaction's own changes take time to compute."""
        return None


class TableSource(Struct, frozen=True):
    """A table's unique key, as bound in a query."""

    table_keys: TableKeys
    table: Table
    columns: tuple[str, ...]

    def peek(self, key: Key) -> Row | None:
        """A row as of what is visible."""
        return self.table_keys.peek(self.table, self.columns, key)

    def read(self, key: Key) -> Row | None:
        """A row, for which the table may be read first."""
        return self.table_keys.read(self.table, self.columns, key)

    def within(self, write: Finder, key: Key) -> Row | None:
        """A row as the transaction sees it."""
        return write.find_row(self.table, self.columns, key)


def point_reader(
    core: Core, indexes: ViewIndexes, table_keys: TableKeys, query: Query, catalog: Catalog
) -> PointReader | None:
    """The reader of a query, bound to a catalog, that is a look-up by a view's whole point key or by a table's unique
    key; None for every other query."""
    lookup = recognise(core.plans.get(query.relation).relation)
    if lookup is None:
        return None
    names = {name for name, _ in lookup.key}
    if lookup.kind == "view":
        key = indexes.key_of(lookup.oid)
        return PointReader(ViewSource(core, indexes, lookup.oid), query, lookup, key) if set(key) == names else None
    table = catalog.objects.get(lookup.oid)
    if not isinstance(table, Table) or is_temporary(table):
        return None
    found = next((key for key in keys_of(table) if set(key) == names), None)
    return None if found is None else PointReader(TableSource(table_keys, table, found), query, lookup, found)
