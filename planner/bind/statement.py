"""One statement bound: dispatch by the kind of parse node.

Owns: ``bind``, and the checks of whole statements (which streams they may read, that all parameters have types).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import SqlType
from planner.bind.binder import new_binding
from planner.bind.changes import dml, merge
from planner.bind.changes.with_changes import with_modifications
from planner.bind.commands import utility
from planner.bind.conversion.rows import UnmarkedRow
from planner.bind.definitions import ddl
from planner.bind.definitions.access import grants, roles
from planner.bind.definitions.relations.table_as import bind_select_into
from planner.bind.definitions.view_definitions.derived_views import not_populated
from planner.bind.privileges import require_privileges
from planner.bind.queries.select import bind_query, into_of
from planner.bind.state.context import Context
from planner.bind.state.environment import Binding
from planner.parse.parser import Raw, executed, nested_too_deep
from planner.scales import with_scales
from planner.statements.definitions import (
    AlterTable,
    AlterType,
    CreateFunction,
    CreateStream,
    CreateTable,
    CreateType,
    Redefine,
)
from planner.statements.statement import (
    AlterView,
    CopyOut,
    CreateTableAs,
    CreateView,
    DeclareCursor,
    Explain,
    Prepare,
    Query,
    Statement,
)

#: Statements whose expressions are kept as texts, which are read again in whatever DateStyle and IntervalStyle.
_KEEPS_TEXTS: Final = (
    CreateTable,
    AlterTable,
    Redefine,
    CreateView,
    AlterView,
    CreateStream,
    CreateType,
    AlterType,
    CreateFunction,
)


#: What the parser's names of statements shorten or write apart.
_SHORT: Final = {
    "EventTrig": "EventTrigger",
    "SecLabel": "SecurityLabel",
    "Am": "AccessMethod",
    "TableSpace": "Tablespace",
    "Fdw": "ForeignDataWrapper",
    "TS": "TextSearch",
    "OpClass": "OperatorClass",
    "OpFamily": "OperatorFamily",
}


class Bound(Struct, frozen=True):
    """A statement and the types of its parameters $1, $2, ..."""

    statement: Statement
    parameters: tuple[SqlType, ...] = ()


def bind(raw: Raw, context: Context) -> Bound:
    """What a parsed statement means against a catalog. Raises SqlError with a position where one is known."""
    try:
        binding, bare, statement = _bound(raw, context, False)
    except UnmarkedRow as error:
        binding, bare, statement = _bound(raw, context, True)
        if binding.streams:
            raise error from None
    check_streams(binding, statement)
    if binding.restyled and isinstance(statement, _KEEPS_TEXTS):
        words, position = binding.restyled[0]
        hint = "Write a date as YYYY-MM-DD, and each field of an interval with its sign: all styles accept these."
        raise unsupported(f"{words} in a definition", hint, position)
    require_privileges(binding, bare)
    _require_populated(binding, bare)
    return Bound(statement, binding.finished_parameters())


def _bound(raw: Raw, context: Context, marks_rows: bool) -> tuple[Binding, Statement, Statement]:
    """The statement without scales, in which columns are where they were bound, and with them."""
    binding = new_binding(context, raw)
    binding.marks_rows = marks_rows
    try:
        statement = with_modifications(binding, bind_node(binding, raw.node))
        return binding, statement, with_scales(statement, context.catalog.objects, binding.column)
    except RecursionError:
        raise nested_too_deep() from None


def bind_node(binding: Binding, node: Any) -> Statement:
    """The statement that a parse node is."""
    if type(node).__name__ == "SelectStmt":
        return bind_query(binding, node, shares=True) if into_of(node) is None else bind_select_into(binding, node)
    if executed(node) is not None:
        return utility.bind_executed(binding, executed(node))
    for family in (dml.HANDLERS, merge.HANDLERS, ddl.HANDLERS, utility.HANDLERS, roles.HANDLERS, grants.HANDLERS):
        handler = family.get(type(node).__name__)
        if handler is not None:
            return handler(binding, node)
    if type(node).__name__ == "ExplainStmt":
        return utility.explain(binding, node, bind_node)
    raise unsupported(_words(type(node).__name__))


def _words(name: str) -> str:
    """AlterTableStmt -> ALTER TABLE."""
    name = name.removesuffix("Stmt")
    for short, long in _SHORT.items():
        name = name.replace(short, long)
    pieces = "".join(f" {char}" if char.isupper() else char for char in name)
    return pieces.strip().upper()


def _require_populated(binding: Binding, statement: Statement) -> None:
    """A statement that runs reads no materialized view WITH NO DATA. Raises 55000."""
    match statement:
        case CreateView(view=view):
            runs = view.materialized and view.populated
        case CreateTableAs(filled=filled):
            runs = filled
        case Explain(analyze=analyze):
            runs = analyze
        case Prepare() | AlterView():
            runs = False
        case _:
            runs = True
    if runs and binding.unpopulated:
        raise not_populated(binding.unpopulated[0])


def check_streams(binding: Binding, statement: Statement) -> None:
    """A query reads one stream at most (thesis 3.2.1), and what changes tables none. Raises 0A000."""
    defined = statement.statement if isinstance(statement, Explain) else statement
    if not binding.streams or isinstance(defined, CreateView | AlterView):
        return
    name, position = binding.streams[0]
    if isinstance(statement, CopyOut):
        statement = statement.query
    if not isinstance(statement, Query | DeclareCursor) and not (
        isinstance(statement, Explain) and isinstance(statement.statement, Query)
    ):
        raise SqlError(
            "0A000",
            f'a statement that changes tables cannot read the stream "{name}"',
            hint=f'Create a continuous view (CREATE VIEW v AS SELECT ... FROM "{name}" GROUP BY ...) and read that.',
            position=position,
        )
    for other, place in binding.streams:
        if other != name:
            raise SqlError(
                "0A000",
                f'a query cannot read two streams ("{name}", "{other}")',
                hint="Join them in a continuous view, and query the view.",
                position=place,
            )
