"""The extended query protocol: prepared statements, portals, and batches that end with Sync.

Owns: the answers to Parse, Bind, Describe, Execute, Close and Sync. A batch is one implicit transaction; one Execute
right before its Sync commits by itself. Rows that a batch inserts into streams are gathered and appended together at
Sync, without a thread; answers that are known already need none either.
https://www.postgresql.org/docs/15/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY
"""

from __future__ import annotations

from collections.abc import Awaitable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Final

from catalog.values.errors import SqlError, failed_transaction
from catalog.values.types import SqlType, by_oid, is_known
from executor.transactions.result import Result
from planner.algebra.nodes import Value
from planner.cancellation import leave
from planner.statements.statement import CopyIn, Delete, Insert, Output, TransactionControl, Update
from protocol import encoder
from protocol import messages as m
from protocol.values.registry import BINARY_FORMAT, TEXT_FORMAT
from server.fastpath import transaction_blocks as blocks
from server.fastpath.recognised_requests import answer_key
from server.fastpath.row_inserts import append, change, change_tag, is_plain, is_plain_change, settle
from server.operations.statement_log import log_execution, logs
from server.plans.answer_cache import Answered, Stamp
from server.plans.planning import Plan
from server.plans.point_reads import Found
from server.plans.rows import decode_parameters, describe_rows, with_shapes
from server.query.copy import copying
from server.query.execution import run
from server.session.cursors import SqlCursor
from server.session.portals import Portal
from server.session.prepared import Prepared, outputs_of
from server.session.result_rows import Cursor

if TYPE_CHECKING:
    from catalog.catalog import Catalog
    from server.session.session import Session

_UNKNOWN_OIDS = (0, 705)
_FORMATS: Final = frozenset((TEXT_FORMAT, BINARY_FORMAT))
#: Bytes of a Bind's values from which on a worker reads them.
_LARGE: Final = 16 << 10
#: That of a portal that has run and returns no rows.
_CHANGED: Final = Cursor(Result(""), (), "")


# -- Parse, Bind, Describe, Close ----------------------------------------------------------------------------------


def parse(session: Session, message: m.Parse) -> Awaitable[None] | None:
    """Parse."""
    session.statements.require_free(message.name)
    if not message.name:
        session.statements.pop("", None)  # also where the new one does not come to be
    declared = tuple(_declared(session.db.catalog, oid) for oid in message.oids)
    raws = session.server.plans.parsed(message.text)
    if raws is not None and len(raws) == 1 and session.db.status != "E":
        plan = session.server.plans.planned(raws[0], declared, session.surroundings)
        if plan is not None:
            session.statements[message.name] = Prepared(message.text, raws[0], declared, plan, oids=message.oids)
            session.connection.send(encoder.PARSE_COMPLETE)
            return None
    return _parse(session, message, declared)


async def _parse(session: Session, message: m.Parse, declared: tuple[SqlType | None, ...]) -> None:
    with session.work.timed():
        prepared = await session.work.run(Prepared.make, session, message.text, declared, message.oids)
    session.statements[message.name] = prepared
    session.connection.send(encoder.PARSE_COMPLETE)


def _declared(catalog: Catalog, oid: int) -> SqlType | None:
    if oid in _UNKNOWN_OIDS:
        return None
    found = by_oid(oid) if is_known(oid) else catalog.type_of(oid)
    if found is None:
        raise SqlError("42704", f"type with OID {oid} does not exist")
    return found


def bind(session: Session, message: m.Bind) -> Awaitable[None] | None:
    """Bind."""
    prepared = session.statements.find(message.statement)
    if message.portal and (message.portal in session.portals or message.portal in session.cursors.by_name):
        raise SqlError("42P03", f'cursor "{message.portal}" already exists')
    plan = prepared.plan
    if plan is not None and not plan.suits(session.db.catalog, session.settings):
        return _rebind(session, message, prepared)
    if plan is not None and (kinds := with_shapes(message, plan.types)) is not None:
        return _reshape(session, message, prepared, kinds)
    return _bind(session, message, prepared)


async def _reshape(session: Session, message: m.Bind, prepared: Prepared, kinds: tuple[SqlType, ...]) -> None:
    """Arrays came that say dimensions: the plan is made again for parameters that keep them."""
    with session.work.timed():
        await session.work.run(prepared.reshaped, session, kinds)
    await _bound(session, message, prepared)


