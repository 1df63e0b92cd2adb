"""COPY: its target, columns, and WHERE of COPY FROM. ``copy_options`` reads its options."""

from __future__ import annotations

from collections.abc import Sequence as Names
from typing import Any

from msgspec.structs import replace

from catalog.objects import FileTable, Sequence, Stream, SystemView, Table, View
from catalog.values.errors import SqlError, unsupported
from planner.algebra.nodes import Column, ColumnRef, Exists, InSubquery, Project, Scalar, ScalarSubquery
from planner.algebra.walk import walk
from planner.bind.changes.assignments import default_of, scope_of_target
from planner.bind.changes.copy_options import Given, bind_options
from planner.bind.changes.dml import HANDLERS, checks_of, require_columns
from planner.bind.changes.generated_columns import generated_of
from planner.bind.changes.with_changes import with_modifications
from planner.bind.conversion.domains import default_text, guards
from planner.bind.from_items.from_clause import scan_object
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import require_object
from planner.bind.lookup.type_names import declared_typmod
from planner.bind.queries.select import bind_query, into_of
from planner.bind.scalars.expressions import bind_boolean
from planner.bind.state.environment import Binding, Environment, Level
from planner.bind.state.from_names import Entry
from planner.lowering.effects import calls_of
from planner.statements.statement import (
    CopyIn,
    CopyOptions,
    CopyOut,
    Delete,
    Insert,
    Modifying,
    Output,
    Query,
    Statement,
    Update,
    outputs_of_rows,
)


def bind_copy(binding: Binding, node: Any) -> Statement:
    """COPY table [(columns)] FROM, COPY table or (query) TO."""
    if node.is_program:
        raise unsupported("COPY ... PROGRAM", "Use STDIN or STDOUT and a pipe.")
    given = bind_options(binding, node.options or (), node.is_from)
    if node.is_from:
        return _copy_in(binding, node, given)
    if node.query is not None:
        query = _query(binding, node.query)
        names = [output.name for output in outputs_of_rows(query) or ()]
        options = _with_forced(given, names, tuple(range(len(names))), "")
        return CopyOut(query, options, node.filename)
    return _whole(binding, node, given)


def _query(binding: Binding, node: Any) -> Query | Insert | Update | Delete | Modifying:
    """What a COPY in brackets copies. Raises 0A000 where it has no rows."""
    if type(node).__name__ == "SelectStmt":
        if into_of(node) is not None:
            raise SqlError("0A000", "COPY (SELECT INTO) is not supported")
        found: Statement = bind_query(binding, node)
    elif type(node).__name__ == "MergeStmt":
        raise SqlError("0A000", "MERGE not supported in COPY")
    else:
        found = HANDLERS[type(node).__name__](binding, node)
    found = with_modifications(binding, found)
    binding.modifications.clear()
    assert isinstance(found, Query | Insert | Update | Delete | Modifying)
    if outputs_of_rows(found) is None:
        raise SqlError("0A000", "COPY query must have a RETURNING clause")
    return found


def _copy_in(binding: Binding, node: Any, given: Given) -> CopyIn:
    target = require_object(binding, node.relation)
    if isinstance(target, Sequence):
        raise SqlError("42809", f'cannot copy to sequence "{target.name}"')
    if isinstance(target, FileTable):
        raise SqlError(
            "0A000", f'cannot insert into foreign table "{target.name}"', hint="A foreign table of files is read-only."
        )
    if isinstance(target, View | SystemView):
        raise SqlError(
            "42809", f'cannot copy to view "{target.name}"', hint="Copy to the tables and streams that it reads."
        )
    require_columns(target)
    columns = _columns(binding, target, node)
    defaults = tuple(
        (index, default_of(binding, column))
        for index, column in enumerate(target.columns)
        if index not in columns and default_text(binding, column) is not None
    )
    row = tuple(binding.column(column.name, column.type) for column in target.columns)
    checks = (*guards(binding, target.columns, row), *checks_of(binding, target, row))
    generated = generated_of(binding, target, row)
    where = None if node.whereClause is None else _condition(binding, target, row, node)
    options = _with_forced(given, [column.name for column in target.columns], columns, f' of relation "{target.name}"')
    return CopyIn(target, columns, options, node.filename, defaults, checks, row, generated, where)


