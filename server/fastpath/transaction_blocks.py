"""Statements of a transaction block that need no thread: BEGIN, rows changed and read by key, savepoints, the end.

Owns: which statements these are, and their answers; both protocols ask here before they call a worker. A block that
does no more than this, as an application's usually does, is one visit of the disk and no switch of threads. Single
statements outside of blocks are ``server.fastpath.row_inserts``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from catalog.values.errors import SqlError
from planner.algebra.functions import SESSION_VALUES
from planner.algebra.nodes import Value
from planner.statements.statement import Delete, Insert, Query, Statement, TransactionControl, Update
from protocol.encoder import command_complete
from server.fastpath.row_inserts import change_tag, hold
from server.plans.planning import Plan
from server.query.execution import run
from server.session.functions.evaluation import values_of

if TYPE_CHECKING:
    from server.session.session import Session

#: Takes rows and CommandComplete, once, before this returns or on the loop's thread later.
Answer = Callable[[bytes], None]

#: Seconds that a statement waits for a lock without a thread, which would cost two switches for every statement.
_SOON: Final = 1.0
#: Seconds between its looks at whether it was cancelled.
_LOOKS: Final = 0.02
_AT_ONCE: Final = ("begin", "savepoint", "release")
_ENDS: Final = ("commit", "rollback")


def answered(
    session: Session, plan: Plan, values: tuple[Value, ...], answer: Answer, formats: tuple[int, ...] | None
) -> bool:
    """Whether a statement was run here, or its commit has begun, so that ``answer`` has or gets what there is to say.

    ``formats``: those of the rows; None: text, with RowDescription. Raises SqlError, as running it would.
    """
    statement = plan.statement
    if session.transaction.implicit or session.transaction.pending.inserts or not plan.calls <= SESSION_VALUES:
        return False
    if isinstance(statement, TransactionControl):
        return _controlled(session, plan, statement, answer)
    if session.db.status != "T" or plan.catalog is not session.db.database.core.catalog:
        return False
    if isinstance(statement, Query) and not plan.calls:
        return _read(session, plan, values, answer, formats)
    if isinstance(statement, Insert | Update | Delete) and statement.returning is None:
        return _changed(session, plan, values, answer)
    return False


def may_wait(session: Session, plan: Plan) -> bool:
    """Whether ``answered`` is to be tried again when those end that hold the lock which it was refused."""
    statement = _steady(plan)
    return (
        isinstance(statement, Insert | Update | Delete)
        and session.db.status == "T"
        and plan.calls <= SESSION_VALUES
        and plan.catalog is session.db.database.core.catalog
        and not session.settings.read_only
        and session.db.at_once.awaits_turn(statement)
    )


async def answered_in_turn(
    session: Session, plan: Plan, values: tuple[Value, ...], answer: Answer, formats: tuple[int, ...] | None
) -> bool:
    """``answered`` as soon as the block has the lock that it was refused; False where that is not soon, so that a
    thread waits on. Raises 40P01, and 57014 where the statement was cancelled meanwhile."""
    loop = session.server.loop
    until = loop.time() + _SOON
    with session.work.timed():
        while loop.time() < until and may_wait(session, plan):
            if not await _is_granted(session, until):
                return False
            if answered(session, plan, values, answer, formats):
                return True
    return False


async def _is_granted(session: Session, until: float) -> bool:
    """Whether a block gets the lock that it was refused before a time of the loop's. Raises 40P01 and 57014."""
    loop, at_once = session.server.loop, session.db.at_once
    granted = loop.create_future()
    request = at_once.ask(lambda: loop.call_soon_threadsafe(_come, granted))
    try:
        while request is not None and not request.is_granted and loop.time() < until:
            await asyncio.wait((granted,), timeout=_LOOKS)
            session.work.end_cancelled()
    finally:
        has_it = at_once.answer(request)
        granted.cancel()
    return has_it


def _come(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_result(None)


def _steady(plan: Plan) -> Statement | None:
    """The statement, as one that is the same each time; None where there is none."""
    if plan.filled is not None:
        return plan.filled.statement
    return None if plan.calls else plan.statement


def _controlled(session: Session, plan: Plan, statement: TransactionControl, answer: Answer) -> bool:
    action = statement.action
    if statement.chain:
        return False
    if action == "commit" and not session.listening.is_silent:  # others commit in turn with it
        return False
    if action == "commit" and session.db.status == "T":
        session.starts_statement(plan)
        if hold(session, session.db.at_once.commit, partial(_committed, session, answer)):
            return True
    if action not in _AT_ONCE and not (action in _ENDS and session.db.at_once.ends(action)):
        return False
    result = run(session, plan, ())
    if result.notices:
        session.reports.send_notices(result.notices)
    answer(command_complete(result.tag))
    return True


def _committed(session: Session, answer: Answer, error: SqlError | None) -> None:
    if error is None:
        session.transaction.ended("COMMIT")
        answer(command_complete("COMMIT"))
    else:
        session.failed(error)


def _read(
    session: Session, plan: Plan, values: tuple[Value, ...], answer: Answer, formats: tuple[int, ...] | None
) -> bool:
    """A point read of a plan that was recognised as one."""
    reader = session.server.points.known(plan) if plan.repeatable else None
    row = None if reader is None else session.db.at_once.read_within(reader, values)
    if reader is None or row is None:
        return False
    session.starts_statement(plan)
    rows = session.server.points.rows(reader, formats or (), session.settings.style).answer(row)
    head = session.server.descriptions.of(reader.outputs, ()) if formats is None else b""
    answer(head + rows)
    return True


def _changed(session: Session, plan: Plan, values: tuple[Value, ...], answer: Answer) -> bool:
    statement = _steady(plan)
    if session.settings.read_only or not isinstance(statement, Insert | Update | Delete):
        return False
    session.starts_statement(plan)
    if plan.filled is not None:
        values += values_of(session, plan.filled)
    if not session.db.at_once.change_within(statement, values):
        return False
    answer(command_complete(change_tag(plan)))
    return True