async def _rebind(session: Session, message: m.Bind, prepared: Prepared) -> None:
    with session.work.timed():
        await session.work.run(prepared.current, session)
    await _bound(session, message, prepared)


async def _bound(session: Session, message: m.Bind, prepared: Prepared) -> None:
    waiting = _bind(session, message, prepared)
    if waiting is not None:
        await waiting


def _bind(session: Session, message: m.Bind, prepared: Prepared) -> Awaitable[None] | None:
    plan = prepared.plan
    types = plan.types if plan is not None else ()
    if len(message.parameters) != len(types):
        raise SqlError(
            "08P01",
            f"bind message supplies {len(message.parameters)} parameters, but prepared statement"
            f' "{message.statement}" requires {len(types)}',
        )
    if len(message.parameter_formats) > 1 and len(message.parameter_formats) != len(types):
        formats = len(message.parameter_formats)
        raise SqlError("08P01", f"bind message has {formats} parameter formats but {len(types)} parameters")
    outputs = None
    if plan is not None:
        if session.db.status == "E":
            session.transaction.check(plan.statement)
        if message.result_formats and not _FORMATS.issuperset(message.result_formats):
            wrong = next(form for form in message.result_formats if form not in _FORMATS)
            raise SqlError("22023", f"unsupported format code: {wrong}")
        outputs = outputs_of(session, plan.statement)
        columns = len(outputs or ())
        if len(message.result_formats) > 1 and len(message.result_formats) != columns:
            formats = len(message.result_formats)
            raise SqlError("08P01", f"bind message has {formats} result formats but query has {columns} columns")
    if plan is None or not types:
        _open(session, Portal(message, plan, (), outputs))
    elif sum(map(len, filter(None, message.parameters))) > _LARGE:
        return _bind_large(session, message, plan, outputs)
    else:
        _open(session, Portal(message, plan, decode_parameters(message, plan.given, session), outputs))
    return None


async def _bind_large(session: Session, message: m.Bind, plan: Plan, outputs: tuple[Output, ...] | None) -> None:
    """Values that take long are read in a worker."""
    with session.work.timed():
        values = await session.work.run(leave, decode_parameters, message, plan.given, session)
    _open(session, Portal(message, plan, values, outputs))


def _open(session: Session, portal: Portal) -> None:
    session.portals[portal.name] = portal
    session.connection.send(encoder.BIND_COMPLETE)


def describe(session: Session, message: m.Describe) -> None:
    """Describe."""
    if session.db.status == "E":
        _check_described(session, message)
    if message.kind == "P":
        cursor = session.cursors.by_name.get(message.name)
        if cursor is not None:
            session.connection.send(describe_rows(cursor.outputs, ()))
        else:
            session.connection.send(_describe_portal(session, session.portals.find(message.name)))
        return
    plan = session.statements.find(message.name).plan
    types = plan.types if plan is not None else ()
    outputs = outputs_of(session, plan.statement) if plan is not None else None
    session.connection.send(encoder.parameter_description([item.oid for item in types]) + _describe(outputs, ()))


def _check_described(session: Session, message: m.Describe) -> None:
    """In a failed transaction, rows that may depend on its changes are not described. Raises 25P02."""
    if message.kind == "S":
        prepared = session.statements.find(message.name)
        outputs = None if prepared.plan is None else outputs_of(session, prepared.plan.statement)
    elif message.name in session.cursors.by_name:
        outputs = session.cursors.by_name[message.name].outputs
    else:
        outputs = session.portals.find(message.name).outputs
    if outputs is not None:
        raise failed_transaction()


def _describe_portal(session: Session, portal: Portal) -> bytes:
    """The answer to Describe of a portal."""
    if portal.outputs is None:
        return encoder.NO_DATA
    return session.server.descriptions.of(portal.outputs, portal.formats)


def _describe(outputs: tuple[Output, ...] | None, formats: tuple[int, ...]) -> bytes:
    return encoder.NO_DATA if outputs is None else describe_rows(outputs, formats)


def close(session: Session, message: m.Close) -> None:
    """Close; what does not exist is closed already."""
    if message.kind == "P":
        session.portals.pop(message.name, None)
        session.cursors.discard(message.name)
    else:
        session.statements.pop(message.name, None)
    session.connection.send(encoder.CLOSE_COMPLETE)


# -- Execute -------------------------------------------------------------------------------------------------------


