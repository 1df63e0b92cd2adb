"""Runs the nodes of a dataflow: a node's change from the changes and rows of those below it.

Owns: what the leaves of the nodes' relations stand for, before and after a change. Rows are kept as they are after it;
what they were before is found by adding the change with its weights negated.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from executor.dataflow.first_of_partitions import candidates
from executor.dataflow.first_rows import FirstRowsState
from executor.dataflow.group_sums import added_up
from executor.dataflow.node_rows import NodeRows, shown
from executor.dataflow.ordered_windows import OrderedRows
from executor.dataflow.recursion import Rounds, SupportedRows
from executor.dataflow.rows.hashing import NO_HASHES, Hashes, hashes_of
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.weighted_rows import (
    WEIGHT,
    Consolidate,
    chosen,
    consolidated,
    negated,
    repeated,
    weighted,
    weighted_once,
)
from executor.dataflow.time_bounds import TimeBoundedRows, Times
from executor.identity_cache import Remembered
from executor.small import AnyTable, SmallTable, few, table_of, together
from planner.algebra.nodes import Column, Relation
from planner.incremental.dataflow.graph import (
    DataflowNode,
    Fetch,
    FirstOfPartitions,
    FirstRows,
    Key,
    Operator,
    OrderedWindow,
    Propagated,
    Recomputed,
    Recursive,
    Retracted,
    Shared,
    Term,
    TimeBounded,
    candidates_trace,
    change_trace,
    groups_trace,
    names_of,
    rows_trace,
    states_trace,
)
from planner.incremental.names import stored_name

#: Evaluates a relation over the rows of traces.
Query = Callable[[Relation, Mapping[str, AnyTable]], AnyTable]
#: Makes one of equal rows of some columns with weights, where Arrow does not group by values of a type among them.
Merge = Callable[[tuple[Column, ...], pa.Table], pa.Table]


#: The column that marks rows of partitions that are to be filled.
_LACKS: Final = "lacks"


class NodeStates(Struct, frozen=True):
    """What is kept of a dataflow's nodes beside rows: the states of ``groups``, ``first`` rows, the bounds of those
    that are ``bounded`` by time, the orders of ``windows``, and the ``recursions``."""

    groups: dict[int, Multiset] = field(default_factory=dict)
    first: dict[int, FirstRowsState] = field(default_factory=dict)
    bounded: dict[int, TimeBoundedRows] = field(default_factory=dict)
    windows: dict[int, OrderedRows] = field(default_factory=dict)
    recursions: dict[int, Rounds | SupportedRows] = field(default_factory=dict)


_NO_STATES: Final = NodeStates()


class LookingUp(Protocol):
    """Finds rows of nodes where tables have them."""

    @property
    def nodes(self) -> Container[int]:
        """The nodes whose rows it finds."""
        ...

    def columns(self, node: int) -> tuple[Column, ...]:
        """A node's columns."""
        ...

    def rows(self, node: int, key: Key, values: AnyTable, /) -> AnyTable:
        """The rows of a node, by its columns' names, whose key has the values of some rows, as they are now."""
        ...


