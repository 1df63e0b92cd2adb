"""What Prometheus reads: clients, streams, views, jobs and engines as numbers, on a port of its own.

Owns: the metrics' names and where each is read from, at every scrape anew; nothing is counted on a hot path for it. The
page and the process's own metrics (memory, processor, files) are prometheus_client's. Names follow
https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from catalog.objects import qualified
from executor.database.system_relations import system_rows

if TYPE_CHECKING:
    from executor.database.database import Database
    from server.operations.config import Address

Family = CounterMetricFamily | GaugeMetricFamily
#: Families by the column of millstream.streams that they show, for every stream.
_OF_STREAMS: Final[tuple[tuple[str, type[Family], str, str], ...]] = (
    ("rows", CounterMetricFamily, "millstream_stream_rows", "Rows acknowledged."),
    ("buffered_rows", GaugeMetricFamily, "millstream_stream_buffered_rows", "Rows in memory for views."),
    ("buffered_bytes", GaugeMetricFamily, "millstream_stream_buffered_bytes", "Memory of rows kept for views."),
    ("writers_waiting", GaugeMetricFamily, "millstream_stream_writers_waiting", "Writers that wait for views."),
    ("queries", GaugeMetricFamily, "millstream_stream_queries", "Queries that read the stream now."),
)


def serve_metrics(
    address: Address, clients: Iterable[Any], most_clients: int, database: Database
) -> Callable[[], None]:
    """Answers Prometheus in a thread of its own; what is returned ends that. ``clients`` are the connections, of which
    there may be ``most_clients``. Raises OSError.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(_Metrics(clients, most_clients, database))
    http, thread = start_http_server(address.port, address.host, registry)

    def end() -> None:
        http.shutdown()
        http.server_close()
        thread.join()

    return end


class _Metrics(Collector):
    """Collected in the page's thread: reads only what other threads may read."""

    def __init__(self, clients: Iterable[Any], most_clients: int, database: Database) -> None:
        self._connections = clients
        self._limit = most_clients
        self._database = database

    def describe(self) -> Iterable[Any]:
        """Nothing is known beforehand: streams and views come and go."""
        return ()

    def collect(self) -> Iterator[Family]:
        """All metrics now."""
        yield from self._clients()
        yield from self._streams()
        yield from self._views()
        yield from self._maintained()
        yield from self._jobs()
        yield _gauge(
            "millstream_log_lsn", "Last log sequence number that readers see.", self._database.core.sequencer.visible
        )
        engines = GaugeMetricFamily("millstream_engine_available", "Whether an engine accepts work.", labels=["engine"])
        for row in system_rows(self._database.shown, "engines"):
            engines.add_metric([row["name"]], row["available"])
        yield engines

    def _clients(self) -> Iterator[Family]:
        states = Counter(map(_state, self._connections))
        clients = GaugeMetricFamily("millstream_clients", "Connected clients.", labels=["state"])
        for state in ("active", "idle", "idle in transaction", "starting"):
            clients.add_metric([state], states[state])
        yield clients
        yield _gauge("millstream_clients_limit", "Clients that may be connected.", self._limit)

    def _streams(self) -> Iterator[Family]:
        rows = system_rows(self._database.shown, "streams")
        for column, kind, name, text in _OF_STREAMS:
            family = kind(name, text, labels=["stream"])
            for row in rows:
                family.add_metric([row["name"]], row[column])
            yield family

    def _views(self) -> Iterator[Family]:
        behind = GaugeMetricFamily("millstream_view_rows_behind", "Rows not yet in stored states.", labels=["view"])
        failing = GaugeMetricFamily("millstream_view_failing", "Whether reads raise an error.", labels=["view"])
        for row in system_rows(self._database.shown, "views"):
            if row["rows_behind"] is not None:  # else another server tells it
                behind.add_metric([row["name"]], row["rows_behind"])
            failing.add_metric([row["name"]], row["error_sqlstate"] is not None)
        yield from (behind, failing)

    def _maintained(self) -> Iterator[Family]:
        """What is done for the rows of views that are read."""
        labels = ["view", "kind"]
        times = CounterMetricFamily("millstream_view_work", "Evaluations, fills and changes followed.", labels=labels)
        seconds = CounterMetricFamily("millstream_view_work_seconds", "Processor time that these took.", labels=labels)
        kept = GaugeMetricFamily("millstream_view_kept_rows", "Rows in memory that follow changes.", labels=["view"])
        for view, totals, rows in self._database.read_services.maintained.totals():
            name = qualified(view)
            kept.add_metric([name], rows)
            for kind, total in totals.items():
                times.add_metric([name, kind], total.count)
                seconds.add_metric([name, kind], total.seconds)
        yield from (times, seconds, kept)

    def _jobs(self) -> Iterator[Family]:
        labels = ["engine", "status"]
        jobs = CounterMetricFamily(
            "millstream_maintenance_jobs", "Ended jobs of background maintenance.", labels=labels
        )
        rows = CounterMetricFamily("millstream_maintenance_rows", "Rows that these jobs processed.", labels=labels)
        seconds = CounterMetricFamily("millstream_maintenance_seconds", "Time that these jobs took.", labels=labels)
        for (engine, status), total in self._database.maintenance.jobs.totals.copy().items():
            for family, value in ((jobs, total.jobs), (rows, total.rows), (seconds, total.seconds)):
                family.add_metric([engine, status], value)
        yield from (jobs, rows, seconds)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _state(connection: Any) -> str:
    handler = connection.handler
    if handler.backend is None:
        return "starting"
    if handler.work.is_running:
        return "active"
    return "idle" if handler.db.status == "I" else "idle in transaction"
