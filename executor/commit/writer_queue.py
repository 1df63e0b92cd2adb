"""What waits for the sequencer's writer thread, and how much of it is taken at a time.

Owns: the kinds of items and the size of a group. Knows nothing of files or of what a commit means.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError
from executor.commit.chain import Chain
from executor.commit.encoding.payloads import Encoded
from executor.commit.records import TransactionRecord
from executor.commit.ticket import Ticket

_GROUP_BYTES: Final = 32 * 1024 * 1024


class Draft(Struct, frozen=True):
    """A transaction to commit that has no LSN yet. Of a ``chain`` it is refused with those before it."""

    encoded: Encoded
    record: TransactionRecord
    sync: bool
    chain: Chain | None = None

    def entry(self, ticket: Ticket) -> Entry:
        """With an LSN."""
        return Entry(self.encoded, self.record, self.sync, ticket, self.chain)


class Entry(Struct, frozen=True):
    """A transaction to commit."""

    encoded: Encoded
    record: TransactionRecord
    sync: bool
    ticket: Ticket
    chain: Chain | None = None

    @property
    def refused(self) -> SqlError | None:
        """Why it must not be written."""
        return None if self.chain is None else self.chain.error

    def refuse(self, error: SqlError) -> None:
        """It was not written."""
        if self.chain is not None:
            self.chain.fail(error)


class Flush(Struct, frozen=True):
    """A ticket that is done with everything before it."""

    ticket: Ticket


class Call(Struct, frozen=True):
    """A call before the next write."""

    callback: Callable[[], None]


class Stop:
    """Ends the writer thread."""


Item = Entry | Flush | Call | Stop


def take(waiting: queue.SimpleQueue[Item], timeout: float | None) -> list[Item]:
    """Waits for work, and makes its calls; returns what has gathered, or nothing at the timeout (seconds)."""
    try:
        item = waiting.get(timeout=timeout)
    except queue.Empty:
        return []
    group: list[Item] = []
    size = 0
    while True:
        group.append(item)
        if isinstance(item, Call):
            item.callback()
        elif isinstance(item, Entry):
            size += item.encoded.length
        if size >= _GROUP_BYTES:
            return group
        try:
            item = waiting.get_nowait()
        except queue.Empty:
            return group
