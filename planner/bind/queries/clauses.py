"""Items of GROUP BY and ORDER BY: what positions, names and expressions mean there.

Owns: PostgreSQL's two orders of look-up (an input column first in GROUP BY, an output name first in ORDER BY).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.opaque import check_equality
from planner.algebra.nodes import Column, ColumnRef, Scalar, SortKey
from planner.algebra.walk import walk
from planner.bind.calls.aggregation.event_time_windows import is_placeholder
from planner.bind.calls.aggregation.sort_order import check_sortable, direction
from planner.bind.conversion.coercion import text_if_unknown
from planner.bind.queries.grouping_sets import leaves
from planner.bind.scalars.equal_expressions import alike
from planner.bind.scalars.select_lists import Target
from planner.bind.state.collected_calls import Groups, Windows
from planner.bind.state.environment import Binding, Environment


def ordinal(binding: Binding, node: Any, targets: Sequence[Target], clause: str) -> Target | None:
    """ORDER BY 1: an integer constant is a position in the select list, any other constant is an error."""
    if type(node).__name__ != "A_Const":
        return None
    value = None if node.isnull else getattr(node.val, "ival", None)
    if not isinstance(value, int):
        raise SqlError("42601", f"non-integer constant in {clause}", position=binding.position(node))
    if not 1 <= value <= len(targets):
        raise SqlError("42P10", f"{clause} position {value} is not in select list", position=binding.position(node))
    return targets[value - 1]


def simple_name(node: Any) -> str | None:
    """The name that an item consists of, if it is a bare one."""
    if type(node).__name__ == "ColumnRef" and len(node.fields) == 1 and type(node.fields[0]).__name__ == "String":
        return str(node.fields[0].sval)
    return None


def named_target(binding: Binding, name: str, targets: Sequence[Target], clause: str, node: Any) -> Target | None:
    """The output column of a name. Raises 42702 where two different ones have it."""
    matches = [target for target in targets if target.name == name]
    if len(matches) > 1 and any(target.scalar != matches[0].scalar for target in matches):
        raise SqlError("42702", f'{clause} "{name}" is ambiguous', position=binding.position(node))
    return matches[0] if matches else None


def group_key(env: Environment, node: Any, targets: Sequence[Target], groups: Groups, windows: Windows) -> Scalar:
    """A GROUP BY item: a position, an input column, an output's name, or an expression; in that order."""
    clause = "GROUP BY"
    target = _grouped_target(env, node, targets)
    scalar = target.scalar if target is not None else replace(env.without_aggregates(clause), sets=env.sets).bind(node)
    aggregates = {column for column, _ in groups.aggregates}
    for item in _of_groups(scalar, groups, windows):
        position, _ = env.binding.origin(item)
        state, words = ("42803", "aggregate") if item.column in aggregates else ("42P20", "window")
        raise SqlError(state, f"{words} functions are not allowed in GROUP BY", position=position)
    check_equality(scalar.type, lambda: env.binding.start(node))
    return text_if_unknown(env, alike(scalar, (item.scalar for item in targets)), node)


def _grouped_target(env: Environment, node: Any, targets: Sequence[Target]) -> Target | None:
    """The output that a GROUP BY item means by its position or name."""
    target = ordinal(env.binding, node, targets, "GROUP BY")
    name = simple_name(node)
    if target is None and name is not None and not any(entry.name == name for entry in env.scope.entries):
        target = named_target(env.binding, name, targets, "GROUP BY", node)
    return target


def _of_groups(scalar: Scalar, groups: Groups, windows: Windows) -> Iterator[ColumnRef]:
    """The aggregates and window calls in an expression."""
    known = {column for found in (groups.aggregates, windows.calls) for column, _ in found}
    return (item for item in walk(scalar) if isinstance(item, ColumnRef) and item.column in known)


def twins(
    env: Environment, nodes: Sequence[Any] | None, targets: list[Target], groups: Groups, windows: Windows
) -> list[tuple[Column, Scalar]]:
    """Outputs of one expression that grouping sets name one by one, as SELECT a AS x, a AS y GROUP BY x, ROLLUP (y)
    does, are keys of their own: columns for all but the first, which take the expression's place in ``targets``.

    Raises 0A000 for windows of event time.
    """
    if not any(type(node).__name__ == "GroupingSet" for node in nodes or ()):
        return []
    items = list(leaves(nodes))
    named = [(item, _grouped_target(env, item, targets)) for item in items]
    plain = [item for item, target in named if target is None and type(item).__name__ == "ColumnRef"]
    found: list[tuple[Column, Scalar]] = []
    chosen = {id(target) for _, target in named if target is not None}
    for place, target in enumerate(targets):
        first = next(other for other in targets if other.scalar == target.scalar)
        if id(target) not in chosen or first is target or any(_of_groups(target.scalar, groups, windows)):
            continue
        if id(first) in chosen or any(group_key(env, item, targets, groups, windows) == first.scalar for item in plain):
            if any(map(is_placeholder, walk(target.scalar))):
                raise unsupported("a window of event time that is two keys of grouping sets", "Group by it once.")
            scalar = text_if_unknown(env, target.scalar, target.node)
            found.append((env.binding.column(target.name, scalar.type), scalar))
            targets[place] = target.over(ColumnRef(found[-1][0]))
    return found


def order_item(env: Environment, item: Any, targets: Sequence[Target]) -> SortKey:
    """An ORDER BY item: a position, an output's name, or an expression over the input; in that order."""
    scalar = _sortable(env, item.node, targets, "ORDER BY")
    return SortKey(scalar, *direction(env.binding, item, scalar.type))


def _sortable(env: Environment, node: Any, targets: Sequence[Target], clause: str) -> Scalar:
    target = ordinal(env.binding, node, targets, clause)
    if target is None and (name := simple_name(node)) is not None:
        target = named_target(env.binding, name, targets, clause, node)
    scalar = target.scalar if target is not None else replace(env, clause=clause).bind(node)
    scalar = text_if_unknown(env, alike(scalar, (item.scalar for item in targets)), node)
    check_sortable(env, scalar, node)
    return scalar


def distinct_on(
    env: Environment, nodes: Sequence[Any] | None, targets: Sequence[Target], order: Sequence[SortKey]
) -> list[Scalar]:
    """The expressions of DISTINCT ON, which ORDER BY must begin with. Raises 42P10."""
    if not nodes or nodes[0] is None:
        return []
    ordered = [key.expression for key in order]
    found = [alike(_sortable(env, node, targets, "DISTINCT ON"), ordered) for node in nodes]
    leading = next((place for place, scalar in enumerate(ordered) if scalar not in found), len(ordered))
    for node, scalar in zip(nodes, found, strict=True):
        if leading < len(ordered) and scalar not in ordered[:leading]:
            message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
            raise SqlError("42P10", message, position=env.binding.start(node))
    return found
