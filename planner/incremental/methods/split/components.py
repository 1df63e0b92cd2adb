"""Static leaves of a region of inner joins, put together by the equalities between them.

Two leaves that the stream meets by equalities of its own stay apart, and so does one that hangs on two of them: their
product may be far larger than each (TPC-H query 5, customer and supplier by nation). Their equality is tested where the
stream has joined them.
"""

from __future__ import annotations

from planner.algebra.construction import conjunction, conjuncts
from planner.algebra.nodes import Call, Column, Filter, Join, Relation, Scalar
from planner.algebra.walk import used_columns
from planner.rules.joins.cardinality import Cardinality


def flatten(relation: Relation) -> tuple[list[Relation], list[Scalar]]:
    """The leaves of a region of inner joins (and filters on them), in order, and all its predicates."""
    leaves: list[Relation] = []
    parts: list[Scalar] = []
    stack = [relation]
    while stack:
        node = stack.pop()
        match node:
            case Join(kind="inner"):
                parts.extend(conjuncts(node.predicate))
                stack.extend((node.right, node.left))
            case Filter(input=Join(kind="inner") as below):
                parts.extend(conjuncts(node.predicate))
                stack.append(below)
            case _:
                leaves.append(node)
    return leaves, parts


def join_components(
    leaves: list[Relation], parts: list[Scalar], stream: Relation, cardinality: Cardinality | None = None
) -> tuple[list[Relation], list[Scalar]]:
    """Static leaves joined into components, in an order in which the stream can meet them; and predicates left over.

    With estimates the stream meets next what leaves the fewest rows of it; else what is written first."""
    joined: list[Relation] = []
    for members in _components(leaves, parts, set(stream.columns)):
        relation, parts = _join_connected([leaves[place] for place in members], parts)
        joined.append(relation)
    ordered: list[Relation] = []
    have = stream
    while joined:
        met = [item for item in joined if _between(parts, have, item)]
        if cardinality is not None:
            met.sort(
                key=lambda item: cardinality.rows(item) * cardinality.link(have, item, _between(parts, have, item))
            )
        ordered.append(met[0] if met else joined[0])
        joined.remove(ordered[-1])
        have = Join("inner", have, ordered[-1], None)
    return ordered, parts


def _between(parts: list[Scalar], left: Relation, right: Relation) -> list[Scalar]:
    """The equalities between two relations."""
    return [part for part in parts if _bonds(part, set(left.columns), set(right.columns))]


def _components(leaves: list[Relation], parts: list[Scalar], stream: set[Column]) -> list[list[int]]:
    """Places of leaves that belong together: each that the stream meets, with what hangs on it alone by equalities."""
    columns = [set(leaf.columns) for leaf in leaves]
    components = [[place] for place in range(len(leaves))]
    met = [any(_bonds(part, stream, given) for part in parts) for given in columns]

    def bonded(one: list[int], other: list[int]) -> bool:
        given = set().union(*(columns[place] for place in one)), set().union(*(columns[place] for place in other))
        return any(_bonds(part, *given) for part in parts)

    while True:
        anchored = [item for item in components if any(met[place] for place in item)]
        loose = [item for item in components if item not in anchored]
        pairs = [(item, [other for other in anchored if bonded(item, other)]) for item in loose]
        pair = next(((item, others[0]) for item, others in pairs if len(others) == 1), None)
        if pair is None:  # what hangs on nothing that the stream meets may still hang together
            free = [item for item, others in pairs if not others]
            pair = next(
                ((one, other) for one in free for other in free if one is not other and bonded(one, other)), None
            )
        if pair is None:
            return components
        components = [item for item in components if item not in pair]
        components.append(sorted(pair[0] + pair[1]))
        components.sort()


def _join_connected(leaves: list[Relation], parts: list[Scalar]) -> tuple[Relation, list[Scalar]]:
    """Leaves of one component joined along their predicates, and the predicates that reach beyond it."""
    relation, rest = leaves[0], leaves[1:]
    while rest:
        have = set(relation.columns)
        connected = (leaf for leaf in rest if any(_bonds(part, have, set(leaf.columns)) for part in parts))
        leaf = next(connected, rest[0])
        rest.remove(leaf)
        given = have | set(leaf.columns)
        now = [part for part in parts if used_columns(part) and used_columns(part) <= given]
        parts = [part for part in parts if part not in now]
        relation = Join("inner", relation, leaf, conjunction(now))
    return relation, parts


def _bonds(part: Scalar, left: set[Column], right: set[Column]) -> bool:
    """Whether a part is an equality between columns of both and of nothing else."""
    used = used_columns(part)
    equal = isinstance(part, Call) and part.function == "eq"
    return equal and bool(used & left) and bool(used & right) and used <= left | right
