"""The system views of schema ``millstream``: what runs, how far it is, and what it costs.

Owns: their columns and how each is filled from the running database. Read like any relation, computed at each read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, SystemView, qualified
from catalog.system import rows_of, system_catalog
from catalog.system.rows import Own, table_of
from catalog.types import BOOL, FLOAT8, INT8, TEXT, TIMESTAMPTZ, SqlType
from executor.measures import MEASURES
from executor.streams import rows_between

if TYPE_CHECKING:
    from executor.database import Database

SCHEMA: Final = "millstream"
Rows = list[tuple[Any, ...]]


def _streams(database: Database) -> Rows:
    rows: Rows = []
    for stream in database.streams.values():
        item = stream.stream
        views = ", ".join(sorted(qualified(runtime.view) for runtime in database.views_on(item.oid)))
        rows.append(
            (
                qualified(item),
                item.option("source", "clients"),
                stream.last_lsn,
                stream.total_rows,
                stream.buffered_rows,
                stream.buffered_bytes,
                database.admission.waiting(item.oid),
                views,
                len(stream.waiting),
                stream.error,
            )
        )
    return rows


def _views(database: Database) -> Rows:
    rows: Rows = []
    visible = database.sequencer.visible
    for runtime in database.runtimes():
        behind = 0
        if runtime.error is None:
            feeds = [database.streams[progress.path.stream].feed for progress in runtime.paths]
            pairs = zip(feeds, runtime.paths, strict=True)
            behind = sum(rows_between(feed, progress.durable, visible) for feed, progress in pairs)
        rows.append(
            (
                qualified(runtime.view),
                database.engine_setting(runtime.view),
                runtime.view.created_lsn,
                min(progress.durable for progress in runtime.paths),
                min(progress.reached for progress in runtime.paths),
                behind,
                None if runtime.error is None else runtime.error.error.sqlstate,
                None if runtime.error is None else runtime.error.error.message,
                None if runtime.error is None else runtime.error.lsn,
            )
        )
    return rows


def _states(database: Database) -> Rows:
    rows: Rows = []
    for runtime in database.runtimes():
        for state in runtime.program.states:
            content = runtime.contents[state.name]
            tables = content.tables
            stored = database.stored_runs(runtime, state.name)
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


def _jobs(database: Database) -> Rows:
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
        for job in database.maintenance.jobs.all()
    ]


def _engines(database: Database) -> Rows:
    return [("embedded", "ready", True, "DuckDB"), *database.maintenance.engine_rows()]


Filler = Callable[["Database"], Rows]
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
    "engines": (_engines, (("name", TEXT), ("status", TEXT), ("available", BOOL), ("detail", TEXT))),
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


def system_table(database: Database, catalog: Catalog, view: SystemView, own: Own) -> pa.Table:
    """A system relation's rows now; ``own`` are those that only a session knows."""
    if view.schema != SCHEMA and view.name in own:
        return table_of(view.columns, own[view.name]())
    if view.oid not in _BY_OID:
        measure = MEASURES.get(view.name)
        return rows_of(catalog, view) if measure is None else table_of(view.columns, measure(database, catalog))
    filler, columns = _VIEWS[_BY_OID[view.oid]]
    rows = filler(database)
    arrays = [pa.array([row[at] for row in rows], kind.arrow) for at, (_, kind) in enumerate(columns)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])
