"""What is known of the rows that a plan reads, as an input of planning: counts, distinct values, bounds and keys.

Owns the forms alone. Where the numbers come from, and when, is the executor's matter (``executor/core/statistics``);
what is made of them is ``planner.rules.joins.cardinality``'s. All of them may be wrong: they decide how long a query
takes, never its rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from planner.algebra.nodes import Value


class ColumnStatistics(Struct, frozen=True):
    """How many distinct values a column has, if somebody counted, and the least and the greatest."""

    distinct: float | None = None
    low: Value = None
    high: Value = None


class TableStatistics(Struct, frozen=True):
    """A relation's rows, its columns' values by name, and the sets of columns that no two rows share."""

    rows: float
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    keys: tuple[frozenset[str], ...] = ()


#: By the oid of a scan or the trace of a snapshot; of what is not in it nothing is known.
Statistics = Mapping[int | str, TableStatistics]


def are_alike(old: Statistics, new: Statistics) -> bool:
    """Whether no relation has come or gone, or has more than twice the rows that it had, or less than half."""
    return old.keys() == new.keys() and all(
        old[name].rows <= 2 * new[name].rows and new[name].rows <= 2 * old[name].rows for name in new
    )
