"""Statements of a transaction block that need no thread: BEGIN, rows changed and read by key, savepoints, the end.

Owns: which statements these are, and their answers; both protocols ask here before they call a worker. A block that
does no more than this, as an application's usually does, is one visit of the disk and no switch of threads. Single
statements outside of blocks are ``server.appending``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from catalog.errors import SqlError
from planner.expression import Value
from planner.functions import SESSION_VALUES
from planner.statements import Delete, Insert, Query, TransactionControl, Update
from protocol.encoder import command_complete
from server.appending import change_tag, hold
from server.execution import run
from server.functions import evaluate
from server.planning import Plan
from server.rows import described

if TYPE_CHECKING:
    from server.session import Session

#: Takes rows and CommandComplete, once, before this returns or on the loop's thread later.
Answer = Callable[[bytes], None]

#: Seconds that a statement waits for the tables without a thread, which hears of a cancel as often.
_SOON: Final = 0.01
_AT_ONCE: Final = ("begin", "savepoint", "release")
_ENDS: Final = ("commit", "rollback")


def answered(
    session: Session, plan: Plan, values: tuple[Value, ...], answer: Answer, formats: tuple[int, ...] | None
) -> bool:
    """Whether a statement was run here, or its commit has begun, so that ``answer`` has or gets what there is to say.

    ``formats``: those of the rows; None: text, with RowDescription. Raises SqlError, as running it would.
    """
    statement = plan.statement
    if session.implicit or session.pending or not plan.calls <= SESSION_VALUES:
        return False
    if isinstance(statement, TransactionControl):
        return _controlled(session, plan, statement, answer)
    if session.db.status != "T" or plan.catalog is not session.database.catalog:
        return False
    if isinstance(statement, Query) and not plan.calls:
        return _read(session, plan, values, answer, formats)
    if isinstance(statement, Insert | Update | Delete) and statement.returning is None:
        return _changed(session, plan, values, answer)
    return False


def may_wait(session: Session, plan: Plan) -> bool:
    """Whether ``answered`` is to be tried again when those who write tables have ended."""
    statement = plan.statement
    return (
        isinstance(statement, Insert | Update | Delete)
        and session.db.status == "T"
        and plan.calls <= SESSION_VALUES
        and plan.catalog is session.database.catalog
        and not session.settings.read_only
        and session.db.at_once.awaits_turn(statement)
    )


async def answered_in_turn(
    session: Session, plan: Plan, values: tuple[Value, ...], answer: Answer, formats: tuple[int, ...] | None
) -> bool:
    """``answered`` as soon as it is this session's turn to write tables; False where that is not soon, so that a thread
    waits on. Raises 57014 where the statement was cancelled meanwhile."""
    loop, turns = session.server.loop, session.database.tables.turns
    until, first = loop.time() + _SOON, False
    with session.timed():
        while loop.time() < until:
            turn = loop.create_future()
            timer = loop.call_at(until, _decide, turn, False)
            turns.wait(partial(_decide, turn, True), first)
            session.db.awaits_writer = True
            try:
                first = await turn
            finally:
                session.db.awaits_writer = False
            timer.cancel()
            try:
                session.end_cancelled()
                if first and answered(session, plan, values, answer, formats):
                    return True
            except BaseException:
                turns.freed()  # it may be the next one's turn
                raise
            if turns.is_free:  # it is something else
                break
    turns.freed()
    return False


def _decide(turn: asyncio.Future[bool], come: bool) -> bool:
    """Whether it was not decided before."""
    if turn.done():
        return False
    turn.set_result(come)
    return True


def _controlled(session: Session, plan: Plan, statement: TransactionControl, answer: Answer) -> bool:
    action = statement.action
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
        session.notices.send(result.notices)
    answer(command_complete(result.tag))
    return True


def _committed(session: Session, answer: Answer, error: SqlError | None) -> None:
    if error is None:
        session.ended("COMMIT")
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
    head = described(session.server.descriptions, plan, reader.outputs, ()) if formats is None else b""
    answer(head + rows)
    return True


def _changed(session: Session, plan: Plan, values: tuple[Value, ...], answer: Answer) -> bool:
    statement = plan.statement
    assert isinstance(statement, Insert | Update | Delete)
    if session.settings.read_only:
        return False
    session.starts_statement(plan)
    if plan.calls:
        statement, values = evaluate(session, statement, values), ()
        assert isinstance(statement, Insert | Update | Delete)
    if not session.db.at_once.change_within(statement, values):
        return False
    answer(command_complete(change_tag(plan)))
    return True
