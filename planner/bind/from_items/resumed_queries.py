"""millstream.resume('query_id') in FROM: the rows of a query that was separated from its server.

Owns: its argument and columns. The columns are those of the query's select list, with the types of the current catalog;
a users' type that no longer exists becomes text. The executor has the rest.
"""

from __future__ import annotations

from typing import Any

from catalog.type_mapping import own_type, shown_type
from catalog.values.errors import SqlError, unsupported
from planner.algebra.nodes import Cast, ColumnRef, Project, Relation, Scan
from planner.bind.calls.system.sequence_calls import written_name
from planner.bind.from_items.millstream_functions import defines_view
from planner.bind.state.environment import Environment
from planner.bind.state.from_names import BoundQuery
from planner.statements.statement import Output


def bind_resume(env: Environment, node: Any) -> BoundQuery:
    """The rest of a query. Raises 42883, 42704 and XX001; 0A000 in a view's definition, and for a computed id."""
    binding, position = env.binding, env.binding.position(node)
    if len(node.args or ()) != 1:
        raise env.error("42883", "function does not exist: use millstream.resume(query_id)", node)
    if defines_view(binding.raw.node):
        raise unsupported("millstream.resume() in the definition of a view", "Query it, or CREATE TABLE AS.", position)
    written = written_name(node.args[0])
    if written is None:
        raise unsupported(
            "millstream.resume() with an argument that is not a constant", "Write the query's id.", position
        )
    query_id, place = written
    try:
        described = binding.context.separated(query_id)
    except SqlError as error:
        error.position = binding.position(place)
        raise
    catalog = binding.context.catalog
    columns = tuple(binding.column(item.name, own_type(catalog, kind) or kind) for item, kind in described)
    scan: Relation = Scan(int(query_id, 16), query_id, "query", columns, tuple(map(str, range(len(columns)))))
    # What its columns come from is of the query's own catalog.
    outputs = tuple(Output(item.name, shown_type(catalog, item.type), item.typmod) for item, _ in described)
    if any(item.type != column.type for item, column in zip(outputs, columns, strict=True)):
        casts = (
            (
                binding.column(item.name, item.type),
                ColumnRef(column) if item.type == column.type else Cast(ColumnRef(column), item.type),
            )
            for column, item in zip(columns, outputs, strict=True)
        )
        scan = Project(scan, tuple(casts))
    return BoundQuery(scan, outputs)
