"""The rows of one relation, kept up to date by its dataflow.

Owns: which nodes are kept, how they are filled, and the order in which a change passes them. Used by one thread at a
time. After any error the object must be given up: its nodes may stand at different moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import pyarrow as pa
from msgspec import Struct

from executor.dataflow.first_rows import FirstRowsState
from executor.dataflow.node_rows import NodeRows
from executor.dataflow.node_work import MeasuredWork
from executor.dataflow.operators import Changes, LookingUp, Merge, NodeStates, Query, change_schema, schema_of, typed
from executor.dataflow.ordered_windows import OrderedRows
from executor.dataflow.recursion import Rounds, SupportedRows, Surroundings
from executor.dataflow.rows.hashing import NO_HASHES, Hashes, hashes_of
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.segments import Range
from executor.dataflow.rows.weighted_rows import WEIGHT, repeated, weighted
from executor.dataflow.time_bounds import TimeBoundedRows, Times
from executor.dataflow.view_rows import ViewRows
from executor.dataflow.waiting_changes import Steps, WaitingChanges
from executor.small import AnyTable, table_of
from planner.algebra.nodes import Column, ColumnRef, Project, Relation, Snapshot, Sort
from planner.algebra.walk import find, kinds_of
from planner.incremental.dataflow.graph import (
    Constant,
    Dataflow,
    DataflowNode,
    FirstRows,
    Key,
    Operator,
    OrderedWindow,
    Ranked,
    Recursive,
    Retracted,
    Source,
    TimeBounded,
    candidates_trace,
    names_of,
    references,
    rows_trace,
)
from planner.incremental.names import stored_name

_SNAPSHOTS: Final = kinds_of(Snapshot)


class Whole(Protocol):
    """Evaluates a relation over tables and states as they are at a moment."""

    def __call__(self, relation: Relation, bindings: Mapping[str, pa.Table], /) -> pa.Table:
        """The relation's rows; ``bindings`` are leaves that stand for neither tables nor states."""
        ...


class TooLarge(Exception):
    """The rows take more memory than they may."""


class Saved(Struct, frozen=True):
    """The rows of a dataflow's nodes with their weights: those that are ``kept``, and the states of ``groups``."""

    kept: Mapping[int, pa.Table]
    groups: Mapping[int, pa.Table]


