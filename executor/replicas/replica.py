"""Replicas: streams that another server's writers fill. This server copies their rows from that server's log to its own
log; of a stream that follows a folder it copies the names of the files, and reads the files by itself.

Owns: the position of each replica. Rows and the position that they reach are one record (``records.Followed``), so that
each row counts once, whichever server fails, and everything behind the log (ring, views, their maintenance) takes a
replica for a stream of this server. All replicas of one server share that record: rows that a transaction wrote to
several streams become visible here at once, too, and a view over several is at one position of its home. A thread
applies new records; a reader of a view first asks whether there are more. Before this server's log forgets a position,
it goes to the storage.

    <storage>/followed/<home>.<stream there>.<this server>.json    {"stream", "lsn": of the record here, "upto": there}
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from catalog.objects import Stream
from catalog.values.errors import SqlError, undefined_table
from executor.cluster.storage import encoded
from executor.commit.files import replace_file
from executor.commit.log_follower import BUDGET, EVERY, Arrived, LogFollower
from executor.commit.records import FilesArrived, Followed, StreamRows
from executor.core.core import Core
from executor.files.arrived_files import ArrivedFiles, FileFeed
from executor.files.reader import read_files
from executor.replicas import enums
from executor.streams.runtime import is_followed
from executor.traces.checked import WRONG
from executor.traces.layout import LSN, ORDINAL, Layout, home_of
from executor.views.runtime import ViewRuntime
from planner.incremental.programs.program import Program

_FOLDER: Final = "followed"
#: Seconds for which the position of a new replica may be unknown.
_MOMENT: Final = 5.0


def position_path(storage: Path, home: str, stream: int, follower: str) -> Path:
    """The file with the position of a replica."""
    return storage / _FOLDER / f"{home}.{stream}.{follower}.json"


class _Known(Struct):
    """A replica's stream and layout, the LSN of its home up to which it is here (-1 where that is not known yet), the
    LSN of its record that the storage tells of, and the later records: LSN here, and LSN of the home."""

    stream: Stream
    layout: Layout
    upto: int = -1
    stored: int = 0
    records: list[tuple[int, int]] = field(default_factory=list)

    @property
    def there(self) -> int:
        """The stream's oid at home."""
        return int(self.stream.option("oid"))


