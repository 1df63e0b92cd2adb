"""What one ORDER BY item says: whether its values have an order; ASC, DESC, NULLS FIRST and LAST."""

from __future__ import annotations

from typing import Any

from pglast.enums import SortByDir, SortByNulls

from catalog.errors import SqlError
from planner.bind.context import Binding
from planner.bind.environment import Environment
from planner.bind.typenames import names_of
from planner.expression import Scalar


def direction(binding: Binding, item: Any) -> tuple[bool, bool]:
    """(descending, nulls_first) of a SortBy node; PostgreSQL sorts nulls as if larger than all."""
    descending = item.sortby_dir == SortByDir.SORTBY_DESC
    if item.sortby_dir == SortByDir.SORTBY_USING:
        operator = names_of(item.useOp)[-1]
        if operator not in ("<", ">"):
            message = f"operator {operator} is not a valid ordering operator"
            hint = 'Ordering operators must be "<" or ">" members of btree operator families.'
            raise SqlError("42809", message, hint=hint, position=binding.position(item))
        descending = operator == ">"
    if item.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT:
        return descending, descending
    return descending, item.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST


def check_sortable(env: Environment, scalar: Scalar, node: Any) -> None:
    """Raises 42883 for a type without an order, which is json."""
    if scalar.type.name == "json":
        hint = "Use an explicit ordering operator or modify the query."
        raise env.error("42883", "could not identify an ordering operator for type json", node, hint=hint)
