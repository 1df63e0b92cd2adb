"""Point reads: one row of a large continuous view by its group key, without an engine.

Owns: recognising ``SELECT columns FROM view WHERE key = $1 [AND ...]`` on a view whose program names a point key, and
answering it from key indexes (architecture sections 1 and 6). The index belongs to one result of the view; what arrived
since is a patch: the rows of just the groups that changed, which replace those of the indexed result. When the changed
groups are more than a share of the result, the whole result is indexed again.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from executor.small.values import INTEGERS, KEYS
from executor.trace.index import KeyIndex
from executor.views import ViewRuntime
from planner.algebra import Filter, Project, Relation, Scan
from planner.expression import Call, Cast, Column, ColumnRef, Literal, Parameter, Scalar, Value
from planner.incremental.names import stored_name
from planner.statements import Query

if TYPE_CHECKING:
    from executor.database import Database

#: More changed groups than this, and more than the share, make a new index.
PATCH_ROWS = 1024
PATCH_SHARE = 0.1
#: Patches after which their tables become one.
PATCHES = 256

_STRINGS = ("text", "varchar")

Key = tuple[object, ...]


class Row(NamedTuple):
    """A row by its place: ``place`` None when there is none. The same ``table`` object comes again and again."""

    table: pa.Table
    place: int | None


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a recognised query asks: the view, its output columns, and each key column's value."""

    view: int
    columns: tuple[str, ...]
    key: tuple[tuple[str, Scalar], ...]


def recognise(relation: Relation) -> Lookup | None:
    """The look-up that a relation is, or None."""
    project = relation if isinstance(relation, Project) else None
    below = project.input if project is not None else relation
    if not isinstance(below, Filter) or not isinstance(below.input, Scan) or below.input.kind != "view":
        return None
    scan = below.input
    names = dict(zip(scan.columns, scan.sources, strict=True))
    outputs = project.outputs if project is not None else tuple((c, ColumnRef(c)) for c in scan.columns)
    columns = tuple(names[value.column] for _, value in outputs if isinstance(value, ColumnRef))
    key = _equalities(below.predicate, names)
    if len(columns) != len(outputs) or key is None:
        return None
    return Lookup(scan.oid, columns, key)


def _equalities(predicate: Scalar, names: Mapping[Column, str]) -> tuple[tuple[str, Scalar], ...] | None:
    conjuncts = [predicate]
    found: dict[str, Scalar] = {}
    while conjuncts:
        item = conjuncts.pop()
        if isinstance(item, Call) and item.function == "and":
            conjuncts += item.arguments
            continue
        if not isinstance(item, Call) or item.function != "eq":
            return None
        left, right = item.arguments
        column, value = (left, right) if isinstance(left, ColumnRef) else (right, left)
        if isinstance(value, Cast) and not value.explicit:
            value = value.argument
        if not isinstance(column, ColumnRef) or not isinstance(value, Literal | Parameter):
            return None
        if not _same_values(value.type.name, column.type.name) or names[column.column] in found:
            return None
        found[names[column.column]] = value
    return tuple(sorted(found.items()))


