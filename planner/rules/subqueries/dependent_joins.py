"""A join whose right side uses the left's columns as one whose sides know nothing of each other.

Neumann and Kemper's general method (Unnesting Arbitrary Queries, BTW 2015): the right side is computed at once for all
values of the left's columns that it uses. Their distinct tuples are the domain D, and D is pushed down the right side
to where no column of the left is used any more; >o is the dependent join, = the equality in which NULL equals NULL.

    L >o R                =  Project(L join (D >o R) on L.d = D.d)             inner, left, semi and anti
    D >o R                =  D cross join R                                    where R uses nothing of D
    D >o Filter(R, p)     =  Filter(D >o R, p)                                 so too Project, Unnest, Sort
    D >o (R join S)       =  (D >o R) join S                                   inner, where only R uses D; or S alone
    D >o (R join S)       =  (D >o R) join (D >o S) on R.d = S.d               both; the side that is kept always has D
    D >o Aggregate(R, k)  =  Aggregate(D >o R, k and d)
    D >o Aggregate(R)     =  D left join Aggregate(D >o R, d) on d             a count is 0 where the group is not there
    D >o Window(R, p)     =  Window(D >o R, p and d)                           Limit: by the number that one gives
    D >o (R union S)      =  (D >o R) union (D >o S)                           with d as one more column; all kinds

Owns that push. D repeats the left side, or what is left of it (``domain_inputs``).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import BOOL, TEXT, SqlType
from planner.algebra.construction import (
    SUBQUERIES,
    Fresh,
    both,
    keep_columns,
    rename_columns,
    shown_columns,
    volatility,
)
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Join,
    JoinKind,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Sort,
    Unnest,
    Values,
    Window,
    WindowCall,
)
from planner.algebra.nulls import never_null
from planner.algebra.walk import (
    RELATIONS,
    children,
    free_columns,
    inputs,
    replace_columns,
    transform,
    used_columns,
    walk,
)
from planner.rules.row_order.number_rows import number_rows
from planner.rules.subqueries.correlation import refuse
from planner.rules.subqueries.domain_inputs import narrowed, require_repeatable

_ONE_ROW: Final = Values((), ((),))
#: Types in which equal values may differ: the domain has their texts; of 0.0 and -0.0 where it matters.
_LOOSE: Final = frozenset(("interval", "json", "jsonb"))
_FLOATS: Final = frozenset(("float4", "float8"))


def independent_join(
    kind: JoinKind, left: Relation, right: Relation, predicate: Scalar | None, fresh: Fresh
) -> Relation:
    """The rows of a join whose right side may use the left's columns. Raises 0A000."""
    domain = Domain.of(left, right, fresh)
    if domain is None:
        return Join(kind, left, right, predicate)
    joined = Join(kind, left, domain.push(right), both(predicate, domain.pairs()))
    return keep_columns(joined, left.columns if kind in ("semi", "anti") else left.columns + right.columns)


