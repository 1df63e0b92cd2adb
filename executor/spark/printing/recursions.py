"""WITH RECURSIVE ... UNION, which Spark's own recursion does not support, as it never drops rows.

Owns: ``without_loops``, which takes such recursions out of a relation before it is printed. The driver computes them
round after round (``executor.spark.driver.recursion_rounds``), and the relation above reads their rows as a snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from catalog.values.errors import unsupported
from executor.printing.nodes import column_name
from executor.spark.frames import Frame
from executor.spark.printing.dialect import spark_type
from planner.algebra.nodes import Column, ColumnRef, Fixpoint, Project, Relation, Snapshot, Working
from planner.algebra.walk import free_columns, transform, walk

#: What the snapshot of the last round's rows is called behind the recursion's name.
_LAST: Final = "_last"


class Loop(Struct, frozen=True):
    """A recursion that was taken out: its rows are the snapshot ``name``, those of the last round ``name``_last."""

    name: str
    columns: tuple[Column, ...]
    base: Relation
    step: Relation

    def printed(self, base: str, step: str) -> Frame:
        """What the driver gets, with the SQL of both."""
        columns = [[column_name(column), spark_type(column.type)] for column in self.columns]
        views = {"view": f"s_{self.name}", "last": f"s_{self.name}{_LAST}"}
        return {**views, "columns": columns, "base": base, "step": step}


def without_loops(relation: Relation) -> tuple[Relation, tuple[Loop, ...]]:
    """The relation with snapshots for recursions that drop rows, and these, each after those that it reads."""
    loops: list[Loop] = []

    def change(node: Any) -> Any:
        if not isinstance(node, Fixpoint) or node.all:
            return node
        if free_columns(node) or _reads_others(node):
            raise unsupported("UNION in a WITH RECURSIVE that depends on what is around it")
        name = f"loop_{len(loops) + 1}"
        loops.append(Loop(name, node.columns, _named(node.base, node), _named(_reading(node, name), node)))
        return _snapshot(name, node.columns, node.columns)

    return transform(relation, change), tuple(loops)


def _reads_others(node: Fixpoint) -> bool:
    """Whether a recursion reads the rows of a round of another one around it."""
    own = {item.name for item in walk(node) if isinstance(item, Fixpoint)}
    return any(isinstance(item, Working) and item.name not in own for item in walk(node))


def _reading(node: Fixpoint, name: str) -> Relation:
    """The step over the rows of the last round."""

    def change(item: Any) -> Any:
        if isinstance(item, Working) and item.name == node.name:
            return _snapshot(name + _LAST, item.columns, item.sources)
        return item

    found: Relation = transform(node.step, change)
    return found


def _named(relation: Relation, node: Fixpoint) -> Relation:
    """An input of the recursion under the recursion's columns."""
    pairs = zip(node.columns, relation.columns, strict=True)
    return Project(relation, tuple((column, ColumnRef(source)) for column, source in pairs))


def _snapshot(name: str, columns: Sequence[Column], sources: Sequence[Column]) -> Snapshot:
    return Snapshot(name, tuple(columns), tuple(map(column_name, sources)))
