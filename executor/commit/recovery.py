"""Reading what was committed: replay after a restart, and a stream's rows of an interval.

Owns the way from the log's payloads back to records. Does not decide from where to replay or what may be recycled:
those who record LSNs (manifests, the table database) do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from executor.commit.encoding.payloads import decode_batches, decode_record
from executor.commit.log import Log
from executor.commit.records import SpoolReference, StreamRows, TransactionRecord


def replay(log: Log, after: int, rows_after: int = 0) -> Iterator[tuple[int, TransactionRecord]]:
    """LSN and record of every commit above ``after`` that was not recycled (those nobody needs), in order, without the
    rows of those up to ``rows_after``. Batches written ahead are given by reference only."""
    for lsn, payload in log.records(max(after, log.first_lsn)):
        yield lsn, decode_record(payload, None if lsn > rows_after else ())


class StreamReader:
    """Reads one stream's rows back from the log."""

    def __init__(self, log: Log, stream: int) -> None:
        self._log = log
        self.stream = stream

    def rows(self, after: int, upto: int) -> Iterator[tuple[int, int, tuple[pa.RecordBatch, ...]]]:
        """(LSN, number, batches) of the StreamRows parts in (after, upto]; ``number`` counts a record's parts of the
        stream from 0. Raises 72000 for what was recycled."""
        for lsn, payload in self._log.records(after, upto):
            own = (part for part in decode_record(payload, (self.stream,)) if isinstance(part, StreamRows))
            for number, part in enumerate(part for part in own if part.stream == self.stream):
                yield lsn, number, part.batches

    def spooled(self, reference: SpoolReference) -> tuple[pa.RecordBatch, ...]:
        """The batch that was written ahead."""
        return tuple(decode_batches(self._log.read_data(reference)))
