"""Logs in tests: disks that refuse, count or block operations, records, and the content of a log."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa

from executor.commit.encoding.payloads import encode_record
from executor.commit.files import Files
from executor.commit.log import Log, Position
from executor.commit.records import CatalogChange
from executor.commit.recovery import replay
from tests.rig.beside import Beside

LONG = 30.0


class FullDisk(Files):
    """A disk that refuses new files, writes or syncs on demand; a refused write leaves half of its bytes behind."""

    def __init__(self) -> None:
        self.refuse_files = self.refuse_writes = self.refuse_syncs = 0

    def allocate(self, descriptor: int, size: int) -> None:
        if self.refuse_files:
            raise OSError(errno.ENOSPC, "full")
        super().allocate(descriptor, size)

    def write(self, descriptor: int, pieces: Sequence[bytes | memoryview], offset: int) -> None:
        if self.refuse_writes:
            self.refuse_writes -= 1
            whole = b"".join(pieces)
            os.pwrite(descriptor, whole[: len(whole) // 2], offset)
            raise OSError(errno.ENOSPC, "full")
        super().write(descriptor, pieces, offset)

    def sync(self, descriptor: int) -> None:
        if self.refuse_syncs:
            raise OSError(errno.EIO, "broken")
        super().sync(descriptor)


class CountingDisk(FullDisk):
    """Counts syncs, and holds them while told to."""

    def __init__(self) -> None:
        super().__init__()
        self.syncs = 0
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.synced = threading.Event()

    def sync(self, descriptor: int) -> None:
        assert self.may_sync.wait(LONG)
        self.syncs += 1
        super().sync(descriptor)
        self.synced.set()


def change(text: str) -> tuple[CatalogChange, ...]:
    return (CatalogChange(text),)


def append(log: Log, lsn: int, text: str) -> Position:
    (where,) = log.append([(encode_record(change(text)), lsn)])
    assert isinstance(where, Position)
    return where


def contents(log: Log, after: int = 0) -> list[tuple[int, str]]:
    found = []
    for lsn, record in replay(log, after):
        (part,) = record
        assert isinstance(part, CatalogChange)
        found.append((lsn, part.document))
    return found


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int64())], names=["a"])


@contextmanager
def holding(lock: AbstractContextManager[Any]) -> Iterator[None]:
    """Another thread holds a lock."""
    holds, ends = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holds.set()
            ends.wait(LONG)

    holder = Beside(hold)
    assert holds.wait(LONG)
    try:
        yield
    finally:
        ends.set()
        holder.result()
