"""WITH queries that are bound once and computed once for several references.

Owns: which queries are shared, and the ``With`` at the statement's root. PostgreSQL shares each query that is read
twice. Here the query must also group, join, sort or the like, or be MATERIALIZED; NOT MATERIALIZED prevents it. A query
that reads a stream is never shared, because other rules take its plan apart.
"""

from __future__ import annotations

import itertools
from typing import Final

from pglast.enums import CTEMaterialize

from planner.algebra.nodes import Filter, Project, Relation, Scan, Snapshot, Values, With
from planner.algebra.walk import RELATIONS, find, free_columns, kinds_of, walk
from planner.bind.state.bind_state import Shared
from planner.bind.state.environment import Binding, Cte
from planner.bind.state.from_names import BoundQuery
from planner.bind.with_queries.cte_queries import bind_cte
from planner.rules.subqueries.inline_shared import inline_shared

#: What a query does that is computed again as fast as it is read again.
_CHEAP: Final = (Scan, Snapshot, Values, Filter, Project)


def read_shared(binding: Binding, cte: Cte) -> BoundQuery | None:
    """A reference to a WITH query that is computed once; None where it is computed for each reference."""
    if not binding.shares or not _may_be_shared(cte):
        return None
    if id(cte.node) not in binding.shared:
        volatile = binding.volatile
        binding.volatile = False
        query = bind_cte(binding, cte)
        is_shared = not binding.volatile and _is_dear(cte, query.relation) and not free_columns(query.relation)
        binding.volatile |= volatile
        name = _name(binding, cte.node.ctename)
        binding.shared[id(cte.node)] = Shared(cte.node, name, query.relation, query.outputs) if is_shared else None
        if not is_shared:
            return query
    shared = binding.shared[id(cte.node)]
    return None if shared is None else BoundQuery(_snapshot(binding, shared), shared.outputs)


def _name(binding: Binding, name: str) -> str:
    """The query's own name; with a number, where another one of the statement has it."""
    taken = {item.name for item in binding.shared.values() if item is not None}
    numbered = (f"{name}_{number}" for number in itertools.count(1))
    return next(found for found in itertools.chain([name], numbered) if found not in taken)


def _may_be_shared(cte: Cte) -> bool:
    if cte.recursive:  # which may have no end, and is read no further than needed where it is read
        return False
    wanted = CTEMaterialize(cte.node.ctematerialized)
    if wanted == CTEMaterialize.CTEMaterializeAlways:
        return True
    return wanted == CTEMaterialize.CTEMaterializeDefault and cte.references > 1


def _is_dear(cte: Cte, relation: Relation) -> bool:
    if CTEMaterialize(cte.node.ctematerialized) == CTEMaterialize.CTEMaterializeAlways:
        return True
    return any(isinstance(node, RELATIONS) and not isinstance(node, _CHEAP) for node in walk(relation))


def _snapshot(binding: Binding, shared: Shared) -> Snapshot:
    columns = shared.relation.columns
    own = tuple(binding.column(column.name, column.type, column.nullable) for column in columns)
    return Snapshot(shared.name, own, tuple(f"c{column.id}" for column in columns))


def with_shared(binding: Binding, relation: Relation) -> Relation:
    """A statement's relation with what it shares at its root."""
    used = _read(relation)
    definitions: list[tuple[str, Relation]] = []
    for item in reversed(binding.shared.values()):  # which read earlier ones
        if item is not None and item.name in used:
            used |= _read(item.relation)
            definitions.insert(0, (item.name, item.relation))
    if not definitions:
        return relation
    whole = With(tuple(definitions), relation)
    return inline_shared(whole) if binding.streams else whole


def _read(relation: Relation) -> set[str]:
    return {node.trace for node in find(relation, kinds_of(Snapshot))}
