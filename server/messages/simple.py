"""The simple query protocol: all statements of one Query message, in one transaction when they are several.

Owns: the answers to Query. Three paths: a text whose answer is known and still holds is answered at once; of a text
whose shape is known, rows for a stream go to the appender and a key to the index of a view, also without a thread;
everything else runs in a worker, one hop for the common single statement. https://www.postgresql.org/docs/15/protocol-flow.html#id-1.10.6.7.4
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from catalog.values.errors import SqlError
from executor.rows.point_reads import PointReader
from executor.traces.index import Row
from executor.transactions.result import Result
from planner.algebra.nodes import Value
from planner.parse.parser import Raw, first_parameter
from planner.statements.statement import CopyIn, CopyOut, Fetch, Insert
from planner.statements.statement import Query as Select
from protocol import encoder
from protocol.messages import Query
from server.fastpath import transaction_blocks as blocks
from server.fastpath.row_inserts import append, change, change_tag, is_plain, is_plain_change, settle
from server.operations.statement_log import log_text, logs
from server.plans.answer_cache import Answered, Stamp
from server.plans.planning import Plan, Shared
from server.plans.point_reads import Found
from server.plans.rows import describe_rows, literal_values
from server.query.copy import copying
from server.query.execution import run
from server.session.result_rows import Cursor

if TYPE_CHECKING:
    from server.session.cursors import Cursors
    from server.session.session import Session
    from server.settings.settings import Settings

_SHAREABLE: Final = re.compile(r"\s*(insert|select|update|delete)\b", re.IGNORECASE)
_CONTROL: Final = re.compile(r"\s*(begin|start|commit|end|rollback|abort|savepoint|release)\b", re.IGNORECASE)
_COPY: Final = re.compile(r"\s*copy\b", re.IGNORECASE)
#: A text longer than this is planned in a worker.
_SHORT: Final = 2048


class Begun(Struct):
    """A statement that ran, and the first portion of its answer; of a point read its row."""

    plan: Plan
    result: Result | None  # None: COPY with the client, or a point read
    cursor: Cursor | None = None
    data: bytes = b""
    rows: int = 0
    stamp: Stamp | None = None
    point: Found | None = None
    formats: tuple[int, ...] = ()


def query(session: Session, message: Query) -> Awaitable[None] | None:
    """Query."""
    session.portals.pop("", None)  # it lives up to the next Query, even in a block
    text = message.text
    if logs(session.applied.logs, above="ddl"):
        return _run(session, text)
    if len(text) < _SHORT:
        known = _known_of_block(session, text)
        if known is not None and blocks.answered(session, *known, partial(_ready, session), None):
            return None
        if known is not None and blocks.may_wait(session, known[0]):
            return _run_in_turn(session, text, *known)
    if session.transaction.is_idle:
        answer = session.server.results.get((text, session.settings.key), session.db.database)
        if answer is not None:
            session.express.note(Answered(None, answer.data, answer.stamp))
            session.connection.send(answer.data)
            session.ready()
            return None
        if len(text) < _SHORT and _SHAREABLE.match(text):
            shared = session.server.plans.shared(text, session.surroundings, make=False)
            if shared is not None:
                return _run_shared(session, text, shared)
    return _run(session, text)


def _known_of_block(session: Session, text: str) -> tuple[Plan, tuple[Value, ...]] | None:
    """The plan and the values of a statement that is of a block, or begins or ends it, if it needs no parsing."""
    if _CONTROL.match(text):
        raws = session.server.plans.parsed(text) or ()
        plan = session.server.plans.planned(raws[0], (), session.surroundings) if len(raws) == 1 else None
        return None if plan is None else (plan, ())
    if session.transaction.is_idle or not _SHAREABLE.match(text):
        return None
    shared = session.server.plans.shared(text, session.surroundings, make=False)
    try:
        return None if shared is None else (shared.plan, _values(session.settings, shared))
    except SqlError:  # again with the whole text, which gives the position
        return None


async def _run_in_turn(session: Session, text: str, plan: Plan, values: tuple[Value, ...]) -> None:
    if not await blocks.answered_in_turn(session, plan, values, partial(_ready, session), None):
        await _run(session, text)


def _ready(session: Session, data: bytes) -> None:
    """The whole answer of a Query."""
    session.connection.send(data)
    session.ready()


def _run_shared(session: Session, text: str, shared: Shared) -> Awaitable[None] | None:
    """Runs a text whose shape is known, which needs no parsing and often no thread."""
    plan = shared.plan
    try:
        values = _values(session.settings, shared)
    except SqlError:
        return _run(session, text)  # again with the whole text, which gives the position
    if isinstance(plan.statement, Insert):
        tag = f"INSERT 0 {len(plan.statement.literals or ())}"
        answer = partial(_appended, session, tag)
        if is_plain(session, plan, plan.statement) and append(session, plan.statement, [values], answer):
            return None
    if is_plain_change(session, plan):
        try:
            if change(session, plan, values, partial(_appended, session, change_tag(plan))):
                return None
        except SqlError:  # the ordinary way says what is wrong
            pass
    else:
        reader = session.server.points.known(plan)
        row = None if reader is None else reader.peek(values)
        if reader is not None and row is not None:
            _ready(session, _point_answer(session, reader, row))
            return None
    return _run_plan(session, text, plan, values)


def _point_answer(session: Session, reader: PointReader, row: Row) -> bytes:
    """The whole answer of a point read."""
    rows = session.server.points.rows(reader, (), session.settings.style)
    return session.server.descriptions.of(reader.outputs, ()) + rows.answer(row)


def _appended(session: Session, tag: str, error: SqlError | None) -> None:
    if error is not None:
        session.failed(error)
        return
    _ready(session, encoder.command_complete(tag))


async def _run_plan(session: Session, text: str, plan: Plan, values: tuple[Value, ...]) -> None:
    """Runs a statement that is planned, outside a transaction."""
    with session.work.timed():
        begun = await session.work.run(_start, session, plan, values, text)
        await _answer(session, begun, text)
    session.ready()


async def _run(session: Session, text: str) -> None:
    if session.transaction.pending.inserts:
        await settle(session)
    raws = session.server.plans.parsed(text)
    if raws is None:
        with session.work.timed():
            raws = await session.work.run(session.server.plans.parse, text)
    if not raws:
        session.connection.send(encoder.EMPTY_QUERY_RESPONSE)
        session.ready()
        return
    log_text(session, text, raws)
    whole = text if len(raws) == 1 else None
    if whole is None:
        session.transaction.begin_implicit()
    await _continue(session, iter(raws), whole)


async def _continue(session: Session, rest: Iterator[Raw], whole: str | None) -> None:
    """Runs the statements that are left; COPY FROM STDIN goes on from here when its data has come."""
    for raw in rest:
        session.work.end_cancelled()  # what the statement before did not hear
        with session.work.timed():
            begun = _known_copy(session, raw, whole)
            if begun is None:
                begun = await session.work.run(_begin, session, raw, whole)
            statement = begun.plan.statement
            if begun.result is None and isinstance(statement, CopyIn):
                then = partial(_continue, session, rest, whole)
                await copying.begin(session, begun.plan, then)
                return
            if begun.result is None and isinstance(statement, CopyOut):
                await copying.send_out(session, begun.plan)
                continue
            await _answer(session, begun, whole)
    await session.transaction.end_implicit()
    session.ready()


def _known_copy(session: Session, raw: Raw, whole: str | None) -> Begun | None:
    """COPY with the client that needs no worker to be planned. Raises what forbids it."""
    if whole is None or not _COPY.match(whole):
        return None
    plan = session.server.plans.planned(raw, (), session.surroundings)
    if plan is None or not copying.is_copy(plan):
        return None
    session.transaction.check(plan.statement)
    return Begun(plan, None)


def _begin(session: Session, raw: Raw, whole: str | None) -> Begun:
    """Plans and runs a statement up to its first portion of rows. In a worker thread."""
    plan, values = _plan(session, raw, whole)
    if copying.is_copy(plan):
        session.transaction.check(plan.statement)
        return Begun(plan, None)
    return _start(session, plan, values, whole)


def _start(session: Session, plan: Plan, values: tuple[Value, ...], whole: str | None) -> Begun:
    """Runs a statement up to its first portion of rows. In a worker thread."""
    stamp = None
    if plan.repeatable:
        found = session.server.points.read(session.db, plan, values)
        if found is not None:
            return Begun(plan, None, point=found)
    if whole is not None and plan.repeatable and session.transaction.is_idle:
        stamp = Stamp(plan.catalog, plan.reads, session.db.database.core.version_of(plan.reads))
    result = run(session, plan, values)
    formats = _formats(session.cursors, plan)
    cursor = Cursor(result, formats, session.settings.style, session.names)
    data, rows = cursor.take()
    return Begun(plan, result, cursor, data, rows, stamp, formats=formats)


def _formats(cursors: Cursors, plan: Plan) -> tuple[int, ...]:
    """Text, but for the rows of a BINARY cursor."""
    if not isinstance(plan.statement, Fetch):
        return ()
    cursor = cursors.by_name.get(plan.statement.name)
    return (int(cursor is not None and cursor.binary),)


def _plan(session: Session, raw: Raw, whole: str | None) -> tuple[Plan, tuple[Value, ...]]:
    plans, around = session.server.plans, session.surroundings
    known = plans.planned(raw, (), around)
    if known is not None and not known.types:
        return known, ()
    if whole is not None and session.db.status != "E" and _SHAREABLE.match(whole):
        shared = plans.shared(whole, around, make=True)
        if shared is not None:
            try:
                return shared.plan, _values(session.settings, shared)
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


def _values(settings: Settings, shared: Shared) -> tuple[Value, ...]:
    return literal_values(shared.literals, shared.plan.given, settings.style)


def _head(session: Session, begun: Begun, result: Result) -> bytes:
    """RowDescription; a query's own is kept."""
    if isinstance(begun.plan.statement, Select):
        return session.server.descriptions.of(result.outputs, ())
    return describe_rows(result.outputs, begun.formats)


async def _answer(session: Session, begun: Begun, whole: str | None) -> None:
    """Sends what a statement gave, the rest of its rows included."""
    if begun.point is not None:
        session.connection.send(_point_answer(session, *begun.point))
        return
    result, cursor, connection = begun.result, begun.cursor, session.connection
    assert result is not None
    assert cursor is not None
    if result.notices:
        session.reports.send_notices(result.notices)
    head = _head(session, begun, result) if cursor.returns_rows else b""
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
        data, count = await session.work.portion(cursor.take)
        rows += count
        connection.send(data)
    connection.send(encoder.command_complete(cursor.tag(rows)))
