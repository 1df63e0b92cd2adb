"""A session's transactions: one that a block opens, that a query string or Sync spans, or of a single statement.

Owns: which of them a statement belongs to, what BEGIN, COMMIT, ROLLBACK and savepoints do and their errors. Knows
nothing of other statements; what a transaction has done is ``executor/transactions/transaction``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from catalog.values.errors import SqlError, failed_transaction
from executor.transactions.result import Result
from executor.transactions.transaction import Transaction
from planner.statements.statement import TransactionControl

#: Levels whose transactions see the database of one moment.
_FIXED: Final = ("repeatable read", "serializable")


class Block:
    """The open transaction of one session, if any."""

    def __init__(self, new: Callable[[bool], Transaction], commit: Callable[[Transaction], None]) -> None:
        self._new = new  # explicit or not
        self._commit = commit
        self.current: Transaction | None = None
        #: Statements until the implicit transaction's end are one transaction, unless a block is open or begins.
        self.is_implicit = False

    @property
    def status(self) -> str:
        """ReadyForQuery's transaction status: I idle, T in a block, E in a failed block."""
        if self.current is None or not self.current.explicit:
            return "I"
        return "E" if self.current.failed else "T"

    def start(self) -> Transaction:
        """The transaction of a statement that begins. Raises 25P02 where it has failed."""
        if self.current is None:
            self.current = self._new(False)
        if self.current.failed:
            raise failed_transaction()
        self.current.begun = self.current.running = True
        return self.current

    def finish(self) -> None:
        """A statement has ended: commits where it is the whole of its transaction."""
        if self.current is not None:
            self.current.running = False
        if self.current is not None and not self.current.explicit and not self.is_implicit:
            self.commit()

    def fail(self) -> None:
        """A statement, or something outside of all (a portal, the client's data), failed: no commit is possible."""
        if self.current is None:
            return
        self.current.running = False
        if self.current.explicit:
            self.current.failed = True
            if not self.current.savepoints:  # nothing of it can be saved: others need not wait
                self.current.rollback()
                self.current.locks.release_all()
        else:
            self.rollback()

    def commit(self) -> None:
        """Ends the transaction. Raises what the commit raises."""
        transaction, self.current = self.current, None
        if transaction is not None:
            try:
                self._commit(transaction)
            finally:
                transaction.locks.release_all()

    def rollback(self) -> None:
        """Ends the transaction with nothing of it done."""
        transaction, self.current = self.current, None
        if transaction is not None:
            try:
                transaction.rollback()
            finally:
                transaction.locks.release_all()

    @contextmanager
    def taking_savepoints(self) -> Iterator[None]:
        """Within, the implicit transaction takes savepoints, as one that BEGIN has begun."""
        if self.current is None:
            self.current = self._new(True)
        self.current.explicit = True
        try:
            yield
        finally:
            self.current.explicit = False
            if self.current.failed:
                self.rollback()

    def control(self, statement: TransactionControl) -> Result:
        """BEGIN, COMMIT, ROLLBACK and savepoints. Raises 25P01, 25P02, 3B001 and what a commit raises."""
        match statement.action:
            case "begin":
                return self._begin(statement)
            case "commit" | "rollback":
                return self._end(statement.action)
            case _:
                return self._savepoint(statement)

    def _begin(self, statement: TransactionControl) -> Result:
        if self.current is None:
            self.current = self._new(True)
        elif self.current.explicit:
            if self.current.failed:
                raise failed_transaction()
            notice = SqlError("25001", "there is already a transaction in progress")
            return Result(statement.tag, notices=(notice,))
        self.current.explicit = True
        self.current.repeatable = statement.isolation in _FIXED
        self.current.read_only = bool(statement.read_only)
        return Result(statement.tag)

    @property
    def has_begun(self) -> bool:
        """Whether a statement of the open block has seen the data."""
        return self.current is not None and self.current.begun

    @property
    def reads_committed(self) -> bool:
        """Whether a statement that begins now sees what is committed, and nothing of its transaction's own."""
        transaction = self.current
        if transaction is None:
            return True
        has_own = transaction.write is not None or transaction.catalog is not None or transaction.failed
        return not has_own and not transaction.repeatable

    def begins(self) -> None:
        """A statement that needs no transaction reads in the open one."""
        if self.current is not None:
            self.current.begun = True

    def isolate(self, level: str) -> None:
        """SET TRANSACTION ISOLATION LEVEL. Raises 25001 where it comes too late."""
        transaction, repeatable = self.current, level in _FIXED
        if transaction is None or repeatable == transaction.repeatable:
            return
        if transaction.begun:
            raise SqlError("25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query")
        if transaction.savepoints:
            raise SqlError("25001", "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction")
        transaction.repeatable = repeatable

    def _end(self, action: str) -> Result:
        transaction = self.current
        if transaction is None or not transaction.explicit:
            self._implicit_end(action)
            notice = SqlError("25P01", "there is no transaction in progress")
            return Result(action.upper(), notices=(notice,))
        if action == "commit" and not transaction.failed:
            self.commit()
            return Result("COMMIT")
        self.rollback()
        return Result("ROLLBACK")

    def _implicit_end(self, action: str) -> None:
        if action == "commit":
            self.commit()
        else:
            self.rollback()

    def _savepoint(self, statement: TransactionControl) -> Result:
        transaction, name = self.current, statement.name or ""
        tag = {"savepoint": "SAVEPOINT", "release": "RELEASE", "rollback_to": "ROLLBACK"}[statement.action]
        if transaction is None or not transaction.explicit:
            words = {"savepoint": "SAVEPOINT", "release": "RELEASE SAVEPOINT", "rollback_to": "ROLLBACK TO SAVEPOINT"}
            raise SqlError("25P01", f"{words[statement.action]} can only be used in transaction blocks")
        if statement.action == "rollback_to":
            transaction.rollback_to(name)
            return Result(tag)
        if transaction.failed:
            raise failed_transaction()
        try:
            (transaction.set_savepoint if statement.action == "savepoint" else transaction.release)(name)
        except SqlError:
            transaction.failed = True
            raise
        return Result(tag)