class Replica:
    """The replicas of one home, which advance together: what the home committed at once becomes visible at once. Safe
    for many threads."""

    def __init__(self, core: Core, home: str) -> None:
        self._core = core
        self.home = home
        #: By their oids here.
        self.streams: dict[int, _Known] = {}
        self._follower: LogFollower | None = None
        #: Whether the home's log is on the storage.
        self._is_shared = False
        self._is_applying = False
        #: The LSN of the home up to which all rows are visible here; -1 where that is not known yet. Changes under
        #: ``lock``, which is taken behind those of transactions and before a view's.
        self.position = -1
        #: The last position that a record has.
        self.logged = -1
        self._is_begun = threading.Event()
        self.lock = threading.RLock()
        #: Bytes of the rows that have been applied, as in memory.
        self.arrived = 0
        #: The last change of each table of the other server, as far as its log was read.
        self.changed: dict[int, int] = {}
        #: The views here whose tables the record changes that is being committed.
        self.stirred: tuple[int, ...] = ()

    def is_behind(self, waits: bool = True) -> bool:
        """Whether there may be rows that are not visible here. Takes microseconds; ``waits`` as of a
        ``LogFollower``."""
        follower = self._follower
        # In this order: what is read is applied.
        return follower is None or follower.is_behind(waits) or self._is_applying

    def add(self, known: _Known) -> None:
        """Adds a stream. Takes no lock: the caller has the sequencer's, and the creator of the stream has ``lock``."""
        self.streams = {**self.streams, known.stream.oid: known}
        self._is_begun.clear()
        self._begin()

    def remove(self, oid: int) -> None:
        """Removes a stream; locks as for ``add``."""
        self.streams = {other: known for other, known in self.streams.items() if other != oid}

    def recorded(self, known: _Known, upto: int) -> None:
        """Notes the position of a stream that a record has."""
        known.upto = upto
        self._begin()

    def _begin(self) -> None:
        """Computes the position of all streams: the lowest of theirs, and unknown while one of them is."""
        self.position = self.logged = min((known.upto for known in self.streams.values()), default=-1)
        if self.position >= 0:
            self._is_begun.set()

    def catch_up(self, upto: int = EVERY) -> None:
        """Applies what the home has acknowledged by now, up to one of its LSNs. Raises 58030, 72000, XX001, and what a
        commit raises."""
        if not self._is_begun.wait(_MOMENT):  # its creator announces it a moment after others have seen it
            hint = "Drop their views here, so that they continue on their home server."
            raise SqlError("XX001", f'the position of the streams of server "{self.home}" is not known here', hint=hint)
        if self._is_shared:
            self._core.shared.require_answer()
        with self.lock:
            while self._apply(upto):
                pass

    def note(self) -> None:
        """Logs the position where it has advanced without rows."""
        with self.lock:
            if self.position != self.logged:
                self._commit((), self.position)

    def close(self) -> None:
        """Ends the reading of the home's log."""
        with self.lock:
            if self._follower is not None:
                self._follower.close()

    def _opened(self) -> LogFollower:
        """The follower of the home's log, for all present streams."""
        wanted = frozenset(known.there for known in self.streams.values())
        if self._follower is None or self._follower.streams != wanted:
            if self._follower is not None:
                self._follower.close()
            log = log_of(self._core, self.home)
            self._is_shared = log.is_relative_to(self._core.shared.folder)
            self._follower = LogFollower(log, wanted, self.position)
        return self._follower

    def _apply(self, upto: int) -> bool:
        """Applies one piece of the home's log; whether there may be more."""
        follower = self._opened()
        if not follower.is_behind():
            return False
        before = follower.place
        self._is_applying = True
        try:
            found = follower.read(upto=upto)
            parts = [part for known in self.streams.values() for part in _new(found, known)]
            self.changed |= follower.changed  # first: from now on earlier answers do not count as the last
            self.stirred = self._readers(follower.changed)
            if parts or self.stirred:
                self._commit(parts, follower.position)
                rows = (part for part in parts if isinstance(part, StreamRows))
                self.arrived += sum(batch.nbytes for part in rows for batch in part.batches)
            self.position = follower.position
        except BaseException:
            follower.rewind(self.position)
            raise
        finally:
            self._is_applying, self.stirred = False, ()
        return follower.place != before

    def _readers(self, tables: Container[int]) -> tuple[int, ...]:
        """The guests over these streams that read some of the home's tables whenever they are read."""
        return tuple(
            runtime.view.oid
            for runtime in (self._core.runtimes() if tables else ())
            if not self.streams.keys().isdisjoint(runtime.program.inputs)
            and any(item.table in tables for item in runtime.program.borrowed)
        )

    def _commit(self, arrived: Sequence[StreamRows | FilesArrived], upto: int) -> None:
        """Commits rows for all streams, and the positions of these, in one record."""
        self._core.sequencer.commit((*arrived, *self.positions(upto)), sync=False)

    def positions(self, upto: int) -> tuple[Followed, ...]:
        """The positions of all streams for a record: this LSN of the home, or a stream's own where that is higher."""
        return tuple(Followed(oid, max(upto, known.upto)) for oid, known in self.streams.items())


def _new(found: Sequence[Arrived], known: _Known) -> list[StreamRows | FilesArrived]:
    """The rows and files above a stream's position, which may be higher than that of other streams."""
    oid = known.stream.oid
    own = [item for item in found if item.stream == known.there and item.lsn > known.upto]
    if is_followed(known.stream):
        return [replace(item.files, stream=oid, place=item.lsn) for item in own if item.files is not None]
    return [StreamRows(oid, tuple(placed(own, known.layout)))] if own else []


def replicated(home: str, oid: int) -> tuple[tuple[str, str], ...]:
    """The options of a replica."""
    return (("server", home), ("oid", str(oid)))


def as_own(replica: Stream) -> Stream:
    """A replica's stream as a stream of the server that has the replica."""
    # The third is an earlier version's.
    added = (*replicated(home_of(replica), int(replica.option("oid"))), ("source", "server"))
    return replace(replica, options=tuple(item for item in replica.options if item not in added))


