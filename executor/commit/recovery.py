"""Reading what was committed: replay after a restart, and a stream's rows of an interval.

Owns the way from the log's payloads back to records. Does not decide from where to replay or what may be recycled:
those who record LSNs (manifests, the table database) do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from executor.commit.encoding import decode_batches, decode_record
from executor.commit.log import Log
from executor.commit.records import SpoolReference, StreamRows, TransactionRecord


def replay(log: Log, after: int) -> Iterator[tuple[int, TransactionRecord]]:
    """LSN and record of every commit above ``after``, in order. Batches written ahead are given by reference only."""
    for lsn, payload in log.records(after):
        yield lsn, decode_record(payload)


def recycle(log: Log, below_lsn: int) -> int:
    """Frees the segments that only commits below ``below_lsn`` need; returns how many."""
    return log.recycle(below_lsn)


class StreamReader:
    """Reads one stream's rows back from the log."""

    def __init__(self, log: Log, stream: int) -> None:
        self._log = log
        self._stream = stream

    def rows(self, after: int, upto: int) -> Iterator[tuple[int, int, tuple[pa.RecordBatch, ...]]]:
        """(LSN, index of the part in its record, batches) of the rows in (after, upto] that were not written ahead."""
        for lsn, payload in self._log.records(after, upto):
            for index, part in enumerate(decode_record(payload, self._stream)):
                if isinstance(part, StreamRows) and part.batches:
                    yield lsn, index, part.batches

    def spooled(self, reference: SpoolReference) -> tuple[pa.RecordBatch, ...]:
        """The batch that was written ahead."""
        return tuple(decode_batches(self._log.read_data(reference)))
