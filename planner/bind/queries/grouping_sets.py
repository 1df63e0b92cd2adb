"""Items of GROUP BY become the sets of keys that rows are grouped by.

Owns: what ROLLUP, CUBE, GROUPING SETS and () mean, and that items multiply::

    GROUP BY a, ROLLUP (b, c)   =   GROUPING SETS ((a, b, c), (a, b), (a))

https://www.postgresql.org/docs/15/queries-table-expressions.html#QUERIES-GROUPING-SETS
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Final

from pglast.enums import GroupingSetKind

from catalog.values.errors import SqlError
from planner.algebra.nodes import Scalar
from planner.bind.state.environment import Binding

#: A set of keys, in the order of their first mention.
Keys = tuple[Scalar, ...]
_MOST: Final = 4096
_CUBE: Final = 12


def grouping_sets(
    binding: Binding, nodes: Sequence[Any] | None, distinct: bool, key: Callable[[Any], Scalar]
) -> list[Keys] | None:
    """The sets, in PostgreSQL's order; None without GROUP BY. Raises 54001 and 54011."""
    if not nodes:
        return None
    items, count = [], 1
    for node in nodes:
        items.append(_sets(binding, node, key))
        count *= len(items[-1])
        if count > _MOST:
            message = f"too many grouping sets present (maximum {_MOST})"
            raise SqlError("54001", message, position=binding.position(node))
    found = [_union(chosen) for chosen in product(*items)]
    if not distinct:
        return found
    return list({frozenset(keys): keys for keys in reversed(found)}.values())[::-1]


def _sets(binding: Binding, node: Any, key: Callable[[Any], Scalar]) -> list[Keys]:
    if type(node).__name__ != "GroupingSet":
        return [_composite(node, key)]
    content = node.content or ()
    match node.kind:
        case GroupingSetKind.GROUPING_SET_EMPTY:
            return [()]
        case GroupingSetKind.GROUPING_SET_SETS:
            return [keys for item in content for keys in _sets(binding, item, key)]
        case GroupingSetKind.GROUPING_SET_ROLLUP:
            parts = [_composite(item, key) for item in content]
            return [_union(parts[:count]) for count in range(len(parts), -1, -1)]
        case _:
            if len(content) > _CUBE:
                raise SqlError("54011", f"CUBE is limited to {_CUBE} elements", position=binding.position(node))
            parts = [_composite(item, key) for item in content]
            chosen = product((True, False), repeat=len(parts))
            return [_union(part for part, taken in zip(parts, takes, strict=True) if taken) for takes in chosen]


def leaves(nodes: Iterable[Any] | None) -> Iterator[Any]:
    """The items that keys are made of."""
    for node in nodes or ():
        match type(node).__name__:
            case "GroupingSet":
                yield from leaves(node.content)
            case "RowExpr":
                yield from leaves(node.args)
            case _:
                yield node


def _composite(node: Any, key: Callable[[Any], Scalar]) -> Keys:
    """(a, b) counts as one item of two keys."""
    if type(node).__name__ == "RowExpr":
        return _union((key(item),) for item in node.args)
    return (key(node),)


def _union(parts: Iterable[Keys]) -> Keys:
    return tuple(dict.fromkeys(scalar for part in parts for scalar in part))
