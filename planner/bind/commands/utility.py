"""Statements about the session: transactions, settings, EXPLAIN, PREPARE, LOCK, and those without an effect (VACUUM).

Owns: what their parse nodes mean. The server checks names and values of settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec.structs import replace
from pglast.enums import DiscardMode, ObjectType, ReindexObjectType, TransactionStmtKind, VariableSetKind

from catalog.objects import Index, Sequence, Stream, Table, View
from catalog.privileges import OF_TABLE
from catalog.values.errors import SqlError, unsupported
from catalog.values.times.precision import expressed
from catalog.values.types import SqlType
from planner.algebra.nodes import Scalar
from planner.bind.binder import new_binding
from planner.bind.changes.copy_statement import bind_copy
from planner.bind.changes.with_changes import with_modifications
from planner.bind.commands import cursors, databases
from planner.bind.commands.constraint_timing import bind_set_constraints
from planner.bind.commands.do_blocks import bind_do
from planner.bind.conversion.coercion import coerce
from planner.bind.definitions.access import role_settings
from planner.bind.definitions.access.setting_values import set_text
from planner.bind.definitions.relations.indexes import find_index, index_names
from planner.bind.definitions.routines import extensions
from planner.bind.from_items.millstream_functions import defines_view
from planner.bind.lookup.relations import require_object
from planner.bind.lookup.type_names import display, type_of
from planner.bind.state.context import Context
from planner.bind.state.environment import Binding, Environment, Level, Scope
from planner.parse.parser import Raw, text_after_as
from planner.statements.statement import (
    AlterView,
    CreateTableAs,
    CreateView,
    Deallocate,
    DeclareCursor,
    Discard,
    ExecutePrepared,
    Explain,
    Listen,
    LockTable,
    NoOperation,
    Notify,
    Prepare,
    RowStatement,
    SetModes,
    SetVariable,
    ShowVariable,
    Statement,
    TransactionControl,
    Unlisten,
)

_Action = Literal["begin", "commit", "rollback", "savepoint", "release", "rollback_to"]
_ACTIONS: Final[dict[Any, _Action]] = {
    TransactionStmtKind.TRANS_STMT_BEGIN: "begin",
    TransactionStmtKind.TRANS_STMT_START: "begin",
    TransactionStmtKind.TRANS_STMT_COMMIT: "commit",
    TransactionStmtKind.TRANS_STMT_ROLLBACK: "rollback",
    TransactionStmtKind.TRANS_STMT_SAVEPOINT: "savepoint",
    TransactionStmtKind.TRANS_STMT_RELEASE: "release",
    TransactionStmtKind.TRANS_STMT_ROLLBACK_TO: "rollback_to",
}


def _transaction(binding: Binding, node: Any) -> Statement:
    action = _ACTIONS.get(node.kind)
    if action is None:
        raise unsupported("two-phase commit", "Use COMMIT.")
    options = {item.defname: item.arg.val for item in node.options or ()}
    isolation = options["transaction_isolation"].sval if "transaction_isolation" in options else None
    flags = (options.get(name) for name in ("transaction_read_only", "transaction_deferrable"))
    read_only, deferrable = (None if flag is None else bool(flag.ival) for flag in flags)
    tag = "START TRANSACTION" if node.kind == TransactionStmtKind.TRANS_STMT_START else "BEGIN"
    return TransactionControl(action, node.savepoint_name, isolation, read_only, deferrable, tag, bool(node.chain))


# --- settings --------------------------------------------------------------------------------------------------------


def _set(binding: Binding, node: Any) -> Statement:
    match node.kind:
        case VariableSetKind.VAR_RESET_ALL:
            return SetVariable("all", None, tag="RESET")
        case VariableSetKind.VAR_RESET:
            return SetVariable(node.name.lower(), None, tag="RESET")
        case VariableSetKind.VAR_SET_DEFAULT:
            return SetVariable(node.name.lower(), None, bool(node.is_local))
        case VariableSetKind.VAR_SET_MULTI:
            return _set_transaction(node)
        case VariableSetKind.VAR_SET_VALUE:
            return SetVariable(node.name.lower(), set_text(node), bool(node.is_local))
        case _:
            raise unsupported("SET ... FROM CURRENT")


def _set_transaction(node: Any) -> Statement:
    """SET TRANSACTION and SET SESSION CHARACTERISTICS."""
    modes = tuple(_mode(item, node.name != "TRANSACTION") for item in node.args)
    return modes[0] if len(modes) == 1 else SetModes(modes)


def _mode(item: Any, session: bool) -> SetVariable:
    if item.defname not in ("transaction_isolation", "transaction_read_only", "transaction_deferrable"):
        raise unsupported("SET TRANSACTION SNAPSHOT")
    value = item.arg.val
    text = value.sval if type(value).__name__ == "String" else "on" if value.ival else "off"
    return SetVariable(f"default_{item.defname}" if session else item.defname, text, not session)


def _show(binding: Binding, node: Any) -> Statement:
    return ShowVariable(node.name.lower())


# --- EXPLAIN, PREPARE ------------------------------------------------------------------------------------------------

#: Statements that EXPLAIN takes, too, because of their queries.
_DEFINING: Final = DeclareCursor | CreateTableAs | CreateView | AlterView


def explain(binding: Binding, node: Any, bind_node: Callable[[Binding, Any], Statement]) -> Explain:
    """EXPLAIN [(options)] statement."""
    analyze, pace, form = False, False, "text"
    for item in node.options or ():
        match item.defname.lower():
            case "analyze":
                analyze = _flag(item)
            case "pace":
                pace = _flag(item)
            case "format":
                form = str(item.arg.sval).lower()
                if form not in ("text", "json", "xml", "yaml"):
                    message = f'unrecognized value for EXPLAIN option "format": "{item.arg.sval}"'
                    raise SqlError("22023", message, position=binding.position(item))
                if form not in ("text", "json"):
                    raise unsupported(f"EXPLAIN (FORMAT {form})", "Use TEXT or JSON.", binding.position(item))
            case "verbose" | "costs" | "buffers" | "timing" | "summary" | "settings" | "wal":
                pass  # these choose details that plans here do not have
            case name:
                raise SqlError("42601", f'unrecognized EXPLAIN option "{name}"', position=binding.position(item))
    if defines_view(node.query):  # so that the query means what it does in a view
        binding.raw = Raw(node.query, binding.raw.text, binding.raw.offset)
    statement = with_modifications(binding, bind_node(binding, node.query))
    if isinstance(statement, CreateView | AlterView) and analyze:
        kind = "MATERIALIZED VIEW" if statement.view.materialized else "VIEW"
        raise unsupported(
            f"EXPLAIN ANALYZE CREATE {kind}", "Leave ANALYZE out, or explain and analyze the query of the view."
        )
    if not isinstance(statement, RowStatement | _DEFINING):
        raise unsupported(
            "EXPLAIN of this statement", "Explain a SELECT, INSERT, UPDATE, DELETE, MERGE or CREATE VIEW."
        )
    return Explain(statement, analyze, "json" if form == "json" else "text", pace)


def _flag(item: Any) -> bool:
    value = getattr(item.arg, "sval", getattr(item.arg, "ival", getattr(item.arg, "boolval", True)))
    return str(value).lower() not in ("false", "off", "0")


def _prepare(binding: Binding, node: Any) -> Statement:
    types = tuple(expressed(type_of(binding, item)) for item in node.argtypes or ())
    text = text_after_as(raw := binding.raw)
    return Prepare(node.name, text, types, raw.offset + raw.text.rindex(text), raw.text)


def bind_executed(binding: Binding, node: Any) -> ExecutePrepared:
    """EXECUTE within the statement that is being bound, which is bound again once it is known what is executed."""
    return replace(_execute(binding, node), within=binding.raw)


def _execute(binding: Binding, node: Any) -> ExecutePrepared:
    """Arguments keep type unknown where they are bare strings: the prepared statement's types decide."""
    env = Environment(binding, Scope(), "EXECUTE parameters", Level(binding))
    nodes = node.params or ()
    places = tuple(binding.start(item) for item in nodes)
    return ExecutePrepared(node.name, tuple(env.bind(item) for item in nodes), places)


