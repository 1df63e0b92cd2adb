"""WITH queries are bound for their errors and parameters where they are written, referenced or not.

Owns: that this happens once for each, however deep they nest: while one is checked, another's rows are stood for by a
relation of its columns. Bound for each of their references, 30 queries that read the one before twice would be 2^30.
"""

from __future__ import annotations

from planner.algebra.relations import Values
from planner.bind.from_items.from_clause import bind_cte
from planner.bind.state.context import Binding
from planner.bind.state.levels import BoundQuery, Cte


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