def _same_values(given: str, column: str) -> bool:
    """Whether a value is equal to a key in Python exactly where it is in SQL, whatever implicit cast is between."""
    if given in INTEGERS:
        return column in INTEGERS or column == "numeric"
    return (given == column and column in KEYS) or (given in _STRINGS and column in _STRINGS)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A result by key, and where the rows are now of the groups that changed since. Grows while others read it."""

    table: pa.Table
    rows: KeyIndex
    changed: dict[Key, Row]

    def get(self, key: Key) -> Row:
        """The row of a key."""
        row = self.changed.get(key)
        return Row(self.table, self.rows.get(key)) if row is None else row


@dataclass(frozen=True, slots=True)
class Parts:
    """A table's batches and the first row of each. Arrow's own ``take`` copies a table of many chunks into one before
    it takes the first row."""

    batches: tuple[pa.RecordBatch, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, table: pa.Table) -> Parts:
        """Looks at the chunks, not at the rows."""
        batches = tuple(table.to_batches())
        sizes = (batch.num_rows for batch in batches[:-1])
        return cls(batches, tuple(itertools.accumulate(sizes, initial=0)))

    def take(self, places: list[int]) -> pa.Table:
        """The rows at these places, in any order."""
        found: dict[int, list[int]] = {}
        for place in places:
            part = bisect_right(self.starts, place) - 1
            found.setdefault(part, []).append(place - self.starts[part])
        return pa.Table.from_batches(self.batches[part].take(pa.array(own, pa.int64())) for part, own in found.items())


Final = Callable[[Mapping[str, pa.Table]], pa.Table]


class ViewIndex:
    """Keeps one view's ``Indexed`` up to date. Called with the view's lock held."""

    def __init__(self, runtime: ViewRuntime, key: tuple[str, ...]) -> None:
        """``key``: names of the view's columns that are its program's point key."""
        self._runtime = runtime
        self._key = key
        self._program = runtime.program  # whose final relation was indexed
        self._state = runtime.program.states[0]
        self._state_key = [stored_name(column) for column in self._state.key]
        #: The state's rows that the indexed result was made of, and where those are that replace some of them.
        self._base = pa.table({})
        self._base_parts = Parts.of(self._base)
        self._base_rows: KeyIndex | None = None
        self._changed: dict[Key, Row] = {}
        self._patches = 0
        self._current: Indexed | None = None

    def refresh(self, final: Final) -> Indexed:
        """The index at the runtime's version; ``final`` evaluates the final relation over states."""
        changes = self._runtime.take_changes()
        current, self._current = self._current, None  # what fails below leaves no index behind
        if current is None or changes is None or self._program is not self._runtime.program:
            current = self._index(final)
        elif changes:
            rows = len(self._changed) + sum(run.num_rows for run in changes)
            if rows > max(PATCH_ROWS, PATCH_SHARE * self._base.num_rows):
                current = self._index(final)
            else:
                self._patch(current, changes, final)
        self._current = current
        return current

    def _index(self, final: Final) -> Indexed:
        self._program = self._runtime.program
        result = final(self._runtime.snapshots())
        self._base = self._runtime.contents[self._state.name].snapshot(self._runtime.engine)
        self._base_parts = Parts.of(self._base)
        self._base_rows = None
        self._changed = {}
        self._patches = 0
        return Indexed(result, KeyIndex(result, self._key), {})

    def _patch(self, current: Indexed, changes: list[pa.Table], final: Final) -> None:
        """Puts the groups of some runs as they are now before what was indexed of them."""
        run = changes[0] if len(changes) == 1 else self._runtime.engine.merge(self._state, changes)
        keys: list[Key] = list(zip(*(run.column(name).to_pylist() for name in self._state_key), strict=True))
        rows = self._runtime.engine.merge(self._state, [*self._before(keys), run])
        patch = final({**self._runtime.snapshots_of_statics(), f"s_{self._state.name}": rows})
        places, result = KeyIndex(rows, self._state_key), KeyIndex(patch, self._key)
        for key in keys:
            self._changed[key] = Row(rows, places.get(key))
            current.changed[key] = Row(patch, result.get(key))
        self._patches += 1
        if self._patches >= PATCHES:
            self._patches = 0
            _gather(self._changed)
            _gather(current.changed)

    def _before(self, keys: list[Key]) -> list[pa.Table]:
        """The state's rows of these groups, where there are any, before a run that changes them."""
        if self._base_rows is None:
            self._base_rows = KeyIndex(self._base, self._state_key)
        found: dict[int, tuple[pa.Table, list[int]]] = {}
        for key in keys:
            row = self._changed.get(key) or Row(self._base, self._base_rows.get(key))
            if row.place is not None:
                found.setdefault(id(row.table), (row.table, []))[1].append(row.place)
        return [
            (self._base_parts if table is self._base else Parts.of(table)).take(places)
            for table, places in found.values()
        ]


def _gather(changed: dict[Key, Row]) -> None:
    """Makes one table of many small ones, without the rows that were replaced since."""
    tables = list({id(row.table): row.table for row in changed.values()}.values())
    sizes = itertools.accumulate((table.num_rows for table in tables), initial=0)
    starts = {id(table): start for table, start in zip(tables, sizes, strict=False)}
    present = [(key, starts[id(row.table)] + row.place) for key, row in changed.items() if row.place is not None]
    places = pa.array([place for _, place in present], pa.int64())
    together = pa.concat_tables(tables).combine_chunks().take(places)
    absent = dict.fromkeys(changed, Row(together, None))
    changed.update(absent | {key: Row(together, index) for index, (key, _) in enumerate(present)})


class PointReader:
    """A prepared point read. ``read`` blocks; ``peek`` answers at once or not at all."""

    def __init__(self, database: Database, query: Query, lookup: Lookup, key: tuple[str, ...]) -> None:
        """``key`` names the view's key columns in the index's order."""
        self._database = database
        self.view = lookup.view
        self.columns = lookup.columns
        self.outputs = query.outputs
        values = dict(lookup.key)
        self._parts = tuple(values[name] for name in key)
        #: Of a key that is the parameters, one after the other, as nearly every key is.
        self._is_parameters = all(
            isinstance(item, Parameter) and item.index == index for index, item in enumerate(self._parts)
        )

    def _key(self, parameters: tuple[Value, ...]) -> tuple[object, ...] | None:
        """The values in the index's order; None where one is NULL, which equals nothing."""
        key: tuple[object, ...] = parameters
        if not self._is_parameters or len(parameters) != len(self._parts):
            key = tuple(
                parameters[item.index] if isinstance(item, Parameter) else item.value
                for item in self._parts
                if isinstance(item, Parameter | Literal)
            )
        return None if None in key else key

    def peek(self, parameters: tuple[Value, ...]) -> Row | None:
        """The row if the index is fresh; None when ``read`` must be called."""
        index = self._database.indexes.fresh(self.view)
        if index is None:
            return None
        key = self._key(parameters)
        return Row(index.table, None) if key is None else index.get(key)

    def read(self, parameters: tuple[Value, ...]) -> Row:
        """The row at the present LSN."""
        key = self._key(parameters)
        if key is None:
            return Row(pa.table({}), None)
        return self._database.indexes.read(self.view, key)


def point_reader(database: Database, query: Query) -> PointReader | None:
    """The reader of a query that is a look-up by a view's whole point key; None for every other query."""
    lookup = recognise(database.plans.get(query.relation).relation)
    if lookup is None:
        return None
    key = database.indexes.key_of(lookup.view)
    if set(key) != {name for name, _ in lookup.key}:
        return None
    return PointReader(database, query, lookup, key)
