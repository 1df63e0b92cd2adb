"""Domain extraction: an operator is computed anew for the keys that changed (DBToaster, section 3.2.2 and figure 1).

With K the keys of the rows that changed in any input::

    d(Q) = Q(L1' where key in K, ..) - Q(L1 where key in K, ..)

What is taken away is found in the operator's own rows, which are kept by the key. Two evaluations over the same rows
may differ where SQL leaves the result open (the order of ties, sums of floats), and what was never there cannot go.

    grouping                           the grouping's key
    window functions                   what all calls partition by; nothing, if the rows are groups
    INTERSECT, EXCEPT                  all columns
    full join                          the sides' columns that its predicate equates

Guard: there is such a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from planner.algebra.construction import conjuncts
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Snapshot,
    Window,
)
from planner.algebra.walk import is_dependent, used_columns
from planner.incremental.dataflow.building import Building, NotMaintained, with_columns, with_keys
from planner.incremental.dataflow.graph import Recomputed, names_of, references
from planner.incremental.dataflow.keyable import are_comparable, is_keyable

#: Makes a node of a region.
Closed = Callable[[Relation], Snapshot]


def grouping(building: Building, node: Aggregate, is_small: bool = False) -> Snapshot:
    """The leaf for a grouping whose input is a node's leaf, and whose keys are columns. Of an input that ``is_small``,
    all rows are one group where there is no key."""
    assert isinstance(node.input, Snapshot)
    keys = [(value.column, column) for column, value in node.keys if isinstance(value, ColumnRef)]
    keyable = [(below, column) for below, column in keys if is_keyable(column.type)]
    if not keyable and not is_small:
        raise NotMaintained("a grouping has no key, and an aggregate that cannot be taken back")
    own = names_of(column for _, column in keyable)
    return _recomputed(building, node, [(node.input, [below for below, _ in keyable])], own)


def window(building: Building, node: Window, closed: Closed) -> Relation:
    """What stands for window functions over partitions."""
    below, key = partitioned(building, node)
    if not key and not _are_groups(building.expanded(node.input)):
        raise NotMaintained("a window function has all rows in one partition")
    changed = replace(node, input=closed(below))
    return with_columns(_recomputed(building, changed, [(changed.input, key)], names_of(key)), node.columns)


def _are_groups(relation: Relation) -> bool:
    """Whether rows are groups, or some of them: far fewer than the rows that they are made of."""
    match relation:
        case Aggregate():
            return True
        case Project() | Filter() | Window():
            return _are_groups(relation.input)
        case Join(kind="semi" | "anti"):
            return _are_groups(relation.left)
        case Join(kind="inner" | "left"):
            return _are_groups(relation.left) and _are_groups(relation.right)
        case _:
            return False


def partitioned(building: Building, node: Window) -> tuple[Relation, list[Column]]:
    """A window's input with what all of its calls partition by among its columns, and these columns, as far as rows are
    found by them."""
    (_, first), *others = node.calls
    common = [item for item in first.partition if all(item in call.partition for _, call in others)]
    keys = [item for item in dict.fromkeys(common) if used_columns(item) and is_keyable(item.type)]
    return with_keys(building, node.input, keys)


def set_operation(building: Building, node: SetOperation, closed: Closed) -> Snapshot:
    """The leaf for INTERSECT and EXCEPT."""
    changed = replace(node, left=closed(node.left), right=closed(node.right))
    places = [
        place
        for place, columns in enumerate(zip(node.columns, node.left.columns, node.right.columns, strict=True))
        if are_comparable(columns[0].type, columns[1].type) and are_comparable(columns[0].type, columns[2].type)
    ]
    if not places:
        raise NotMaintained("a set operation has no column by which rows are found")
    sides = [(side, [side.columns[place] for place in places]) for side in (changed.left, changed.right)]
    return _recomputed(building, changed, sides, names_of(node.columns[place] for place in places))


def full_join(building: Building, node: Join, closed: Closed) -> Snapshot:
    """The leaf for a full join."""
    if node.predicate is None or is_dependent(node.right, node.left):
        raise NotMaintained("a full join has no equality")
    pairs = [pair for part in conjuncts(node.predicate) if (pair := _pair(node, part)) is not None]
    if not pairs:
        raise NotMaintained("a full join has no equality")
    left, ours = with_keys(building, node.left, [one for one, _ in pairs])
    right, theirs = with_keys(building, node.right, [other for _, other in pairs])
    columns = node.columns
    changed = Project(Join("full", closed(left), closed(right), node.predicate), references(columns))
    join = changed.input
    assert isinstance(join, Join)
    return _recomputed(building, changed, [(join.left, ours), (join.right, theirs)], None, building.expanded(node))


def _pair(node: Join, part: Scalar) -> tuple[Scalar, Scalar] | None:
    if not isinstance(part, Call) or part.function not in ("eq", "is_not_distinct"):
        return None
    first, second = part.arguments
    if not are_comparable(first.type, second.type):
        return None
    for one, other in ((first, second), (second, first)):
        sides = used_columns(one), used_columns(other)
        if all(sides) and sides[0] <= set(node.left.columns) and sides[1] <= set(node.right.columns):
            return one, other
    return None


def _recomputed(
    building: Building,
    relation: Relation,
    inputs: Sequence[tuple[Relation, Sequence[Column]]],
    own_key: tuple[str, ...] | None,
    definition: Relation | None = None,
) -> Snapshot:
    keys = [(building.node(side), names_of(columns)) for side, columns in inputs]
    found = building.expanded(relation) if definition is None else definition
    made = Recomputed(building.next_id(), relation.columns, found, relation, tuple(keys), own_key)
    return building.add(made, relation)
