"""Rows of system relations come in the order in which PostgreSQL has them: by insertion, as far as nothing else says.

    Project(R, x)                      =  Project(Sort(Project(R, x, places), places), x)
    Aggregate(R, array_agg(x))         =  Aggregate(Sort(R, places), array_agg(x))

``places`` are those of the rows of R's system relations, in the order of FROM. Clients ask for a table's columns
without ORDER BY and rely on pg_attribute's order; an engine's joins keep none. A query with an order of its own stays.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import INT8
from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    Sort,
    SortKey,
    With,
)
from planner.algebra.walk import find, kinds_of, transform_relations
from planner.rules.row_order.order_lists import LISTS

#: The hidden column of a system relation that numbers its rows.
PLACE: Final = "__place"
_SCANS: Final = kinds_of(Scan)


def order_system_rows(relation: Relation) -> Relation:
    """The relation with such orders, where it reads system relations."""
    if not any(scan.kind == "system" for scan in find(relation, _SCANS)):
        return relation
    order = _Order(Fresh(relation))
    return order.result(transform_relations(relation, order.listed))


class _Order:
    def __init__(self, fresh: Fresh) -> None:
        self._fresh = fresh

    def listed(self, node: Any) -> Any:
        """An aggregate that lists its input's rows, over these in order."""
        if not isinstance(node, Aggregate):
            return node
        if not any(call.function in LISTS and not call.order_by for _, call in node.aggregates):
            return node
        return replace(node, input=self._sorted(node.input))

    def result(self, node: Relation) -> Relation:
        """The relation with its own rows in order."""
        match node:
            case Limit():
                return replace(node, input=self.result(node.input))
            case With():
                return replace(node, body=self.result(node.body))
            case Project(input=Project() | Filter() | Join() | Scan()):
                ordered = self._sorted(node)  # above what it computes: engines make joins of subqueries
                return node if ordered is node else Project(ordered, _passed(node.columns))
            case _:
                return node

    def _sorted(self, rows: Relation) -> Relation:
        carried, places = self._carried(rows)
        return Sort(carried, tuple(SortKey(ColumnRef(place)) for place in places)) if places else rows

    def _carried(self, node: Relation) -> tuple[Relation, tuple[Column, ...]]:
        """The relation with the places of the rows that it is made of beside its columns."""
        match node:
            case Scan(kind="system"):
                place = self._fresh.column("place", INT8)
                return replace(node, columns=(*node.columns, place), sources=(*node.sources, PLACE)), (place,)
            case Filter():
                below, places = self._carried(node.input)
                return replace(node, input=below), places
            case Project():
                below, places = self._carried(node.input)
                return replace(node, input=below, outputs=(*node.outputs, *_passed(places))), places
            case Join():
                left, before = self._carried(node.left)
                right, behind = (node.right, ()) if node.kind in ("semi", "anti") else self._carried(node.right)
                return replace(node, left=left, right=right), (*before, *behind)
            case _:
                return node, ()


def _passed(columns: tuple[Column, ...]) -> tuple[tuple[Column, ColumnRef], ...]:
    return tuple((column, ColumnRef(column)) for column in columns)