def as_at_home(replica: Stream) -> Stream:
    """A replica's stream as its home has it."""
    return replace(as_own(replica), oid=int(replica.option("oid")), columns=enums.at_home(replica.columns))


def replica_of(replicas: Replicas, runtime: ViewRuntime) -> Replica | None:
    """The replica of a guest's streams; None for a view of this server."""
    return next((replicas.get(oid) for oid in runtime.program.inputs), None)


def streams_of(core: Core, program: Program) -> tuple[Stream, ...]:
    """The streams that a program's paths read. Raises 42P01 where one was dropped meanwhile."""
    found = [core.streams.get(oid) for oid in program.inputs]
    streams = tuple(runtime.stream for runtime in found if runtime is not None)
    if len(streams) < len(found):
        raise undefined_table("stream")
    return streams


def log_of(core: Core, server: str) -> Path:
    """The folder of a server's log. Raises 42704, 58P01."""
    log = core.registry.require(server).log
    folder = core.shared.folder / log  # which is absolute where it is not on the storage
    if not log or not folder.is_dir():
        raise SqlError("58P01", f'the log of server "{server}" is not at "{log}"', hint="Make the log available there.")
    return folder


def logged_rows(
    core: Core, home: str, stream: Stream, after: int, upto: int
) -> Iterator[tuple[pa.Table, Sequence[FilesArrived]]]:
    """The rows of an interval of a home's LSNs with their places there, some at a time: from its log, or from the files
    that its log names, with these. ``stream`` is as the home has it. Raises 72000 where the log has recycled them,
    58P01, 22P04, XX001 and 58030."""
    layout = Layout.of(stream)
    follower = LogFollower(log_of(core, home), frozenset((stream.oid,)), after)
    try:
        while follower.position < upto:
            before = follower.place
            found = [item for item in follower.read() if item.lsn <= upto]
            if follower.place == before:
                raise SqlError("72000", f'the log of server "{home}" ends before LSN {upto}')
            if is_followed(stream):
                yield from _read(found, stream)
            elif found:
                yield pa.Table.from_batches(placed(found, layout), layout.with_places), ()
    finally:
        follower.close()


def _read(found: Sequence[Arrived], stream: Stream) -> Iterator[tuple[pa.Table, Sequence[FilesArrived]]]:
    """The rows of arrived files, with the files: of one record, or of several small ones."""
    tables: list[pa.Table] = []
    parts: list[FilesArrived] = []
    for item in found:
        if item.files is not None:
            tables.append(read_files(item.files.files, stream, item.lsn))
            parts.append(item.files)
        if tables and (item is found[-1] or sum(table.nbytes for table in tables) > BUDGET):
            yield pa.concat_tables(tables), parts
            tables, parts = [], []


def arrived_in(core: Core, streams: Iterable[Stream], starts: Mapping[int, int]) -> dict[int, ArrivedFiles]:
    """The files that have arrived, up to an LSN of the home for each stream, in those streams that follow a folder; by
    the streams' oids, as ``starts``."""
    feeds = {stream.oid: core.streams[stream.oid].feed for stream in streams}
    return {oid: feed.before(starts[oid]) for oid, feed in feeds.items() if isinstance(feed, FileFeed)}


def placed(found: Sequence[Arrived], layout: Layout) -> list[pa.RecordBatch]:
    """The rows of a home's commits with their places there. ``layout`` is that of the home's records."""
    batches = [layout.seen(batch) for item in found for batch in item.batches]
    counts = [sum(batch.num_rows for batch in item.batches) for item in found]
    total = sum(counts)
    starts = np.cumsum([0, *counts])[:-1]
    lsns = np.repeat(np.array([item.lsn for item in found], dtype=np.int64), counts)
    ordinals = np.arange(total, dtype=np.int64) - np.repeat(starts, counts)
    table = pa.Table.from_batches(batches, layout.shown)
    table = table.append_column(LSN, pa.array(lsns)).append_column(ORDINAL, pa.array(ordinals))
    whole: list[pa.RecordBatch] = table.combine_chunks().to_batches()
    return whole