class Changes:
    """One change on its way through a dataflow: what has changed of each node, and the rows of those that are kept."""

    def __init__(
        self,
        scope: str,
        kept: Mapping[int, Multiset],
        rows: NodeRows,
        showing: Mapping[int, Shared | Recursive],
        query: Query,
        merge: Merge,
        deltas: Mapping[int, AnyTable] | None = None,
        look_up: LookingUp | None = None,
    ) -> None:
        """``kept`` are changed as their nodes are; all are read from ``rows``, but for those that ``look_up`` finds as
        they are. ``deltas`` are those of nodes that have changed already."""
        self._scope = scope
        self._held = rows
        self._showing = showing
        self._kept = kept
        self._query = query
        self._merge = merge
        self._deltas = {**(deltas or {})}
        self._look_up = look_up

    def delta(self, node: int) -> AnyTable | None:
        """What has changed of a node; None for nothing."""
        return self._deltas.get(node)

    def rows_of(self, nodes: Iterable[int]) -> int:
        """How many rows of some nodes have changed."""
        return sum(self._deltas[node].num_rows for node in nodes if node in self._deltas)

    def put(self, node: DataflowNode, delta: AnyTable) -> None:
        """A node has changed. Raises Inconsistent where that cannot be."""
        self._pass_on(node, delta)
        if node.id in self._deltas and node.id in self._kept:
            self._kept[node.id].change(self._deltas[node.id])

    def _pass_on(self, node: DataflowNode, delta: AnyTable) -> None:
        """Tells the nodes above of a node's change. The node keeps no rows, or they have changed already."""
        found = consolidated(few(delta), self._merge_of(node))
        if found.num_rows:
            self._deltas[node.id] = found

    def tell(self, node: DataflowNode, delta: AnyTable) -> None:
        """Tells the nodes above of the change of a node that has followed others beside these."""
        self._deltas[node.id] = delta

    def _merge_of(self, node: DataflowNode) -> Consolidate:
        return partial(self._merge, node.columns)

    def run(self, node: Operator, states: NodeStates, times: Times) -> bool:
        """Changes a node as the changes of its inputs, and the time of the read, demand; returns whether there were
        some."""
        is_changed = any(below in self._deltas for below in node.inputs)
        if not is_changed and not isinstance(node, TimeBounded):
            return False
        match node:
            case TimeBounded():
                rows = states.bounded[node.id]
                parts = [rows.chosen(table_of(self._deltas[node.node]))] if is_changed else []
                parts += rows.move(times, partial(self._held.between, node.node))
                if not parts:
                    return False
            case Shared():
                self._deltas[node.id] = shown(node, self._deltas[node.node])
                return True
            case Propagated():
                parts = [part for place, term in enumerate(node.terms) for part in self._term(node, place, term)]
            case Retracted():
                parts = [self._regrouped(node, states.groups[node.id])]
            case FirstRows():
                first = states.first[node.id]
                old = first.shown
                first.change(table_of(self._deltas[node.node]))
                parts = [weighted(old, -1), weighted(first.shown, 1)]
            case FirstOfPartitions():
                parts = self._chosen(node)
            case OrderedWindow():
                self._pass_on(node, self._rewindowed(node, states.windows[node.id]))
                return True
            case Recursive():
                base = self._deltas.get(node.base)
                base = change_schema(node.columns).empty_table() if base is None else table_of(base)
                found = states.recursions[node.id].change(base, partial(self._stepped, node))
                self._pass_on(node, found.rename_columns([*names_of(node.columns), WEIGHT]))
                return True
            case Recomputed():
                touched = self._touched(node)
                if node.own_key is not None:
                    self._pass_on(node, self._replaced(node, node.own_key, touched))
                    return True
                parts = [weighted(self._over(node, touched, is_new), 2 * is_new - 1) for is_new in (False, True)]
        self.put(node, together(parts))
        return True

    # -- rows ------------------------------------------------------------------------------------------------------

    def _rows(self, node: int, key: Key, hashes: Hashes, is_new: bool) -> AnyTable:
        """Rows of a node with their weights, as they are, or were."""
        above = self._showing.get(node)
        if isinstance(above, Shared):
            return shown(above, self._rows(above.node, above.key_below(key), hashes, is_new))
        found = self._held.lookup(node, key, hashes)
        delta = self._deltas.get(node)
        if is_new or delta is None:
            return found
        if key:
            delta = chosen(delta, np.isin(hashes_of(delta, key), hashes))
        both = together([found, negated(delta)])
        return self._held.consolidated(node, both) if above is None else consolidated(both, self._merge_of(above))

    def _answer(self, relation: Relation, traces: Mapping[str, AnyTable], schema: pa.Schema) -> AnyTable:
        """A relation's rows."""
        return typed(self._query(relation, {f"s_{name}": rows for name, rows in traces.items()}), schema)

    # -- propagation -----------------------------------------------------------------------------------------------

    def _term(self, node: Propagated, place: int, term: Term) -> Iterable[AnyTable]:
        """What the change of one leaf changes: leaves of earlier terms are as they are, those of later ones as they
        were."""
        delta = self._deltas.get(term.node)
        if delta is None:
            return
        new = {other.node for other in node.terms[:place]}
        if term.own_key is None:
            assert term.weight is not None
            traces = self._fetched(term.fetches, {term.node: delta}, new)
            traces[change_trace(self._scope, term.node)] = _renamed(delta, term.weight)
            yield self._answer(term.relation, traces, change_schema(node.columns))
            return
        hashes = hashes_of(delta, term.own_key)
        sides = [self._rows(term.node, term.own_key, hashes, is_new) for is_new in (False, True)]
        at_hand = together([delta, *sides])
        traces = self._fetched(term.fetches, {term.node: at_hand}, new)
        for rows, weight in zip(sides, (-1, 1), strict=True):
            own = {rows_trace(self._scope, term.node): repeated(rows)}
            found = self._answer(term.relation, traces | own, schema_of(node.columns))
            yield weighted(found, weight)

    def _fetched(self, fetches: Iterable[Fetch], at_hand: dict[int, AnyTable], new: set[int]) -> dict[str, AnyTable]:
        """The rows of other leaves that the rows at hand may meet, by trace, each as often as it is there."""
        found: dict[str, AnyTable] = {}
        for fetch in fetches:
            rows = self._partners(fetch, None if fetch.by is None else at_hand[fetch.by], fetch.node in new)
            at_hand[fetch.node] = rows
            found[rows_trace(self._scope, fetch.node)] = repeated(rows)
        return found

    def _partners(self, fetch: Fetch, by: AnyTable | None, is_new: bool) -> AnyTable:
        """The rows of one leaf that the rows at hand may meet, as they are or were, with their weights."""
        hashes = hashes_of(by, fetch.columns) if by is not None and fetch.key else NO_HASHES
        if by is None or self._look_up is None or fetch.node not in self._look_up.nodes:
            return self._rows(fetch.node, fetch.key, hashes, is_new)
        found = weighted(self._look_up.rows(fetch.node, fetch.key, by.select([*fetch.columns])), 1)
        delta = self._deltas.get(fetch.node)
        if is_new or delta is None:
            return found
        changed = chosen(delta, np.isin(hashes_of(delta, fetch.key), hashes))
        return consolidated(
            together([found, negated(changed)]), partial(self._merge, self._look_up.columns(fetch.node))
        )

    # -- retraction ------------------------------------------------------------------------------------------------

    def _regrouped(self, node: Retracted, states: Multiset) -> AnyTable:
        """The groups as they were, to be taken away, and as they are."""
        changed = weighted_once(self._deltas[node.node])
        state = schema_of(node.state)
        rows = {change_trace(self._scope, node.node): _renamed(changed, node.weight)}
        added = self._answer(node.partial, rows, state)
        old = states.take(node.key, hashes_of(added, node.key))
        both = together([old.drop_columns([WEIGHT]), added])
        merged = added_up(both, node.group)
        if merged is None:
            merged = self._answer(node.merge, {states_trace(self._scope, node.id): both}, state)
        new = weighted(merged, 1)
        states.add(new)
        difference = together([negated(old), new])
        groups = {groups_trace(self._scope, node.id): _renamed(difference, node.weight)}
        return self._answer(node.final, groups, change_schema(node.columns))

    # -- first rows of partitions ----------------------------------------------------------------------------------

    def _chosen(self, node: FirstOfPartitions) -> list[AnyTable]:
        """The first rows of touched partitions as they were, to be taken away, and as they are."""
        delta = table_of(self._deltas[node.node])
        old = table_of(self._kept[node.id].lookup(node.key, hashes_of(delta, node.key)))
        rows = candidates(node, old, delta, partial(self._merge, node.columns[: delta.num_columns - 1]))
        schema = schema_of(node.columns)
        marked = schema.append(pa.field(_LACKS, pa.bool_()))
        found = table_of(self._answer(node.chosen, {candidates_trace(self._scope, node.id): rows}, marked))
        lacks = found.column(_LACKS)
        found, lacking = found.drop_columns([_LACKS]), found.filter(lacks)
        if not lacking.num_rows:
            return [negated(old), weighted(found, 1)]
        anew = hashes_of(lacking, node.key)
        stays = np.isin(hashes_of(found, node.key), anew, invert=True)
        whole = {rows_trace(self._scope, node.node): repeated(self._rows(node.node, node.key, anew, True))}
        filled = self._answer(node.filled, whole, schema)
        return [negated(old), weighted(found.filter(pa.array(stays)), 1), weighted(filled, 1)]

    # -- windows ---------------------------------------------------------------------------------------------------

    def _rewindowed(self, node: OrderedWindow, order: OrderedRows) -> AnyTable:
        """The rows that a change reaches as they were, to be taken away, and as they are."""
        kept = self._kept[node.id]
        found = order.change(kept, table_of(self._deltas[node.node]))
        rows = self._windows_of(node, found.candidates)
        wider = order.wider(kept, found, table_of(rows))
        if wider is not None:
            found, rows = wider, self._windows_of(node, wider.candidates)
        new = weighted(rows, 1)
        kept.add(new)
        return together([negated(found.old), new])

    def _windows_of(self, node: OrderedWindow, candidates: pa.Table) -> AnyTable:
        """The rows of a window that candidates become."""
        return self._answer(
            node.computed, {candidates_trace(self._scope, node.id): candidates}, schema_of(node.columns)
        )

    # -- recursion -------------------------------------------------------------------------------------------------

    def fill(self, node: Recursive, state: Rounds | SupportedRows, rows: pa.Table, base: pa.Table) -> None:
        """Makes what is kept of a recursion of all its rows, those of UNION ALL with their ranks, and of the base's
        with weights."""
        within = {below.id for below in node.step}
        kept = {key: item for key, item in self._kept.items() if key not in within}
        others = Changes(self._scope, kept, self._held, self._showing, self._query, self._merge)
        found = state.fill(rows, base, partial(others._stepped, node))
        if within & self._kept.keys():
            self._stepped(node, found)

    def _stepped(self, node: Recursive, delta: pa.Table | None) -> pa.Table:
        """What changes of the step's rows: by a change of the recursion's rows, or of what the step reads else."""
        deltas = self._deltas if delta is None else {node.ranked.id: delta}
        within = Changes(self._scope, self._kept, self._held, self._showing, self._query, self._merge, deltas)
        for below in node.step:
            within.run(below, _NO_STATES, _no_times)
        last = node.step[-1] if node.step else node.ranked
        found = within.delta(last.id)
        return change_schema(last.columns).empty_table() if found is None else table_of(found)

    # -- recomputation ---------------------------------------------------------------------------------------------

    def _touched(self, node: Recomputed) -> Hashes:
        """The hashes of the keys of changed rows."""
        deltas = [(key, self._deltas[below]) for below, key in node.keys if below in self._deltas]
        return np.unique(np.concatenate([hashes_of(delta, key) for key, delta in deltas]))

    def _replaced(self, node: Recomputed, key: Key, touched: Hashes) -> AnyTable:
        """The rows of touched keys as they were, to be taken away, and as they are."""
        old = self._kept[node.id].take(key, touched)
        new = weighted(self._over(node, touched, True), 1)
        self._kept[node.id].add(new)
        return together([negated(old), new])

    def _over(self, node: Recomputed, touched: Hashes, is_new: bool) -> AnyTable:
        found = ((below, repeated(self._rows(below, key, touched, is_new))) for below, key in node.keys)
        traces = {rows_trace(self._scope, below): rows for below, rows in found}
        return self._answer(node.relation, traces, schema_of(node.columns))


def _no_times(node: TimeBounded) -> pa.Table:
    raise AssertionError("no time is compared within a recursion")


def _schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([pa.field(stored_name(column), column.type.arrow) for column in columns])


def _change_schema(columns: tuple[Column, ...]) -> pa.Schema:
    return schema_of(columns).append(pa.field(WEIGHT, pa.int64()))


#: The types of a node's rows, by its columns.
schema_of: Final = Remembered(_schema_of, 4096)
#: The types of a node's rows with their weights.
change_schema: Final = Remembered(_change_schema, 4096)


def typed(rows: AnyTable, schema: pa.Schema) -> AnyTable:
    """Rows by the names of a schema with the same types."""
    if isinstance(rows, SmallTable):
        return rows.rename_columns(schema.names)
    return pa.Table.from_arrays(rows.columns, schema=schema)


def _renamed(rows: AnyTable, weight: Column) -> AnyTable:
    """Rows whose weight is called as a relation calls it."""
    return rows.rename_columns([stored_name(weight) if name == WEIGHT else name for name in rows.column_names])