def _condition(binding: Binding, target: Table | Stream, row: tuple[Column, ...], node: Any) -> Scalar:
    """WHERE over a row as it is before generated columns are computed."""
    entries = [Entry(column.name, ColumnRef(column)) for column in row]
    scope = scope_of_target(target, node, entries)
    env = Environment(binding, scope, "COPY FROM WHERE conditions", Level(binding))
    found = bind_boolean(env, node.whereClause, "WHERE")
    if any(isinstance(item, ScalarSubquery | Exists | InSubquery) for item in walk(found)):
        message = "cannot use subquery in COPY FROM WHERE condition"
        raise SqlError("0A000", message, position=binding.start(node.whereClause))
    generated = {row[index] for index, column in enumerate(target.columns) if column.generated is not None}
    read = [item.column for item in walk(found) if isinstance(item, ColumnRef) and item.column in generated]
    if read:
        message = "generated columns are not supported in COPY FROM WHERE conditions"
        raise SqlError("42P10", message, f'Column "{read[0].name}" is a generated column.')
    for call in calls_of(found):
        raise unsupported(f"{call.function}() in the condition of a COPY", "Copy all rows and delete some.")
    return found


def _columns(binding: Binding, target: Table | Stream | FileTable | View | SystemView, node: Any) -> tuple[int, ...]:
    names = [column.name for column in target.columns]
    if not node.attlist:
        return tuple(index for index, column in enumerate(target.columns) if column.generated is None)
    found: list[int] = []
    for name in names_of(node.attlist):
        if name not in names:
            raise SqlError("42703", f'column "{name}" of relation "{target.name}" does not exist')
        if target.columns[names.index(name)].generated is not None:
            detail = "Generated columns cannot be used in COPY."
            raise SqlError("42P10", f'column "{name}" is a generated column', detail)
        if names.index(name) in found:
            raise SqlError("42701", f'column "{name}" specified more than once')
        found.append(names.index(name))
    return tuple(found)


def _whole(binding: Binding, node: Any, given: Given) -> CopyOut:
    """COPY relation TO: its columns in order."""
    target = require_object(binding, node.relation)
    if isinstance(target, Sequence):
        raise SqlError("42809", f'cannot copy from sequence "{target.name}"')
    if isinstance(target, View) and not target.keeps_rows:
        hint = "Try the COPY (SELECT ...) TO variant."
        kind = "materialized view" if target.materialized else "view"
        raise SqlError("42809", f'cannot copy from {kind} "{target.name}"', hint=hint)
    if isinstance(target, Stream):
        binding.streams.append((target.name, binding.position(node.relation)))
    need = binding.need(target.oid)
    scan, _ = scan_object(binding, target, None, False)
    need.columns = scan.columns
    chosen = _columns(binding, target, node)
    outputs = tuple(
        Output(
            scan.sources[index],
            scan.columns[index].type,
            declared_typmod(target.columns[index].type),
            target.oid,
            index + 1,
        )
        for index in chosen
    )
    columns = tuple(
        (binding.column(scan.columns[index].name, scan.columns[index].type), ColumnRef(scan.columns[index]))
        for index in chosen
    )
    options = _with_forced(given, [column.name for column in target.columns], chosen, f' of relation "{target.name}"')
    return CopyOut(Query(Project(scan, columns), outputs), options, node.filename)


def _with_forced(given: Given, names: Names[str], copied: tuple[int, ...], of: str) -> CopyOptions:
    """The options with the places, among the copied columns, of those that they name; ``of`` is for the error."""
    places = {name: _places(name.upper(), listed, names, copied, of) for name, listed in given.forced.items()}
    quoted, not_null, null = (places.get(name, frozenset()) for name in ("force_quote", "force_not_null", "force_null"))
    return replace(given.options, force_quote=quoted, force_not_null=not_null, force_null=null)


def _places(
    option: str, listed: tuple[str, ...] | None, names: Names[str], copied: tuple[int, ...], of: str
) -> frozenset[int]:
    if listed is None:
        return frozenset(range(len(copied)))
    found: list[int] = []
    for name in listed:
        if name not in names:
            raise SqlError("42703", f'column "{name}"{of} does not exist')
        if names.index(name) in found:
            raise SqlError("42701", f'column "{name}" specified more than once')
        if names.index(name) not in copied:
            raise SqlError("42P10", f'{option} column "{name}" not referenced by COPY')
        found.append(names.index(name))
    return frozenset(map(copied.index, found))
