"""What one session does, and since when: the session's part of pg_stat_activity.

Owns: the times of the transaction and of the statement, the statement's text, and the transaction's number
(pgstat_report_activity).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator


class Activity:
    """The times and the statement of one session."""

    __slots__ = ("_number", "_numbers", "query", "statement_time", "transaction_time")

    def __init__(self, started: datetime.datetime, numbers: Iterator[int]) -> None:
        """``numbers`` are those that no transaction of the server has yet."""
        self.transaction_time = self.statement_time = started
        #: The last statement that was not answered by its bytes.
        self.query = ""
        self._numbers = numbers
        self._number: int | None = None

    def begin_statement(self, text: str) -> None:
        """A statement begins."""
        self.query = text
        self.statement_time = now()

    def begin_transaction(self, time: datetime.datetime) -> None:
        """A transaction has begun."""
        self.transaction_time = time
        self._number = None

    def transaction_number(self) -> int:
        """A number that no other transaction has, taken when a transaction first asks for it."""
        if self._number is None:
            self._number = next(self._numbers)
        return self._number


def now() -> datetime.datetime:
    """The time."""
    return datetime.datetime.now(datetime.UTC)
