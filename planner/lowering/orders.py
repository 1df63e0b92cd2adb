"""Orders of values that an engine orders otherwise: jsonb by a key that is bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from catalog.types import BYTEA
from planner.algebra import SortKey
from planner.expression import Call
from planner.rules.support import Fresh


def by_keys(node: Any, fresh: Fresh) -> Any:
    """One sort key."""
    if not isinstance(node, SortKey) or node.expression.type.name != "jsonb":
        return node
    return replace(node, expression=Call("json_order", (node.expression,), BYTEA))
