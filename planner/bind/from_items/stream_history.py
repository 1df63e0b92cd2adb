"""millstream.history('stream') in FROM: the rows that are kept of a stream.

Owns: its argument, and its columns, which are the stream's.
"""

from __future__ import annotations

from typing import Any

from catalog.objects import Stream
from catalog.stream_history import no_history
from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import split_name
from planner.algebra.nodes import Scan
from planner.bind.calls.system.sequence_calls import written_name
from planner.bind.from_items.millstream_functions import defines_view
from planner.bind.lookup.relations import require_named
from planner.bind.lookup.type_names import declared_typmod
from planner.bind.state.environment import Binding, Environment
from planner.bind.state.from_names import BoundQuery
from planner.statements.statement import Output


def bind_history(env: Environment, node: Any, nullable: bool) -> BoundQuery:
    """The rows at the time of the query. Raises 42883, 42809, 42P01 and 55000; 0A000 in a view's definition."""
    binding = env.binding
    if defines_view(binding.raw.node):
        instead = "Read the stream itself: the view starts with the stream's history."
        position = binding.position(node)
        raise unsupported("millstream.history() in the definition of a view", instead, position)
    stream = _stream(binding, _argument(env, node))
    binding.depends_on[stream.oid] = None
    binding.need(stream.oid)
    columns = tuple(binding.column(item.name, item.type, nullable or not item.not_null) for item in stream.columns)
    scan = Scan(stream.oid, stream.name, "history", columns, tuple(item.name for item in stream.columns))
    typmods = (declared_typmod(item.type) for item in stream.columns)
    outputs = tuple(Output(column.name, column.type, typmod) for column, typmod in zip(columns, typmods, strict=True))
    return BoundQuery(scan, outputs)


def _argument(env: Environment, node: Any) -> Any:
    """The only argument, perhaps by its name. Raises 42883."""
    arguments: list[Any] = list(node.args or ())
    if len(arguments) == 1:
        argument = arguments[0]
        if type(argument).__name__ != "NamedArgExpr":
            return argument
        if argument.name == "stream":
            return argument.arg
    raise env.error("42883", "function does not exist: use millstream.history(stream)", node)


def _stream(binding: Binding, node: Any) -> Stream:
    written = written_name(node)
    if written is None:
        instead = "Name the stream."
        position = binding.start(node)
        raise unsupported("millstream.history() with an argument that is not a constant", instead, position)
    text, place = written
    schema, name = split_name(text)
    try:
        found = require_named(binding, name, schema)
    except SqlError as error:
        error.position = binding.position(place)
        raise
    if not isinstance(found, Stream):
        raise SqlError("42809", f'"{found.name}" is not a stream', position=binding.position(place))
    if not found.keeps_rows:
        raise no_history(found.name, binding.position(place))
    return found
