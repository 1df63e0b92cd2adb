"""What one ORDER BY item says: whether its values have an order; ASC, DESC, NULLS FIRST and LAST."""

from __future__ import annotations

from typing import Any

from pglast.enums import SortByDir, SortByNulls

from catalog.errors import unsupported
from planner.bind.context import Binding
from planner.bind.environment import Environment
from planner.expression import Scalar


def direction(binding: Binding, item: Any) -> tuple[bool, bool]:
    """(descending, nulls_first) of a SortBy node; PostgreSQL sorts nulls as if larger than all."""
    if item.sortby_dir == SortByDir.SORTBY_USING:
        raise unsupported("ORDER BY ... USING", "Use ASC or DESC.", binding.position(item))
    descending = item.sortby_dir == SortByDir.SORTBY_DESC
    if item.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT:
        return descending, descending
    return descending, item.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST


def check_sortable(env: Environment, scalar: Scalar, node: Any) -> None:
    """Raises 42883 for a type without an order, which is json."""
    if scalar.type.name == "json":
        hint = "Use an explicit ordering operator or modify the query."
        raise env.error("42883", "could not identify an ordering operator for type json", node, hint=hint)
