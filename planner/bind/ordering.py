"""ASC, DESC, NULLS FIRST and LAST of one ORDER BY item."""

from __future__ import annotations

from typing import Any

from pglast.enums import SortByDir, SortByNulls

from catalog.errors import unsupported
from planner.bind.context import Binding


def direction(binding: Binding, item: Any) -> tuple[bool, bool]:
    """(descending, nulls_first) of a SortBy node; PostgreSQL sorts nulls as if larger than all."""
    if item.sortby_dir == SortByDir.SORTBY_USING:
        raise unsupported("ORDER BY ... USING", "Use ASC or DESC.", binding.position(item))
    descending = item.sortby_dir == SortByDir.SORTBY_DESC
    if item.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT:
        return descending, descending
    return descending, item.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST
