"""What a trace answers: a relation's rows, and how they change, by the LSNs of the log.

    snapshot(lsn)          all rows at an LSN
    delta(after, upto)     what has changed over (after, upto]: the rows that came to a stream, the runs of a state, the
                           rows of a view's result or a table with how many more of them there are
    lookup(keys, lsn)      the rows with some keys
    bookmark(lsn)          a reader of the changes behind an LSN
    release(upto)          nothing up to this LSN will be asked for any more
    append, compact        of traces that a program owns: takes in a run, and merges runs

``InputTrace`` is the part that the inputs of a view's paths have, streams and followed folders. A state is
``executor.traces.state``, a view's result ``executor.subscriptions.view_feed``; both keep their runs for readers in
``executor.traces.kept_runs``. The changes of a table are ``executor.tables.change_trace``. A trace knows nothing of
schedules.
"""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa


class InputTrace(Protocol):
    """The changes of a relation that views read, by LSN interval (after exclusive, upto inclusive)."""

    @property
    def total_rows(self) -> int:
        """Rows so far."""
        ...

    def rows(self, after: int, upto: int) -> int:
        """How many rows the interval holds; for files at least 1 when it holds any."""
        ...

    def delta(self, after: int, upto: int, places: bool = True) -> pa.Table:
        """The rows, with ``__lsn`` and ``__ordinal``, which may be null where the caller does not want ``places``.
        Raises 72000 for rows that were released."""
        ...

    def cut(self, after: int, upto: int) -> int:
        """An LSN above ``after`` where a job over (after, upto] had better end, so that memory holds its rows."""
        ...

    def publish(self, lsn: int, part: Any) -> int:
        """Adds a part of a record, in LSN order; how many rows it has, as far as known."""
        ...

    def release(self, upto: int) -> None:
        """No rows up to this LSN will be asked for any more."""
        ...

    def check(self) -> None:
        """Raises what keeps rows from coming that are there."""
        ...
