"""Where scales enter and leave a statement: results and texts show them, rows of tables are stored with them.

Owns: ``with_scales``, the last step of binding. A result's column whose values show their own decimals leaves as their
text (``Output`` says what it is to clients). Which new columns keep scales is decided here, too: those of numeric
without digits, of tables and streams. Statements that meet no such column stay as they are. What a change's rows hold
is ``changes``'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from catalog.objects import CatalogObject, Stream, View
from catalog.values.scales import is_padded
from catalog.values.types import BOOL
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import AggregateCall, Call, Cast, ColumnRef, Literal, Parameter, Scan, WindowCall
from planner.algebra.walk import Node, by_class, walk
from planner.scales.changes import (
    altered,
    beside_view,
    copied,
    deleted,
    filling,
    inserted,
    keeping,
    keeps,
    merged,
    require_distinct,
    updated,
    viewed,
)
from planner.scales.columns import NewColumn
from planner.scales.expressions import TRANSCENDENTAL, loses_digits
from planner.scales.nested import has_scales
from planner.scales.relations import Derivation, is_varying, keeping_columns
from planner.scales.terms import is_number, of_literal, of_type
from planner.statements.definitions import AlterTable, AlterType, CreateStream, CreateTable, DropType, Redefine
from planner.statements.statement import (
    AlterView,
    CopyIn,
    CopyOut,
    CreateTableAs,
    CreateView,
    DeclareCursor,
    Delete,
    Explain,
    Insert,
    Merge,
    Modifying,
    Query,
    RowChange,
    RowStatement,
    Statement,
    Update,
)
from planner.statements.walk import roots

Objects = Mapping[int, CatalogObject]
#: A statement's by their classes.
Nodes = Mapping[type, list[Any]]

#: What makes quotients of numerics, and roots of these.
_QUOTIENTS: Final = frozenset(("div", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"))
#: Types of values that depend on numerics' values alone.
_VALUES: Final = frozenset(("numeric", "bool", "int2", "int4", "int8", "float4", "float8"))


def with_scales(statement: Statement, objects: Objects, new: NewColumn) -> Statement:
    """The statement with what it stores and shows of scales."""
    match statement:
        case CreateTable(table=table):
            return replace(statement, table=replace(table, columns=keeping(table.columns)))
        case CreateStream(stream=Stream() as stream) if not stream.option("source"):
            columns = keeping(stream.columns)
            require_distinct(columns)
            return replace(statement, stream=replace(stream, columns=columns))
        case Redefine(item=Stream() | View() as item):
            require_distinct(item.columns)
            return statement
        case CreateView(view=view, query=query) if view.continuous and _meets(query, objects):
            return viewed(Derivation(objects, new), statement)
        case AlterView(query=Query() as query) if _meets(query, objects):
            return replace(statement, query=beside_view(Derivation(objects, new), query)[0])
        case AlterTable():
            return altered(Derivation(objects, new), statement)
        case AlterType(alterations=alterations) | DropType(alterations=alterations):
            found = tuple(altered(Derivation(objects, new), item) for item in alterations)
            return replace(statement, alterations=found)
        case CreateTableAs(table=table, query=query):
            kept = replace(table, columns=keeping(table.columns))
            rows = filling(Derivation(objects, new), query.relation, kept)
            return replace(statement, table=kept, query=replace(query, relation=rows))
        case Explain(statement=inner):
            return replace(statement, statement=with_scales(inner, objects, new))
        case DeclareCursor(query=inner) | CopyOut(query=inner):
            return replace(statement, query=with_scales(inner, objects, new))
        case Query() | Insert() | Update() | Delete() | Merge() | Modifying() | CopyIn() if _meets(statement, objects):
            return _scaled(Derivation(objects, new), statement)
        case _:
            return statement


def _meets(statement: Statement, objects: Objects) -> bool:
    """Whether a statement reads a column that keeps scales or changes its relation, or shows quotients."""
    if isinstance(statement, Insert) and statement.literals is not None:  # which may be many, and read nothing
        return keeps(statement.target)
    nodes = by_class(roots(statement))
    scans = nodes[Scan]
    if any(item.kind == "query" for item in scans) or _pads(nodes):  # whose numerics may come as they showed
        return True
    if _shows_quotients(statement, nodes):
        return True
    if isinstance(statement, Query) and not scans:
        return any(map(_is_mixed, _mixing(nodes)))
    parts = statement.statements if isinstance(statement, Modifying) else (statement,)
    targets = [item.target for item in parts if isinstance(item, RowChange | CopyIn)]
    if any(map(keeps, targets)):
        return True
    keeping = {column for scan in scans for column in keeping_columns(scan, objects.get(scan.oid))}
    if keeping and any(item.column in keeping for item in nodes[ColumnRef]):
        return True
    return isinstance(statement, Query) and _is_mixed_outside(nodes)


def _shows_quotients(statement: Statement, nodes: Nodes) -> bool:
    """Whether a statement has quotients or averages of numerics, and gives such values to clients or makes other than
    numbers of them."""
    if not any(map(_is_quotient, chain(nodes[Call], nodes[AggregateCall], nodes[WindowCall]))):
        return False
    columns = statement.relation.columns if isinstance(statement, Query) else ()
    return any(is_varying(column.type) for column in columns) or any(map(_writes, chain(nodes[Call], nodes[Cast])))


def _is_quotient(node: Call | AggregateCall | WindowCall) -> bool:
    return node.function in _QUOTIENTS and node.type.is_loose


def _writes(node: Node) -> bool:
    """Whether a node's value depends on how many decimals numerics show that it takes."""
    match node:
        case Call(function="scale"):
            return True
        case Call(arguments=arguments, type=kind) if kind.name not in _VALUES:
            return any(item.type.is_loose for item in arguments)
        case Cast(argument=argument, type=kind):
            return kind.name not in _VALUES and argument.type.is_loose
        case _:
            return False


