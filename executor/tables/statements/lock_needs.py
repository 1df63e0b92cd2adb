"""The locks that a statement with changes takes, determined before it runs.

Owns: PostgreSQL's lock modes on relations for such statements, and the locks on referenced keys: new references share
the lock on the referenced table's keys, and deletes and key changes exclude new references until their transaction
ends. If a foreign key action changes rows, the rows of their table are locked as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from catalog.objects import ForeignKey, Table
from executor.identity_cache import Remembered
from executor.locks.modes import Mode
from executor.locks.targets import Keys, Relation, Rows, Target
from executor.tables.statements.effects import Modification, parts_of
from planner.algebra.nodes import Column, ColumnRef, Project, Scalar
from planner.algebra.nodes import Relation as Algebra
from planner.statements.statement import Delete, Insert, Merge, RowChange, Update

Need = tuple[Target, Mode]
_MOST: Final = 512
#: The results by statement, valid as long as the tables' definitions do not change.
_KNOWN: Final[dict[int, tuple[Modification, Mapping[int, Table], list[Need]]]] = {}
#: Names of the columns that a statement may change; None for all.
Assigned = frozenset[str] | None


def needs(statement: Modification, tables: Mapping[int, Table]) -> list[Need]:
    """The locks of a statement, except those on the rows that it changes itself."""
    known = _KNOWN.get(id(statement))
    if known is None or known[0] is not statement or known[1] is not tables:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        known = _KNOWN[id(statement)] = statement, tables, _needs(statement, tables)
    return known[2]


def _needs(statement: Modification, tables: Mapping[int, Table]) -> list[Need]:
    found: dict[Need, None] = {}
    for part in parts_of(statement):
        table = part.target
        if isinstance(table, Table):
            found[Relation(table.oid), Mode.ROW_EXCLUSIVE] = None
            for need in _of_part(part, table, tables):
                found[need] = None
    return list(found)


def of_insertion(table: Table) -> list[Need]:
    """The locks for inserting rows, as COPY does."""
    return [(Relation(table.oid), Mode.ROW_EXCLUSIVE), *_of_references(table, None)]


def _of_part(part: RowChange, table: Table, tables: Mapping[int, Table]) -> Iterator[Need]:
    match part:
        case Insert(conflict=None):
            yield from _of_references(table, None)
        case Insert():
            yield from _of_references(table, None)
            yield from _of_keys(table, None, tables, deletes=False)
        case Update():
            assigned = assigned_by(part)
            yield from _of_references(table, assigned)
            yield from _of_keys(table, assigned, tables, deletes=False)
        case Delete():
            yield from _of_keys(table, None, tables, deletes=True)
        case Merge():
            yield from _of_references(table, None)
            yield from _of_keys(table, None, tables, deletes=True)


def _of_references(table: Table, assigned: Assigned) -> Iterator[Need]:
    """The locks for rows that are new or refer to other rows than before."""
    for reference in table.foreign_keys:
        if assigned is None or not assigned.isdisjoint(reference.columns):
            yield Keys(reference.target), Mode.ROW_EXCLUSIVE
            yield Relation(reference.target), Mode.ROW_SHARE


def _of_keys(table: Table, assigned: Assigned, tables: Mapping[int, Table], deletes: bool) -> Iterator[Need]:
    """The locks for rows that are deleted or get other keys, and for the rows that follow them by actions."""
    pending, seen = [(table, assigned, deletes)], {table.oid}
    while pending:
        parent, columns, goes = pending.pop()
        for child, reference in referring(parent, tables):
            if columns is not None and columns.isdisjoint(reference.target_columns):
                continue
            yield Keys(parent.oid), Mode.SHARE
            actions = {reference.on_update} | ({reference.on_delete} if goes else set())
            if actions <= {"a", "r"}:
                yield Relation(child.oid), Mode.ROW_SHARE
                continue
            yield Relation(child.oid), Mode.ROW_EXCLUSIVE
            yield Rows(child.oid), Mode.SHARE_ROW_EXCLUSIVE
            yield from _of_references(child, frozenset(reference.columns))
            if child.oid not in seen:
                seen.add(child.oid)
                pending.append((child, None if goes else frozenset(reference.columns), goes))


def referring(table: Table, tables: Mapping[int, Table]) -> Iterator[tuple[Table, ForeignKey]]:
    """The foreign keys to a table, each with the table that contains it."""
    for other in tables.values():
        for reference in other.foreign_keys:
            if reference.target == table.oid:
                yield other, reference


def neighbours(oids: set[int], tables: Mapping[int, Table]) -> set[int]:
    """These tables, and all tables connected with them by foreign keys, directly or through others."""
    links = _links(tables)
    found, pending = set(oids), list(oids)
    while pending:
        for other in links.get(pending.pop(), ()):
            if other not in found:
                found.add(other)
                pending.append(other)
    return found


def _find_links(tables: Mapping[int, Table]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for table in tables.values():
        for reference in table.foreign_keys:
            found.setdefault(table.oid, set()).add(reference.target)
            found.setdefault(reference.target, set()).add(table.oid)
    return found


_links: Final = Remembered(_find_links, 8)


def assigned_by(statement: Update) -> Assigned:
    """The columns that an UPDATE changes: all except those that its relation passes on unchanged."""
    found = set[str]()
    for stored, old, new in zip(statement.target.stored, statement.old, statement.new, strict=True):
        if _traced(statement.relation, old) != _traced(statement.relation, new):
            found.add(stored.name)
    return frozenset(found)


def _traced(relation: Algebra, column: Column) -> Scalar:
    """A column of projections, expressed over the relation below them."""
    value: Scalar = ColumnRef(column)
    while isinstance(relation, Project) and isinstance(value, ColumnRef):
        value = next(
            (each for known, each in relation.outputs if known is value.column or known == value.column), value
        )
        relation = relation.input
    return value
