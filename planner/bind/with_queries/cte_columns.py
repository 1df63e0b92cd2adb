"""Columns of WITH queries: their names, and the rows of one that changes a table."""

from __future__ import annotations

from typing import Any

from catalog.values.errors import SqlError
from planner.algebra.nodes import Snapshot
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Binding
from planner.bind.state.from_names import BoundQuery
from planner.bind.state.with_names import Returned


def cte_names(binding: Binding, node: Any, query: BoundQuery) -> tuple[str, ...]:
    """The columns' names: those of WITH q (a, b), then the query's own. Raises 42P10."""
    given = names_of(node.aliascolnames)
    names = tuple(output.name for output in query.outputs)
    if len(given) > len(names):
        message = f'WITH query "{node.ctename}" has {len(names)} columns available but {len(given)} columns specified'
        raise SqlError("42P10", message, position=binding.position(node))
    return given + names[len(given) :]


def read_returned(binding: Binding, returned: Returned) -> BoundQuery:
    """A reference to the rows that such a query returns."""
    outputs = returned.returning.outputs
    columns = tuple(binding.column(output.name, output.type) for output in outputs)
    names = tuple(str(index) for index in range(len(columns)))
    return BoundQuery(Snapshot(returned.leaf, columns, names), outputs)
