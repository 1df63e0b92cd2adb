"""Expressions that may raise beside interval joins, for views whose rows that fail are left out or have NULL (the view
option ``on_error``): each is to be of one row of one stream, so that this row is to blame.

    A join B on p(f(a), b)     =  A' join B on p(x, b)      A' = Project(A, all columns, x = f(a))    f may raise

So an expression over the columns of one side, such as a time that an interval is added to, is computed as the row comes
and before it meets others. What combines columns of both and may raise has no row to blame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.algebra.construction import Fresh
from planner.algebra.failures import gives_a_value, may_raise
from planner.algebra.nodes import Call, Column, ColumnRef, Project, Relation, Scalar
from planner.algebra.walk import used_columns


def computed_by_sides(
    streams: Sequence[Relation], parts: Iterable[Scalar], fresh: Fresh
) -> tuple[list[Relation], list[Scalar]] | None:
    """The sides with columns more for what may raise in conditions, and the conditions over these; None where a
    condition combines columns of several sides in what may raise."""
    hoisting = _Hoisting(streams, fresh)
    changed = [hoisting.changed(part) for part in parts]
    if any(part is None or may_raise(part) for part in changed):
        return None
    return hoisting.sides(), [part for part in changed if part is not None]


class _Hoisting:
    """The conditions of one join."""

    def __init__(self, streams: Sequence[Relation], fresh: Fresh) -> None:
        self._streams = streams
        self._fresh = fresh
        self._added: list[dict[Scalar, Column]] = [{} for _ in streams]

    def changed(self, scalar: Scalar) -> Scalar | None:
        """An expression over columns of the sides for its largest parts that may raise; None where there is no such
        one. What a CASE or the like computes only for some rows is not taken out of it."""
        if not may_raise(scalar):
            return scalar
        used = used_columns(scalar)
        for stream, added in zip(self._streams, self._added, strict=True):
            if used <= {*stream.columns}:
                column = added.get(scalar)
                if column is None:
                    column = added[scalar] = self._fresh.column("computed", scalar.type)
                return ColumnRef(column)
        if isinstance(scalar, Call) and gives_a_value(scalar) and scalar.function in _STRICT:
            arguments = [self.changed(item) for item in scalar.arguments]
            if None not in arguments:
                return Call(scalar.function, tuple(item for item in arguments if item is not None), scalar.type)
        return None

    def sides(self) -> list[Relation]:
        """The sides with the columns that the conditions use."""
        return [
            Project(
                stream,
                (
                    *((column, ColumnRef(column)) for column in stream.columns),
                    *((column, scalar) for scalar, column in added.items()),
                ),
            )
            if added
            else stream
            for stream, added in zip(self._streams, self._added, strict=True)
        ]


#: Calls that compute all of their arguments.
_STRICT = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "not", "is_distinct", "is_not_distinct"))
