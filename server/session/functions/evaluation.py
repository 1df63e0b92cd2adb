"""Functions of the session: now(), current_user, current_setting() and the like become literals before a query runs.

Owns: their values, one per transaction or session (planner.functions.SESSION_FUNCTIONS lists them). Engines never see
them. Arguments must be constant, but for functions that may be called for each row (CALLED_BY_ROW): these are called
between what engines compute (planner/lowering/effects).
"""

from __future__ import annotations

import datetime
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.times.zones import session_zone
from catalog.values.types import TEXT
from planner.algebra.construction import conjuncts, substitute
from planner.algebra.functions import CALLED_BY_ROW, SESSION_FUNCTIONS
from planner.algebra.nodes import (
    Call,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Literal,
    Parameter,
    Project,
    Scalar,
    Value,
    Values,
)
from planner.algebra.walk import find, kinds_of, walk
from planner.statements.statement import Query, Statement
from planner.statements.walk import rewrite
from server.plans.planning import Filled, replace_parameters
from server.session.functions import signals
from server.session.functions import view_functions as named_views
from server.session.identity import require_examinable, take_on
from server.settings.parameters import SERVER_VERSION
from server.settings.settings import IDENTITY, OF_TRANSACTION

if TYPE_CHECKING:
    from server.session.session import Session

#: Starts like PostgreSQL's own, since clients parse it.
VERSION: Final = f"PostgreSQL {SERVER_VERSION} (Millstream 0.1.0) on {platform.machine()}-linux, 64-bit"


_CALLS: Final = kinds_of(Call)

#: The values of calls, by function and arguments, of the first, the second and so on with these.
Made = dict[tuple[str, tuple[Value, ...], int], Value]


def evaluate(
    session: Session, statement: Statement, parameters: tuple[Value, ...], made: Made | None = None
) -> Statement:
    """The statement with every call of a session function replaced by its value; with every parameter, too, unless it
    is a query whose calls are the same for all rows. ``made`` are calls of the same execution, which are not made
    again, and those that are made now."""
    known: Made = {} if made is None else made
    counts: Counter[tuple[str, tuple[Value, ...]]] = Counter()

    def change(node: Any) -> Any:
        if isinstance(node, Call) and node.function in SESSION_FUNCTIONS:
            if node.function in CALLED_BY_ROW and not all(map(_is_constant, node.arguments)):
                return Call("session_call", (Literal(node.function, TEXT), *node.arguments), node.type)
            arguments = (replace_parameters(argument, parameters) for argument in node.arguments)
            call = (node.function, tuple(_constant(node.function, argument) for argument in arguments))
            counts[call] += 1
            key = (*call, counts[call])
            if key not in known:
                known[key] = _FUNCTIONS[node.function](session, *call[1])
            return Literal(known[key], node.type)
        return node

    filled = statement
    if not (isinstance(statement, Query) and all(map(_is_steady, _session_calls(statement)))):
        filled = rewrite(rewrite(replace_parameters(statement, parameters), _with_known_columns), _by_row)
    result: Statement = rewrite(filled, change)
    return result


def _session_calls(query: Query) -> Iterator[Call]:
    return (call for call in find(query.relation, _CALLS) if call.function in SESSION_FUNCTIONS)


def _is_steady(call: Call) -> bool:
    """Whether a call is the same for all rows."""
    return call.function not in CALLED_BY_ROW and all(
        isinstance(_inner(item), Literal | Parameter) for item in call.arguments
    )


def values_of(session: Session, filled: Filled) -> tuple[Value, ...]:
    """What the calls of a statement come to now."""
    return tuple([_FUNCTIONS[function](session, *arguments) for function, arguments in filled.calls])


def _with_known_columns(node: Any) -> Any:
    """set_config(name, ...) FROM pg_settings WHERE name = 'x': a column that a filter holds to a text is that text."""
    if not isinstance(node, Project) or not isinstance(node.input, Filter):
        return node
    known: dict[Column, Scalar] = {}
    for part in conjuncts(node.input.predicate):
        match part:
            case Call(function="eq", arguments=(ColumnRef(column), Literal(str()) as text)) if column.type == TEXT:
                known[column] = text
    if not known:
        return node

    def named(item: Any) -> Any:
        if not isinstance(item, Call) or item.function not in SESSION_FUNCTIONS:
            return item
        return replace(item, arguments=tuple(substitute(argument, known) for argument in item.arguments))

    return replace(node, outputs=rewrite(node.outputs, named))


def _by_row(node: Any) -> Any:
    """A projection of other rows than the one of a query without FROM: it calls for each, also with constants."""
    if not isinstance(node, Project) or (isinstance(node.input, Values) and len(node.input.rows) == 1):
        return node
    outputs = tuple((column, _as_call_by_row(scalar)) for column, scalar in node.outputs)
    return replace(node, outputs=outputs) if outputs != node.outputs else node