class Domain(Struct, frozen=True):
    """The distinct tuples that ``source`` has in its columns ``outer``; they come as ``columns``."""

    source: Relation
    outer: tuple[Column, ...]
    columns: tuple[Column, ...]
    fresh: Fresh

    @classmethod
    def of(cls, left: Relation, right: Relation, fresh: Fresh) -> Domain | None:
        """Those of the left's columns that the right side uses; None where it uses none. Raises 0A000."""
        outer = tuple(sorted(free_columns(right) & set(left.columns), key=lambda column: column.id))
        if not outer:
            return None
        source = narrowed(left, set(outer))
        require_repeatable(source)
        if volatility(right) == "volatile":
            raise refuse("that calls a volatile function")
        known = never_null(source)
        shown = shown_columns(right)
        columns = (fresh.column(item.name, _carried(item, item in shown), item not in known) for item in outer)
        return cls(source, outer, tuple(columns), fresh)

    def pairs(self) -> list[Scalar]:
        """That a row of the pushed side was made for the columns of a row of the other."""
        pairs = zip(self.outer, self.columns, strict=True)
        return [_same(_carrying(ColumnRef(column), own.type), own) for column, own in pairs]

    def rows(self) -> Relation:
        """The domain, from a copy of its source."""
        copied, mapping = self.fresh.rename(self.source)
        pairs = zip(self.outer, self.columns, strict=True)
        keys = ((own, _carrying(ColumnRef(mapping[column]), own.type)) for column, own in pairs)
        return Aggregate(copied, tuple(keys), ())

    def push(self, relation: Relation) -> Relation:
        """The relation's rows for each row of the domain, whose columns are among its own. Raises 0A000."""
        return self.beside(self._pushed(relation))

    def groups(self, node: Aggregate) -> Aggregate:
        """Those of an aggregate without keys: none for a row of the domain where there is nothing to count."""
        own: Aggregate = self.over_own(replace(node, input=self.beside(self._pushed(node.input))))
        return replace(own, keys=self._passed())

    def beside(self, relation: Relation) -> Relation:
        """The relation with the domain's columns: all of its rows for each of the domain's where it has none."""
        if self._has(relation):
            return relation
        if isinstance(relation, Sort):  # below it, for a join keeps no order
            return Sort(self.beside(relation.input), relation.keys)
        return self.rows() if relation == _ONE_ROW else Join("inner", self.rows(), relation, None)

    def over_own(self, relation: Any) -> Any:
        """A relation that uses the domain's columns in place of the others."""
        values = {
            column: _carrying(ColumnRef(own), column.type) for column, own in zip(self.outer, self.columns, strict=True)
        }
        return replace_columns(relation, values)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _pushed(self, relation: Relation) -> Relation:
        nested = (item.relation for item in walk(relation) if isinstance(item, SUBQUERIES))
        if any(not free_columns(item).isdisjoint(self.outer) for item in nested):
            raise refuse("with a subquery that no rule makes a join")
        result: Relation = transform(self.over_own(relation), self._change)
        return result

    def _has(self, relation: Relation) -> bool:
        return set(self.columns) <= set(relation.columns)

    def _passed(self) -> tuple[tuple[Column, Scalar], ...]:
        return tuple((column, ColumnRef(column)) for column in self.columns)

    def _change(self, node: Any) -> Any:
        """One operator, its inputs done already; one that has nothing of the domain stays."""
        if not isinstance(node, RELATIONS) or not (self._is_using(node) or any(map(self._has, inputs(node)))):
            return node
        match node:
            case Filter() | Sort() | Unnest():
                return replace(node, input=self.beside(node.input))
            case Project():
                return Project(self.beside(node.input), (*node.outputs, *self._passed()))
            case Join():
                return self._join(node)
            case Aggregate(keys=()):
                return self._single(node)
            case Aggregate():
                return replace(node, input=self.beside(node.input), keys=(*node.keys, *self._passed()))
            case Window():
                return replace(node, input=self.beside(node.input), calls=tuple(map(self._parted, node.calls)))
            case Limit():
                numbered = number_rows(replace(node, input=self.beside(node.input)), self.columns, self.fresh)
                return self._keeping(numbered, node.columns)
            case SetOperation():
                left, right = (self._keeping(self.beside(side), side.columns) for side in inputs(node))
                return replace(node, left=left, right=right, columns=self._and_own(node.columns))
            case Values():
                return self._values(node)
            case _:
                raise refuse("with WITH RECURSIVE")

    def _is_using(self, node: Relation) -> bool:
        """Whether the operator's own expressions use the domain's columns."""
        own = (item for item in children(node) if not isinstance(item, RELATIONS))
        return any(not used_columns(item).isdisjoint(self.columns) for item in own)

    def _and_own(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return (*(column for column in columns if column not in self.columns), *self.columns)

    def _keeping(self, relation: Relation, columns: tuple[Column, ...]) -> Relation:
        return keep_columns(relation, self._and_own(columns))

    def _join(self, node: Join) -> Relation:
        """Both sides have the domain where both use it; a side whose rows are kept has it in any case."""
        left, right = node.left, node.right
        if not used_columns(right).isdisjoint(set(left.columns) - set(self.columns)):
            raise refuse("with LATERAL")
        if node.kind in ("right", "full"):
            right = self.beside(right)
        if node.kind not in ("inner", "right") or not (self._has(left) or self._has(right)):
            left = self.beside(left)
        joined = replace(node, left=left, right=right)
        return self._paired(joined) if self._has(left) and self._has(right) else joined

    def _paired(self, node: Join) -> Relation:
        """A join of two sides that have the domain: of rows that were made for one and the same row of it."""
        copies = dict(zip(self.columns, map(self.fresh.copy, self.columns), strict=True))
        name = "left" if node.kind == "right" else "right"
        side = rename_columns(getattr(node, name), copies)
        pairs = (_same(ColumnRef(copy), own) for own, copy in copies.items())
        joined = replace(node, **{name: side}, predicate=both(node.predicate, pairs))
        if node.kind != "full":
            return keep_columns(joined, self._and_own(node.columns))
        found = ((own, Call("coalesce", (ColumnRef(own), ColumnRef(copy)), own.type)) for own, copy in copies.items())
        rest = ((column, ColumnRef(column)) for column in node.columns if column not in self.columns)
        return Project(joined, (*rest, *found))

    def _single(self, node: Aggregate) -> Relation:
        """An aggregate without keys has a row for each of the domain's, also where there was nothing to count."""
        grouped = replace(node, input=self.beside(node.input), keys=self._passed())
        joined = self._paired(Join("left", self.rows(), grouped, None))
        return Project(joined, (*over_nothing(node), *self._passed()))

    def _parted(self, item: tuple[Column, WindowCall]) -> tuple[Column, WindowCall]:
        column, call = item
        return column, replace(call, partition=(*call.partition, *map(ColumnRef, self.columns)))

    def _values(self, node: Values) -> Relation:
        """Each of the literal rows for each row of the domain."""
        arms: list[Relation] = []
        for row in node.rows:
            columns = tuple(map(self.fresh.copy, node.columns))
            arms.append(Project(self.rows(), (*zip(columns, row, strict=True), *self._passed())))
        found = arms[0]
        for arm in arms[1:]:
            columns = (*map(self.fresh.copy, node.columns), *self.columns)
            found = SetOperation("union", True, found, arm, columns)
        renamed = zip(node.columns, map(ColumnRef, found.columns), strict=False)
        return Project(found, (*renamed, *self._passed()))


def over_nothing(node: Aggregate) -> tuple[tuple[Column, Scalar], ...]:
    """An aggregate's columns, read where the group may not be there: what counts is 0, the rest NULL."""
    return tuple(
        (column, Call("coalesce", (ColumnRef(column), Literal(0, call.type)), call.type))
        if call.function == "count"
        else (column, ColumnRef(column))
        for column, call in node.aggregates
    )


def _same(left: Scalar, right: Column) -> Scalar:
    """That a value is the domain's, where NULL is NULL."""
    return Call("is_not_distinct" if right.nullable else "eq", (left, ColumnRef(right)), BOOL)


# -- types whose equal values may differ -------------------------------------------------------------------------------


def _carried(column: Column, is_shown: bool) -> SqlType:
    kind = column.type
    if kind.element is not None and kind.element.name in _LOOSE:
        raise refuse(f"that uses the outer query's {kind}")
    return TEXT if kind.name in _LOOSE or (is_shown and kind.name in _FLOATS) else kind


def _carrying(value: Scalar, kind: SqlType) -> Scalar:
    """A value as the domain has it, or one of the domain's as the outer column's."""
    return value if value.type == kind else Cast(value, kind)
