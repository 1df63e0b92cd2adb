"""Which plans a continuous view may have.

Owns the rules of the thesis, sections 4.2.2 and 4.2.3, checked on decorrelated algebra: every stream meets a grouping
first. Below its grouping a stream meets only static relations, as the probe side of a join that keeps the stream's
rows; a stream meets another stream only above the groupings of both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from catalog.values.errors import SqlError, unsupported
from planner.algebra.functions import FUNCTIONS
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Fixpoint,
    Join,
    Limit,
    Relation,
    Scan,
    Window,
)
from planner.algebra.walk import (
    RELATIONS,
    Node,
    children,
    free_columns,
    is_dependent,
    walk,
)
from planner.incremental.programs.program import Static
from planner.incremental.properties import Kinds, is_grouping
from planner.view_rules import RULES, Places

_NOWHERE: Final = Places()
_GROUP_FIRST: Final = "Group each stream by a key in a subquery or WITH, and use the grouped results."


def check(relation: Relation, places: Places = _NOWHERE) -> None:
    """Raises 0A000 with the rule that a prepared plan breaks, where its text does, and what to write instead."""
    check_operators(relation, places)
    kinds = Kinds()
    if kinds.of(relation) == "stream":
        raise unsupported(
            f"a continuous view that returns the rows of a stream ({_names(relation)}) without grouping them",
            "Group by a key (GROUP BY or DISTINCT; by all columns to keep every distinct row), "
            "or query the stream itself.",
            places.of(_ungrouped(relation, kinds)),
            RULES["grouping"],
        )


def check_operators(relation: Relation, places: Places = _NOWHERE) -> None:
    """Checks all rules except that the rows of streams are grouped at last."""
    kinds = Kinds()
    stack: list[tuple[Node, bool]] = [(relation, False)]
    while stack:
        node, below_grouping = stack.pop()
        match node:
            case Join():
                _check_join(node, kinds, places)
            case Limit() if kinds.of(node) == "stream" or (kinds.of(node) == "upper" and below_grouping):
                raise unsupported(
                    "LIMIT below a grouping of a continuous view",
                    "Give it an ORDER BY (of a stream's own rows with LIMIT 1000 at most), or use it in the query that "
                    "reads the view.",
                    places.limit or places.of(_streams(node)),
                    RULES["order"],
                )
            case Fixpoint() if kinds.of(node) == "stream":
                construct = f"WITH RECURSIVE over the rows of a stream ({_names(node)})"
                raise unsupported(construct, _GROUP_FIRST, places.of(_ungrouped(node, kinds)), RULES["order"])
            case Window() if kinds.of(node) == "stream":
                first = "Keep at most the first 1000 rows of row_number(), such as row_number <= 10."
                construct = f"a window function over the rows of a stream ({_names(node)})"
                raise unsupported(construct, f"{first} {_GROUP_FIRST}", places.of([node]), RULES["order"])
            case Aggregate() if is_grouping(node, kinds):
                _check_grouping(node, kinds, places)
            case _:
                pass
        inside = below_grouping or isinstance(node, Aggregate)
        stack.extend((child, inside) for child in children(node))


def _streams(node: Node) -> list[Scan]:
    return [item for item in walk(node) if isinstance(item, Scan) and item.arrives]


def _names(node: Node) -> str:
    return ", ".join(f'"{name}"' for name in sorted({stream.name for stream in _streams(node)}))


def _ungrouped(node: Node, kinds: Kinds) -> list[Relation]:
    """The streams below a relation that no grouping has taken in."""
    found: list[Relation] = []
    stack: list[Node] = [node]
    while stack:
        item = stack.pop()
        if kinds.of(item) == "stream":
            found += [item] if isinstance(item, Scan) else []
            stack += children(item)
    return found


def _check_join(node: Join, kinds: Kinds, places: Places) -> None:
    left, right = kinds.of(node.left), kinds.of(node.right)
    if is_dependent(node.right, node.left):
        _check_lateral(node, kinds, places)
    if "stream" not in (left, right):
        return
    if "static" not in (left, right):
        construct = f"a join of streams ({_names(node)}) before all of them are grouped"
        raise unsupported(construct, _GROUP_FIRST, places.of(_ungrouped(node, kinds)), RULES["streams"])
    if node.predicate is not None and kinds.of(node.predicate) != "static":
        raise _subquery_over_stream(node, kinds, places)


def _check_lateral(node: Join, kinds: Kinds, places: Places) -> None:
    """What is evaluated for each row stands above the groupings, and so do all columns that it uses."""
    groupings = (item for item in walk(node.right) if isinstance(item, Aggregate) and is_grouping(item, kinds))
    if "stream" in (kinds.of(node.left), kinds.of(node.right)) or any(free_columns(item) for item in groupings):
        raise unsupported(
            f"LATERAL over the rows of a stream ({_names(node)}) with conditions other than equalities",
            "Write it as a join with a grouped subquery in FROM.",
            places.of(_ungrouped(node.right, kinds) or _ungrouped(node, kinds) or _streams(node.right)),
            RULES["lateral"],
        )


def _subquery_over_stream(node: Node, kinds: Kinds, places: Places) -> SqlError:
    construct = f"a subquery over a stream ({_names(node)}) compared with rows not yet grouped"
    return unsupported(construct, _GROUP_FIRST, places.of(_ungrouped(node, kinds)), RULES["streams"])


def _check_grouping(node: Aggregate, kinds: Kinds, places: Places) -> None:
    """Below a grouping each row is seen once, so all must be immutable and no expression may read another stream."""
    for item in walk(node):
        if isinstance(item, Call) and item.function in FUNCTIONS and FUNCTIONS[item.function].volatility != "immutable":
            raise unsupported(
                f"{item.function}() below a grouping of a continuous view",
                "Put the value into a column of the stream, or use the function in the query that reads the view.",
                rule=RULES["immutable"],
            )
        if isinstance(item, RELATIONS):
            nested = [child for child in children(item) if not isinstance(child, RELATIONS)]
            if kinds.of(item) == "stream" or item is node:
                for child in nested:
                    if kinds.of(child) != "static":
                        raise _subquery_over_stream(item, kinds, places)


def require_tables(statics: Iterable[Static], places: Places = _NOWHERE) -> None:
    """Raises 0A000 where the rows of a stream are joined with something other than tables."""
    for static in statics:
        for item in walk(static.relation):
            if isinstance(item, Scan) and item.kind != "table":
                construct = f'joining view "{item.name}" below the grouping of a continuous view'
                instead = "Join it to the grouped result instead."
                raise unsupported(construct, instead, places.of([item]) or places.first, RULES["tables"])
