"""(p AND q) OR (p AND r)  =  p AND (q OR r).

What all arms demand becomes a conjunct of its own, which may then be a join's equality (TPC-H query 19):

    SELECT ... WHERE (p_partkey = l_partkey AND p_size < 5) OR (p_partkey = l_partkey AND p_size > 9)

When an arm has nothing else, the whole is what they share: (p) OR (p AND r) = p. In three-valued logic too.
"""

from __future__ import annotations

from typing import Any

from planner.algebra.construction import conjunction, conjuncts, volatility
from planner.algebra.nodes import Call
from planner.algebra.walk import calls_of
from planner.rules.node_rule import node_rule


@node_rule(calls_of("or"), Call)
def factor_disjunctions(node: Any) -> Any:
    """Conjuncts that all arms of an OR share, taken out of it."""
    match node:
        case Call(function="or", arguments=arguments):
            arms = [list(conjuncts(arm)) for arm in arguments]
        case _:
            return node
    shared = [part for part in arms[0] if all(part in arm for arm in arms[1:]) and volatility(part) != "volatile"]
    if not shared:
        return node
    rests = [conjunction(part for part in arm if part not in shared) for arm in arms]
    if any(rest is None for rest in rests):
        return conjunction(shared)
    return conjunction((*shared, Call("or", tuple(rest for rest in rests if rest is not None), node.type)))
