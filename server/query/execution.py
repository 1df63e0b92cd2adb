"""One statement run for one client: by the executor in a worker thread, or by the session itself.

Both query protocols use it; neither's messages are known here. Everything here may block and is called in a worker
thread, unless it says otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_texts import is_of_dimensions
from catalog.values.nested_types import delimiter_of
from catalog.values.types import SqlType, shaped
from executor.sql.replanning import Planned
from executor.transactions.result import Result
from planner.algebra.nodes import Column, Project, Value, Values
from planner.bind.commands.utility import execute_argument
from planner.scales import showing
from planner.statements.definitions import (
    ChangeRoles,
    CreateSchema,
)
from planner.statements.do_blocks import DoBlock
from planner.statements.statement import (
    CloseCursor,
    Deallocate,
    DeclareCursor,
    Discard,
    ExecutePrepared,
    Fetch,
    Listen,
    Notify,
    Output,
    Prepare,
    Query,
    RowStatement,
    SetModes,
    SetVariable,
    ShowVariable,
    TransactionControl,
    Unlisten,
)
from server.plans.planning import Plan
from server.plans.rows import sent_value
from server.query.create_schema import run_schema
from server.query.do_blocks import run_block
from server.session import cursors
from server.session.functions import evaluation as functions
from server.session.identity import may_examine, require_examinable, take_on
from server.session.portals import Portal
from server.session.prepared import Prepared, executed_plan, replanned, show_outputs
from server.session.result_rows import Cursor
from server.settings.parameter_types import boolean
from server.settings.settings import IDENTITY, OF_TRANSACTION

if TYPE_CHECKING:
    from server.session.session import Session


def run(session: Session, plan: Plan, parameters: tuple[Value, ...], described: bool = False) -> Result:
    """Runs a statement but COPY with the client. Raises SqlError; where the client may know the columns that the result
    has (``described``), 0A000 if it would have others now.
    """
    session.transaction.check(plan.statement)
    session.starts_statement(plan)
    statement = plan.statement
    if isinstance(statement, ChangeRoles) and statement.setting is not None:
        session.settings.check(*statement.setting)
    if isinstance(statement, ExecutePrepared):
        (plan, parameters), described = prepared_call(session, statement), True
        statement = plan.statement
        session.transaction.check(statement)
    if isinstance(statement, TransactionControl):
        return session.transaction.control(statement)
    if isinstance(statement, DoBlock):
        return run_block(session, statement, run)
    if isinstance(statement, CreateSchema) and statement.elements:
        return run_schema(session, plan, statement, run)
    result = _run(session, plan, parameters, described)
    session.transaction.end_statement()
    return result


def _run(session: Session, plan: Plan, parameters: tuple[Value, ...], described: bool) -> Result:
    statement = plan.statement
    own = _OWN.get(type(statement))
    if own is not None:
        return own(session, statement)
    if isinstance(statement, DeclareCursor):
        session.cursors.check(statement, in_block=not session.transaction.is_single)
    result = session.db.execute_planned(planned(session, plan, parameters, described), parameters)
    if isinstance(statement, DeclareCursor):
        began = session.activity.transaction_time
        session.cursors.add(cursors.SqlCursor.of(statement, result, began, session.held_share))
        return Result("DECLARE CURSOR")
    return result


def planned(
    session: Session,
    plan: Plan,
    parameters: tuple[Value, ...] = (),
    described: bool = False,
    made: functions.Made | None = None,
) -> Planned:
    """A statement with how it is planned again, which calls no function of the session a second time."""
    statement, calls = plan.statement, {} if made is None else made
    if plan.calls_session:
        filled = functions.evaluate(session, statement, parameters, calls)
        statement = session.server.plans.filled(plan, parameters, tuple(calls.items()), filled)

    def again() -> Planned:
        new = replanned(session, plan, described)
        return planned(session, new, parameters, described, calls)

    return Planned(statement, plan.catalog, again)


# -- statements of the session itself ------------------------------------------------------------------------------


def _fetch(session: Session, statement: Fetch) -> Result:
    """FETCH and MOVE, also of a portal of the protocol."""
    portal = session.portals.get(statement.name)
    cursor = session.cursors.find(statement.name) if portal is None else _stepping(session, portal)
    return cursor.fetch(statement)


def _stepping(session: Session, portal: Portal) -> cursors.SqlCursor:
    """A portal's rows for FETCH and MOVE; it runs now if it has not. Raises 0A000 where it returns none."""
    if portal.plan is None or portal.outputs is None:
        raise unsupported("FETCH from a portal of a statement without rows", "Execute it.")
    if portal.cursor is None:
        result = run(session, portal.plan, portal.values, described=True)
        portal.cursor = Cursor(result, portal.formats, session.settings.style, session.names)
    return portal.cursor.stepping(
        portal.name, portal.plan.raw.text, session.activity.transaction_time, session.held_share
    )


