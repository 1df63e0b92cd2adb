"""Rows of tables with their scales: what INSERT, UPDATE, DELETE, MERGE, COPY and new definitions write and return.

A row is what ``Table.stored`` says: the columns, then the scale of each column that keeps one. Owns: the complement of
statements' rows to that, and which columns keep scales. Columns that a row had before them stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from msgspec.structs import replace

from catalog.objects import ColumnDefinition, Stream, Table, View
from catalog.values.errors import SqlError
from catalog.values.scales import has_unconstrained, scale_name
from planner.algebra.nodes import Call, Column, Literal, Parameter, Project, Relation, Scalar, Values
from planner.scales.columns import projected
from planner.scales.expressions import of_type
from planner.scales.nested import in_place
from planner.scales.relations import Carrying
from planner.statements.definitions import AlterTable
from planner.statements.statement import (
    Checks,
    Conflict,
    CopyIn,
    CreateView,
    Delete,
    Generated,
    Insert,
    Merge,
    MergeAction,
    Returning,
    Update,
    Upsert,
)

Outputs = tuple[tuple[Column, Scalar], ...]


def keeping(columns: tuple[ColumnDefinition, ...], before: Iterable[object] = ()) -> tuple[ColumnDefinition, ...]:
    """Columns: those with numerics without digits keep scales, those of ``before`` (name, type) as they did."""
    known = set(before)
    return tuple(
        replace(
            item, keeps_scale=has_unconstrained(item.type) and (item.keeps_scale or (item.name, item.type) not in known)
        )
        for item in columns
    )


def require_distinct(columns: tuple[ColumnDefinition, ...]) -> None:
    """Raises 42939 for a column that is called as the scales of another one are."""
    names = {item.name for item in columns}
    for item in columns:
        if item.keeps_scale and scale_name(item.name) in names:
            raise SqlError("42939", f'column name "{scale_name(item.name)}" is reserved')


def keeps(item: object) -> bool:
    """Whether something is a relation with columns that keep scales."""
    return isinstance(item, Table | Stream | View) and any(column.keeps_scale for column in item.columns)


def _places(target: Table | Stream) -> list[int]:
    """Which of a target's columns keep scales."""
    return [place for place, column in enumerate(target.columns) if column.keeps_scale]


def _scale(carrying: Carrying, scalar: Scalar) -> Scalar:
    """A value's scale as it is stored."""
    return in_place(carrying.of(scalar), scalar.type)


def _scale_of(carrying: Carrying, column: Column) -> Scalar:
    """The scale of a column's values."""
    return in_place(carrying.of_column(column), column.type)


def _beside(carrying: Carrying, row: tuple[Column, ...], places: list[int]) -> tuple[Column, ...]:
    """New columns for the scales of a row's, whose others show what their types say: they are stored so."""
    for place, column in enumerate(row):
        if place not in places:
            carrying.know(column, of_type(column.type))
    return tuple(carrying.beside(row[place]) for place in places)


def _whole(carrying: Carrying, outputs: Outputs, places: list[int], beside: Iterable[Column] | None = None) -> Outputs:
    """A row's values, as they are written, and then their scales."""
    values = tuple((column, carrying.scalar(scalar)) for column, scalar in outputs)
    scales = [_scale(carrying, values[place][1]) for place in places]
    columns = _beside(carrying, tuple(column for column, _ in outputs), places) if beside is None else tuple(beside)
    return (*values, *zip(columns, scales, strict=True))


def filling(carrying: Carrying, relation: Relation, table: Table) -> Relation:
    """The rows of a new table."""
    own = relation.columns
    found = carrying.relation(relation)
    scales = [(own[place], _scale_of(carrying, own[place])) for place in _places(table)]
    return projected(found, own, [(carrying.beside(column), scale) for column, scale in scales])


def viewed(carrying: Carrying, statement: CreateView) -> CreateView:
    """A continuous view, which keeps the scales that its columns' types do not say."""
    view, query = statement.view, statement.query
    own = query.relation.columns
    found = carrying.relation(query.relation)
    shown = carrying.showing(own)
    scales = [(carrying.beside(column), scale) for column, scale in shown]
    kept = {column for column, _ in shown}
    pairs = zip(view.columns, own, strict=True)
    columns = tuple(replace(item, keeps_scale=column in kept) for item, column in pairs)
    require_distinct(columns)
    return replace(
        statement, view=replace(view, columns=columns), query=replace(query, relation=projected(found, own, scales))
    )


# --- INSERT and COPY -------------------------------------------------------------------------------------------------


def inserted(carrying: Carrying, insert: Insert, *, shows: bool = True) -> Insert:
    """INSERT."""
    places, row = _places(insert.target), insert.row
    source, own, literals = insert.source, insert.source.columns, None
    if isinstance(source, Values):
        rows = [tuple(map(carrying.scalar, cells)) for cells in source.rows]
        scales = [tuple(_scale(carrying, cells[place]) for place in places) for cells in rows]
        beside = _beside(carrying, own, places)
        whole = tuple((*cells, *more) for cells, more in zip(rows, scales, strict=True))
        source = replace(source, columns=(*own, *beside), rows=whole)
        literals = whole if insert.literals is not None and all(map(_is_plain, chain(*scales))) else None
    else:
        found = carrying.relation(source)
        scales_of = [_scale_of(carrying, own[place]) for place in places]
        beside = _beside(carrying, own, places)
        source = projected(found, own, list(zip(beside, scales_of, strict=True)))
    return replace(
        insert,
        source=source,
        row=(*row, *beside),
        checks=_checks(carrying, insert.checks),
        view_checks=_checks(carrying, insert.view_checks),
        returning=_returning(carrying, insert.returning, shows),
        literals=literals,
        conflict=_conflict(carrying, insert.conflict, places),
        generated=_generated(carrying, insert.generated, places, beside),
    )