class Replicas:
    """All replicas of a server."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._homes: dict[str, Replica] = {}
        self._known: dict[int, _Known] = {}

    def _path(self, known: _Known) -> Path:
        options = self._core.options
        return position_path(options.storage_directory, home_of(known.stream), known.there, options.server_name)

    def open(self, stream: Stream) -> None:
        """Adds a replica. Records in the log tell its position, and the storage the position of records that the log
        has forgotten."""
        known = _Known(stream, Layout.of(replace(stream, options=())))
        stored = self._stored(known)
        if stored is not None:
            known.stored, known.upto = stored
        home = home_of(stream)
        self._homes.setdefault(home, Replica(self._core, home)).add(known)
        self._known[stream.oid] = known

    def _stored(self, known: _Known) -> tuple[int, int] | None:
        """The position on the storage: the LSN of the record here, and the LSN of the home; None where there is
        none."""
        try:
            found = self._core.shared.read(self._path(known))
            if found is None or found["stream"] != known.stream.oid:
                return None
            return int(found["lsn"]), int(found["upto"])
        except WRONG:
            return None
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
            return None

    def recorded(self, lsn: int, part: Followed) -> None:
        """Notes a record with a position, when it becomes visible or is found at the start."""
        known = self._known.get(part.stream)
        if known is not None and lsn > known.stored:
            known.records.append((lsn, part.upto))
            replica = self._homes[home_of(known.stream)]
            replica.recorded(known, part.upto)
            for view in replica.stirred:
                self._core.versions.change(view, lsn)

    def needed(self, stream: int, otherwise: int) -> int:
        """The LSN above which records may tell a stream's position; ``otherwise`` for a stream of this server."""
        known = self._known.get(stream)
        return otherwise if known is None else min(known.stored, otherwise)

    def forget(self, oid: int) -> None:
        """Removes the replica of a dropped stream."""
        known = self._known.pop(oid, None)
        if known is not None:
            replica = self._homes[home_of(known.stream)]
            replica.remove(oid)
            if not replica.streams:
                del self._homes[replica.home]
            self._path(known).unlink(missing_ok=True)

    def get(self, oid: int) -> Replica | None:
        """The replica that has a stream; None for a stream of this server."""
        known = self._known.get(oid)
        return None if known is None else self._homes.get(home_of(known.stream))

    def of(self, home: str) -> Replica | None:
        """The replica of a home's streams; None where there is none."""
        return self._homes.get(home)

    def all(self) -> list[Replica]:
        """The replicas of all homes."""
        return list(self._homes.values())

    def _below(self, oids: Iterable[int]) -> list[Replica]:
        below = {each for oid in oids for each in self._core.reads_of(oid)}
        return [replica for replica in self.all() if not below.isdisjoint(replica.streams)]

    def are_behind(self, oids: Iterable[int]) -> bool:
        """Whether homes may have acknowledged rows that these relations do not show. Does not block."""
        return bool(self._known) and any(replica.is_behind(waits=False) for replica in self._below(oids))

    def refresh(self, oids: Iterable[int]) -> None:
        """Applies all rows that homes have acknowledged by now to the streams below these relations."""
        for replica in self._below(oids) if self._known else ():
            replica.catch_up()

    def release(self, upto: int) -> int:
        """Writes the positions of records up to an LSN to the storage, since the log is about to forget them. The LSN
        up to which it may: ``upto``, or less where a position could not be written."""
        for oid, known in tuple(self._known.items()):
            old = [record for record in known.records if record[0] <= upto]
            if old:
                lsn, position = old[-1]
                document = {"stream": oid, "lsn": lsn, "upto": position}
                try:
                    self._core.shared.require()  # nothing is written to an empty mount point
                    path = self._path(known)
                    path.parent.mkdir(exist_ok=True)
                    replace_file(path, encoded(document))
                except (OSError, SqlError):  # the next time, then
                    upto = min(upto, known.stored)
                    continue
                known.stored = lsn
                known.records = [record for record in known.records if record[0] > lsn]
        return upto

    def close(self) -> None:
        """Ends the reading of all homes' logs."""
        for replica in self.all():
            replica.close()
