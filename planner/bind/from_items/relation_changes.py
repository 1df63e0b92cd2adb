"""millstream.changes('relation' [, since]) in FROM: the changes of a continuous view or a table as rows.

Owns: its arguments and columns: an LSN, by how many the number of rows with these values grows (or, negative, shrinks)
at that LSN, and the relation's columns. The executor decides when rows arrive.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.objects import Table, View, is_temporary
from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import split_name
from catalog.values.types import INT8
from planner.algebra.nodes import CHANGE_SOURCES, Scalar, Scan
from planner.bind.calls.system.sequence_calls import written_name
from planner.bind.conversion.coercion import coerce
from planner.bind.from_items.millstream_functions import defines_view
from planner.bind.lookup.relations import require_named
from planner.bind.lookup.type_names import declared_typmod
from planner.bind.state.environment import Binding, Environment
from planner.bind.state.from_names import BoundQuery
from planner.statements.statement import Output

_SIGNATURE: Final = "millstream.changes(relation [, since])"


def bind_changes(env: Environment, node: Any, nullable: bool) -> BoundQuery:
    """The rows that come. Raises 42883, 42809 and 42P01; 0A000 in a view's definition."""
    binding, position = env.binding, env.binding.position(node)
    if defines_view(binding.raw.node):
        raise unsupported(
            "millstream.changes() in the definition of a view", "Call it in the query that reads the view.", position
        )
    relation, since = _arguments(env, node)
    binding.streams.append((f"changes of {relation.name}", position))
    binding.depends_on[relation.oid] = None
    binding.need(relation.oid)
    own = tuple(binding.column(item.name, item.type) for item in relation.columns)
    head = (binding.column("lsn", INT8, nullable), binding.column("diff", INT8, nullable))
    sources = (*CHANGE_SOURCES, *map(str, range(len(own))))
    scan = Scan(relation.oid, relation.name, "changes", (*head, *own), sources, since)
    typmods = (-1, -1, *(declared_typmod(item.type) for item in relation.columns))
    described = zip(scan.columns, typmods, strict=True)
    outputs = tuple(Output(column.name, column.type, typmod) for column, typmod in described)
    return BoundQuery(scan, outputs)


def _arguments(env: Environment, node: Any) -> tuple[View | Table, Scalar | None]:
    """The relation, and where the changes begin; None is with all rows that there are."""
    given: dict[str, Any] = {}
    for place, item in enumerate(node.args or ()):
        named = type(item).__name__ == "NamedArgExpr"
        name = str(item.name) if named else ("relation", "since")[place] if place < 2 else ""
        name = "relation" if name == "view" else name
        if name not in ("relation", "since") or name in given:
            raise env.error("42883", f"function does not exist: use {_SIGNATURE}", node)
        given[name] = item.arg if named else item
    if "relation" not in given:
        raise env.error("42883", f"function does not exist: use {_SIGNATURE}", node)
    relation = _relation(env.binding, given["relation"])
    if "since" not in given:
        return relation, None
    since = coerce(env.binding, env.bind(given["since"]), INT8, "implicit", given["since"])
    if since is None:
        raise env.error("42804", "argument since of millstream.changes() must be type bigint", given["since"])
    return relation, since


def _relation(binding: Binding, node: Any) -> View | Table:
    written = written_name(node)
    if written is None:
        position = binding.start(node)
        raise unsupported(
            "millstream.changes() with an argument that is not a constant", "Name the relation.", position
        )
    text, place = written
    at = binding.position(place)
    schema, name = split_name(text)
    try:
        found = require_named(binding, name, schema)
    except SqlError as error:
        error.position = at
        raise
    if isinstance(found, Table):
        if is_temporary(found):
            raise unsupported("millstream.changes() of a temporary table", "Use a table that is not temporary.", at)
        return found
    if not isinstance(found, View) or not found.continuous:
        raise SqlError("42809", f'"{found.name}" is not a continuous view or a table', position=at)
    return found
