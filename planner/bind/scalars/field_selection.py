"""What follows a value: (value).field, (value).* and value[i], one after another.

``conversion.rows`` has the fields, ``calls.families.arrays`` the subscripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from catalog.values.errors import unsupported
from planner.algebra.nodes import ColumnRef, Scalar
from planner.bind.calls.families.arrays import subscripted
from planner.bind.conversion.rows import field_of_source, fields_of, named_field, source_of_row
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment


def bind_selection(env: Environment, node: Any) -> Scalar:
    """An A_Indirection without a star."""
    return _along(env, node, node.indirection)


def _along(env: Environment, node: Any, items: tuple[Any, ...]) -> Scalar:
    source = source_of_row(env, node.arg)
    if source is not None and items and type(items[0]).__name__ == "String":
        scalar = field_of_source(env, source, items[0].sval, node.arg).scalar
        if isinstance(scalar, ColumnRef):
            scalar = ColumnRef(scalar.column)
            env.binding.remember(scalar, node.arg)
        items = items[1:]
    else:
        scalar = env.bind(node.arg)
    for kind, run in groupby(items, key=lambda item: type(item).__name__):
        if kind == "A_Indices":
            scalar = subscripted(env, scalar, list(run), node.arg)
            continue
        if kind != "String":
            raise unsupported("* in this place", "Name the fields.", env.binding.position(node.arg))
        for item in run:
            scalar = named_field(env, scalar, item.sval, node.arg)
    return scalar


def is_all_fields(node: Any) -> bool:
    """Whether a parse node is ``(value).*``."""
    return type(node).__name__ == "A_Indirection" and type(node.indirection[-1]).__name__ == "A_Star"


def bind_all_fields(env: Environment, node: Any) -> Iterator[tuple[str, Scalar]]:
    """The fields of ``(value).*`` with their names, as items of a select list. Raises 42809."""
    source = source_of_row(env, node.arg) if len(node.indirection) == 1 else None
    if source is not None:
        yield from ((entry.name, entry.scalar) for entry in source.entries)
        return
    scalar = _along(env, node, node.indirection[:-1])
    if scalar.type.row is None:
        raise env.error_at("42809", f"type {display(scalar.type)} is not composite", node.arg)
    yield from fields_of(scalar)
