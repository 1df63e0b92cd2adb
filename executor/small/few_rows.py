"""Evaluates relations over a few rows of several leaves: joins and groupings beside what ``relations`` evaluates.

The statements of a dataflow (``executor.dataflow``) meet a few changed rows and those that these find. A join finds
partners by the values of its equalities, and evaluates the rest of its predicate for the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from executor.printing.nodes import leaf_name
from executor.small.relations import Bindings, Step, output_of, schema_of, step_of
from executor.small.small_table import FEW, AnyTable, SmallTable, are_exact, is_exact
from executor.small.value_expressions import Computed, Rows, compiled
from executor.small.values import FAILURES, INTEGERS, KEYS, Cells, Fold, Unusual, computed, fold_of, folded
from planner.algebra.construction import conjunction, conjuncts
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Join,
    Relation,
    Scalar,
    Scan,
    Snapshot,
)
from planner.algebra.walk import find, kinds_of
from planner.incremental.dataflow.keyable import same_value

#: The most values of the leaves, and pairs of rows, for which Python is quicker than an engine.
CELLS: Final = 1536
_PAIRS: Final = 512
_SNAPSHOTS: Final = kinds_of(Snapshot)
_TEXTS: Final = frozenset(("text", "varchar"))
#: Types of which sums are exact.
_SUMMED: Final = (*INTEGERS, "numeric")


class FewRows(Struct, frozen=True):
    """A relation that Python evaluates over few rows of its ``leaves``."""

    step: Step
    leaves: tuple[str, ...]
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    def run(self, bindings: Bindings) -> AnyTable | None:
        """The relation's rows, columns c<id>; None if the engine must compute them."""
        tables = [bindings.get(leaf) for leaf in self.leaves]
        if any(table is None for table in tables):
            return None
        if sum(table.num_rows * table.num_columns for table in tables if table is not None) > CELLS:
            return None
        try:
            rows = self.step(bindings, ())
            small = self._exact(rows)
            return self._table(rows) if small is None else small
        except FAILURES:
            return None

    def _exact(self, rows: Rows) -> SmallTable | None:
        """Rows as Python's values; None where these are not exact."""
        if rows.count > FEW or not are_exact(self.types):
            return None
        found = [rows.columns[column] for column in self.columns]
        cells = [values.cells for values in found]
        if not all(values.type == kind for values, kind in zip(found, self.types, strict=True)):
            return None
        if not all(map(is_exact, self.types, cells)):
            return None
        return SmallTable(self.names, self.types, cells, rows.count)

    def _table(self, rows: Rows) -> pa.Table | None:
        arrays = [rows.columns[column].array for column in self.columns]
        found = pa.Table.from_arrays(arrays, names=list(self.names))
        return found if tuple(found.schema.types) == self.types else None


def few_of(relation: Relation) -> FewRows | None:
    """The evaluation of a relation over snapshots; None if the engine must compute it."""
    try:
        step = _step(relation) if relation.columns else None
    except RecursionError:  # an expression nested thousands of levels deep
        return None
    if step is None:
        return None
    leaves = tuple({leaf_name(leaf): None for leaf in find(relation, _SNAPSHOTS)})
    schema = schema_of(relation)
    return FewRows(step, leaves, relation.columns, tuple(schema.names), tuple(schema.types))


def _step(relation: Relation) -> Step | None:
    match relation:
        case Join():
            return _join(relation, _step(relation.left), _step(relation.right))
        case Aggregate():
            return _grouping(relation, _step(relation.input))
        case Scan():
            return None
        case _:
            return step_of(relation, _step)


# -- joins ------------------------------------------------------------------------------------------------------------


class _Match(Struct, frozen=True):
    """Columns whose values are equal where rows meet; ``with_nulls`` if NULL meets NULL."""

    left: Column
    right: Column
    with_nulls: bool


def _join(relation: Join, left: Step | None, right: Step | None) -> Step | None:
    if left is None or right is None or relation.kind not in ("inner", "left", "semi", "anti"):
        return None
    parts = [] if relation.predicate is None else conjuncts(relation.predicate)
    found = [(part, _match_of(relation, part)) for part in parts]
    matches = [match for _, match in found if match is not None]
    others = conjunction(part for part, match in found if match is None)
    rest = None if others is None else compiled(others)
    if others is not None and rest is None:
        return None

    def step(bindings: Bindings, parameters: Sequence[Any]) -> Rows:
        one, other = left(bindings, parameters), right(bindings, parameters)
        pairs = list(_pairs(one, other, matches))
        if rest is not None:
            pairs = [pair for pair, holds in zip(pairs, rest(_of_pairs(one, other, pairs)), strict=True) if holds]
        return _result(relation, one, other, pairs)

    return step


def _match_of(relation: Join, part: Scalar) -> _Match | None:
    """The columns of both sides whose equality a condition is."""
    if not isinstance(part, Call) or part.function not in ("eq", "is_not_distinct"):
        return None
    one, other = map(same_value, part.arguments)
    if not isinstance(one, ColumnRef) or not isinstance(other, ColumnRef) or not _is_alike(one.column, other.column):
        return None
    sides = set(relation.left.columns), set(relation.right.columns)
    for here, there in ((one.column, other.column), (other.column, one.column)):
        if here in sides[0] and there in sides[1]:
            return _Match(here, there, part.function == "is_not_distinct")
    return None


