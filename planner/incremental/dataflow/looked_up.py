"""Rows of tables that are looked up where they lie, so that they take no memory of their own.

A join that follows changes finds the partners of changed rows by key. Those of a node that only filters and projects
the rows of one table (plain) are the table's own, and an engine finds them there::

    rows of the node with a key in K  =  definition of the node  semi-join  K

A look-up reads the columns of the table, as far as its rows do not lie in the order of the key: it takes an engine's
pass over the table, instead of microseconds. So rows are looked up only where they do not fit into memory, and a view
whose tables change together is then best computed anew, which its costs tell.

Guard: all that is asked of the node's rows is partners in joins, found by columns of whose equal values there is one
representation. A side of a join whose own rows are asked for (left, semi and anti joins that do not count keys), rows
that are ordered, chosen or shown, and rows of views and states are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.equality import equals_are_one
from catalog.values.types import BOOL
from planner.algebra.construction import Fresh, conjunction
from planner.algebra.nodes import Call, Column, ColumnRef, Filter, Join, Project, Relation, Scan
from planner.incremental.dataflow.graph import (
    Dataflow,
    DataflowNode,
    Fetch,
    Key,
    Propagated,
    Retracted,
    Shared,
    Source,
    every,
    leaf,
)
from planner.incremental.names import stored_name

_INTEGERS: Final = frozenset(("int2", "int4", "int8"))


class LookUp(Struct, frozen=True):
    """The rows of a node with some keys: a ``relation`` over the leaf ``trace``, which has the keys as ``columns``."""

    relation: Relation
    trace: str
    columns: tuple[Column, ...]


def look_up(flow: Dataflow, node: int, key: Key) -> LookUp:
    """The relation that finds a node's rows by a key."""
    definition = _nodes(flow)[node].definition
    own = {stored_name(column): place for place, column in enumerate(_nodes(flow)[node].columns)}
    wanted = [definition.columns[own[name]] for name in key]
    columns = tuple(map(Fresh(definition).copy, wanted))
    trace = f"{flow.scope}_{node}_keys"
    pairs = zip(wanted, columns, strict=True)
    equal = conjunction(Call("is_not_distinct", (ColumnRef(a), ColumnRef(b)), BOOL) for a, b in pairs)
    return LookUp(Join("semi", definition, leaf(trace, columns), equal), trace, columns)


def with_looked_up(flow: Dataflow, nodes: Iterable[int]) -> Dataflow:
    """The dataflow in which the rows of these nodes, which ``may_be_looked_up``, are looked up, and no others."""
    keys = {**flow.kept, **flow.looked_up}
    found = {node: keys[node] for node in nodes}
    return replace(flow, kept={node: own for node, own in keys.items() if node not in found}, looked_up=found)


def may_be_looked_up(flow: Dataflow) -> list[int]:
    """The nodes for which the guard holds."""
    nodes = _nodes(flow)
    asked = set(flow.outputs).union(*(_asked(node) for node in every(flow.nodes)))
    fetched: dict[int, list[Fetch]] = {}
    for node in every(flow.nodes):
        for fetch in _fetches(node):
            fetched.setdefault(fetch.node, []).append(fetch)
    read = {*asked, *fetched}
    asked |= {node.node for node in every(flow.nodes) if isinstance(node, Shared) and node.id in read}
    return [
        node
        for node in flow.kept
        if node in nodes
        and node not in asked
        and _is_plain(nodes[node])
        and all(_finds(nodes, fetch) for fetch in fetched.get(node, ()))
    ]


def _nodes(flow: Dataflow) -> Mapping[int, DataflowNode]:
    return {node.id: node for node in flow.nodes}


def _is_plain(node: DataflowNode) -> bool:
    """Whether a node only filters and projects the rows of a table."""
    if not isinstance(node, Source | Propagated):
        return False
    relation: Relation = node.definition
    while isinstance(relation, Filter | Project):
        relation = relation.input
    return isinstance(relation, Scan) and relation.kind == "table"


def _asked(node: DataflowNode) -> Iterator[int]:
    """The nodes of whose rows a node asks for others than partners in joins."""
    match node:
        case Propagated():
            yield from (term.node for term in node.terms if term.own_key is not None)
        case Source() | Retracted() | Shared():
            pass
        case _:
            yield from getattr(node, "inputs", ())


def _fetches(node: DataflowNode) -> Iterator[Fetch]:
    if isinstance(node, Propagated):
        for term in node.terms:
            yield from term.fetches


def _finds(nodes: Mapping[int, DataflowNode], fetch: Fetch) -> bool:
    """Whether a fetch finds rows by values that compare as their representations do."""
    if fetch.by is None or not fetch.key or fetch.by not in nodes:
        return False
    own = {stored_name(column): column.type for column in nodes[fetch.node].columns}
    others = {stored_name(column): column.type for column in nodes[fetch.by].columns}
    kinds = [(own[one], others[other]) for one, other in zip(fetch.key, fetch.columns, strict=True)]
    return all(equals_are_one(one) and (one == other or {one.name, other.name} <= _INTEGERS) for one, other in kinds)
