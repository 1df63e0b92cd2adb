"""The rows of one statement's result that are still to be sent to the client."""

from __future__ import annotations

import datetime
from typing import Final

from executor.transactions.result import Result
from server.plans.rows import Names, encode_rows, is_named, shown_by_name
from server.session import cursors
from server.session.forward_rows import Forward

#: Bytes after which a portion goes out.
PORTION_BYTES: Final = 1 << 20


class Cursor:
    """The rows of a result that are still to be sent."""

    def __init__(self, result: Result, formats: tuple[int, ...], time_zone: str, names: Names | None = None) -> None:
        self.outputs = result.outputs
        self.returns_rows = result.batches is not None
        self._tag = result.tag
        self._types = tuple(item.type for item in result.outputs)
        self._formats = formats
        self._time_zone = time_zone
        #: Says what oids that are shown by name are called.
        self._names = names if any(map(is_named, self._types)) else None
        self._rows: Forward | cursors.SqlCursor = Forward(result.batches or ())
        self._live = result.live
        self._taken = 0
        self.finished = not self.returns_rows

    def take(self, limit: int = 0) -> tuple[bytes, int]:
        """DataRows of the next rows, at most ``limit`` (0: all) and about PORTION_BYTES, and how many they are; of rows
        that come as time goes on, those that have come."""
        data: list[bytes] = []
        size = count = 0
        while size < PORTION_BYTES and (not limit or count < limit):
            batch = self._rows.next(limit - count if limit else 0)
            if batch is None:
                self.finished = True
                break
            if self._names is not None:
                batch = shown_by_name(batch, self._types, self._formats, self._names)
            data.append(encode_rows(batch, self._types, self._formats, self._time_zone))
            size += len(data[-1])
            count += batch.num_rows
            if self._live:
                break
        self._taken += count
        return (data[0] if len(data) == 1 else b"".join(data)), count

    def tag(self, count: int) -> str:
        """CommandComplete's tag after ``count`` rows."""
        return f"{self._tag} {count}" if self._tag in ("SELECT", "COPY", "FETCH") and self.returns_rows else self._tag

    def stepping(self, name: str, text: str, now: datetime.datetime, most: int) -> cursors.SqlCursor:
        """The rest of the rows for FETCH and MOVE, of which ``take`` goes on to take, too."""
        if isinstance(self._rows, Forward):
            rest, passed, live = self._rows, self._taken, self._live
            self._rows = cursors.SqlCursor.over(name, text, self.outputs, now, rest, passed, live, most)
        self.finished = False
        return self._rows

    @classmethod
    def declared(cls, cursor: cursors.SqlCursor, time_zone: str, names: Names) -> Cursor:
        """The rows of a DECLARE from where it is."""
        found = cls(Result("SELECT", cursor.outputs, ()), (), time_zone, names)
        found._rows, found._live = cursor, cursor.live is not None
        return found
