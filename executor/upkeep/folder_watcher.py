"""Watching folders: files that arrived in the folder of a followed stream become a record of the log.

Owns: a thread that looks at every followed stream's folder at the pace that the configuration sets, so that files are
found while a long job runs; and the stream's error while its folder or one of its files is not what it was. Which files
count is ``following``'s; what becomes of them is maintenance's. The files of another server's stream arrive by that
server's log; this one reads through them, too, so that it refuses what that one refuses and has the others converted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.core.periodic import Periodic
from executor.files.arrived_files import FileFeed
from executor.files.followed_folders import FileSource, SourceFile
from executor.streams.runtime import StreamRuntime, file_format, folder_of
from executor.traces.layout import home_of
from executor.upkeep.frontiers import Frontiers

_LOGGER = logging.getLogger(__name__)


class SourceWatcher:
    """One thread for all followed folders."""

    def __init__(self, core: Core, frontiers: Frontiers, retry: Callable[[int], None]) -> None:
        self._core, self._frontiers, self._retry = core, frontiers, retry
        self._sources: dict[int, FileSource] = {}
        self._lock = threading.Lock()
        self._thread = Periodic("sources", core.options.source_poll, self._work)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()

    def _work(self) -> None:
        streams = list(self._core.streams.values())
        followed = [item for item in streams if isinstance(item.feed, FileFeed)]
        with self._lock:
            self._sources = {oid: self._sources[oid] for oid in self._sources if oid in self._core.streams}
        for stream in followed:
            try:
                self._look(stream)
            except Exception:
                _LOGGER.exception('looking at the folder of stream "%s" failed', stream.stream.name)

    def _look(self, stream: StreamRuntime) -> None:
        with self._lock:
            self._look_alone(stream)

    def _look_alone(self, stream: StreamRuntime) -> None:
        feed, oid = stream.feed, stream.stream.oid
        assert isinstance(feed, FileFeed)
        source = self._sources.get(oid)
        if source is None:
            source = FileSource(folder_of(stream.stream), file_format(stream.stream), stream.stream.name)
            self._sources[oid] = source
        told = None
        try:
            durable = self._frontiers.durable_lsn(oid, self._core.sequencer.visible)
            self._take(feed, source.poll(feed.known(durable)), home_of(stream.stream))
            told = next((_told(item.error) for item in feed.refused), None)
            feed.clear(durable)
        except SqlError as error:
            told = str(error)
        self._core.versions.suspend(oid, bool(feed.refused))  # no earlier answer is given again meanwhile
        feed.trouble = told
        if not home_of(stream.stream) and stream.stands(told):  # else it may stand for other reasons (moving/views)
            self._retry(oid)

    def _take(self, feed: FileFeed, found: Sequence[SourceFile], home: str) -> None:
        """Files of a stream of this server arrive, and those of another's are read through."""
        if home:
            feed.review(found)
            return
        part = feed.take(found)
        if part is not None:
            self._core.sequencer.submit((part,)).wait()


def _told(error: SqlError) -> str:
    return f"{error} ({error.where})" if error.where else str(error)
