"""GROUP BY and aggregates: from expressions over the input's rows to expressions over groups.

Owns: replacing group keys, aggregates and GROUPING() by the columns of groups, what a primary key in GROUP BY
determines, and the error 42803 for a column that is neither grouped nor aggregated. Several grouping sets are one
grouping of each row once for each set, so that they are computed in one pass and maintained like any other grouping::

    Aggregate(R x {1, 2}, keys: set, CASE WHEN set IN (1, 2) THEN a END, CASE WHEN set = 1 THEN b END)

and an Aggregate without keys beside it for the sets (), whose row is there even when R is empty.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, INT4
from planner.algebra.construction import volatility
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Case,
    Column,
    ColumnRef,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Values,
    WindowCall,
)
from planner.algebra.walk import RELATIONS, SCALARS, children, descend, used_columns
from planner.bind.calls.aggregation.event_time_windows import (
    SESSION,
    expand,
    is_placeholder,
    refuse_outside,
    window_key,
)
from planner.bind.calls.aggregation.session_windows import sessions_of_stream
from planner.bind.lookup.columns import written_name
from planner.bind.queries.grouping_sets import Keys
from planner.bind.scalars.equal_expressions import of_queries
from planner.bind.state.collected_calls import GROUPING, Groups
from planner.bind.state.environment import Binding, Scope
from planner.incremental.properties import Kinds

_Item = TypeVar("_Item", bound=Scalar | WindowCall)


class Grouping:
    """One query level's groups. ``over`` rewrites expressions; ``relation`` is asked for afterwards."""

    def __init__(
        self, binding: Binding, scope: Scope, source: Relation, sets: Sequence[Keys] | None, groups: Groups
    ) -> None:
        self._binding = binding
        self._scope = scope
        self._input = source
        self._groups = groups
        self._local = {column.id for column in source.columns}
        self._sets = list(sets or [()])
        self._set = binding.column("grouping_set", INT4, False)
        self._keys: list[tuple[Column, Scalar]] = []
        self._queries: dict[tuple[type, Hashable], Column] = {}  # keys with subqueries, by what they say
        for key in dict.fromkeys(key for keys in self._sets for key in keys):
            self._add(key)
        self._window = window_key(binding, [key for _, key in self._keys], len(self._sets))

    def _add(self, key: Scalar) -> Column:
        name = key.column.name if isinstance(key, ColumnRef) else "key"
        nullable = key.column.nullable if isinstance(key, ColumnRef) else True
        column = self._binding.column(name, key.type, nullable or len(self._sets) > 1)
        self._keys.append((column, key))
        said = of_queries(key)
        if said is not None:
            self._queries.setdefault(said, column)
        return column

    def over(self, scalar: _Item, node: Any = None) -> _Item:
        """An expression of the select list, HAVING or ORDER BY, or a window call, over the groups. Raises 42803, at
        ``node`` where a ``*`` there has written the column.
        """

        def change(item: Any) -> Any:
            if not isinstance(item, SCALARS):
                return item
            if isinstance(item, Call) and item.function == GROUPING and self._is_own(item):
                return self._mask(item)
            key = self._key(item)
            if key is not None:
                return ColumnRef(key)
            if is_placeholder(item):
                raise refuse_outside(item.function, self._binding.origin(item)[0])
            if isinstance(item, ColumnRef) and item.column.id in self._local:
                return ColumnRef(self._determined(item, scalar, node))
            return item

        found: _Item = descend(scalar, change)
        return found

    def check_direct(self, scalars: Sequence[Scalar]) -> None:
        """That direct arguments of aggregates are the same for all rows of each group. Raises 42803 and 0A000."""
        for scalar in scalars:
            detail = "Direct arguments of an ordered-set aggregate must use only grouped columns."
            try:
                used = used_columns(self.over(scalar))
            except SqlError as error:
                if error.sqlstate == "42803":
                    error.detail = detail
                raise
            for column, key in self._keys:
                if column in used and not all(key in keys for keys in self._sets):
                    what = "a direct argument of an aggregate by which not all grouping sets group"
                    raise unsupported(what, "Write a query for each set.", self._binding.origin(key)[0])

    def _key(self, item: Scalar) -> Column | None:
        """The column of the key that an expression is."""
        found = next((column for column, key in self._keys if item == key), None)
        if found is None and self._queries and (said := of_queries(item)) is not None:
            return self._queries.get(said)
        return found

    def _is_own(self, node: Call) -> bool:
        """Whether a GROUPING() is this query's, and not one around it."""
        used = used_columns(node)
        return not used or any(column.id in self._local for column in used)

    def _mask(self, node: Call) -> Scalar:
        """GROUPING(): a bit for each argument, 1 where the row's set does not have it."""
        known = [key for _, key in self._keys]
        for argument in node.arguments:
            if argument not in known:
                message = "arguments to GROUPING must be grouping expressions of the associated query level"
                raise SqlError("42803", message, position=self._binding.origin(argument)[0])
        bits = range(len(node.arguments) - 1, -1, -1)
        masks = [
            sum((argument not in keys) << bit for argument, bit in zip(node.arguments, bits, strict=True))
            for keys in self._sets
        ]
        if len(set(masks)) == 1:
            return Literal(masks[0], INT4)
        branches = tuple((self._in_set(number), Literal(mask, INT4)) for number, mask in enumerate(masks))
        return Case(branches[:-1], branches[-1][1], INT4)

    def _in_set(self, number: int) -> Scalar:
        return _among(self._set, [number])

    def _determined(self, node: ColumnRef, whole: Scalar | WindowCall, written: Any) -> Column:
        """The key column of a column that a primary key determines which every set groups by: it becomes a key of all
        of them itself."""
        common = [key for _, key in self._keys if all(key in keys for keys in self._sets)]
        grouped = {key.column.id for key in common if isinstance(key, ColumnRef)}
        for source in self._scope.sources:
            covered = bool(source.key) and all(column.id in grouped for column in source.key)
            if covered and any(entry.scalar == node for entry in source.entries):
                self._sets = [(*keys, node) for keys in self._sets]
                return self._add(node)
        raise self._ungrouped(node, whole, written)

    def _ungrouped(self, node: ColumnRef, whole: Scalar | WindowCall, written: Any) -> SqlError:
        position = self._binding.origin(node)[0] or self._binding.start(written)
        name = written_name(self._scope, node)
        if _directly_in(whole, node):
            message = f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function'
        else:
            message = f'subquery uses ungrouped column "{name}" from outer query'
        return SqlError("42803", message, position=position)

    def relation(self) -> Relation:
        """The groups."""
        if self._window is not None:
            return self._of_windows(self._window)
        if len(self._sets) == 1:
            return Aggregate(self._input, tuple(self._keys), tuple(self._groups.aggregates))
        keyed = [number for number, keys in enumerate(self._sets) if keys]
        empty = [number for number, keys in enumerate(self._sets) if not keys]
        if not empty:
            return self._of_sets(keyed)
        if volatility(self._input) == "volatile":
            raise unsupported("a volatile function below several grouping sets", "Compute it in a table first.")
        columns = (self._set, *(column for column, _ in self._keys), *(column for column, _ in self._groups.aggregates))
        totals = self._totals(empty)
        if not keyed:
            pairs = zip(columns, totals.columns, strict=True)
            return Project(totals, tuple((new, ColumnRef(old)) for new, old in pairs))
        return SetOperation("union", True, self._copied(self._of_sets(keyed)), totals, columns)

    def _of_windows(self, window: Call) -> Relation:
        """The groups of rows in windows that no expression over the row alone can tell."""
        if window.function == SESSION and Kinds().of(self._input) == "stream":
            return sessions_of_stream(self._binding, self._input, self._keys, window, self._groups.aggregates)
        others = tuple(key for _, key in self._keys if key != window)
        source, start = expand(self._binding, self._input, window, others)
        keys = tuple((column, start if key == window else key) for column, key in self._keys)
        return Aggregate(source, keys, tuple(self._groups.aggregates))

    def _of_sets(self, numbers: list[int]) -> Aggregate:
        """The groups of sets with keys: each row counts once for each set."""
        copies = Join("inner", self._input, _numbers(number := self._copy(self._set), numbers), None)
        computed: list[tuple[Column, Scalar]] = [(self._set, ColumnRef(number))]
        for column, key in self._keys:
            having = [place for place in numbers if key in self._sets[place]]
            kept = Case(((_among(number, having), key),), Literal(None, key.type), key.type)
            computed.append((column, key if having == numbers else kept))
        return Aggregate(copies, tuple(computed), tuple(self._groups.aggregates))

    def _copied(self, relation: Relation) -> Relation:
        """The relation with columns of new identities, as an arm of a union."""
        return Project(relation, tuple((self._copy(column), ColumnRef(column)) for column in relation.columns))

    def _copy(self, column: Column) -> Column:
        return self._binding.column(column.name, column.type, column.nullable)

    def _totals(self, numbers: list[int]) -> Relation:
        """The row of each set without keys."""
        aggregates = tuple((self._copy(column), call) for column, call in self._groups.aggregates)
        total = Join("inner", Aggregate(self._input, (), aggregates), _numbers(self._copy(self._set), numbers), None)
        number = total.columns[-1]
        outputs: list[tuple[Column, Scalar]] = [(self._copy(number), ColumnRef(number))]
        outputs += [(self._copy(column), Literal(None, column.type)) for column, _ in self._keys]
        outputs += [(self._copy(column), ColumnRef(column)) for column, _ in aggregates]
        return Project(total, tuple(outputs))


def _among(column: Column, numbers: list[int]) -> Scalar:
    """Whether a row belongs to one of some sets."""
    return Call("in", (ColumnRef(column), *(Literal(number, INT4) for number in numbers)), BOOL)


def _numbers(column: Column, numbers: list[int]) -> Values:
    return Values((column,), tuple((Literal(number, INT4),) for number in numbers))


def _directly_in(scalar: Scalar | WindowCall, wanted: ColumnRef) -> bool:
    """Whether a reference stands in an expression itself and not in a subquery of it."""
    stack: list[Any] = [scalar]
    while stack:
        node = stack.pop()
        if node is wanted:
            return True
        if not isinstance(node, RELATIONS):
            stack.extend(children(node))
    return False