def _as_call_by_row(scalar: Scalar) -> Scalar:
    """An output that is such a call."""
    if not isinstance(scalar, Call) or scalar.function not in CALLED_BY_ROW or _calls_within(scalar):
        return scalar
    return Call("session_call", (Literal(scalar.function, TEXT), *scalar.arguments), scalar.type)


def _calls_within(call: Call) -> bool:
    nodes = (node for argument in call.arguments for node in walk(argument))
    return any(isinstance(node, Call) and node.function in CALLED_BY_ROW for node in nodes)


def call(session: Session, function: str, arguments: list[Value]) -> Value:
    """What a function comes to for the arguments of one row."""
    return _FUNCTIONS[function](session, *arguments)


def _is_constant(argument: Scalar) -> bool:
    return isinstance(_inner(argument), Literal)


def _inner(argument: Scalar) -> Scalar:
    """What a cast converts, or else the argument itself."""
    return argument.argument if isinstance(argument, Cast) else argument


def _constant(function: str, argument: Scalar) -> Value:
    match argument:
        case Literal(value=value):
            return value
        case Cast(argument=Literal(value=value)) if type(value) in (type(None), str, int):
            return value  # an integer comes to a wider type
        case _:
            raise unsupported(
                f"{function}() with an argument that is not a constant", "Give it a constant or a parameter."
            )


def _now(session: Session) -> datetime.datetime:
    return session.activity.transaction_time


def _current_date(session: Session) -> datetime.date:
    return session.activity.transaction_time.astimezone(session_zone(session.settings.value("TimeZone"))).date()


def _current_user(session: Session) -> str:
    return session.user


def _session_user(session: Session) -> str:
    return session.settings.value("session_authorization")


def _current_database(session: Session) -> str:
    return session.db.name


def _current_schema(session: Session) -> str | None:
    return next(iter(_current_path(session)), None)


def _current_path(session: Session) -> tuple[str, ...]:
    """The schemas of search_path that there are, and that the role may use."""
    known = session.db.catalog.schemas
    return tuple(name for name in session.path if name in known)


def _version(session: Session) -> str:
    return VERSION


def _pg_backend_pid(session: Session) -> int:
    return session.backend.process


def _start_time(session: Session) -> datetime.datetime:
    return session.server.started


def _statement_timestamp(session: Session) -> datetime.datetime:
    return session.activity.statement_time


def _txid_current(session: Session) -> int:
    return session.activity.transaction_number()


def _current_setting(session: Session, name: Value, missing_ok: Value = False) -> str | None:
    if name is None:
        return None
    if missing_ok and not session.settings.knows(str(name)):
        return None
    require_examinable(session, str(name))
    return session.settings.show(str(name))


def _set_config(session: Session, name: Value, value: Value, is_local: Value) -> str | None:
    if name is None:
        raise SqlError("22004", "SET requires parameter name")
    if str(name).lower() in OF_TRANSACTION:
        raise unsupported(f"set_config() of {name}", "Use SET TRANSACTION.")
    text = None if value is None else str(value)
    if str(name).lower() in IDENTITY:
        take_on(session, str(name).lower(), text, bool(is_local))
    else:
        session.settings.set(str(name), text, bool(is_local))
    return session.settings.show(str(name))


def _current_of(session: Session, name: Value, table: Value, place: Value) -> Value:
    """WHERE CURRENT OF: a part of the key of the row on which a cursor is (execCurrentOf)."""
    if name in session.portals:
        raise unsupported("WHERE CURRENT OF a portal of the protocol", "DECLARE the cursor.")
    item = session.db.catalog.objects[int(str(table))].name
    return session.cursors.find(str(name)).key_here(int(str(table)), item)[int(str(place))]


_FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "now": _now,
    "current_date": _current_date,
    "current_user": _current_user,
    "session_user": _session_user,
    "current_database": _current_database,
    "current_schema": _current_schema,
    "version": _version,
    "pg_backend_pid": _pg_backend_pid,
    "pg_postmaster_start_time": _start_time,
    "statement_timestamp": _statement_timestamp,
    "txid_current": _txid_current,
    "pg_reload_conf": signals.reload,
    "pg_cancel_backend": signals.cancel,
    "pg_terminate_backend": signals.terminate,
    "suspend_query": signals.suspend,
    "checkpoint_query": signals.checkpoint,
    "migrate_query": signals.migrate,
    "suspend_view": named_views.suspend,
    "resume_view": named_views.resume,
    "checkpoint_view": named_views.checkpoint,
    "migrate_view": named_views.migrate,
    "plan_svg": named_views.plan_svg,
    "drain_server": signals.drain,
    "adopt_server": signals.adopt,
    "forget_query": named_views.forget,
    "current_setting": _current_setting,
    "set_config": _set_config,
    "current_of": _current_of,
}
assert _FUNCTIONS.keys() == SESSION_FUNCTIONS