def _is_alike(one: Column, other: Column) -> bool:
    names = {one.type.name, other.type.name}
    return names <= set(INTEGERS) or names <= _TEXTS or (len(names) == 1 and names <= KEYS)


def _pairs(one: Rows, other: Rows, matches: Sequence[_Match]) -> Iterator[tuple[int, int]]:
    """The places of rows whose columns match. Raises Unusual for many."""
    if not matches:
        if one.count * other.count > _PAIRS:
            raise Unusual
        yield from product(range(one.count), range(other.count))
        return
    by_key: dict[tuple[Any, ...], list[int]] = {}
    for place, key in enumerate(zip(*(other.cells(match.right) for match in matches), strict=True)):
        by_key.setdefault(key, []).append(place)
    strict = [at for at, match in enumerate(matches) if not match.with_nulls]
    count = 0
    for place, key in enumerate(zip(*(one.cells(match.left) for match in matches), strict=True)):
        if any(key[at] is None for at in strict):
            continue
        for partner in by_key.get(key, ()):
            yield place, partner
            count += 1
        if count > _PAIRS:
            raise Unusual


def _of_pairs(one: Rows, other: Rows, pairs: Sequence[tuple[int, int | None]]) -> Rows:
    """The rows of both sides at pairs of places; the right side has no row where its place is None."""
    left, right = [place for place, _ in pairs], [place for _, place in pairs]
    columns = {column: values.taken(left) for column, values in one.columns.items()}
    columns |= {column: values.taken(right) for column, values in other.columns.items()}
    return Rows(len(pairs), columns)


def _result(relation: Join, one: Rows, other: Rows, pairs: Sequence[tuple[int, int]]) -> Rows:
    if relation.kind == "inner":
        return _of_pairs(one, other, pairs)
    met = {place for place, _ in pairs}
    alone = [place for place in range(one.count) if place not in met]
    if relation.kind == "left":
        return _of_pairs(one, other, [*pairs, *((place, None) for place in alone)])
    return one.taken(sorted(met) if relation.kind == "semi" else alone)


# -- groupings --------------------------------------------------------------------------------------------------------

#: An aggregate's value for each group: of the rows, each row's group, and the number of groups.
_Aggregated = Callable[[Rows, list[int], int], Cells]


def _grouping(relation: Aggregate, below: Step | None) -> Step | None:
    keys = [(column, output_of(value)) for column, value in relation.keys]
    calls = [(column, _aggregate(call)) for column, call in relation.aggregates]
    if below is None or any(value is None for _, value in (*keys, *calls)):
        return None
    if any(column.type.name not in KEYS for column, _ in relation.keys):
        return None

    def step(bindings: Bindings, parameters: Sequence[Any]) -> Rows:
        rows = below(bindings, parameters)
        values = [value(rows) for _, value in keys if value is not None]
        places: dict[tuple[Any, ...], int] = {} if keys else {(): 0}
        rows_of = zip(*values, strict=True) if keys else [()] * rows.count
        groups = [places.setdefault(key, len(places)) for key in rows_of]
        columns = {
            column: computed([key[at] for key in places], column.type.arrow) for at, (column, _) in enumerate(keys)
        }
        for column, run in calls:
            assert run is not None
            columns[column] = computed(run(rows, groups, len(places)), column.type.arrow)
        return Rows(len(places), columns)

    return step


def _aggregate(call: AggregateCall) -> _Aggregated | None:
    """How the values of an aggregate are computed; None if the engine must compute them."""
    only = None if call.filter is None else compiled(call.filter)
    if call.distinct or call.order_by or len(call.arguments) > 1 or (call.filter is not None and only is None):
        return None
    value = compiled(call.arguments[0]) if call.arguments else None
    if call.arguments and value is None:
        return None
    if call.function == "count":
        return _counted(value, only)
    fold = _fold(call)
    if value is None or fold is None:
        return None
    known = value

    def run(rows: Rows, groups: list[int], count: int) -> Cells:
        return folded(_present(known(rows), rows, only), groups, count, fold)

    return run


def _fold(call: AggregateCall) -> Fold | None:
    """The function that adds up two values, or chooses one."""
    (argument,) = call.arguments
    kinds = (argument.type, call.type)
    if call.function == "sum" and not all(kind.name in _SUMMED for kind in kinds):
        return None
    if call.function == "sum" and argument.type.name == "numeric" and call.type.scale < argument.type.scale:
        return None
    column = Column(0, "value", call.type)
    return fold_of(AggregateCall(call.function, (ColumnRef(column),), call.type), call.type)


def _counted(value: Computed | None, only: Computed | None) -> _Aggregated:
    def run(rows: Rows, groups: list[int], count: int) -> Cells:
        found = [0] * count
        cells = [True] * rows.count if value is None else value(rows)
        for group, cell in zip(groups, _present(cells, rows, only), strict=True):
            found[group] += cell is not None
        return found

    return run


def _present(cells: Cells, rows: Rows, only: Computed | None) -> Cells:
    """Values of the rows that a condition holds for, NULL elsewhere."""
    if only is None:
        return cells
    return [cell if holds else None for cell, holds in zip(cells, only(rows), strict=True)]
