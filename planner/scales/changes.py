"""Rows of tables with their scales: what INSERT, UPDATE, DELETE, MERGE, COPY and new definitions write and return.

A row is what ``Table.stored`` says: the columns, then the scale of each column that keeps one. Owns: the complement of
statements' rows to that, and which columns keep scales. Columns that a row had before them stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec.structs import replace

from catalog.objects import ColumnDefinition, Stream, Table, View
from catalog.values.errors import SqlError
from catalog.values.scales import has_unconstrained, scale_name
from planner.algebra.nodes import Call, Column, Literal, Parameter, Project, Relation, Scalar, Values
from planner.scales.columns import projected
from planner.scales.nested import in_place
from planner.scales.relations import Derivation
from planner.scales.terms import of_type
from planner.statements.definitions import AlterTable
from planner.statements.statement import (
    Conflict,
    CopyIn,
    CreateView,
    Delete,
    Generated,
    Insert,
    Merge,
    Query,
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


class _Rows:
    """The rows of one relation: values, and behind them the scales of the columns that keep some."""

    def __init__(self, scales: Derivation, relation: Table | Stream) -> None:
        self._scales = scales
        #: Which columns keep scales.
        self.places = [place for place, column in enumerate(relation.columns) if column.keeps_scale]

    def scales_of(self, row: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """The scales of a row's values as they are stored."""
        return tuple(in_place(self._scales.of(row[place]), row[place].type) for place in self.places)

    def known_of(self, row: Sequence[Column]) -> tuple[Scalar, ...]:
        """The scales of a row's columns as they are stored."""
        return tuple(in_place(self._scales.of_column(row[place]), row[place].type) for place in self.places)

    def beside(self, row: Sequence[Column]) -> tuple[Column, ...]:
        """New columns for the scales of a row's, whose others show what their types say: they are stored so."""
        for place, column in enumerate(row):
            if place not in self.places:
                self._scales.know(column, of_type(column.type))
        return tuple(self._scales.beside(row[place]) for place in self.places)

    def written(self, outputs: Outputs, beside: tuple[Column, ...] | None = None) -> Outputs:
        """A row's values, as they are written, and then their scales."""
        values = self._scales.scalars(outputs)
        scales = self.scales_of([scalar for _, scalar in values])
        more = self.beside([column for column, _ in outputs]) if beside is None else beside
        return (*values, *zip(more, scales, strict=True))

    def generated(self, generated: Generated, beside: tuple[Column, ...]) -> Generated:
        """A row's values and scales once generated columns are computed."""
        return self.written(generated, beside) if generated else ()

    def read(self, relation: Relation, *rows: tuple[Column, ...]) -> tuple[Relation, list[tuple[Column, ...]]]:
        """What a change reads, with the scales of the rows that are in it."""
        found = self._scales.relation(relation)
        added: list[tuple[Column, Scalar]] = []
        whole = []
        for row in rows:
            scales = self.known_of(row)
            beside = self.beside(row)
            added += zip(beside, scales, strict=True)
            whole.append((*row, *beside))
        return projected(found, found.columns, added), whole


def filling(scales: Derivation, relation: Relation, table: Table) -> Relation:
    """The rows of a new table."""
    rows, own = _Rows(scales, table), relation.columns
    found = scales.relation(relation)
    told = rows.known_of(own)
    return projected(
        found, own, [(scales.beside(own[place]), scale) for place, scale in zip(rows.places, told, strict=True)]
    )


def beside_view(scales: Derivation, query: Query) -> tuple[Query, frozenset[Column]]:
    """A continuous view's query with the scales that its columns' types do not say, and the columns beside which they
    are."""
    own = query.relation.columns
    found = scales.relation(query.relation)
    shown = scales.showing(own)
    beside = [(scales.beside(column), scale) for column, scale in shown]
    return replace(query, relation=projected(found, own, beside)), frozenset(column for column, _ in shown)


def viewed(scales: Derivation, statement: CreateView) -> CreateView:
    """A continuous view, which keeps the scales that its columns' types do not say."""
    view, own = statement.view, statement.query.relation.columns
    query, kept = beside_view(scales, statement.query)
    pairs = zip(view.columns, own, strict=True)
    columns = tuple(replace(item, keeps_scale=column in kept) for item, column in pairs)
    require_distinct(columns)
    return replace(statement, view=replace(view, columns=columns), query=query)


# --- INSERT and COPY -------------------------------------------------------------------------------------------------


