"""Parts of a plan that read one stream by itself: a scan below filters and projections.

Owns: how such a part is read over something else, and with a column of its stream more. With tables joined to it, a
part is ``collect``'s matter, whose joins it may contain.
"""

from __future__ import annotations

from msgspec.structs import replace

from planner.algebra.construction import Fresh
from planner.algebra.nodes import ColumnRef, Filter, Join, Project, Relation, Scan
from planner.algebra.walk import transform, walk


def scan_of(part: Relation) -> Scan:
    """The stream that a part reads."""
    return next(node for node in walk(part) if isinstance(node, Scan) and node.arrives)


def over(part: Relation, leaf: Relation) -> Relation:
    """A part over something else that has the columns of its stream."""
    found: Relation = transform(part, lambda node: leaf if isinstance(node, Scan) else node)
    return found


def with_column(part: Relation, source: str, fresh: Fresh) -> Relation:
    """A part with a column of its stream more, the last one."""
    if isinstance(part, Filter):
        return replace(part, input=with_column(part.input, source, fresh))
    if isinstance(part, Project):
        below = with_column(part.input, source, fresh)
        last = below.columns[-1]
        return Project(below, (*part.outputs, (fresh.copy(last), ColumnRef(last))))
    if isinstance(part, Join):
        left = with_column(part.left, source, fresh)
        last = left.columns[-1]
        outputs = tuple((column, ColumnRef(column)) for column in part.columns)
        return Project(replace(part, left=left), (*outputs, (fresh.copy(last), ColumnRef(last))))
    assert isinstance(part, Scan)
    column = fresh.copy(part.columns[part.sources.index(source)])
    return replace(part, columns=(*part.columns, column), sources=(*part.sources, source))
