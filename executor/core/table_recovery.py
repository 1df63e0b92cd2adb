"""Brings the tables and the catalog to the log's end when a database is opened.

Owns: how a logged record is applied again, in one table transaction that also notes its LSN. Streams and views follow
the catalog (``executor.database.relation_recovery``).
"""

from __future__ import annotations

import json
from functools import partial

from catalog.catalog import Catalog
from catalog.objects import Table
from executor.commit.log import Log
from executor.commit.records import CatalogChange, TableChange, TransactionRecord
from executor.commit.recovery import replay
from executor.definitions import stored_catalog
from executor.tables.store import TableStore
from executor.tables.transaction import WriteTransaction
from executor.traces.checked import as_written


def recover_tables(tables: TableStore, log: Log, catalog: Catalog) -> Catalog:
    """Applies the records that the tables do not contain, small ones together; the catalog after them."""
    for lsn, record in replay(log, tables.applied_lsn):
        with as_written(f"record {lsn} of the log"):
            catalog = _recover_next(tables, catalog, lsn, record)
    tables.backlog.apply()
    return catalog


def _recover_next(tables: TableStore, catalog: Catalog, lsn: int, record: TransactionRecord) -> Catalog:
    """Applies one record; the catalog after it."""
    documents = [part.document for part in record if isinstance(part, CatalogChange)]
    changes = [part for part in record if isinstance(part, TableChange)]
    if not documents and (
        not changes or tables.recover(lsn, [(item.table, item.inserted, item.deleted) for item in changes])
    ):
        return catalog
    after = catalog
    for document in documents:
        after = stored_catalog.apply_change(after, document, lsn)
    _recover_record(tables.begin_write(), lsn, catalog, after, changes, documents)
    tables.compact(lsn, partial(stored_catalog.dump_catalog, after))
    return after


def _recover_record(
    writer: WriteTransaction,
    lsn: int,
    before: Catalog,
    after: Catalog,
    changes: list[TableChange],
    documents: list[str],
) -> None:
    """One record's table changes and DDL."""
    for oid in set(before.objects) - set(after.objects):
        if isinstance(before.objects[oid], Table):
            writer.drop(oid)
    for oid in set(after.objects) - set(before.objects):
        item = after.objects[oid]
        if isinstance(item, Table):
            writer.create(item)
    _recover_definitions(writer, before, after, documents)
    writer.apply([(change.table, change.inserted, change.deleted) for change in changes])
    if documents:
        writer.save_catalog(lsn, documents)
    writer.commit(lsn)


def _recover_definitions(writer: WriteTransaction, before: Catalog, after: Catalog, documents: list[str]) -> None:
    """What a record changed of tables that were there before."""
    lasting = set(after.objects) & set(before.objects)
    changes = [json.loads(document) for document in documents]
    rebuilt = {change["rebuild"] for change in changes if "rebuild" in change}
    for change in changes:
        table = stored_catalog.changed_table(change)
        if table is not None and table.oid in lasting - rebuilt:
            writer.alter(table, tuple(map(tuple, change.get("storage", ()))))
    for oid in rebuilt & lasting:
        final = after.objects[oid]
        assert isinstance(final, Table)
        writer.drop(oid)
        writer.create(final)
