"""The system views of schema ``millstream``: state and progress of streams, views, queries and servers.

Owns: their columns and how each is filled from the running database. Read like any relation, computed at each read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, Sequence, SystemView, qualified
from catalog.system import MARKED, rows_of, seen_table, system_catalog, visibility
from catalog.system.rows import Own, table_of
from catalog.values.types import BOOL, FLOAT8, INT4, INT8, TEXT, TIMESTAMPTZ, SqlType
from executor.core.core import Core
from executor.database.measures import MEASURES
from executor.database.view_paths import decision_rows, path_rows
from executor.files.arrived_files import FileFeed
from executor.maintained.maintained_views import MaintainedViews
from executor.separation.service import Separation
from executor.streams.runtime import rows_between
from executor.traces.layout import home_of
from executor.upkeep.admission import Admission
from executor.upkeep.maintenance import Maintenance
from planner.incremental.plan import tables_of
from planner.incremental.programs.rejected import REJECTED
from planner.rules.row_order.order_system_rows import PLACE

SCHEMA: Final = "millstream"
Rows = list[tuple[Any, ...]]


class Shown(Struct, frozen=True):
    """What the system relations show."""

    core: Core
    separation: Separation
    maintenance: Maintenance
    admission: Admission
    maintained: MaintainedViews


def _streams(shown: Shown) -> Rows:
    rows: Rows = []
    for stream in tuple(shown.core.streams.values()):
        item = stream.stream
        views = ", ".join(sorted(qualified(runtime.view) for runtime in shown.core.views_on(item.oid)))
        rows.append(
            (
                qualified(item),
                "server" if home_of(item) else item.option("source", "clients"),
                stream.last_lsn,
                stream.total_rows,
                stream.buffered_rows,
                stream.buffered_bytes,
                shown.admission.waiting(item.oid),
                views,
                len(stream.waiting),
                stream.error,
                None if stream.history is None else stream.history.total_rows,
                None if stream.history is None else stream.history.bytes,
            )
        )
    return rows


def _views(shown: Shown) -> Rows:
    rows: Rows = []
    visible = shown.core.sequencer.visible
    for runtime in shown.core.runtimes():
        inputs = {oid: found for oid in runtime.program.inputs if (found := shown.core.streams.get(oid)) is not None}
        if len(inputs) < len({*runtime.program.inputs}):  # both were dropped meanwhile
            continue
        durable = min((progress.durable for progress in runtime.paths), default=None)
        fresh = min((progress.reached for progress in runtime.paths), default=None)
        behind: int | None = 0
        if runtime.away is not None:  # what else its server knows
            durable, fresh, behind = runtime.held, None, None
        elif runtime.error is None:
            behind = sum(
                rows_between(inputs[oid].feed, progress.durable, visible)
                for progress in runtime.paths
                for oid in progress.path.inputs
            )
        rows.append(
            (
                qualified(runtime.view),
                shown.core.engine_setting(runtime.view),
                runtime.view.created_lsn,
                durable,
                fresh,
                behind,
                None if runtime.error is None else runtime.error.error.sqlstate,
                None if runtime.error is None else runtime.error.error.message,
                None if runtime.error is None else runtime.error.lsn,
                shown.core.options.server_name if runtime.away is None else runtime.away.server or None,
                next(
                    (home for item in inputs.values() if (home := home_of(item.stream))), shown.core.options.server_name
                ),
                tables_of(runtime.program),
                runtime.late_rows(),
                *shown.maintained.goal(runtime),
            )
        )
    return rows


def _states(shown: Shown) -> Rows:
    rows: Rows = []
    for runtime in shown.core.runtimes():
        for state in runtime.program.states:
            content = runtime.states[state.name]
            tables = content.tables
            stored = shown.core.stored_runs(runtime, state.name)
            rows.append(
                (
                    qualified(runtime.view),
                    state.name,
                    state.kind,
                    ", ".join(column.name for column in state.key),
                    sum(table.num_rows for table in tables),
                    sum(table.nbytes for table in tables),
                    stored,
                )
            )
    return rows


def _rejected(shown: Shown) -> Rows:
    rows: Rows = []
    for runtime in shown.core.runtimes():
        rows += [(qualified(runtime.view), *row, None, None) for row in runtime.rejected_rows()]
    for stream in tuple(shown.core.streams.values()):
        if isinstance(stream.feed, FileFeed):
            name = qualified(stream.stream)
            rows += [(None, name, number, None, None, *about) for number, *about in stream.feed.rejected.rows]
    return rows


def _paths(shown: Shown) -> Rows:
    return path_rows(shown.core, shown.maintained)


def _decisions(shown: Shown) -> Rows:
    return decision_rows(shown.core, shown.maintained)


def _jobs(shown: Shown) -> Rows:
    return [
        (
            job.id,
            ", ".join(job.views),
            job.stream,
            job.engine,
            ", ".join(map(str, job.engine_jobs)),
            job.status,
            job.rows,
            job.after,
            job.upto,
            job.seconds,
            job.started,
            job.detail,
        )
        for job in shown.maintenance.jobs.all()
    ]


def _engines(shown: Shown) -> Rows:
    return [("embedded", "ready", True, "DuckDB"), *shown.maintenance.engine_rows()]


def _queries(shown: Shown) -> Rows:
    """Those that run here, and those that have left, which may run on another server; of one that has left a checkpoint
    and runs here, the running one."""
    separation = shown.separation
    running = separation.running.all()
    rows: Rows = [
        (
            query.id,
            query.client.process or None,
            query.client.role,
            query.client.text,
            "running",
            len(query.names),
            query.finished,
            query.progress,
            query.rows,
            query.size,
            query.started,
            query.seconds,
            query.seconds_left,
            query.copied,
            shown.core.registry.name,
            "wait" if query.is_leaving else None,
        )
        for query in running
    ]
    ids = {query.id for query in running}
    for left in separation.stored.all():
        if left.id not in ids:
            server = separation.claims.owner(left.id)
            about = (separation.role_of(left), left.text, "running" if server else left.state)
            sizes = (left.pipelines, left.finished, None, left.rows, left.size)
            rows.append((left.id, None, *about, *sizes, None, None, None, left.created, server, left.way or None))
    return rows


def _servers(shown: Shown) -> Rows:
    registry = shown.core.registry
    return [
        (
            member.name,
            member.address,
            member.state,
            member.epoch,
            registry.beaten(member.name),
            member.name == registry.name,
        )
        for member in registry.all()
    ]


Filler = Callable[[Shown], Rows]
_VIEWS: Final[Mapping[str, tuple[Filler, tuple[tuple[str, SqlType], ...]]]] = {
    "streams": (
        _streams,
        (
            ("name", TEXT),
            ("source", TEXT),
            ("lsn", INT8),
            ("rows", INT8),
            ("buffered_rows", INT8),
            ("buffered_bytes", INT8),
            ("writers_waiting", INT8),
            ("views", TEXT),
            ("queries", INT8),
            ("error", TEXT),
            ("history_rows", INT8),
            ("history_bytes", INT8),
        ),
    ),
    "views": (
        _views,
        (
            ("name", TEXT),
            ("maintenance_engine", TEXT),
            ("created_lsn", INT8),
            ("durable_lsn", INT8),
            ("fresh_lsn", INT8),
            ("rows_behind", INT8),
            ("error_sqlstate", TEXT),
            ("error", TEXT),
            ("error_lsn", INT8),
            ("server", TEXT),
            ("home", TEXT),
            ("tables", TEXT),
            ("late_rows", INT8),
            ("goal", TEXT),
            ("meets_goal", BOOL),
        ),
    ),
    "states": (
        _states,
        (
            ("view", TEXT),
            ("state", TEXT),
            ("kind", TEXT),
            ("key", TEXT),
            ("rows", INT8),
            ("bytes", INT8),
            ("stored_runs", INT8),
        ),
    ),
    "rejected": (
        _rejected,
        (
            ("view", TEXT),
            *((column.name, column.type) for column in REJECTED.columns),
            ("file", TEXT),
            ("line", INT8),
        ),
    ),
    "paths": (
        _paths,
        (
            ("view", TEXT),
            ("part", TEXT),
            ("method", TEXT),
            ("reads", TEXT),
            ("rows", INT8),
            ("reason", TEXT),
            ("changes", INT8),
            ("rows_read", INT8),
            ("rows_inserted", INT8),
            ("rows_deleted", INT8),
            ("milliseconds", FLOAT8),
        ),
    ),
    "decisions": (
        _decisions,
        (
            ("decided_at", TIMESTAMPTZ),
            ("view", TEXT),
            ("chosen", TEXT),
            ("rejected", TEXT),
            ("reason", TEXT),
            ("estimated", FLOAT8),
            ("estimated_rejected", FLOAT8),
            ("measured", FLOAT8),
        ),
    ),
    "jobs": (
        _jobs,
        (
            ("id", INT8),
            ("views", TEXT),
            ("stream", TEXT),
            ("engine", TEXT),
            ("spark_jobs", TEXT),
            ("status", TEXT),
            ("rows", INT8),
            ("after_lsn", INT8),
            ("upto_lsn", INT8),
            ("seconds", FLOAT8),
            ("started", TIMESTAMPTZ),
            ("detail", TEXT),
        ),
    ),
    "queries": (
        _queries,
        (
            ("query_id", TEXT),
            ("pid", INT4),
            ("role", TEXT),
            ("query", TEXT),
            ("state", TEXT),
            ("pipelines", INT8),
            ("finished", INT8),
            ("progress", FLOAT8),
            ("rows", INT8),
            ("bytes", INT8),
            ("started", TIMESTAMPTZ),
            ("seconds", FLOAT8),
            ("seconds_left", FLOAT8),
            ("copied", TIMESTAMPTZ),
            ("server", TEXT),
            ("way", TEXT),
        ),
    ),
    "engines": (_engines, (("name", TEXT), ("status", TEXT), ("available", BOOL), ("detail", TEXT))),
    "servers": (
        _servers,
        (
            ("name", TEXT),
            ("address", TEXT),
            ("state", TEXT),
            ("epoch", INT8),
            ("heartbeat", TIMESTAMPTZ),
            ("is_this", BOOL),
        ),
    ),
}

#: oids of system views lie below PostgreSQL's first user oid.
_FIRST: Final = 15_000
_BY_OID: Final = {_FIRST + index: name for index, name in enumerate(_VIEWS)}


def server_catalog() -> Catalog:
    """A catalog of only the system relations."""
    return system_catalog().with_system(
        SystemView(oid, SCHEMA, name, tuple(ColumnDefinition(column, kind) for column, kind in _VIEWS[name][1]))
        for oid, name in _BY_OID.items()
    )


def system_rows(shown: Shown, name: str) -> list[dict[str, Any]]:
    """The rows of ``millstream.<name>`` now, by column."""
    filler, columns = _VIEWS[name]
    return [dict(zip((column for column, _ in columns), row, strict=True)) for row in filler(shown)]


def rows_of_system(shown: Shown, oid: int, catalog: Catalog, own: Own, path: tuple[str, ...]) -> pa.Table:
    """The rows now, and their places, of a system relation, or the only row of a sequence, as a transaction's catalog
    has it. A search ``path`` finds what is named without a schema; ``own`` are rows that only a session knows."""
    item = catalog.objects[oid]
    if isinstance(item, SystemView):
        return _system_table(shown, catalog, item, own, path)
    assert isinstance(item, Sequence), item
    values = shown.core.sequences.current(item)
    arrays = [pa.array([value], column.type.arrow) for value, column in zip(values, item.columns, strict=True)]
    return _placed(pa.Table.from_arrays(arrays, names=[column.name for column in item.columns]))


def _system_table(shown: Shown, catalog: Catalog, view: SystemView, own: Own, path: tuple[str, ...]) -> pa.Table:
    name = view.name if view.schema != SCHEMA else f"{SCHEMA}.{view.name}"
    if name in own:
        return _placed(table_of(view.columns, own[name]()))
    if view.oid in _BY_OID:
        return _placed(table_of(view.columns, system_rows(shown, view.name)))
    measure = MEASURES.get(view.name)
    if measure is not None:
        found = table_of(view.columns, measure(shown.core, catalog))
        return _placed(seen_table(catalog, found, path) if view.name in MARKED else found)
    if view.name == "relation_visibility":
        return _SEEN.get(catalog, view.oid, path, visibility(catalog, path).table, has_marks=False)
    has_marks = view.name in MARKED
    return _SEEN.get(catalog, view.oid, path if has_marks else (), rows_of(catalog, view), has_marks)


def _placed(found: pa.Table) -> pa.Table:
    """Rows with their places."""
    return found.append_column(PLACE, pa.array(np.arange(found.num_rows)))


class _Seen:
    """What the catalog alone tells, as search paths see it: the same table again while it is the same."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: By oid and path: the rows that it was made of, the catalog where its texts have marks, and the result.
        self._items: dict[tuple[int, tuple[str, ...]], tuple[pa.Table, Catalog | None, pa.Table]] = {}

    def get(self, catalog: Catalog, oid: int, path: tuple[str, ...], rows: pa.Table, has_marks: bool) -> pa.Table:
        """Rows with their places, and without the marks that some have in their texts."""
        key = oid, path
        known = self._items.get(key)
        if known is not None and known[0] is rows and (known[1] is None or known[1] is catalog):
            return known[2]
        seen = seen_table(catalog, rows, path) if has_marks else rows
        found = _placed(seen)
        if len(self._items) >= self._limit:
            self._items.clear()
        self._items[key] = rows, None if seen is rows else catalog, found
        return found


_SEEN: Final = _Seen(256)
