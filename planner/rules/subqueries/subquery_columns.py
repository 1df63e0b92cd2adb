"""A relation that grows joins as subqueries over its rows become columns: the work of ``decorrelate``.

Owns ``Lift``, made for one operator's input and used up by it: each subquery becomes a join onto ``Lift.relation``, and
either filters it (EXISTS and IN as conjuncts) or gives an expression over its new columns (anywhere else). What these
joins cannot have goes the general way (``subquery_joins``), which computes the relation, or less of it, a second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, INT4, INT8
from planner.algebra.construction import (
    FALSE,
    SUBQUERIES,
    TRUE,
    Fresh,
    conjunction,
    conjuncts,
    equality,
    has_subquery,
    rename_columns,
    substitute,
)
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Column,
    ColumnRef,
    Exists,
    Filter,
    InSubquery,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Sort,
    Values,
)
from planner.algebra.nulls import is_never_null, never_null
from planner.algebra.walk import free_columns, produced_columns, transform, used_columns
from planner.rules.subqueries.correlation import (
    SingleRow,
    equal_parts,
    name_of,
    pull,
    refuse,
    rows_at_most_one,
    single_row,
    without_top,
)
from planner.rules.subqueries.dependent_joins import independent_join, over_nothing
from planner.rules.subqueries.subquery_joins import joined_value

_ZERO: Final = Literal(0, INT8)


def _rows_exactly_one(relation: Relation) -> bool:
    while isinstance(relation, Project | Sort):
        relation = relation.input
    return (isinstance(relation, Aggregate) and not relation.keys) or (
        isinstance(relation, Values) and len(relation.rows) == 1
    )


class Lift:
    """A relation that grows joins as subqueries over its rows are replaced by their columns."""

    def __init__(self, relation: Relation, fresh: Fresh) -> None:
        self.relation = relation
        self._fresh = fresh

    # -- subqueries that are whole conjuncts -----------------------------------------------------------------------

    def exists(self, kind: Any, node: Exists) -> None:
        """Keeps the rows for which the subquery has a row (``semi``) or none (``anti``)."""
        if single_row(_with_column(node.relation, self._fresh)) is not None:
            value = self.scalar(node)
            self.relation = Filter(self.relation, value if kind == "semi" else Call("not", (value,), BOOL))
            return
        relation = self._own(without_top(node.relation))
        self.relation = self._joined(kind, relation, ())

    def member(self, kind: Any, node: InSubquery) -> bool:
        """Keeps the rows for which the argument is in the subquery for sure, or not in it for sure.

        False, and nothing done, where the general way (``scalar``) must be taken."""
        if has_subquery(node.argument) or (free_columns(node.relation) and single_row(node.relation) is not None):
            return False
        relation = self._own(node.relation)
        value: Scalar = ColumnRef(relation.columns[0])
        while free_columns(relation) and isinstance(relation, Project):
            value, relation = substitute(value, dict(relation.outputs)), relation.input
        same = equality(node.argument, value)
        if kind == "anti" and not self._never_null(node.argument, relation, value):
            if value == ColumnRef(relation.columns[0]) and not free_columns(relation):
                self._anti_with_counts(node.argument, relation)
                return True
            same = Call("is_not_false", (same,), BOOL)
        self.relation = self._joined(kind, relation, (same,))
        return True

    def _joined(self, kind: Any, relation: Relation, more: tuple[Scalar, ...]) -> Relation:
        """The join on correlated predicates and more, or the general one."""
        try:
            pulled = pull(relation, self._fresh)
        except SqlError as error:
            with _instead_of(error):
                return independent_join(kind, self.relation, relation, conjunction(more), self._fresh)
        return Join(kind, self.relation, pulled.relation, conjunction((*more, *pulled.predicates)))

    def _never_null(self, argument: Scalar, relation: Relation, value: Scalar) -> bool:
        known = never_null(self.relation) | never_null(relation)
        return is_never_null(argument, known) and is_never_null(value, known)

    def _anti_with_counts(self, argument: Scalar, relation: Relation) -> None:
        """NOT IN where NULLs may occur: true when S is empty, or a is not NULL, S has no NULL and no row equals a."""
        rows, values = self._counts(relation, ())
        found = equality(argument, ColumnRef(relation.columns[0]))
        self.relation = Join("anti", self.relation, relation, found)
        empty = equality(rows, _ZERO)
        sure = Call("and", (Call("is_not_null", (argument,), BOOL), equality(rows, values)), BOOL)
        self.relation = Filter(self.relation, Call("or", (empty, sure), BOOL))

    # -- subqueries anywhere in a scalar ---------------------------------------------------------------------------

    def scalar(self, scalar: Scalar) -> Scalar:
        """The scalar with its subqueries replaced by what joins provide."""
        if not has_subquery(scalar):
            return scalar
        result: Scalar = transform(scalar, self.change)
        return result

    def change(self, node: Any) -> Any:
        """One node: a subquery becomes an expression over joined columns."""
        if not isinstance(node, SUBQUERIES):
            return node
        node = replace(node, relation=self._own(node.relation))
        before = self.relation
        try:
            return self._special(node)
        except SqlError as error:
            with _instead_of(error):
                self.relation, value = joined_value(before, node, self._fresh)
                return value

    def _special(self, node: ScalarSubquery | Exists | InSubquery) -> Scalar:
        match node:
            case ScalarSubquery():
                return self._value(node)
            case Exists():
                return self._existence(node)
            case InSubquery():
                return self._membership(node)

    def _value(self, node: ScalarSubquery) -> Scalar:
        relation = node.relation
        if free_columns(relation):
            single = single_row(relation)
            if single is None:
                raise refuse("that is not an aggregate without GROUP BY, so that it could return several rows,")
            return self._single(single, Literal(None, node.type))
        if not rows_at_most_one(relation):
            return node
        kind: Any = "inner" if _rows_exactly_one(relation) else "left"
        self.relation = Join(kind, self.relation, relation, None)
        return ColumnRef(relation.columns[0])

    def _existence(self, node: Exists) -> Scalar:
        relation = _with_column(node.relation, self._fresh)
        single = single_row(relation)
        if single is not None:
            return self._single(SingleRow(single.aggregate, TRUE, single.conditions), FALSE)
        relation = without_top(relation)
        if not free_columns(relation):
            rows, _ = self._counts(relation, ())
            return Call("gt", (rows, _ZERO), BOOL)
        pulled = pull(relation, self._fresh)
        keys, outer = self._keys(pulled.predicates, relation)
        grouped = Aggregate(pulled.relation, keys, ())
        self.relation = Join("left", self.relation, grouped, _pairs(keys, outer))
        return Call("is_not_null", (ColumnRef(keys[0][0]),), BOOL)

    def _membership(self, node: InSubquery) -> Scalar:
        """IN, three-valued: true with a match, false over no rows, NULL with a NULL on either side, else false."""
        single = single_row(node.relation) if free_columns(node.relation) else None
        if single is not None:  # the row may be missing, and then nothing is among the rows
            value = equality(node.argument, single.value)
            return self._single(SingleRow(single.aggregate, value, single.conditions), FALSE)
        relation = node.relation
        pulled = pull(relation, self._fresh)
        item = ColumnRef(relation.columns[0])
        keys, outer = self._keys(pulled.predicates, relation)
        grouped = Aggregate(pulled.relation, (*keys, (self._fresh.copy(item.column), item)), ())
        found = equality(node.argument, ColumnRef(grouped.columns[-1]))
        self.relation = Join("left", self.relation, grouped, conjunction((*conjuncts(_pairs(keys, outer)), found)))
        renamed, mapping = self._fresh.rename(pulled.relation)
        again = tuple((self._fresh.copy(column), rename_columns(value, mapping)) for column, value in keys)
        rows, values = self._counts(renamed, again, outer, mapping[item.column])
        unknown = Call("or", (Call("is_null", (node.argument,), BOOL), Call("lt", (values, rows), BOOL)), BOOL)
        branches: tuple[tuple[Scalar, Scalar], ...] = (
            (Call("is_not_null", (ColumnRef(grouped.columns[-1]),), BOOL), TRUE),
            (equality(rows, _ZERO), FALSE),
            (unknown, Literal(None, BOOL)),
        )
        return Case(branches, FALSE, BOOL)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _own(self, relation: Relation) -> Relation:
        """The subquery with columns that the relation does not have yet, not even where it does not show them: an
        expression with a subquery may stand in several places, and projections between these may go."""
        taken = produced_columns(relation) & produced_columns(self.relation)
        return self._fresh.rename(relation)[0] if taken else relation

    def _keys(
        self, predicates: list[Scalar], relation: Relation
    ) -> tuple[tuple[tuple[Column, Scalar], ...], tuple[Scalar, ...]]:
        """Group keys for correlated equalities, and what each equals in the enclosing row."""
        outer_columns = frozenset(free_columns(relation))
        keys: list[tuple[Column, Scalar]] = []
        outer: list[Scalar] = []
        for predicate in predicates:
            parts = equal_parts(predicate, outer_columns)
            if parts is None:
                raise refuse("compared otherwise than by equality with the outer query")
            keys.append((self._fresh.column(name_of(parts[0]), parts[0].type), parts[0]))
            outer.append(parts[1])
        return tuple(keys), tuple(outer)

    def _single(self, single: SingleRow, otherwise: Scalar) -> Scalar:
        """The value over an aggregate without keys: its group may not exist, then counts are 0 and the rest is NULL."""
        relation = single.aggregate.input
        given = produced_columns(relation)
        if any(used_columns(call) - given for _, call in single.aggregate.aggregates):
            raise refuse("whose aggregate uses the outer query's columns")
        pulled = pull(relation, self._fresh)
        keys, outer = self._keys(pulled.predicates, relation)
        grouped = Aggregate(pulled.relation, keys, single.aggregate.aggregates)
        kind: Any = "left" if keys else "inner"
        self.relation = Join(kind, self.relation, grouped, _pairs(keys, outer))
        counts = dict(over_nothing(grouped)) if keys else {}
        condition = conjunction(substitute(item, counts) for item in single.conditions)
        value = substitute(single.value, counts)
        return value if condition is None else Case(((condition, value),), otherwise, value.type)

    def _counts(
        self,
        relation: Relation,
        keys: tuple[tuple[Column, Scalar], ...],
        outer: tuple[Scalar, ...] = (),
        item: Column | None = None,
    ) -> tuple[Scalar, Scalar]:
        """Joined columns: the subquery's number of rows, and of rows whose (first) column is not NULL."""
        copied, mapping = self._fresh.rename(relation)
        own = tuple((self._fresh.copy(column), rename_columns(value, mapping)) for column, value in keys)
        arguments = tuple(
            ColumnRef(mapping[column]) for column in ((item,) if item is not None else relation.columns[:1])
        )
        rows = (self._fresh.column("rows", INT8, False), AggregateCall("count", (), INT8))
        values = (self._fresh.column("values", INT8, False), AggregateCall("count", arguments, INT8))
        grouped = Aggregate(copied, own, (rows, values))
        self.relation = Join("left" if keys else "inner", self.relation, grouped, _pairs(own, outer))
        rows_read, values_read = ColumnRef(rows[0]), ColumnRef(values[0])
        if not keys:
            return rows_read, values_read
        return Call("coalesce", (rows_read, _ZERO), INT8), Call("coalesce", (values_read, _ZERO), INT8)


def _pairs(keys: tuple[tuple[Column, Scalar], ...], outer: tuple[Scalar, ...]) -> Scalar | None:
    return conjunction(equality(ColumnRef(column), other) for (column, _), other in zip(keys, outer, strict=True))


@contextmanager
def _instead_of(error: SqlError) -> Iterator[None]:
    """Another way where one was refused; if that is refused, too, the first refusal counts."""
    if error.sqlstate != "0A000":
        raise error
    try:
        yield
    except SqlError as other:
        raise (error if other.sqlstate == "0A000" else other) from None


def _with_column(relation: Relation, fresh: Fresh) -> Relation:
    """A subquery that has a column to speak of (EXISTS (SELECT FROM t) has none)."""
    if relation.columns:
        return relation
    return Project(relation, ((fresh.column("one", INT4, False), Literal(1, INT4)),))