def execute_argument(context: Context, statement: ExecutePrepared, index: int, kind: SqlType) -> Scalar:
    """An argument of EXECUTE as the parameter that it is assigned to. Raises 42804 and what reading it raises."""
    argument, position = statement.arguments[index], statement.places[index]
    try:
        found = coerce(new_binding(context), argument, kind, "assignment", None)
    except SqlError as error:
        error.position = position
        raise
    if found is None:
        raise SqlError(
            "42804",
            f"parameter ${index + 1} of type {display(argument.type)} cannot be coerced to the expected type"
            f" {display(kind)}",
            hint="You will need to rewrite or cast the expression.",
            position=position,
        )
    return found


# --- the rest --------------------------------------------------------------------------------------------------------


def _deallocate(binding: Binding, node: Any) -> Statement:
    return Deallocate(None if node.isall else node.name)


def _discard(binding: Binding, node: Any) -> Statement:
    return Discard(DiscardMode(node.target).name.removeprefix("DISCARD_").lower())


def _listen(binding: Binding, node: Any) -> Statement:
    return Listen(node.conditionname)


def _unlisten(binding: Binding, node: Any) -> Statement:
    return Unlisten(node.conditionname)


def _notify(binding: Binding, node: Any) -> Statement:
    return Notify(node.conditionname, node.payload or "")