def _close(session: Session, statement: CloseCursor) -> Result:
    """CLOSE, also of a portal of the protocol."""
    if statement.name is None:
        _close_all(session)
        return Result("CLOSE CURSOR ALL")
    if session.portals.pop(statement.name, None) is None:
        session.cursors.close(statement.name)
    return Result("CLOSE CURSOR")


def _close_all(session: Session) -> None:
    """Closes all cursors and portals."""
    session.portals.clear()
    session.cursors.close(None)


def _set(session: Session, statement: SetVariable) -> Result:
    word = statement.tag
    if statement.name.lower() == "all":
        session.settings.reset_all()
        return Result(word)
    if statement.local and session.transaction.is_single:
        what = "SET TRANSACTION" if statement.name in OF_TRANSACTION else "SET LOCAL"
        warning = SqlError("25P01", f"{what} can only be used in transaction blocks")
        return Result(word, notices=(warning,))
    if statement.name in OF_TRANSACTION:
        _check_transaction(session, statement)
    if statement.name.lower() in IDENTITY:
        take_on(session, statement.name.lower(), statement.value, statement.local)
    else:
        session.settings.set(statement.name, statement.value, statement.local)
    return Result(word)


def _set_modes(session: Session, statement: SetModes) -> Result:
    results = [_set(session, mode) for mode in statement.modes]
    return results[0]


def _check_transaction(session: Session, statement: SetVariable) -> None:
    """SET TRANSACTION: the isolation takes effect; all are refused where they come too late (25001)."""
    name, value = statement.name, statement.value or session.settings.value(f"default_{statement.name}")
    if name == "transaction_isolation":
        session.db.isolate(value.strip().lower())
    elif name == "transaction_deferrable" and session.db.has_begun:
        raise SqlError("25001", "SET TRANSACTION [NOT] DEFERRABLE must be called before any query")
    elif session.settings.read_only and session.db.has_begun and boolean(name, value) == "off":
        raise SqlError("25001", "transaction read-write mode must be set before any query")


def _show(session: Session, statement: ShowVariable) -> Result:
    rows: list[tuple[str, ...]]
    if statement.name.lower() == "all":
        rows = [row for row in session.settings.show_all() if may_examine(session, row[0])]
    else:
        require_examinable(session, statement.name)
        rows = [(session.settings.show(statement.name),)]
    arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    outputs = show_outputs(statement.name)
    batch = pa.RecordBatch.from_arrays(arrays, names=[item.name for item in outputs])
    return Result("SHOW", outputs, (batch,))


def _prepare(session: Session, statement: Prepare) -> Result:
    try:
        prepared = Prepared.make(session, statement.text, statement.types, written=statement.written)
    except SqlError as error:
        if error.position is not None:
            error.position += statement.offset
        raise
    if prepared.plan is not None and not isinstance(prepared.plan.statement, RowStatement):
        raise unsupported(
            "PREPARE of this kind of statement", "Prepare a SELECT, INSERT, UPDATE, DELETE, MERGE or VALUES."
        )
    session.statements.require_free(statement.name)
    session.statements[statement.name] = prepared
    return Result("PREPARE")


