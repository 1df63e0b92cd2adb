"""Rows of a dataflow's nodes that are found where tables have them (``planner.incremental.dataflow.looked_up``).

Owns the queries: one for each node and key, over the distinct keys of the rows that ask.
"""

from __future__ import annotations

from collections.abc import Container

import pyarrow as pa

from executor.dataflow.maintained import Whole
from executor.dataflow.operators import schema_of, typed
from executor.small import AnyTable, few, table_of
from planner.algebra.nodes import Column
from planner.incremental.dataflow.graph import Dataflow, Key, names_of
from planner.incremental.dataflow.looked_up import LookUp, look_up


class TableLookUps:
    """Those of one dataflow."""

    def __init__(self, flow: Dataflow) -> None:
        self._columns = {node.id: node.columns for node in flow.nodes if node.id in flow.looked_up}
        self._queries = {(node, key): look_up(flow, node, key) for node, keys in flow.looked_up.items() for key in keys}

    def at(self, whole: Whole) -> LookUps:
        """Those at the moment of a reader, whose tables ``whole`` sees."""
        return LookUps(self._columns, self._queries, whole)


class LookUps:
    """Those at one moment."""

    def __init__(
        self, columns: dict[int, tuple[Column, ...]], queries: dict[tuple[int, Key], LookUp], whole: Whole
    ) -> None:
        self._columns, self._queries, self._whole = columns, queries, whole

    @property
    def nodes(self) -> Container[int]:
        """The nodes whose rows are looked up."""
        return self._columns

    def columns(self, node: int) -> tuple[Column, ...]:
        """A node's columns."""
        return self._columns[node]

    def rows(self, node: int, key: Key, values: AnyTable, /) -> AnyTable:
        """The rows of a node, by its columns' names, whose key has the values of some rows."""
        schema = schema_of(self._columns[node])
        if not values.num_rows:
            return schema.empty_table()
        query = self._queries[node, key]
        columns = query.columns
        arrays = [column.cast(own.type.arrow) for column, own in zip(table_of(values).columns, columns, strict=True)]
        keys = pa.Table.from_arrays(arrays, names=[*names_of(columns)])
        distinct = keys.group_by(keys.column_names, use_threads=False).aggregate([])
        found = self._whole(query.relation, {f"s_{query.trace}": distinct})
        return few(typed(found, schema))
