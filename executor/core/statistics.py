"""What planning gets to know of the rows that a plan reads: from DuckDB's own statistics, Parquet's footers, and keys.

Owns the collecting, at each call anew: a plan that is ordered by statistics is not kept, so that none is older than the
query (Spark), or than the view (its program). Asking takes about half a millisecond for a table. What cannot be told is
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import Table
from executor.files import file_tables
from executor.files.followed_folders import OwnFiles
from executor.tables.store import TableStore
from planner.algebra.nodes import PART, ROW_ID, Join, Relation, Scan
from planner.algebra.walk import walk
from planner.statistics import Statistics, TableStatistics


def statistics_of(
    relation: Relation, catalog: Catalog, tables: TableStore, found: Mapping[int, OwnFiles]
) -> Statistics:
    """Of the tables that a plan reads, and of the foreign tables whose files were found, by oid; of nothing where it
    has no two joins, which could come in another order."""
    if sum(isinstance(node, Join) for node in walk(relation)) < 2:
        return {}
    return all_statistics_of(relation, catalog, tables, found)


def all_statistics_of(
    relation: Relation, catalog: Catalog, tables: TableStore, found: Mapping[int, OwnFiles]
) -> Statistics:
    """Statistics of all relations, for any plan."""
    scans = (node for node in walk(relation) if isinstance(node, Scan))
    return statistics_of_scans(scans, catalog, tables, found)


def statistics_of_scans(
    scans: Iterable[Scan], catalog: Catalog, tables: TableStore, found: Mapping[int, OwnFiles]
) -> Statistics:
    """Statistics of the relations that are scanned."""
    read: dict[int, set[str]] = {}
    for scan in scans:
        read.setdefault(scan.oid, set()).update(source for source in scan.sources if source not in (ROW_ID, PART))
    known: dict[int | str, TableStatistics] = {}
    for oid, names in read.items():
        item = catalog.objects.get(oid)
        if isinstance(item, Table):
            table = tables.statistics(oid, sorted(names))
            if table is not None:
                known[oid] = replace(table, keys=tuple(frozenset(key.columns) for key in item.keys))
        elif oid in found:
            known[oid] = file_tables.statistics(found[oid], sorted(names))
    return known
