"""Tables that are joined to a side of an interval join before it meets the other: they meet the joined rows.

    (A op T) join B on p       =  (A join B on p) op T            op: an inner, left, semi or anti join with a table,
    (A op T) left join B on p  =  (A left join B on p) op T           or a filter or projection above such
    (A op T) anti join B on p  =  (A anti join B on p) op T       and likewise a semi join

Side conditions: p uses no column of T, nor one that is computed of such. So T is live, and a row of A is kept whether
it has one in T or not. Not for the side of which an outer join may show NULL, whose rows T chooses before they are
joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import keep_columns
from planner.algebra.nodes import Column, ColumnRef, Filter, Join, Project, Relation, Scalar
from planner.algebra.walk import free_columns, is_dependent, replace_columns, used_columns

#: Joins that give each row of their left side as it is, with columns more, once or several times, or not at all.
_CHOOSING: Final = ("inner", "left", "semi", "anti")


class Bare(Struct, frozen=True):
    """A side without its tables: ``core``, and what stood above it, from the top down."""

    core: Relation
    above: tuple[Relation, ...] = ()

    def inlined(self, scalar: Scalar) -> Scalar | None:
        """An expression over the side's columns over those of the core; None where a table's are among them."""
        values: dict[Column, Scalar] = {}
        for node in reversed(self.above):
            if isinstance(node, Project):
                values |= {column: replace_columns(value, values) for column, value in node.outputs}
        found: Scalar = replace_columns(scalar, values)
        tables = {column for node in self.above for column in node.columns} - values.keys() - {*self.core.columns}
        return None if used_columns(found) & tables else found

    def over(self, rows: Relation) -> Relation:
        """What stood above the core above other rows, which have its columns and others."""
        found = rows
        for node in reversed(self.above):
            match node:
                case Project(outputs=outputs):
                    given = {column for column, _ in outputs}
                    more = tuple((column, ColumnRef(column)) for column in found.columns if column not in given)
                    found = Project(found, (*outputs, *more))
                case Filter():
                    found = replace(node, input=found)
                case Join():
                    found = replace(node, left=found)
                case _:
                    raise AssertionError(f"{type(node).__name__} beside a table")
        return found


def bare(side: Relation, is_stream: Callable[[Relation], bool], is_table: Callable[[Relation], bool]) -> Bare | None:
    """A side without the tables that are joined to it; None where it is no stream with tables. ``is_stream``: a
    relation is one stream by itself."""
    above: list[Relation] = []
    node = side
    while not is_stream(node):
        match node:
            case Filter() | Project():
                above.append(node)
                node = node.input
            case Join(kind=kind, left=left, right=right) if kind in _CHOOSING and is_table(right):
                if is_dependent(right, left) or free_columns(right):
                    return None
                above.append(node)
                node = left
            case Join(kind="inner" | "right", left=left, right=right) if is_table(left) and not free_columns(left):
                above.append(Join("left" if node.kind == "right" else "inner", right, left, node.predicate))
                node = right
            case _:
                return None
    return Bare(node, tuple(above))


def with_tables_above(
    node: Join,
    used: Callable[[Join], tuple[Column, ...]],
    is_stream: Callable[[Relation], bool],
    is_table: Callable[[Relation], bool],
) -> Relation | None:
    """An outer, semi or anti join of a stream with tables and another stream, with the tables above it; None for
    another one. ``used``: the columns of a join that the rest of the plan uses, which are all that it will have."""
    kept, other = (node.right, node.left) if node.kind == "right" else (node.left, node.right)
    if node.kind == "full" or is_stream(kept) or not is_stream(other) or node.predicate is None:
        return None
    found = bare(kept, is_stream, is_table)
    predicate = None if found is None else found.inlined(node.predicate)
    if found is None or predicate is None:
        return None
    join = Join("left" if node.kind == "right" else node.kind, found.core, other, predicate)
    rows = found.over(keep_columns(join, used(join)))
    shown = tuple(column for column in used(node) if column in rows.columns)
    return keep_columns(rows, shown or rows.columns[:1])


def without_tables(
    leaves: Sequence[Relation], is_stream: Callable[[Relation], bool], is_table: Callable[[Relation], bool]
) -> list[Bare] | None:
    """The sides of an inner join without their tables; None where one is no stream with tables."""
    found = [bare(leaf, is_stream, is_table) for leaf in leaves]
    known = [item for item in found if item is not None]
    return known if len(known) == len(found) else None
