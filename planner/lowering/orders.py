"""Sort keys for values that an engine sorts differently from PostgreSQL: bytes for jsonb, lengths for intervals, texts
for addresses and geometric types."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from catalog.values.opaque import KEYED
from catalog.values.types import BYTEA, TEXT
from planner.algebra.construction import Fresh
from planner.algebra.nodes import Call, Scalar, SortKey
from planner.lowering.intervals import is_of_intervals, length


def by_keys(node: Any, fresh: Fresh) -> Any:
    """One sort key, rewritten if needed."""
    if not isinstance(node, SortKey):
        return node
    kind = node.expression.type
    if is_of_intervals(kind):
        return replace(node, expression=length(node.expression))
    if kind.name in KEYED:
        return replace(node, expression=order_key(node.expression))
    return replace(node, expression=Call("json_order", (node.expression,), BYTEA)) if kind.name == "jsonb" else node


def order_key(scalar: Scalar) -> Scalar:
    """A text that sorts like a value of one of the types ``KEYED``."""
    return Call(f"{KEYED[scalar.type.name]}_order", (scalar,), TEXT)
