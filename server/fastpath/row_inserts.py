"""Rows of INSERTs into streams, and of tables by key, on their way past the worker threads.

Owns: handing rows to the executor's appender, which gathers those of all sessions into one log record, and holding the
connection until they are durable. Rows of a batch of the extended protocol wait for its Sync; ``settle`` turns them
into ordinary statements when something else follows them. A change of a table's row goes alone, to
``executor/key_access/row_changes``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from catalog.objects import Stream, Table
from catalog.values.errors import SqlError
from planner.algebra.nodes import Value
from planner.statements.statement import Delete, Insert, Update
from server.plans.planning import Plan

if TYPE_CHECKING:
    from server.net.connection import Connection
    from server.session.session import Session

#: What is to be done when rows are durable, or not.
Answer = Callable[[SqlError | None], None]


def is_plain(session: Session, plan: Plan, insert: Insert) -> bool:
    """Whether an INSERT is of literal rows or parameters into a stream, outside a transaction."""
    return (
        insert.literals is not None
        and isinstance(insert.target, Stream)
        and insert.returning is None
        and not plan.calls_session
        and session.transaction.is_single
        and not session.settings.read_only
    )


def is_plain_change(session: Session, plan: Plan) -> bool:
    """Whether a statement may change one row of a table by key, outside a transaction."""
    statement = plan.statement
    return (
        isinstance(statement, Update | Delete | Insert)
        and isinstance(statement.target, Table)
        and statement.returning is None
        and not plan.calls_session
        and plan.catalog is session.db.database.core.catalog
        and session.transaction.is_idle
        and not session.settings.read_only
    )


def change_tag(plan: Plan) -> str:
    """What a change of one row is answered with."""
    return "INSERT 0 1" if isinstance(plan.statement, Insert) else f"{type(plan.statement).__name__.upper()} 1"


def change(session: Session, plan: Plan, values: tuple[Value, ...], then: Answer) -> bool:
    """Holds the connection until a row is changed, then calls ``then`` as ``append`` does. False: not possible.

    ``is_plain_change`` says whether to try. Raises SqlError for a value that does not fit.
    """
    statement = plan.statement
    assert isinstance(statement, Update | Delete | Insert)
    return hold(session, lambda done: session.db.at_once.change(statement, values, done), then)


def append(session: Session, insert: Insert, rows: list[tuple[Value, ...]], then: Answer) -> bool:
    """Holds the connection until rows are durable, then calls ``then`` with the error, if any. False: not possible.

    ``is_plain`` says whether to try; ``rows`` are one tuple of the plan's parameters for each execution. ``then`` runs
    on the loop's thread and queues the answer, which leaves at once. Raises SqlError for a value that does not fit.
    """
    return hold(session, lambda done: session.db.at_once.append(insert, rows, done), then)


def hold(session: Session, take: Callable[[Answer], bool], then: Answer) -> bool:
    """Holds the connection while what ``take`` took is under way; then calls ``then``. False where it took nothing."""
    session.applied.apply()
    connection = session.connection
    connection.hold()
    try:
        taken = take(partial(_finished, connection, then))
    except BaseException:
        connection.release()
        raise
    if not taken:
        connection.release()
    return taken


def _finished(connection: Connection, then: Answer, error: SqlError | None) -> None:
    then(error)
    connection.resume()


async def settle(session: Session) -> None:
    """Turns rows kept for Sync into statements of the implicit transaction, since another statement follows them."""
    pending = session.transaction.pending.take()
    session.transaction.begin_implicit()

    def insert_all() -> None:
        for insert, rows in pending:
            for values in rows:
                session.db.execute(insert, values)

    await session.work.run(insert_all)