class MaintainedRows:
    """The rows of a dataflow's outputs at one moment."""

    def __init__(
        self,
        flow: Dataflow,
        whole: Whole,
        query: Query,
        merge: Merge,
        most: int,
        times: Times,
        views: Mapping[int, ViewRows],
        work: MeasuredWork,
        saved: Saved | None = None,
    ) -> None:
        """Fills the nodes, as they are at some ``times``, each from the kept rows of those below, or as they were
        ``saved``. ``whole`` evaluates a relation over tables and states as they are at the moment, and over the rows of
        given traces, ``query`` one over a few rows of given traces; ``views`` are the rows of sources that another
        dataflow keeps; ``work`` is told what changes take. Raises TooLarge where the rows take more than ``most``
        bytes, now or later."""
        self._flow = flow
        self._showing = flow.showing
        self._query = query
        self._merge = merge
        self._most = most
        self._passed = _passed(flow)
        self._work = work
        self._states = NodeStates()
        self._states.bounded.update((node, TimeBoundedRows(item, times)) for node, item in flow.bounded.items())
        self._kept: dict[int, Multiset] = {}
        self._views = views
        self._held = NodeRows(self._kept, views, self._showing)
        columns = {node.id: node.columns for node in flow.nodes}
        self._waiting = WaitingChanges(flow, lambda node: partial(merge, columns[node]))
        nodes = {f"s_{rows_trace(flow.scope, node.id)}": node.id for node in flow.nodes}

        def filled(relation: Relation) -> pa.Table:
            leaves = {f"s_{leaf.trace}" for leaf in find(relation, _SNAPSHOTS)}
            return whole(relation, {leaf: self._bound(nodes[leaf])[leaf] for leaf in leaves & nodes.keys()})

        for node in flow.nodes:
            if isinstance(node, Retracted):
                keys = (node.key,) if node.key else ()
                states = _once(node.state, filled(node.fill)) if saved is None else saved.groups[node.id]
                self._states.groups[node.id] = self._multiset(node.state, states, keys)
            if isinstance(node, FirstRows):
                self._states.first[node.id] = self._first_rows(node)
            if isinstance(node, Recursive):
                self._recur(node, filled(node.fill), filled(node.base_fill))
            if node.id in flow.kept and node.id not in views:
                rows = self._filled(node, filled) if saved is None else saved.kept[node.id]
                self._kept[node.id] = self._multiset(node.columns, rows, flow.kept[node.id])
            self._require_room()
        for item in views.values():
            item.settle()

    def _multiset(self, columns: tuple[Column, ...], rows: pa.Table, keys: tuple[Key, ...]) -> Multiset:
        return Multiset(rows, keys, partial(self._merge, columns))

    def _filled(self, node: DataflowNode, filled: Callable[[Relation], pa.Table]) -> pa.Table:
        """All rows of a node, with their weights."""
        rows = self._windowed(node, filled(node.fill)) if isinstance(node, OrderedWindow) else self._made(node.id)
        return _once(node.columns, filled(node.definition) if rows is None else rows)

    @property
    def can_be_saved(self) -> bool:
        """Whether nothing is kept beside rows and groups, such as a choice among equal rows, or a bound in time."""
        more = FirstRows | OrderedWindow | Recursive | TimeBounded
        return not self._flow.looked_up and not any(isinstance(node, more) for node in self._flow.nodes)

    def saved(self) -> Saved:
        """The rows of the nodes, of which others of the same dataflow are made again."""
        parts = self._kept, self._states.groups
        return Saved(*({node: _all(rows) for node, rows in found.items()} for found in parts))

    def _first_rows(self, node: FirstRows) -> FirstRowsState:
        def choose(relation: Relation, rows: pa.Table) -> pa.Table:
            return pa.Table.from_arrays(self._chosen(node.id, relation, rows).columns, schema=rows.schema)

        def everything() -> pa.Table:
            return table_of(self._held.lookup(node.node))

        return FirstRowsState(node, everything, choose, partial(self._merge, node.columns))

    def _chosen(self, node: int, relation: Relation, rows: pa.Table) -> pa.Table:
        """A relation's rows over candidates of a node."""
        return table_of(self._query(relation, {f"s_{candidates_trace(self._flow.scope, node)}": rows}))

    def _windowed(self, node: OrderedWindow, rows: pa.Table) -> pa.Table:
        """All rows of a window, made of those of the node below."""
        order = self._states.windows[node.id] = OrderedRows(node, partial(self._merge, node.given))
        typed = pa.Table.from_arrays(rows.columns, schema=schema_of(node.given))
        return self._chosen(node.id, node.computed, order.all(typed))

    def _recur(self, node: Recursive, rows: pa.Table, base: pa.Table) -> None:
        """Makes what is kept of a recursion of its rows and of those of its base."""
        for below in node.step:
            if below.id in self._flow.kept:
                none = change_schema(below.columns).empty_table()
                self._kept[below.id] = self._multiset(below.columns, none, self._flow.kept[below.id])
        columns = node.ranked.columns if node.all else node.shown
        around = Surroundings(partial(self._chosen, node.id), partial(self._merge, columns), self._require_room)
        made = (Rounds if node.all else SupportedRows)(node, schema_of(node.ranked.columns), around)
        self._states.recursions[node.id], self._kept[node.ranked.id] = made, made.rows
        typed = pa.Table.from_arrays(rows.columns, schema=schema_of(columns))
        starts = weighted(pa.Table.from_arrays(base.columns, schema=schema_of(node.shown)), 1)
        self._changes().fill(node, made, typed, starts)

    def _changes(self, look_up: LookingUp | None = None, deltas: Mapping[int, AnyTable] | None = None) -> Changes:
        about = (self._flow.scope, self._kept, self._held, self._showing, self._query, self._merge)
        return Changes(*about, deltas, look_up)

    def _made(self, node: int) -> pa.Table | None:
        """The rows of a node that are made of those of the node below; None for another one."""
        if node in self._states.first:
            return self._states.first[node].shown
        if node in self._states.bounded:
            rows = table_of(self._held.lookup(self._flow.bounded[node].node))
            return table_of(repeated(self._states.bounded[node].chosen(rows)))
        return None

    def _bound(self, node: int) -> dict[str, pa.Table]:
        """The rows of a node, by the engine name of its leaf."""
        above = self._showing.get(node)
        rows = self._made(node if above is None else above.node)
        rows = table_of(repeated(self._held.lookup(node))) if rows is None else rows
        named = rows if above is None else rows.rename_columns(names_of(above.columns))
        return {f"s_{rows_trace(self._flow.scope, node)}": named}

    def index(self) -> None:
        """Makes the indexes that the first change which takes rows away would make."""
        for node, kept in self._kept.items():
            if node in self._states.windows:
                self._states.windows[node].index(kept)
            else:
                kept.index()
        for item in self._states.groups.values():
            item.index()
        for node, view in self._views.items():
            for key in self._flow.kept.get(node, ()):
                view.index_by(key)

    @property
    def bytes(self) -> int:
        """About what the rows take in memory, and the changes that wait."""
        rows = sum(item.bytes for item in (*self._kept.values(), *self._states.groups.values()))
        return rows + self._waiting.bytes

    @property
    def is_waiting(self) -> bool:
        """Whether nodes have yet to follow changes that sources have."""
        return bool(self._waiting)

    @property
    def waiting(self) -> WaitingChanges:
        """The changes that nodes have yet to follow."""
        return self._waiting

    @property
    def count(self) -> int:
        """The rows that are kept, here and by the dataflows of views that this one reads."""
        own = sum(item.count for item in (*self._kept.values(), *self._states.groups.values()))
        return own + sum(view.count for view in self._views.values())

    @property
    def counts(self) -> dict[int, int]:
        """How many rows are kept of each node, of a grouping groups."""
        return {node: item.count for node, item in sorted({**self._states.groups, **self._kept}.items())}

    @property
    def shown_count(self) -> int:
        """About how many rows the final relation has: all that are kept, where it computes its rows."""
        if self._passed is None:
            return self.count
        above = self._showing.get(self._passed[0])
        return self.counts.get(self._passed[0] if above is None else above.node, self.count)

    def change(
        self,
        deltas: Mapping[int, AnyTable],
        times: Times,
        look_up: LookingUp | None = None,
        steps: Steps | None = None,
    ) -> AnyTable | None:
        """Brings the rows forward, and returns how those of the final relation have changed, their weights last; None
        where the final relation computes its rows.

        ``deltas`` are the changes of sources by node, in their columns' order, with the weight last, ``times`` those of
        the read; ``look_up`` finds the rows of nodes that are looked up, at the moment that is reached. With ``steps``,
        each node goes on once so many rows of sources have changed since it last did; without, all do. Raises
        Inconsistent where they are not those of what is kept, and TooLarge."""
        changes = self._changes(look_up)
        rows = sum(delta.num_rows for delta in deltas.values())
        due = None if steps is None else self._waiting.due(steps, rows)
        for node in self._flow.nodes:
            match node:
                case Source():
                    if node.id in deltas:
                        started = self._work.now()
                        changes.put(node, typed(deltas[node.id], change_schema(node.columns)))
                        self._work.note(node.id, 0, changes.delta(node.id), started)
                case Constant() | Ranked():
                    pass
                case _ if due is not None and node.id not in due:
                    self._waiting.put_off(node, changes.delta, rows)
                case _:
                    self._go_on(node, changes, times, look_up)
        self._require_room()
        if self._passed is None:
            return None
        shown, names = self._passed
        found = changes.delta(shown)
        found = change_schema(self._columns(shown)).empty_table() if found is None else found
        return found.select([*names.values(), WEIGHT]).rename_columns([*map(stored_name, names), WEIGHT])

    def _go_on(self, node: Operator, changes: Changes, times: Times, look_up: LookingUp | None) -> None:
        """A node follows the changes of its inputs: those of this step, and those that have waited."""
        started = self._work.now()
        waited = self._waiting.take(node, changes.delta)
        own = changes if waited is None else self._changes(look_up, waited)
        if not own.run(node, self._states, times):
            return
        delta = own.delta(node.id)
        if waited is not None and delta is not None:
            changes.tell(node, delta)
        self._work.note(node.id, own.rows_of(node.inputs), delta, started)

    def _columns(self, node: int) -> tuple[Column, ...]:
        return next(item.columns for item in self._flow.nodes if item.id == node)

    def _require_room(self, more: int = 0) -> None:
        if self.bytes + more > self._most:
            raise TooLarge

    def lookup(self, columns: tuple[Column, ...], values: pa.Table) -> pa.Table | None:
        """The final relation's rows whose ``columns`` have the values of a row of ``values``, and perhaps others; None
        where the final relation computes its rows."""
        if self._passed is None:
            return None
        _, names = self._passed
        key = tuple(names[column] for column in columns)
        rows = table_of(repeated(self.shown(tuple(names.values()), key, hashes_of(values, values.column_names))))
        return rows.rename_columns([*map(stored_name, names)])

    def all_shown(self) -> pa.Table | None:
        """The final relation's rows; None where it computes or orders them."""
        final = self._flow.final
        if self._passed is None or isinstance(final.input if isinstance(final, Project) else final, Sort):
            return None
        node, names = self._passed
        (rows,) = self._bound(node).values()
        return rows.select([*names.values()]).rename_columns([*map(stored_name, names)])

    @property
    def shown_columns(self) -> Key | None:
        """By column of the final relation what ``shown`` calls it; None where the final relation computes its rows."""
        return None if self._passed is None else tuple(self._passed[1].values())

    def shown(self, columns: Key, key: Key, hashes: Hashes) -> AnyTable:
        """Some columns of the final relation's rows with some keys, and perhaps of others, or of all for an empty key,
        with their weights."""
        assert self._passed is not None
        return self._held.lookup(self._passed[0], key, hashes).select([*columns, WEIGHT])

    def shown_between(self, columns: Key, ranges: Sequence[tuple[str, Range]]) -> AnyTable:
        """Some columns of the final relation's rows that have a time in one of some ranges, with their weights."""
        assert self._passed is not None
        return self._held.between(self._passed[0], ranges).select([*columns, WEIGHT])

    def index_shown(self, key: Key) -> None:
        """Makes the index by which ``shown`` finds rows with a key. Safe while another thread changes the rows."""
        assert self._passed is not None
        self._held.index_by(self._passed[0], key)

    def outputs(self) -> dict[str, pa.Table]:
        """The rows of the outputs, by the engine names of the leaves of the dataflow's final relation."""
        return {name: rows for node in self._flow.outputs for name, rows in self._bound(node).items()}


def _once(columns: tuple[Column, ...], rows: pa.Table) -> pa.Table:
    """Rows of some columns, each with the weight 1."""
    return weighted(pa.Table.from_arrays(rows.columns, schema=schema_of(columns)), 1)


def _all(rows: Multiset) -> pa.Table:
    return table_of(rows.lookup((), NO_HASHES))


def _passed(flow: Dataflow) -> tuple[int, dict[Column, str]] | None:
    """The node of which the final relation shows rows as they are, and the names of that node's columns by the final
    relation's; None where that computes its rows."""
    final = flow.final
    outputs = final.outputs if isinstance(final, Project) else references(final.columns)
    leaf = final.input if isinstance(final, Project) else final
    leaf = leaf.input if isinstance(leaf, Sort) else leaf
    passed = {column: value.column for column, value in outputs if isinstance(value, ColumnRef)}
    if not isinstance(leaf, Snapshot) or len(flow.outputs) != 1 or len(passed) < len(outputs):
        return None
    (node,) = flow.outputs
    if leaf.trace != rows_trace(flow.scope, node):
        return None
    sources = dict(zip(leaf.columns, leaf.sources, strict=True))
    return node, {column: sources[below] for column, below in passed.items()}
