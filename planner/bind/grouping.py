"""GROUP BY and aggregates: from expressions over the input's rows to expressions over groups.

Owns: replacing group keys and aggregates by the columns of an Aggregate, what a primary key in GROUP BY determines, and
the error 42803 for a column that is neither grouped nor aggregated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from catalog.errors import SqlError
from planner.algebra import Aggregate, Relation
from planner.bind.context import Binding
from planner.bind.environment import Groups
from planner.bind.scope import Scope, written_name
from planner.expression import Column, ColumnRef, Scalar, WindowCall
from planner.walk import RELATIONS, SCALARS, children, descend

_Item = TypeVar("_Item", bound=Scalar | WindowCall)


class Grouping:
    """One query level's groups. ``over`` rewrites expressions; ``relation`` is asked for afterwards."""

    def __init__(
        self, binding: Binding, scope: Scope, source: Relation, keys: Sequence[Scalar], groups: Groups
    ) -> None:
        self._binding = binding
        self._scope = scope
        self._input = source
        self._groups = groups
        self._local = {column.id for column in source.columns}
        self._keys: list[tuple[Column, Scalar]] = []
        for key in keys:
            if not any(key == known for _, known in self._keys):
                self._add(key)

    def _add(self, key: Scalar) -> Column:
        name = key.column.name if isinstance(key, ColumnRef) else "key"
        nullable = key.column.nullable if isinstance(key, ColumnRef) else True
        column = self._binding.column(name, key.type, nullable)
        self._keys.append((column, key))
        return column

    def over(self, scalar: _Item) -> _Item:
        """An expression of the select list, HAVING or ORDER BY, or a window call, over the groups. Raises 42803."""

        def change(node: Any) -> Any:
            if not isinstance(node, SCALARS):
                return node
            for column, key in self._keys:
                if node == key:
                    return ColumnRef(column)
            if isinstance(node, ColumnRef) and node.column.id in self._local:
                return ColumnRef(self._determined(node, scalar))
            return node

        found: _Item = descend(scalar, change)
        return found

    def _determined(self, node: ColumnRef, whole: Scalar | WindowCall) -> Column:
        """The key column of a column that a grouped primary key determines: it becomes a key itself."""
        grouped = {key.column.id for _, key in self._keys if isinstance(key, ColumnRef)}
        for source in self._scope.sources:
            covered = bool(source.key) and all(column.id in grouped for column in source.key)
            if covered and any(entry.scalar == node for entry in source.entries):
                return self._add(node)
        raise self._ungrouped(node, whole)

    def _ungrouped(self, node: ColumnRef, whole: Scalar | WindowCall) -> SqlError:
        position, _ = self._binding.origin(node)
        name = written_name(self._scope, node)
        if _directly_in(whole, node):
            message = f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function'
        else:
            message = f'subquery uses ungrouped column "{name}" from outer query'
        return SqlError("42803", message, position=position)

    def relation(self) -> Aggregate:
        """The groups."""
        return Aggregate(self._input, tuple(self._keys), tuple(self._groups.aggregates))


def _directly_in(scalar: Scalar | WindowCall, wanted: ColumnRef) -> bool:
    """Whether a reference stands in an expression itself and not in a subquery of it."""
    stack: list[Any] = [scalar]
    while stack:
        node = stack.pop()
        if node is wanted:
            return True
        if not isinstance(node, RELATIONS):
            stack.extend(children(node))
    return False