def _vacuum(binding: Binding, node: Any) -> Statement:
    for item in node.rels or ():
        if item.relation is not None:
            known = require_object(binding, item.relation)
            for column in item.va_cols or ():
                if all(each.name != column.sval for each in known.columns):
                    message = f'column "{column.sval}" of relation "{known.name}" does not exist'
                    raise SqlError("42703", message)
    return NoOperation("VACUUM", alone="VACUUM") if node.is_vacuumcmd else NoOperation("ANALYZE")


def _cluster(binding: Binding, node: Any) -> Statement:
    """CLUSTER: rows lie in the order in which they came."""
    if node.relation is not None:
        table = require_object(binding, node.relation)
        names = index_names(table) if isinstance(table, Table | View) else ()
        if node.indexname not in (None, *names):
            raise SqlError("42704", f'index "{node.indexname}" for table "{table.name}" does not exist')
    return NoOperation("CLUSTER", alone="" if node.relation is not None else "CLUSTER")


#: REINDEX of what is made in many transactions.
_OF_MANY: Final = {
    ReindexObjectType.REINDEX_OBJECT_SCHEMA: "REINDEX SCHEMA",
    ReindexObjectType.REINDEX_OBJECT_SYSTEM: "REINDEX SYSTEM",
    ReindexObjectType.REINDEX_OBJECT_DATABASE: "REINDEX DATABASE",
}


def _reindex(binding: Binding, node: Any) -> Statement:
    if node.kind == ReindexObjectType.REINDEX_OBJECT_TABLE:
        require_object(binding, node.relation)
    elif node.kind == ReindexObjectType.REINDEX_OBJECT_INDEX:
        find_index(binding, node.relation.relname, node.relation.schemaname)
    concurrently = any(item.defname == "concurrently" for item in node.params or ())
    alone = "REINDEX CONCURRENTLY" if concurrently else _OF_MANY.get(node.kind, "")
    return NoOperation("REINDEX", alone=alone)


