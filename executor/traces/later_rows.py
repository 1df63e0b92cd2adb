"""The rows of an input from an LSN on: what a view has of a stream whose path also reads another stream of before."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from executor.traces.trace import InputTrace


class LaterRows:
    """An input trace without the rows up to an LSN."""

    def __init__(self, trace: InputTrace, since: int) -> None:
        self._trace = trace
        self._since = since

    @property
    def total_rows(self) -> int:
        """Rows so far, those of before included."""
        return self._trace.total_rows

    def rows(self, after: int, upto: int) -> int:
        """How many rows the interval holds."""
        return self._trace.rows(max(after, self._since), max(upto, self._since))

    def delta(self, after: int, upto: int, places: bool = True) -> pa.Table:
        """The rows of the interval."""
        return self._trace.delta(max(after, self._since), max(upto, self._since), places)

    def cut(self, after: int, upto: int) -> int:
        """Where a job over the interval had better end."""
        return self._trace.cut(max(after, self._since), upto) if upto > self._since else upto

    def publish(self, lsn: int, part: Any) -> int:
        """Adds a part of a record to the trace."""
        return self._trace.publish(lsn, part)

    def release(self, upto: int) -> None:
        """No rows up to this LSN will be asked of the trace."""
        self._trace.release(upto)

    def check(self) -> None:
        """Raises what keeps rows from coming that are there."""
        self._trace.check()
