"""What system relations show that is measured: rows and bytes of relations, and sequences' values.

Owns: these rows. Counting what a table holds is left to its file's own statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from catalog.catalog import Catalog
from catalog.objects import Sequence, Stream, Table
from catalog.system.rows import Row

if TYPE_CHECKING:
    from executor.database import Database


def _tables(database: Database, catalog: Catalog) -> Iterator[Row]:
    """pg_stat_all_tables."""
    counts = database.tables.row_counts()
    for item in catalog.objects.values():
        if isinstance(item, Table):
            yield _table_row(item, counts.get(item.oid, 0))


def _table_row(item: Table, rows: int) -> Row:
    counters = ("seq_scan", "seq_tup_read", "idx_scan", "idx_tup_fetch", "n_tup_ins", "n_tup_upd", "n_tup_del",
                "n_tup_hot_upd", "n_dead_tup", "n_mod_since_analyze", "n_ins_since_vacuum", "vacuum_count",
                "autovacuum_count", "analyze_count", "autoanalyze_count")  # fmt: skip
    return {
        **dict.fromkeys(counters, 0),
        "relid": item.oid,
        "schemaname": item.schema,
        "relname": item.name,
        "n_live_tup": rows,
    }


def _sizes(database: Database, catalog: Catalog) -> Iterator[Row]:
    """Bytes of tables on storage, and of streams' rows in memory."""
    sizes = database.tables.sizes()
    for item in catalog.objects.values():
        if isinstance(item, Table):
            yield {"oid": item.oid, "bytes": sizes.get(item.oid, 0)}
        elif isinstance(item, Stream) and item.oid in database.streams:
            yield {"oid": item.oid, "bytes": database.streams[item.oid].buffered_bytes}


def _sequences(database: Database, catalog: Catalog) -> Iterator[Row]:
    """Sequences' last values, of those that have given one."""
    for item in catalog.objects.values():
        if isinstance(item, Sequence):
            last, _, called = database.sequences.current(item)
            yield {"oid": item.oid, "last_value": last if called else None}


MEASURES: Final[Mapping[str, Callable[[Database, Catalog], Iterator[Row]]]] = {
    "pg_stat_all_tables": _tables,
    "sizes": _sizes,
    "sequence_values": _sequences,
}