def inserted(scales: Derivation, insert: Insert, *, shows: bool = True) -> Insert:
    """INSERT."""
    rows = _Rows(scales, insert.target)
    source, own, literals = insert.source, insert.source.columns, None
    if isinstance(source, Values):
        values = [tuple(map(scales.scalar, cells)) for cells in source.rows]
        told = list(map(rows.scales_of, values))
        beside = rows.beside(own)
        whole = tuple((*cells, *more) for cells, more in zip(values, told, strict=True))
        source = replace(source, columns=(*own, *beside), rows=whole)
        literals = whole if insert.literals is not None and all(map(_is_plain, chain(*told))) else None
    else:
        found = scales.relation(source)
        known = rows.known_of(own)
        beside = rows.beside(own)
        source = projected(found, own, list(zip(beside, known, strict=True)))
    return replace(
        insert,
        source=source,
        row=(*insert.row, *beside),
        checks=scales.scalars(insert.checks),
        view_checks=scales.scalars(insert.view_checks),
        returning=_returning(scales, insert.returning, shows),
        literals=literals,
        conflict=_conflict(scales, insert.conflict, rows),
        generated=rows.generated(insert.generated, beside),
    )


def _is_plain(scale: Scalar) -> bool:
    """Whether a scale is known without an engine."""
    return isinstance(scale, Literal) or (
        isinstance(scale, Call) and scale.function == "written_scale" and isinstance(scale.arguments[0], Parameter)
    )


def copied(scales: Derivation, copy: CopyIn) -> CopyIn:
    """COPY FROM: its rows come with their scales."""
    rows = _Rows(scales, copy.target)
    beside = rows.beside(copy.row)
    defaults = scales.scalars(copy.defaults)
    behind = {place: len(copy.row) + index for index, place in enumerate(rows.places)}
    told = [(behind[i], in_place(scales.of(value), value.type)) for i, value in defaults if i in behind]
    return replace(
        copy,
        defaults=(*defaults, *told),
        row=(*copy.row, *beside),
        checks=scales.scalars(copy.checks),
        generated=rows.generated(copy.generated, beside),
        where=None if copy.where is None else scales.scalar(copy.where),
    )


def _returning(scales: Derivation, returning: Returning | None, shows: bool) -> Returning | None:
    if returning is None:
        return None
    values = scales.scalars(returning.expressions)
    if shows:
        return replace(returning, expressions=tuple(scales.shown(*value) for value in values))
    told = [item for column, value in values for item in scales.told(column, scales.of(value))]
    return replace(returning, expressions=(*values, *told))


def _conflict(scales: Derivation, conflict: Conflict | None, rows: _Rows) -> Conflict | None:
    """ON CONFLICT DO UPDATE; the proposed row's columns are known already."""
    if conflict is None or conflict.update is None:
        return conflict
    update = conflict.update
    old = (*update.old, *rows.beside(update.old))
    predicate = None if update.predicate is None else scales.scalar(update.predicate)
    return replace(conflict, update=Upsert(old, predicate, rows.written(update.assigned)))


# --- UPDATE, DELETE and MERGE ----------------------------------------------------------------------------------------


def updated(scales: Derivation, update: Update, *, shows: bool = True) -> Update:
    """UPDATE."""
    rows = _Rows(scales, update.target)
    relation, (old, new) = rows.read(update.relation, update.old, update.new)
    return replace(
        update,
        relation=relation,
        old=old,
        new=new,
        checks=scales.scalars(update.checks),
        returning=_returning(scales, update.returning, shows),
        generated=rows.generated(update.generated, new[len(update.new) :]),
    )


def deleted(scales: Derivation, delete: Delete, *, shows: bool = True) -> Delete:
    """DELETE."""
    relation, (old,) = _Rows(scales, delete.target).read(delete.relation, delete.old)
    return replace(delete, relation=relation, old=old, returning=_returning(scales, delete.returning, shows))


def merged(scales: Derivation, merge: Merge) -> Merge:
    """MERGE: what its clauses write are expressions over all that its relation has."""
    rows = _Rows(scales, merge.target)
    relation, (old,) = rows.read(merge.relation, merge.old)
    actions = tuple(replace(action, row=rows.written(action.row)) if action.row else action for action in merge.actions)
    beside = rows.beside(merge.new)
    return replace(
        merge,
        relation=relation,
        old=old,
        new=(*merge.new, *beside),
        actions=actions,
        checks=scales.scalars(merge.checks),
        generated=rows.generated(merge.generated, beside),
    )


# --- ALTER TABLE -----------------------------------------------------------------------------------------------------


def altered(scales: Derivation, statement: AlterTable) -> AlterTable:
    """ALTER TABLE: columns that were there before keep scales as they did."""
    before = [(column.name, column.type) for column in statement.before.columns]
    table = statement.table
    if not statement.renames:
        table = replace(table, columns=keeping(table.columns, before))
    if not keeps(table) and not keeps(statement.before):
        return statement
    rows = statement.rows
    if isinstance(rows, Project):
        scales.read(statement.before)
        source = scales.relation(rows.input)
        rows = Project(source, _Rows(scales, table).written(rows.outputs))
    scales.read(table)
    checks = tuple((name, scales.own(scales.relation(item))) for name, item in statement.checks)
    return replace(statement, table=table, rows=rows, checks=checks)