def _is_plain(scale: Scalar) -> bool:
    """Whether a scale is known without an engine."""
    return isinstance(scale, Literal) or (
        isinstance(scale, Call) and scale.function == "written_scale" and isinstance(scale.arguments[0], Parameter)
    )


def copied(carrying: Carrying, copy: CopyIn) -> CopyIn:
    """COPY FROM: its rows come with their scales."""
    places = _places(copy.target)
    beside = _beside(carrying, copy.row, places)
    defaults = [(index, carrying.scalar(value)) for index, value in copy.defaults]
    scales = [(len(copy.row) + places.index(i), _scale(carrying, value)) for i, value in defaults if i in places]
    return replace(
        copy,
        defaults=(*defaults, *scales),
        row=(*copy.row, *beside),
        checks=_checks(carrying, copy.checks),
        generated=_generated(carrying, copy.generated, places, beside),
        where=None if copy.where is None else carrying.scalar(copy.where),
    )


def _checks(carrying: Carrying, checks: Checks) -> Checks:
    return tuple((name, carrying.scalar(check)) for name, check in checks)


def _generated(carrying: Carrying, generated: Generated, places: list[int], beside: tuple[Column, ...]) -> Generated:
    """A row's values and scales once generated columns are computed."""
    return _whole(carrying, generated, places, beside) if generated else ()


def _returning(carrying: Carrying, returning: Returning | None, shows: bool) -> Returning | None:
    if returning is None:
        return None
    values = tuple((column, carrying.scalar(scalar)) for column, scalar in returning.expressions)
    return replace(returning, expressions=tuple(carrying.shown(*value) for value in values) if shows else values)


def _conflict(carrying: Carrying, conflict: Conflict | None, places: list[int]) -> Conflict | None:
    """ON CONFLICT DO UPDATE; the proposed row's columns are known already."""
    if conflict is None or conflict.update is None:
        return conflict
    update = conflict.update
    old = (*update.old, *_beside(carrying, update.old, places))
    predicate = None if update.predicate is None else carrying.scalar(update.predicate)
    return replace(conflict, update=Upsert(old, predicate, _whole(carrying, update.assigned, places)))


# --- UPDATE, DELETE and MERGE ----------------------------------------------------------------------------------------


def updated(carrying: Carrying, update: Update, *, shows: bool = True) -> Update:
    """UPDATE."""
    places = _places(update.target)
    relation, (old, new) = _read(carrying, update.relation, (update.old, update.new), places)
    return replace(
        update,
        relation=relation,
        old=old,
        new=new,
        checks=_checks(carrying, update.checks),
        returning=_returning(carrying, update.returning, shows),
        generated=_generated(carrying, update.generated, places, new[len(update.new) :]),
    )


def deleted(carrying: Carrying, delete: Delete, *, shows: bool = True) -> Delete:
    """DELETE."""
    relation, (old,) = _read(carrying, delete.relation, (delete.old,), _places(delete.target))
    return replace(delete, relation=relation, old=old, returning=_returning(carrying, delete.returning, shows))


def merged(carrying: Carrying, merge: Merge) -> Merge:
    """MERGE: what its clauses write are expressions over all that its relation has."""
    places = _places(merge.target)
    relation, (old,) = _read(carrying, merge.relation, (merge.old,), places)
    actions = tuple(_action(carrying, action, places) for action in merge.actions)
    new = (*merge.new, *_beside(carrying, merge.new, places))
    checks = _checks(carrying, merge.checks)
    generated = _generated(carrying, merge.generated, places, new[len(merge.new) :])
    return replace(merge, relation=relation, old=old, new=new, actions=actions, checks=checks, generated=generated)


def _action(carrying: Carrying, action: MergeAction, places: list[int]) -> MergeAction:
    return replace(action, row=_whole(carrying, action.row, places)) if action.row else action


def _read(
    carrying: Carrying, relation: Relation, rows: tuple[tuple[Column, ...], ...], places: list[int]
) -> tuple[Relation, list[tuple[Column, ...]]]:
    """What a change reads, with the scales of the rows that are in it."""
    found = carrying.relation(relation)
    added: list[tuple[Column, Scalar]] = []
    whole = []
    for row in rows:
        scales = [_scale_of(carrying, row[place]) for place in places]
        beside = _beside(carrying, row, places)
        added += zip(beside, scales, strict=True)
        whole.append((*row, *beside))
    return projected(found, found.columns, added), whole


# --- ALTER TABLE -----------------------------------------------------------------------------------------------------


def altered(carrying: Carrying, statement: AlterTable) -> AlterTable:
    """ALTER TABLE: columns that were there before keep scales as they did."""
    before = [(column.name, column.type) for column in statement.before.columns]
    table = statement.table
    if not statement.renames:
        table = replace(table, columns=keeping(table.columns, before))
    if not keeps(table) and not keeps(statement.before):
        return statement
    rows = statement.rows
    if isinstance(rows, Project):
        carrying.read(statement.before)
        source = carrying.relation(rows.input)
        rows = Project(source, _whole(carrying, rows.outputs, _places(table)))
    carrying.read(table)
    checks = tuple((name, carrying.own(carrying.relation(item))) for name, item in statement.checks)
    return replace(statement, table=table, rows=rows, checks=checks)
