"""A filter moves to where its columns come from.

    Filter(Project(R, f), p)        =  Project(Filter(R, p o f), f)           f and p not volatile
    Filter(L inner join R on j, p)  =  Filter(L, p_L) inner join Filter(R, p_R) on j AND p_LR
    Filter(L left join R, p)        =  Filter(L, p_L) left join R, then p without p_L       (right: mirrored)
    Filter(L semi/anti join R, p)   =  Filter(L, p) semi/anti join R
    L left/semi/anti join R on j    =  L left/semi/anti join Filter(R, j_R) on j without j_R
    L inner join R on j AND s       =  Filter(L inner join R on j, s)           s has a subquery
    Filter(Aggregate(R, k, a), p)   =  Aggregate(Filter(R, p o k), k, a)      p over keys only, and there are keys
    Filter(Window(R, w), p)         =  Window(Filter(R, p), w)                   p over columns in every partition of w
    Filter(Unnest(R, a), p)         =  Unnest(Filter(R, p), a)                   p over columns of R; a not volatile
    Filter(L union R, p)            =  Filter(L, p o l) union Filter(R, p o r)    (intersect and except too)
    Filter(Sort(R), p)              =  Sort(Filter(R, p))

Not with a subquery below a grouping of a stream's rows (Aggregate, UNION without ALL and the like), where its tables
would be read as of a view's creation. Not below a limit. Not into the padded side of an outer join, and not from an
outer join's ON into its preserved side:

    a LEFT JOIN b ON a.k = b.k AND a.v > 1      -- rows of a with v <= 1 stay, padded

A subquery about both sides of an inner join is asked of the pairs that the join leaves: in ON, engines that unnest it
ask it of all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from planner.algebra.construction import (
    both,
    conjunction,
    conjuncts,
    filtered,
    has_subquery,
    substitute,
    substitution,
    volatility,
)
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Filter,
    Join,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Sort,
    Unnest,
    Window,
)
from planner.algebra.walk import descend_relations, kinds_of, used_columns, walk
from planner.rules.node_rule import node_rule

#: Which inputs of a join a filter above it may enter, and which its own predicate may.
_FROM_ABOVE: dict[str, frozenset[str]] = {
    "inner": frozenset(("left", "right")),
    "left": frozenset(("left",)),
    "right": frozenset(("right",)),
    "full": frozenset(),
    "semi": frozenset(("left",)),
    "anti": frozenset(("left",)),
}
_FROM_PREDICATE: dict[str, frozenset[str]] = {
    "inner": frozenset(("left", "right")),
    "left": frozenset(("right",)),
    "right": frozenset(("left",)),
    "full": frozenset(),
    "semi": frozenset(("left", "right")),
    "anti": frozenset(("right",)),
}

Side = Literal["left", "right", "both", "none"]


@node_rule(kinds_of(Filter, Join), Filter, Join, walk=descend_relations)
def push_down_filters(node: Any) -> Any:
    """Every predicate as low as it may stand, in one pass from the root."""
    pushed: Relation
    while True:
        match node:
            case Filter():
                pushed = _push_filter(node)
            case Join():
                pushed = _push_predicate(node)
            case _:
                return node
        if pushed is node:
            return node
        node = pushed


def _push_filter(node: Filter) -> Relation:
    match node.input:
        case Filter() as below:
            return filtered(below.input, (*conjuncts(below.predicate), *conjuncts(node.predicate)))
        case Project() as project:
            return _below_project(node, project)
        case Join() as join:
            return _below_join(node, join)
        case Aggregate(keys=keys) as aggregate if keys:
            return _below_aggregate(node, aggregate)
        case Window() as window:
            return _below_window(node, window)
        case Unnest() as unnest:
            return _below_unnest(node, unnest)
        case SetOperation() as operation:
            return _below_set_operation(node, operation)
        case Sort() as sort:
            return replace(sort, input=Filter(sort.input, node.predicate))
        case _:
            return node


def _parted(parts: Iterable[Scalar], may_move: Any) -> tuple[list[Scalar], list[Scalar]]:
    """Parts that may move and parts that stay."""
    moving: list[Scalar] = []
    staying: list[Scalar] = []
    for part in parts:
        (moving if volatility(part) != "volatile" and may_move(part) else staying).append(part)
    return moving, staying


def _below_project(node: Filter, project: Project) -> Relation:
    mapping = substitution(project)
    stable = {column for column, value in project.outputs if volatility(value) != "volatile"}
    given = set(project.columns)
    moving, staying = _parted(conjuncts(node.predicate), lambda part: used_columns(part) & given <= stable)
    if not moving:
        return node
    below = filtered(project.input, (substitute(part, mapping) for part in moving))
    return filtered(replace(project, input=below), staying)


def _below_aggregate(node: Filter, aggregate: Aggregate) -> Relation:
    """Not a correlated part: an engine that unnests it would group once for each row outside, not once."""
    keys = dict(aggregate.keys)
    moving, staying = _parted(
        conjuncts(node.predicate),
        lambda part: used_columns(part) and used_columns(part) <= set(keys) and _may_group_with(part, aggregate),
    )
    if not moving or any(volatility(value) == "volatile" for value in keys.values()):
        return node
    below = filtered(aggregate.input, (substitute(part, keys) for part in moving))
    return filtered(replace(aggregate, input=below), staying)


def _below_window(node: Filter, window: Window) -> Relation:
    """Whole partitions may go, and nothing else."""
    partitions = [{item.column for item in call.partition if isinstance(item, ColumnRef)} for _, call in window.calls]
    shared = set[Column].intersection(*partitions)
    moving, staying = _parted(
        conjuncts(node.predicate), lambda part: used_columns(part) and used_columns(part) <= shared
    )
    if not moving:
        return node
    return filtered(replace(window, input=filtered(window.input, moving)), staying)


def _below_unnest(node: Filter, unnest: Unnest) -> Relation:
    """What looks at the input's columns only may drop a row before it is repeated."""
    made = set(unnest.columns) - set(unnest.input.columns)
    moving, staying = _parted(conjuncts(node.predicate), lambda part: not used_columns(part) & made)
    if not moving or any(volatility(value) == "volatile" for _, value in unnest.items):
        return node
    return filtered(replace(unnest, input=filtered(unnest.input, moving)), staying)


