"""How many rows the nodes of a dataflow have, how much memory those take that are kept, and which are looked up in
tables where they would take too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from planner.algebra.nodes import Column, Scan
from planner.incremental.cost.cardinalities import touched
from planner.incremental.dataflow.graph import Dataflow, DataflowNode, Key, Retracted, Source, rows_trace
from planner.incremental.dataflow.looked_up import may_be_looked_up, with_looked_up
from planner.incremental.names import stored_name
from planner.rules.joins.cardinality import Cardinality
from planner.statistics import Statistics, TableStatistics

#: Bytes of a value without a fixed width, of a row's weight, and of a row in an index.
TEXT_BYTES: Final = 24.0
WEIGHT_BYTES: Final = 8.0
INDEX_BYTES: Final = 12.0


class FlowSizes:
    """The rows of the nodes of one dataflow, and the memory that they take."""

    def __init__(self, flow: Dataflow, statistics: Statistics, counts: Mapping[int, int]) -> None:
        self.flow = flow
        self.nodes = {node.id: node for node in flow.nodes}
        self._statistics, self._counts = {**statistics}, counts
        self._counted = [(node.definition, float(counts[node.id])) for node in flow.nodes if node.id in counts]
        self._cardinalities: dict[int, Cardinality] = {}
        for node in flow.nodes:
            if not isinstance(node, Source):  # the definitions of others read it where it chooses among its rows
                self._statistics[rows_trace(flow.scope, node.id)] = self.statistics_of(node)

    def cardinality(self, node: int) -> Cardinality:
        """What is known of the rows of the relations within a node's definition."""
        found = self._cardinalities.get(node)
        if found is None:
            definition = self.nodes[node].definition
            found = self._cardinalities[node] = Cardinality(definition, self._statistics, self._counted)
        return found

    def rows(self, node: int) -> float:
        """Those that a node has."""
        counted = self._counts.get(node)
        return self.cardinality(node).rows(self.nodes[node].definition) if counted is None else float(counted)

    def alike(self, node: int, key: Key) -> float:
        """The rows of a node that have one key."""
        if not key:
            return self.rows(node)
        columns = {stored_name(column): column for column in self.nodes[node].columns}
        return self.cardinality(node).alike(self.nodes[node].definition, [columns[name] for name in key])

    def found_by(self, node: int, key: Key, rows: float) -> float:
        """The rows of a node that so many rows find by a key."""
        alike = self.alike(node, key)
        return alike * touched(self.rows(node) / alike, rows) if alike else 0.0

    @property
    def kept_rows(self) -> float:
        """The rows of nodes that are kept, but for those within a recursion."""
        return sum(self.rows(node) for node in self.flow.kept if node in self.nodes)

    @property
    def kept_bytes(self) -> float:
        """Bytes of the rows of nodes and of the states of groupings; rows of views are kept by others."""
        groups = (node for node in self.flow.nodes if isinstance(node, Retracted))
        found = sum(self.rows(node.id) * _bytes(node.state, 1) for node in groups)
        return found + sum(map(self.bytes_of, self.flow.kept))

    def bytes_of(self, node: int) -> float:
        """Those of a node's rows, if they are kept here."""
        found = self.nodes.get(node)
        if found is None or (isinstance(found, Source) and found.is_view):
            return 0.0
        return self.rows(node) * _bytes(found.columns, 1 + len(self.flow.kept[node]))

    def statistics_of(self, node: DataflowNode) -> TableStatistics:
        """What is known of the rows of a node, by the stored names of its columns."""
        names = {column: stored_name(column) for column in node.columns}
        return self.cardinality(node.id).statistics(node.definition, names)


def kept_bytes(flow: Dataflow, statistics: Statistics, counts: Mapping[int, int]) -> float:
    """About the bytes of memory that the rows take which the dataflow keeps, with their indexes."""
    return FlowSizes(flow, statistics, counts).kept_bytes


def fitting(flow: Dataflow, statistics: Statistics, most: float) -> tuple[Dataflow, float]:
    """The dataflow with rows that are looked up, those first that take most memory, until what it keeps is expected to
    take at most so many bytes; and the bytes that it is expected to take. It is the same one where that changes
    nothing, whether rows were looked up before or not."""
    before, flow = flow, with_looked_up(flow, ())
    sizes = FlowSizes(flow, statistics, {})
    left, chosen = sizes.kept_bytes, list[int]()
    for node in sorted(may_be_looked_up(flow), key=sizes.bytes_of, reverse=True):
        if left <= most:
            break
        chosen.append(node)
        left -= sizes.bytes_of(node)
    return (before if before.looked_up.keys() == set(chosen) else with_looked_up(flow, chosen)), left


def source_name(node: Source) -> int | str:
    """By what statistics know the rows of a source: the oid of a table or view, the name of a state's trace."""
    return node.definition.oid if isinstance(node.definition, Scan) else node.definition.trace


def _bytes(columns: Iterable[Column], indexes: int) -> float:
    """Those of a row with its weight, and its places in so many indexes."""
    return sum(map(_width, columns)) + WEIGHT_BYTES + INDEX_BYTES * indexes


def _width(column: Column) -> float:
    kind = column.type.arrow
    return kind.bit_width / 8 if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else TEXT_BYTES