#: LOCK's modes up to ROW EXCLUSIVE hold off no more than a SELECT, INSERT or UPDATE does by itself.
_OF_STATEMENTS: Final = 3
#: One of these privileges is needed for the others.
_TO_LOCK: Final = frozenset("wdD")


def _lock(binding: Binding, node: Any) -> Statement:
    """LOCK TABLE. Raises 42501 and 42809."""
    exclusive, tables = node.mode > _OF_STATEMENTS, list[tuple[int, str]]()
    for item in node.relations:
        found = require_object(binding, item)
        tables.append((found.oid, found.name))
        if isinstance(found, Sequence | Stream | Index):
            kind = "foreign tables" if isinstance(found, Stream) else "sequences"
            detail = f"This operation is not supported for {kind}."
            raise SqlError("42809", f'cannot lock relation "{found.name}"', detail)
        if exclusive and binding.reader is not None and isinstance(found, Table):
            catalog = binding.context.catalog
            if not catalog.rights_of(found.oid).held(catalog.roles, binding.reader, OF_TABLE) & _TO_LOCK:
                raise SqlError("42501", f"permission denied for table {found.name}")
    return LockTable(node.mode, bool(node.nowait), tuple(tables))


#: What CREATE ... (options) defines, and what to do instead.
_DEFINED: Final = {
    ObjectType.OBJECT_TYPE: ("CREATE TYPE of a base type or shell", "Use an enum or a domain."),
    ObjectType.OBJECT_AGGREGATE: ("CREATE AGGREGATE", "Use the aggregates there are, or array_agg."),
    ObjectType.OBJECT_OPERATOR: ("CREATE OPERATOR", "Use the operators there are."),
    ObjectType.OBJECT_COLLATION: ("CREATE COLLATION", 'Use COLLATE "C".'),
}


def _define(binding: Binding, node: Any) -> Statement:
    words = ObjectType(node.kind).name.removeprefix("OBJECT_").replace("TS", "TEXT SEARCH ")
    construct, instead = _DEFINED.get(node.kind, (f"CREATE {words}", None))
    raise unsupported(construct, instead)


def _refuse(construct: str, instead: str | None = None) -> Callable[[Binding, Any], Statement]:
    def refuse(binding: Binding, node: Any) -> Statement:
        raise unsupported(construct, instead)

    return refuse


def _nothing(tag: str) -> Callable[[Binding, Any], Statement]:
    def nothing(binding: Binding, node: Any) -> Statement:
        return NoOperation(tag)

    return nothing


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "TransactionStmt": _transaction,
    "VariableSetStmt": _set,
    "VariableShowStmt": _show,
    "ConstraintsSetStmt": bind_set_constraints,
    "CopyStmt": bind_copy,
    "PrepareStmt": _prepare,
    "ExecuteStmt": _execute,
    "DeallocateStmt": _deallocate,
    "DiscardStmt": _discard,
    "UnlistenStmt": _unlisten,
    "ListenStmt": _listen,
    "NotifyStmt": _notify,
    **cursors.HANDLERS,
    "VacuumStmt": _vacuum,
    "CheckPointStmt": _nothing("CHECKPOINT"),
    "ReindexStmt": _reindex,
    "ClusterStmt": _cluster,
    "DefineStmt": _define,
    "CreateStatsStmt": _refuse("CREATE STATISTICS", "Leave it out: the planner keeps its own."),
    "LockStmt": _lock,
    "CreateTrigStmt": _refuse("CREATE TRIGGER", "Create a continuous view."),
    "DoStmt": bind_do,
    "CallStmt": _refuse("CALL", "Send the procedure's statements one by one."),
    "RuleStmt": _refuse("CREATE RULE"),
    **databases.HANDLERS,
    **extensions.HANDLERS,
    **role_settings.HANDLERS,
    "CreateDomainStmt": _refuse("CREATE DOMAIN"),
    "CreateEnumStmt": _refuse("CREATE TYPE"),
    "CompositeTypeStmt": _refuse("CREATE TYPE"),
}
