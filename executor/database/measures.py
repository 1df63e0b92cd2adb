"""What system relations show that no catalog tells by itself: rows and bytes of relations, sequences' values, and
views' texts, which the planner prints.

Owns: these rows. Counting what a table holds is left to its file's own statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec.structs import asdict

from catalog.catalog import Catalog
from catalog.objects import Sequence, Stream, Table, View
from catalog.system.rows import Row
from catalog.system.stored import by_oid
from executor.core.core import Core
from executor.tables.changes import Counts
from planner.bind.binder import new_binding
from planner.bind.changes.updatable_views import changed_places
from planner.bind.definitions.view_definitions.view_texts import ViewTexts, view_texts
from planner.bind.state.context import Context


def _tables(core: Core, catalog: Catalog) -> Iterator[Row]:
    """pg_stat_all_tables; reads are not counted, and nothing is ever vacuumed."""
    rows = core.tables.exact_row_counts()
    for item in catalog.objects.values():
        if isinstance(item, Table):
            yield _table_row(item, rows.get(item.oid, 0), core.tables.counts.get(item.oid, Counts()))


def _table_row(item: Table, rows: int, counts: Counts) -> Row:
    zeros = ("n_tup_hot_upd", "n_dead_tup", "n_mod_since_analyze", "n_ins_since_vacuum", "vacuum_count",
             "autovacuum_count", "analyze_count", "autoanalyze_count", "seq_scan", "seq_tup_read", "idx_scan",
             "idx_tup_fetch")  # fmt: skip
    return {
        **dict.fromkeys(zeros, 0),
        "relid": item.oid,
        "schemaname": item.schema,
        "relname": item.name,
        "n_live_tup": rows,
        "n_tup_ins": counts.inserted,
        "n_tup_upd": counts.updated,
        "n_tup_del": counts.deleted,
    }


def _sizes(core: Core, catalog: Catalog) -> Iterator[Row]:
    """Bytes of tables on storage, and of streams' rows in memory."""
    sizes = core.tables.sizes()
    for item in catalog.objects.values():
        if isinstance(item, Table):
            yield {"oid": item.oid, "bytes": sizes.get(item.oid, 0)}
        elif isinstance(item, Stream) and item.oid in core.streams:
            yield {"oid": item.oid, "bytes": core.streams[item.oid].buffered_bytes}


def _log_position(core: Core, catalog: Catalog) -> Iterator[Row]:
    """How far the log is: our LSNs count transactions, and PostgreSQL shows such numbers as two of 32 bits."""
    lsn = core.sequencer.visible
    yield {"lsn": f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"}


def _sequences(core: Core, catalog: Catalog) -> Iterator[Row]:
    """Sequences' last values, of those that have given one, as far as they are known."""
    for item in catalog.objects.values():
        if isinstance(item, Sequence):
            yield {"oid": item.oid, "last_value": core.sequences.last(item)}


def _view_definitions(core: Core, catalog: Catalog) -> Iterator[Row]:
    """The queries of views; those of PostgreSQL's own views do not depend on the session."""
    for oid, text in by_oid("views", "definition").items():
        yield {"oid": oid, **dict.fromkeys(ViewTexts.__struct_fields__, text)}
    for item in catalog.objects.values():
        if isinstance(item, View):
            yield {"oid": item.oid, **asdict(view_texts(catalog, item))}


def _view_updates(core: Core, catalog: Catalog) -> Iterator[Row]:
    """The columns of views through which rows are changed; place 0 for the view itself."""
    for item in catalog.objects.values():
        if isinstance(item, View):
            for place in changed_places(new_binding(Context(catalog)), item):
                yield {"oid": item.oid, "place": place}


MEASURES: Final[Mapping[str, Callable[[Core, Catalog], Iterator[Row]]]] = {
    "pg_stat_all_tables": _tables,
    "sizes": _sizes,
    "log_position": _log_position,
    "sequence_values": _sequences,
    "view_definitions": _view_definitions,
    "view_updates": _view_updates,
}