def _pads(nodes: Nodes) -> bool:
    """Whether texts get blanks, which are shown: but for parameters that are only compared."""
    padded = [node for node in chain(nodes[Cast], nodes[Parameter]) if is_padded(node.type)]
    if not padded:
        return False
    compared = NodeSet(item for node in nodes[Call] if node.type == BOOL for item in node.arguments)
    return any(node not in compared for node in padded)


def _is_mixed_outside(nodes: Nodes) -> bool:
    """Whether constants of several scales meet outside of aggregates, which would take longer with each row's scale;
    arrays of these have them anyway."""
    mixed = list(filter(_is_mixed, _mixing(nodes)))
    if not mixed:
        return False
    inside = NodeSet(item for node in nodes[AggregateCall] for item in walk(node))
    return any(item not in inside or _is_array(item) for item in mixed)


def _mixing(nodes: Nodes) -> Iterable[Cast | Call | Literal]:
    """The nodes in which constants of several scales may meet."""
    return chain(nodes[Cast], nodes[Call], nodes[Literal])


def _is_array(node: object) -> bool:
    return isinstance(node, Cast) and loses_digits(node)


def _is_mixed(node: Cast | Call | Literal) -> bool:
    """Whether constants of several scales meet in a node: an implicit cast changes a scale, or an array's elements have
    one each."""
    match node:
        case Cast(argument=argument, type=kind, explicit=False) if kind.name == "numeric" and is_number(argument.type):
            return of_type(argument.type) != of_type(kind)
        case Cast() if loses_digits(node):
            return True
        case Call(function=function, type=kind) if function in TRANSCENDENTAL and kind.name == "numeric":
            return True
        case Literal(value=Decimal(), type=kind):
            return of_literal(node) != of_type(kind)
        case Literal(value=tuple(), type=kind) | Call(function="array", type=kind):
            return has_scales(kind)
        case _:
            return False


def _scaled(scales: Derivation, statement: RowStatement | CopyIn, *, shows: bool = True) -> RowStatement | CopyIn:
    """A statement with scales; ``shows``: a client gets what it returns."""
    match statement:
        case Query():
            return _query(scales, statement)
        case Modifying(parts=parts, main=main):
            changed = []
            for name, part in parts:
                changed.append((name, found := _scaled(scales, part, shows=False)))
                if isinstance(found, Insert | Update | Delete) and found.returning is not None:
                    returned = (column for column, _ in found.returning.expressions)
                    scales.share(name, {str(place): column for place, column in enumerate(returned)})
            return replace(statement, parts=tuple(changed), main=_scaled(scales, main))
        case Insert():
            return inserted(scales, statement, shows=shows)
        case Update():
            return updated(scales, statement, shows=shows)
        case Delete():
            return deleted(scales, statement, shows=shows)
        case Merge():
            return merged(scales, statement)
        case CopyIn():
            return copied(scales, statement)


def showing(query: Query, new: NewColumn) -> Query:
    """A query without tables with its numerics as they show, where they come of what it was given."""
    return _query(Derivation({}, new), query)


def _query(scales: Derivation, query: Query) -> Query:
    own = query.relation.columns
    relation = scales.relation(query.relation)
    return replace(query, relation=scales.leaving(relation, own))
