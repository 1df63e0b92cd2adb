"""The transaction of a session: implicit ones of a batch or a text, blocks, and single statements outside of both.

Owns: whether a transaction is implicit; BEGIN and the like, with the settings that follow them; the rows that wait for
a batch's end; and what is refused in a failed or read-only transaction. ``db.status`` is I, T or E. Statements outside
a block commit alone, or together until Sync (extended protocol) or the end of the string (simple protocol), which is
``implicit``. What a transaction does to the data is the executor's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from catalog.values.errors import SqlError, failed_transaction
from planner.statements.statement import Statement, TransactionControl
from server.session.activity import now
from server.session.transaction.members import Members
from server.session.transaction.pending_rows import PendingRows
from server.session.transaction.read_only import check_read_only

if TYPE_CHECKING:
    from executor.sql.session import DatabaseSession
    from executor.transactions.result import Result
    from server.notify.channels import Listening
    from server.session.activity import Activity
    from server.session.cancellable_work import CancellableWork
    from server.session.portals import Portals
    from server.settings.settings import Settings

_ENDS: Final = ("commit", "rollback", "rollback_to")


class Transaction:
    """The transaction of one session. Methods but coroutines may be called in the session's worker thread."""

    def __init__(
        self,
        db: DatabaseSession,
        settings: Settings,
        activity: Activity,
        work: CancellableWork,
        listening: Listening,
        portals: Portals,
        members: Members,
    ) -> None:
        self._db = db
        self._settings = settings
        self._activity = activity
        self._work = work
        self._listening = listening
        self._portals = portals
        self._members = members
        self.pending = PendingRows()
        #: Whether what follows is one transaction, up to the end of the batch or of the text.
        self.implicit = False

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open, so that the next statement sees what is committed."""
        return not self.implicit and not self.pending.inserts and self._db.status == "I"

    @property
    def is_single(self) -> bool:
        """Whether a statement that runs now is a transaction of its own, or the next one would be."""
        return not self.implicit and self._db.status == "I"

    @property
    def reads_committed(self) -> bool:
        """Whether the next statement sees what is committed, and nothing of a transaction's own."""
        return not self.pending.inserts and self._db.reads_committed

    # -- statements --------------------------------------------------------------------------------------------

    def check(self, statement: Statement) -> None:
        """Whether the transaction allows the statement. Raises 25P02 and 25006."""
        if self._db.status == "E" and not is_end(statement):
            raise failed_transaction()
        if self._settings.read_only:
            check_read_only(statement)

    def begin_statement(self) -> None:
        """A statement has begun, as ``activity`` says; outside of a transaction it is one."""
        if self.implicit:
            self._members.begin()
        elif self._db.status == "I":
            self._activity.begin_transaction(self._activity.statement_time)

    def end_statement(self) -> None:
        """A statement has ended well, which may have been all of a transaction."""
        if self.is_single:
            self._members.commit()

    # -- implicit transactions ---------------------------------------------------------------------------------

    def begin_implicit(self) -> None:
        """What follows is one transaction until ``end_implicit``, unless a block is open."""
        if not self.implicit:
            if self._db.status == "I":
                self._activity.begin_transaction(now())
                self._members.begin()
            self.implicit = True
            self._db.begin_implicit()

    async def end_implicit(self) -> None:
        """Commits an implicit transaction. Raises what the commit raises."""
        if not self.implicit:
            return
        await self._work.run(self._listening.committing, self._commit_implicit)
        self.implicit = False
        if self._db.status == "I":
            self._portals.clear()

    def _commit_implicit(self) -> None:
        self._db.commit_implicit()
        if self._db.status == "I":
            self._members.commit()

    # -- failures ----------------------------------------------------------------------------------------------

    def fail(self) -> None:
        """A statement has failed: so has its block, and one outside of all transactions is undone."""
        if self._db.status == "T":
            self._db.fail()
        self._undo_members()

    async def fail_implicit(self) -> None:
        """A statement of the implicit transaction has failed: the transaction ends, and all of it is undone."""
        self.implicit = False
        await self._work.run(self._roll_back_implicit)
        self._undo_members()

    def _roll_back_implicit(self) -> None:
        self._db.fail()
        self._db.commit_implicit()

    def _undo_members(self) -> None:
        if self._db.status == "I":
            self._members.rollback()
            self._portals.clear()

    # -- blocks ------------------------------------------------------------------------------------------------

    def control(self, statement: TransactionControl) -> Result:
        """BEGIN and the like, with the settings that follow them. In a worker thread."""
        if statement.chain:
            return self._chained(statement)
        before = self._db.status
        if statement.action == "begin":
            isolation = statement.isolation or self._settings.value("default_transaction_isolation")
            result = self._db.execute(replace(statement, isolation=isolation, read_only=False))  # check() sees to it
            if before == "I":
                self._begun(statement)
            return result
        if statement.action == "commit":
            return self._listening.committing(partial(self._end, statement))
        if statement.action == "rollback":
            return self._end(statement)
        result = self._db.execute(statement)
        self._members.at_savepoint(statement.action, statement.name or "")
        return result

    def _chained(self, statement: TransactionControl) -> Result:
        """The block's end, and the beginning of another of the same isolation and access. Raises 25P01."""
        if self._db.status == "I":
            raise SqlError("25P01", f"{statement.action.upper()} AND CHAIN can only be used in transaction blocks")
        following = TransactionControl(
            "begin",
            isolation=self._settings.value("transaction_isolation"),
            read_only=self._settings.is_on("transaction_read_only"),
            deferrable=self._settings.is_on("transaction_deferrable"),
        )
        result = self.control(replace(statement, chain=False))
        self._activity.begin_transaction(self._activity.statement_time)
        self.control(following)
        return result

    def _begun(self, statement: TransactionControl) -> None:
        self._members.begin()
        if statement.isolation is not None:
            self._settings.set("transaction_isolation", statement.isolation, local=True)
        for name in ("read_only", "deferrable"):
            flag = getattr(statement, name)
            if flag is not None:
                self._settings.set(f"transaction_{name}", "on" if flag else "off", local=True)

    def _end(self, statement: TransactionControl) -> Result:
        result = self._db.execute(statement)
        self.ended(result.tag)
        return result

    def ended(self, tag: str) -> None:
        """A block has ended, as its tag says."""
        (self._members.commit if tag == "COMMIT" else self._members.rollback)()
        self._portals.clear()

    @contextlib.contextmanager
    def as_one(self) -> Iterator[None]:
        """Several statements that are one to the client (DO, CREATE SCHEMA): all of them are done, or none.

        Within, what runs belongs to the open transaction, which takes savepoints, else to one that ends with it.
        """
        if self._db.status != "I":
            yield
        elif self.implicit:
            with self._db.taking_savepoints():
                yield
        else:
            self.control(TransactionControl("begin"))
            try:
                yield
            except BaseException:
                self.control(TransactionControl("rollback"))
                raise
            self.control(TransactionControl("commit"))


def is_end(statement: Statement) -> bool:
    """Whether a statement ends a failed transaction, or returns to before its failure."""
    return isinstance(statement, TransactionControl) and statement.action in _ENDS