def _below_set_operation(node: Filter, operation: SetOperation) -> Relation:
    moving, staying = _parted(conjuncts(node.predicate), lambda part: operation.all or _may_group_with(part, operation))
    if not moving:
        return node

    def side(relation: Relation) -> Relation:
        pairs = zip(operation.columns, relation.columns, strict=True)
        mapping: dict[Column, Scalar] = {column: ColumnRef(below) for column, below in pairs}
        return filtered(relation, (substitute(part, mapping) for part in moving))

    return filtered(replace(operation, left=side(operation.left), right=side(operation.right)), staying)


def _may_group_with(part: Scalar, grouping: Aggregate | SetOperation) -> bool:
    """Whether a filter may look at rows instead of their groups: those of a stream are seen once, as they come."""
    return not has_subquery(part) or not any(isinstance(item, Scan) and item.arrives for item in walk(grouping))


def _side(part: Scalar, join: Join) -> Side:
    """Whose columns a part uses."""
    used = used_columns(part)
    touches = (bool(used & set(join.left.columns)), bool(used & set(join.right.columns)))
    names: dict[tuple[bool, bool], Side] = {(True, False): "left", (False, True): "right", (True, True): "both"}
    return names.get(touches, "none")


def _below_join(node: Filter, join: Join) -> Relation:
    into = _FROM_ABOVE[join.kind]

    def may_move(part: Scalar) -> bool:
        side = _side(part, join)
        return side in into or (side == "both" and join.kind == "inner" and not has_subquery(part))

    moving, staying = _parted(conjuncts(node.predicate), may_move)
    if not moving:
        return node
    left = filtered(join.left, (part for part in moving if _side(part, join) == "left"))
    right = filtered(join.right, (part for part in moving if _side(part, join) == "right"))
    predicate = both(join.predicate, (part for part in moving if _side(part, join) == "both"))
    return filtered(replace(join, left=left, right=right, predicate=predicate), staying)


def _push_predicate(join: Join) -> Relation:
    into = _FROM_PREDICATE[join.kind]
    moving, staying = _parted(conjuncts(join.predicate), lambda part: _side(part, join) in into)
    above = [part for part in staying if has_subquery(part)] if join.kind == "inner" else []
    if not (moving or above):
        return join
    left = filtered(join.left, (part for part in moving if _side(part, join) == "left"))
    right = filtered(join.right, (part for part in moving if _side(part, join) == "right"))
    on = conjunction(part for part in staying if part not in above)
    return filtered(replace(join, left=left, right=right, predicate=on), above)