def execute(session: Session, message: m.Execute) -> Awaitable[None] | None:
    """Execute."""
    declared = session.cursors.by_name.get(message.portal)
    if declared is not None:
        return _execute_declared(session, declared, message.max_rows)
    portal = session.portals.find(message.portal)
    plan = portal.plan
    if plan is None:
        session.connection.send(encoder.EMPTY_QUERY_RESPONSE)
        return None
    if portal.cursor is None:
        log_execution(session, portal.bind.statement, plan.raw, portal.values)
        statement = plan.statement
        if not message.max_rows and _is_of_block(session, plan):
            answer = partial(_answered, session, portal)
            if blocks.answered(session, plan, portal.values, answer, portal.formats):
                return None
            if blocks.may_wait(session, plan):
                return _execute_in_turn(session, portal, plan)
        if isinstance(statement, Insert | Update | Delete):
            if _takes_rows(session, plan, portal.values):
                portal.cursor = _CHANGED
                return None
        elif plan.repeatable and not message.max_rows and session.transaction.reads_committed:
            known = _known_answer(session, portal, plan)
            if known is not None:
                _answered(session, portal, known.data)
                if not logs(session.applied.logs, above="ddl"):
                    session.express.series.follow(portal, known)
                return None
    return _execute(session, portal, plan, message.max_rows)


def _is_of_block(session: Session, plan: Plan) -> bool:
    """Whether a statement before its Sync is of a block, or begins or ends it."""
    is_inside = not session.transaction.is_idle or isinstance(plan.statement, TransactionControl)
    return is_inside and session.connection.batch_ends


def _answered(session: Session, portal: Portal, data: bytes) -> None:
    """Sends all that a portal returns: it has run."""
    portal.cursor = _CHANGED
    if portal.outputs is not None:
        portal.cursor = Cursor(Result("SELECT", portal.outputs, ()), portal.formats, session.settings.style)
    session.connection.send(data)


async def _execute_in_turn(session: Session, portal: Portal, plan: Plan) -> None:
    answer = partial(_answered, session, portal)
    if not await blocks.answered_in_turn(session, plan, portal.values, answer, portal.formats):
        await _execute(session, portal, plan, 0)


async def _execute_declared(session: Session, declared: SqlCursor, limit: int) -> None:
    """Execute of a cursor of SQL, as if it were a portal."""
    cursor = Cursor.declared(declared, session.settings.style, session.names)
    with session.work.timed():
        await _send_rows(session, cursor, *await session.work.portion(cursor.take, limit), limit)


def _known_answer(session: Session, portal: Portal, plan: Plan) -> Answered | None:
    """A read that needs no thread, with its rows and CommandComplete; between transactions express learns it."""
    reader, known = session.server.points.known(plan), None
    if reader is not None and plan.catalog is session.db.database.core.catalog:
        row = reader.peek(portal.values)
        if row is not None:
            rows = session.server.points.rows(reader, portal.formats, session.settings.style)
            known = Answered(plan, rows.answer(row), None)
    if not session.transaction.is_idle:
        session.db.begins_reading(plan.reads)
        return known
    if known is None:
        answer = session.server.results.get(_key(session, portal, plan), session.db.database)
        known = None if answer is None else Answered(plan, answer.data, answer.stamp)
    if known is not None:
        session.express.note(known)
    return known


def _key(session: Session, portal: Portal, plan: Plan) -> Hashable:
    return answer_key(session.settings, plan, portal.bind, portal.bind.parameters)


def _takes_rows(session: Session, plan: Plan, values: tuple[Value, ...]) -> bool:
    """Whether a row was taken that needs no thread: of a stream, or of a table when Sync is next."""
    statement = plan.statement
    if isinstance(statement, Insert) and is_plain(session, plan, statement):
        return _append(session, plan, statement, values)
    if not is_plain_change(session, plan) or not session.connection.batch_ends:
        return False
    tag = encoder.command_complete(change_tag(plan))
    try:
        return change(session, plan, values, partial(_appended, session, Answered(plan, tag, None)))
    except SqlError:  # the ordinary way says what is wrong
        return False


def _append(session: Session, plan: Plan, insert: Insert, values: tuple[Value, ...]) -> bool:
    """Appends a row at once when Sync is next; else keeps it for Sync."""
    tag = encoder.command_complete(f"INSERT 0 {len(insert.literals or ())}")
    pending = session.transaction.pending
    if not pending.inserts and session.connection.batch_ends:
        return append(session, insert, [values], partial(_appended, session, Answered(plan, tag, None)))
    session.db.at_once.check(insert, values)  # an error is that of its Execute, not of the Sync that appends
    pending.add(insert, values)
    session.connection.send(tag)
    return True


