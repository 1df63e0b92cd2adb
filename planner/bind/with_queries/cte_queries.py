"""WITH queries bound: a copy for each reference, and one where they are written, for their errors and parameters.

Owns: ``bind_cte``, and ``check_cte``, by which each WITH query is checked once, referenced or not. While one is
checked, ``stand_in`` gives a relation of another's columns instead of that query: bound for each reference, 30 queries
that read the one before twice would be 2^30.
"""

from __future__ import annotations

from catalog.values.errors import unsupported
from planner.algebra.nodes import Values
from planner.bind.state.environment import Binding, Cte
from planner.bind.state.from_names import BoundQuery
from planner.bind.with_queries.recursion import bind_recursive


def check_cte(binding: Binding, cte: Cte) -> None:
    """Binds a WITH query for its errors and parameters only, unless that was done."""
    if id(cte.node) not in binding.checked:
        before, shares, checks = binding.memory(), binding.shares, binding.checks
        binding.shares, binding.checks = False, True
        query = bind_cte(binding, cte)
        binding.shares, binding.checks = shares, checks
        binding.restore(before)
        # with the node, so that none that comes later has its identity
        binding.checked[id(cte.node)] = cte.node, query.relation.columns, query.outputs
    binding.forget_reference(cte.node)


def stand_in(binding: Binding, cte: Cte) -> BoundQuery | None:
    """What a WITH query is read as while another one is checked; None where it is read for its rows."""
    if not binding.checks or id(cte.node) not in binding.checked:
        return None
    _, columns, outputs = binding.checked[id(cte.node)]
    own = tuple(binding.column(column.name, column.type, column.nullable) for column in columns)
    return BoundQuery(Values(own, ()), outputs)


def bind_cte(binding: Binding, cte: Cte) -> BoundQuery:
    """One reference's copy of a WITH query."""
    before, binding.volatile = binding.volatile, False
    query = bind_recursive(binding, cte) if cte.recursive else cte.level.bind(cte.node.ctequery)
    if binding.volatile and binding.count_reference(cte.node) > 1:
        instead = "Refer to it once."
        raise unsupported("a volatile function in a WITH query that is read twice", instead, binding.position(cte.node))
    binding.volatile |= before
    return query
