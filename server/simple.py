"""The simple query protocol: all statements of one Query message, in one transaction when they are several.

Owns: the answers to Query. Three paths: a text whose answer is known and still holds is answered at once; a single-row
INSERT into a stream whose shape is known goes to the appender, also without a thread; everything else runs in a worker,
one hop for the common single statement. https://www.postgresql.org/docs/15/protocol-flow.html#id-1.10.6.7.4
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from catalog.errors import SqlError
from executor.session import Result
from planner.expression import Value
from planner.parse import Raw, first_parameter
from planner.statements import CopyIn, CopyOut, Insert
from protocol import encoder
from protocol.messages import Query
from server import copying
from server.appending import append, is_plain, settle
from server.caches import Stamp
from server.execution import Cursor, run
from server.planning import Plan, Shared
from server.rows import describe_rows, literal_values

if TYPE_CHECKING:
    from server.session import Session

_INSERT: Final = re.compile(r"\s*insert\b", re.IGNORECASE)
_SHAREABLE: Final = re.compile(r"\s*(insert|select|update|delete)\b", re.IGNORECASE)
#: An INSERT text longer than this is planned in a worker.
_SHORT: Final = 2048


@dataclass(slots=True)
class Begun:
    """A statement that ran, and the first portion of its answer."""

    plan: Plan
    result: Result | None  # None: COPY with the client
    cursor: Cursor | None = None
    data: bytes = b""
    rows: int = 0
    stamp: Stamp | None = None


def query(session: Session, message: Query) -> Awaitable[None] | None:
    """Query."""
    text = message.text
    if session.is_idle:
        data = session.server.results.get((text, session.settings.key), session.database)
        if data is not None:
            session.connection.send(data)
            session.ready()
            return None
        if len(text) < _SHORT and _INSERT.match(text) and _append(session, text):
            return None
    return _run(session, text)


def _append(session: Session, text: str) -> bool:
    """Hands the rows of an INSERT into a stream to the appender; False when it cannot go that way."""
    shared = session.server.plans.shared(text, session.surroundings, make=False)
    if shared is None:
        return False
    insert = shared.plan.statement
    if not isinstance(insert, Insert) or not is_plain(session, shared.plan, insert):
        return False
    try:
        values = literal_values(shared.literals, shared.plan.types, session.settings.value("TimeZone"))
    except SqlError:
        return False  # again with the whole text, which gives the position
    return append(session, insert, [values], partial(_appended, session, f"INSERT 0 {len(insert.literals or ())}"))


def _appended(session: Session, tag: str, error: SqlError | None) -> None:
    if error is not None:
        session.failed(error)
        return
    session.connection.send(encoder.command_complete(tag))
    session.ready()


async def _run(session: Session, text: str) -> None:
    if session.pending:
        await settle(session)
    raws = session.server.plans.parsed(text)
    if raws is None:
        raws = await session.work(session.server.plans.parse, text)
    if not raws:
        session.connection.send(encoder.EMPTY_QUERY_RESPONSE)
        session.ready()
        return
    whole = text if len(raws) == 1 else None
    if whole is None:
        session.begin_implicit()
    await _continue(session, iter(raws), whole)


async def _continue(session: Session, rest: Iterator[Raw], whole: str | None) -> None:
    """Runs the statements that are left; COPY FROM STDIN goes on from here when its data has come."""
    for raw in rest:
        with session.timed():
            begun = await session.work(_begin, session, raw, whole)
            statement = begun.plan.statement
            if begun.result is None and isinstance(statement, CopyIn):
                await copying.begin(session, statement, partial(_continue, session, rest, whole))
                return
            if begun.result is None and isinstance(statement, CopyOut):
                await copying.send_out(session, begun.plan)
                continue
            await _answer(session, begun, whole)
    await session.end_implicit()
    session.ready()


def _begin(session: Session, raw: Raw, whole: str | None) -> Begun:
    """Plans and runs a statement up to its first portion of rows. In a worker thread."""
    plan, values = _plan(session, raw, whole)
    if copying.is_with_client(plan):
        session.check(plan.statement)
        return Begun(plan, None)
    stamp = None
    if whole is not None and plan.repeatable and session.is_idle:
        stamp = Stamp(plan.catalog, plan.reads, session.database.version_of(plan.reads))
    result = run(session, plan, values)
    cursor = Cursor(result, (), session.settings.value("TimeZone"))
    data, rows = cursor.take()
    return Begun(plan, result, cursor, data, rows, stamp)


def _plan(session: Session, raw: Raw, whole: str | None) -> tuple[Plan, tuple[Value, ...]]:
    plans, around = session.server.plans, session.surroundings
    known = plans.planned(raw, (), around)
    if known is not None and not known.types:
        return known, ()
    if whole is not None and session.db.status != "E" and _SHAREABLE.match(whole):
        shared = plans.shared(whole, around, make=True)
        if shared is not None:
            try:
                return shared.plan, _values(session, shared)
            except SqlError:
                return plans.plan(raw, (), around), ()
    plan = session.plan_allowed(raw, (), around)
    if plan.types:
        raise _no_parameter(raw)
    return plan, ()


def _no_parameter(raw: Raw) -> SqlError:
    """A Query message brings no values for parameters."""
    word, position = first_parameter(raw)
    return SqlError("42P02", f"there is no parameter {word}", position=position)


def _values(session: Session, shared: Shared) -> tuple[Value, ...]:
    return literal_values(shared.literals, shared.plan.types, session.settings.value("TimeZone"))


async def _answer(session: Session, begun: Begun, whole: str | None) -> None:
    """Sends what a statement gave, the rest of its rows included."""
    result, cursor, connection = begun.result, begun.cursor, session.connection
    assert result is not None
    assert cursor is not None
    if result.notices:
        session.send_notices(result.notices)
    head = describe_rows(result.outputs, ()) if cursor.returns_rows else b""
    if cursor.finished:
        data = head + begun.data + encoder.command_complete(cursor.tag(begun.rows))
        if begun.stamp is not None and whole is not None and not result.notices:
            session.server.results.put((whole, session.settings.key), data, begun.stamp)
        connection.send(data)
        return
    connection.send(head + begun.data)
    rows = begun.rows
    while not cursor.finished:
        await connection.drain()
        data, count = await session.work(cursor.take)
        rows += count
        connection.send(data)
    connection.send(encoder.command_complete(cursor.tag(rows)))
