"""Recovers streams and continuous views when a database is opened, behind its tables and catalog.

Owns: the steps. Each stream and view of the catalog gets its run-time state, files that no relation has are deleted,
and the log gives streams the rows that their views still need.
"""

from __future__ import annotations

from catalog.objects import Stream, View
from executor.commit.records import FilesArrived, Followed, Spooled, StreamRows
from executor.commit.recovery import replay
from executor.core.core import Core
from executor.database.reopening import reopen
from executor.database.runtimes import Runtimes
from executor.files.arrived_files import FileFeed
from executor.replicas.replica import Replicas
from executor.streams.runtime import Arrival
from executor.upkeep.frontiers import Frontiers


def recover_relations(core: Core, runtimes: Runtimes, frontiers: Frontiers, replicas: Replicas) -> None:
    """Opens the streams and views of the catalog, and refills streams above their views' durable frontiers."""
    objects = tuple(core.catalog.objects.values())
    for item in objects:
        if isinstance(item, Stream):
            runtimes.open_stream(item)
            runtimes.recover_history(item)
    for item in objects:
        if isinstance(item, View) and item.continuous:
            reopen(core, item, runtimes.open_view)
    core.storage.drop_orphans({runtime.view.oid for runtime in core.runtimes()}, set(core.streams))
    core.refresh_reads()
    _refill_streams(core, frontiers, replicas)


def _refill_streams(core: Core, frontiers: Frontiers, replicas: Replicas) -> None:
    """Rings and file lists get what the log holds above the lowest durable frontier of their views."""
    log = core.log
    durable = {oid: frontiers.held_lsn(oid, log.last_lsn) for oid in core.streams}
    start = min((replicas.needed(oid, lsn) for oid, lsn in durable.items()), default=log.last_lsn)
    feeds = [stream.feed for stream in core.streams.values()]
    # A view may have the rows of a file whose name the log alone has yet.
    named = min((feed.stored_lsn for feed in feeds if isinstance(feed, FileFeed)), default=start)
    for oid, stream in core.streams.items():
        if stream.history is not None:
            stream.feed.release(durable[oid])  # rows up to there are the history's
    for lsn, record in replay(log, min(start, named), start):
        for part in record:
            if isinstance(part, Followed):
                replicas.recorded(lsn, part)
            if isinstance(part, StreamRows | Spooled | FilesArrived) and part.stream in durable:
                _refill(core, lsn, part, durable[part.stream])


def _refill(core: Core, lsn: int, part: Arrival, frontier: int) -> None:
    runtime = core.streams[part.stream]
    if lsn > frontier or isinstance(part, FilesArrived):
        runtime.feed.publish(lsn, part)
        runtime.arrived(lsn, 0.0)
        core.versions.change(part.stream, lsn)