def _appended(session: Session, answered: Answered, error: SqlError | None) -> None:
    if error is None:
        session.connection.send(answered.data)
        session.express.note(answered)
    else:
        session.failed(error)


async def _execute(session: Session, portal: Portal, plan: Plan, limit: int) -> None:
    if session.transaction.pending.inserts:
        await settle(session)
    if portal.cursor is None:
        if not session.connection.batch_ends:
            session.transaction.begin_implicit()
        with session.work.timed():
            if copying.is_copy(plan):
                session.transaction.check(plan.statement)
                await _copy(session, plan)
                return
            await _start(session, portal, plan, limit)
        return
    if not portal.cursor.returns_rows:
        raise SqlError("55000", f'portal "{portal.name}" cannot be run')
    with session.work.timed():
        data, rows = await session.work.portion(portal.cursor.take, limit)
        await _send_rows(session, portal.cursor, data, rows, limit)


async def _copy(session: Session, plan: Plan) -> None:
    statement = plan.statement
    if isinstance(statement, CopyIn):
        await copying.begin(session, plan, None)
    else:
        await copying.send_out(session, plan)


async def _start(session: Session, portal: Portal, plan: Plan, limit: int) -> None:
    """Runs a portal for the first time."""
    stamp, is_whole = None, plan.repeatable and not limit
    if is_whole and session.transaction.is_idle:
        stamp = Stamp(plan.catalog, plan.reads, session.db.database.core.version_of(plan.reads))

    def begin() -> Found | tuple[Result, Cursor, bytes, int]:
        found = session.server.points.read(session.db, plan, portal.values) if is_whole else None
        if found is not None:
            return found
        result = run(session, plan, portal.values, described=True)
        cursor = Cursor(result, portal.formats, session.settings.style, session.names)
        return result, cursor, *cursor.take(limit)

    begun = await session.work.run(begin)
    if isinstance(begun, Found):
        _send_point(session, portal, begun)
        return
    result, cursor, data, rows = begun
    portal.cursor = cursor
    if result.notices:
        session.reports.send_notices(result.notices)
    if stamp is not None and cursor.finished and not result.notices:
        whole = data + encoder.command_complete(cursor.tag(rows))
        session.server.results.put(_key(session, portal, plan), whole, stamp)
    await _send_rows(session, cursor, data, rows, limit)


def _send_point(session: Session, portal: Portal, found: Found) -> None:
    """Answers a point read whose index had to be brought up to date."""
    rows = session.server.points.rows(found.reader, portal.formats, session.settings.style)
    _answered(session, portal, rows.answer(found.row))


async def _send_rows(session: Session, cursor: Cursor, data: bytes, rows: int, limit: int) -> None:
    """Sends what was taken and the rest, up to the limit."""
    connection = session.connection
    connection.send(data)
    while not cursor.finished and not (limit and rows >= limit):
        await connection.drain()
        data, count = await session.work.portion(cursor.take, limit - rows if limit else 0)
        rows += count
        connection.send(data)
    if limit and rows >= limit:
        connection.send(encoder.PORTAL_SUSPENDED)
    else:
        connection.send(encoder.command_complete(cursor.tag(rows)))


# -- Sync ----------------------------------------------------------------------------------------------------------


def sync(session: Session, message: m.Sync) -> Awaitable[None] | None:
    """Sync: the end of the batch and of its implicit transaction."""
    transaction = session.transaction
    if transaction.pending.inserts:
        if len(transaction.pending.inserts) == 1 and not transaction.implicit:
            insert, rows = transaction.pending.inserts[0]
            if append(session, insert, rows, partial(_synced, session)):
                transaction.pending.clear()
                return None
        return _settle_and_sync(session)
    if transaction.implicit:
        return _sync(session)
    _end_batch(session)
    return None


def _synced(session: Session, error: SqlError | None) -> None:
    if error is None:
        _end_batch(session)
    else:
        session.failed(error)


async def _settle_and_sync(session: Session) -> None:
    await settle(session)
    await _sync(session)


async def _sync(session: Session) -> None:
    await session.transaction.end_implicit()
    _end_batch(session)


def _end_batch(session: Session) -> None:
    if session.db.status == "I":
        session.portals.clear()
    session.ready()
