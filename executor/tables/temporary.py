"""Temporary relations: visible to one session only, and dropped at its end.

Owns: how they appear in the session's catalog, their oids, and when their rows are deleted. Temporary tables are in the
same database as other tables, so that statements, savepoints and snapshots work in the same way. Neither their
definitions nor their rows are logged or in the stored catalog; tables left by a crash are dropped at the next start.

https://www.postgresql.org/docs/15/sql-createtable.html
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable

from catalog.catalog import Catalog
from catalog.objects import PG_TEMP, CatalogObject, Table
from executor.tables.store import TableStore
from planner.bind.definitions.drops import without
from planner.statements.definitions import Drop

#: The first oid of temporary relations: other objects' oids stay below. After each start, they are used again.
FIRST_OID = 1_000_000_000

_labels = itertools.count(1)


class TemporaryOids:
    """The oids of all sessions' temporary relations."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables
        self._next = FIRST_OID
        self._taking = threading.Lock()
        self.drop([oid for oid, table in tables.definitions.items() if table.schema == PG_TEMP])  # left by a crash

    def take(self, count: int) -> int:
        """Takes consecutive oids; returns the first one."""
        with self._taking:
            first, self._next = self._next, self._next + count
            return first

    def drop(self, oids: Iterable[int]) -> None:
        """Drops tables of a session that has ended; no other session can have locked them."""
        writer = self._tables.begin_write()
        try:
            for oid in writer.definitions.keys() & set(oids):
                writer.drop(oid)
            writer.commit(None)
        except BaseException:
            writer.rollback()
            raise


class Temporary:
    """One session's temporary relations, as committed."""

    def __init__(self) -> None:
        self._objects: tuple[CatalogObject, ...] = ()
        self._over: tuple[Catalog, Catalog] | None = None
        #: A text that is unique for each set of relations, also among sessions; '' without relations.
        self.label = ""

    @property
    def tables(self) -> tuple[int, ...]:
        """The oids of the tables."""
        return tuple(item.oid for item in self._objects if isinstance(item, Table))

    def over(self, catalog: Catalog) -> Catalog:
        """The catalog that the session sees: the same object as long as nothing changes."""
        if not self._objects:
            return catalog
        known = self._over
        if known is None or known[0] is not catalog:
            shown = catalog
            for item in self._objects:
                shown = shown.add(item)
            known = self._over = (catalog, shown)
        return known[1]

    def commit(self, catalog: Catalog | None) -> None:
        """Takes the relations of a committed transaction's catalog (None: it defined nothing)."""
        if catalog is None:
            return
        objects = tuple(catalog.contents(PG_TEMP))
        if objects != self._objects:
            self._objects, self._over = objects, None
            self.label = f"temporary {next(_labels)}" if objects else ""


def drop_temporary(items: Iterable[CatalogObject], catalog: Catalog) -> Drop:
    """Drops temporary relations, with the views and sequences that need them; other tables lose their references to
    them."""
    found = {item.oid: item for item in items}
    changes: dict[int, Table] = {}
    pending = list(found.values())
    for item in pending:  # grows during the loop
        for other in (*catalog.owned(item.oid), *catalog.dependents(item.oid)):
            if other.oid in found:
                continue
            if isinstance(other, Table):
                changes[other.oid] = without(changes.get(other.oid, other), item.oid)
            else:
                found[other.oid] = other
                pending.append(other)
    kept = {oid: catalog.objects[oid] for oid in changes if oid not in found}
    pairs = tuple((before, changes[oid]) for oid, before in kept.items() if isinstance(before, Table))
    return Drop("TABLE", tuple(reversed(found)), changes=pairs)
