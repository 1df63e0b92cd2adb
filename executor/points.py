"""Point reads: one row of a large continuous view by its group key, without an engine.

Owns: recognising ``SELECT columns FROM view WHERE key = $1 [AND ...]`` on a view whose program names a point key, and
answering it from key indexes (architecture sections 1 and 6). The index belongs to one result of the view; what arrived
since is a patch: the rows of just the groups that changed, which replace those of the indexed result. When the patch
grows beyond a share of the result, the whole result is indexed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from executor.trace.index import KeyIndex
from executor.views import ViewRuntime
from planner.algebra import Filter, Project, Relation, Scan
from planner.expression import Call, Column, ColumnRef, Literal, Parameter, Scalar, Value
from planner.incremental.names import stored_name
from planner.statements import Query

if TYPE_CHECKING:
    from executor.database import Database

#: A patch of more groups than this, and more than the share, makes a new index.
PATCH_ROWS = 1024
PATCH_SHARE = 0.1


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
        if not isinstance(column, ColumnRef) or not isinstance(value, Literal | Parameter):
            return None
        if value.type.name != column.type.name or names[column.column] in found:
            return None
        found[names[column.column]] = value
    return tuple(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Indexed:
    """A result by key, and the groups that changed since with their rows now."""

    table: pa.Table
    rows: KeyIndex
    changed: frozenset[object] = frozenset()
    patch_table: pa.Table | None = None
    patch: KeyIndex | None = None

    def get(self, key: tuple[object, ...]) -> Row:
        """The row of a key."""
        if key in self.changed:
            assert self.patch is not None and self.patch_table is not None
            return Row(self.patch_table, self.patch.get(key))
        return Row(self.table, self.rows.get(key))


Final = Callable[[Mapping[str, pa.Table]], pa.Table]


class ViewIndex:
    """Keeps one view's ``Indexed`` up to date. Called with the view's lock held."""

    def __init__(self, runtime: ViewRuntime, key: tuple[str, ...]) -> None:
        """``key``: names of the view's columns that are its program's point key."""
        self._runtime = runtime
        self._key = key
        self._state = runtime.program.states[0]
        self._state_table = pa.table({})
        self._state_rows: KeyIndex | None = None
        self._version = -1
        self._current: Indexed | None = None

    def refresh(self, final: Final) -> Indexed:
        """The index at the runtime's version; ``final`` evaluates the final relation over states."""
        changes = self._runtime.changes
        if self._current is None or changes is None:
            self._current = self._index(final)
        elif self._version != self._runtime.version and changes.num_rows:
            if changes.num_rows > max(PATCH_ROWS, PATCH_SHARE * len(self._current.rows)):
                self._current = self._index(final)
            else:
                self._current = self._patched(self._current, changes, final)
        self._version = self._runtime.version
        return self._current

    def _index(self, final: Final) -> Indexed:
        result = final(self._runtime.snapshots())
        self._state_table = self._runtime.contents[self._state.name].snapshot(self._runtime.engine)
        self._state_rows = None
        self._runtime.track_changes()
        return Indexed(result, KeyIndex(result, self._key))

    def _patched(self, current: Indexed, changes: pa.Table, final: Final) -> Indexed:
        names = [stored_name(column) for column in self._state.key]
        if self._state_rows is None:
            self._state_rows = KeyIndex(self._state_table, names)
        changed = list(zip(*(changes.column(name).to_pylist() for name in names), strict=True))
        places = [place for key in changed if (place := self._state_rows.get(key)) is not None]
        before = self._state_table.take(pa.array(places, pa.int64()))
        rows = self._runtime.engine.merge(self._state, [before, changes])
        patch = final({**self._runtime.snapshots_of_statics(), f"s_{self._state.name}": rows})
        return replace(current, changed=frozenset(changed), patch_table=patch, patch=KeyIndex(patch, self._key))


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
        if self._is_parameters and len(parameters) == len(self._parts):
            key: tuple[object, ...] = parameters
        else:
            key = tuple(
                parameters[item.index] if isinstance(item, Parameter) else item.value
                for item in self._parts
                if isinstance(item, Parameter | Literal)
            )
        return None if None in key else key

    def peek(self, parameters: tuple[Value, ...]) -> Row | None:
        """The row if the index is fresh; None when ``read`` must be called."""
        index = self._database.fresh_index(self.view)
        if index is None:
            return None
        key = self._key(parameters)
        return Row(index.table, None) if key is None else index.get(key)

    def read(self, parameters: tuple[Value, ...]) -> Row:
        """The row at the present LSN."""
        key = self._key(parameters)
        if key is None:
            return Row(pa.table({}), None)
        return self._database.point_read(self.view, key)


def point_reader(database: Database, query: Query) -> PointReader | None:
    """The reader of a query that is a look-up by a view's whole point key; None for every other query."""
    lookup = recognise(database.plans.get(query.relation).relation)
    if lookup is None:
        return None
    key = database.point_key(lookup.view)
    if set(key) != {name for name, _ in lookup.key}:
        return None
    return PointReader(database, query, lookup, key)