def _deallocate(session: Session, statement: Deallocate) -> Result:
    if statement.name is None:
        session.statements.clear()
        return Result("DEALLOCATE ALL")
    session.statements.find(statement.name)
    del session.statements[statement.name]
    return Result("DEALLOCATE")


def _discard(session: Session, statement: Discard) -> Result:
    what = statement.what.upper()
    if what == "ALL":
        if not session.transaction.is_single:
            raise SqlError("25001", "DISCARD ALL cannot run inside a transaction block")
        session.settings.reset_all()
        for name in reversed(IDENTITY):
            session.settings.set(name, None)
        session.statements.clear()
        session.listening.unlisten(None)
        session.db.advisory.give_back_all()
        _close_all(session)
    if what in ("ALL", "SEQUENCES"):
        session.db.sequences.discard()
    if what in ("ALL", "TEMP"):
        session.db.discard_temporary()
    return Result(f"DISCARD {what}")


def _listen(session: Session, statement: Listen) -> Result:
    session.listening.listen(statement.channel)
    return Result("LISTEN")


def _unlisten(session: Session, statement: Unlisten) -> Result:
    session.listening.unlisten(statement.channel)
    return Result("UNLISTEN")


def _notify(session: Session, statement: Notify) -> Result:
    session.listening.notify(statement.channel, statement.payload)
    return Result("NOTIFY")


_OWN: Final[dict[type, Callable[..., Result]]] = {
    SetModes: _set_modes,
    SetVariable: _set,
    ShowVariable: _show,
    Prepare: _prepare,
    Deallocate: _deallocate,
    Discard: _discard,
    Fetch: _fetch,
    CloseCursor: _close,
    Listen: _listen,
    Unlisten: _unlisten,
    Notify: _notify,
}


def prepared_call(session: Session, statement: ExecutePrepared) -> tuple[Plan, tuple[Value, ...]]:
    """What EXECUTE runs, and the values of its arguments."""
    plan = executed_plan(session, statement)
    if plan.types and len(statement.arguments) != len(plan.types):  # PostgreSQL looks at none where it needs none
        raise SqlError(
            "42601",
            f'wrong number of parameters for prepared statement "{statement.name}"',
            f"Expected {len(plan.types)} parameters but got {len(statement.arguments)}.",
        )
    try:
        return plan, _argument_values(session, statement, plan)
    except SqlError as error:
        if not is_of_dimensions(error) or session.db.status == "E":
            raise
        kinds = tuple(shaped(kind.element) if _is_list(kind) and kind.element else kind for kind in plan.types)
        session.statements.find(statement.name).reshaped(session, kinds)
        plan = executed_plan(session, statement)
        return plan, _argument_values(session, statement, plan)


def _is_list(kind: SqlType) -> bool:
    """Whether a parameter's values are arrays that say no dimensions, and could."""
    return kind.name == "array" and kind.element is not None and delimiter_of(kind.element) == ","


def _argument_values(session: Session, statement: ExecutePrepared, plan: Plan) -> tuple[Value, ...]:
    """The arguments' values: a query without FROM."""
    types = plan.types
    if not types:
        return ()
    context = session.surroundings.context()
    named = [(Column(1 + index, f"p{index}", kind), kind) for index, kind in enumerate(types)]
    outputs = tuple(
        (column, execute_argument(context, statement, index, kind)) for index, (column, kind) in enumerate(named)
    )
    query = Query(Project(Values((), ((),)), outputs), tuple(Output(column.name, kind) for column, kind in named))
    ids = itertools.count(1 + len(types))
    query = showing(query, lambda name, kind: Column(next(ids), name, kind))
    result = session.db.execute(functions.evaluate(session, query, ()))
    (row,) = (row for batch in result.batches or () for row in zip(*batch.columns, strict=True))
    return tuple(sent_value(scalar, kind) for scalar, kind in zip(row, plan.given, strict=True))
