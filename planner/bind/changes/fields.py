"""SET column.field = value, and INSERT INTO t (column.field): a row like the one before with another field.

Owns: PostgreSQL's errors for such targets. A NULL has no fields, so that it becomes a row with this one.
"""

from __future__ import annotations

from typing import Any

from catalog.errors import SqlError, unsupported
from planner.bind.environment import Environment
from planner.bind.expressions import bind_scalar
from planner.bind.rows import field_of, fields_of
from planner.bind.types import coerce, display
from planner.expression import Call, Scalar


def assign_field(env: Environment, row: Scalar, item: Any) -> Scalar:
    """The row after one item of a SET list that names fields. Raises 42703, 42804 and 0A000."""
    if type(item.val).__name__ == "MultiAssignRef":
        raise unsupported("assignment to a part of a column", "Assign the whole.", env.binding.position(item))
    return with_field(env, row, item, item.val)


def with_field(env: Environment, row: Scalar, item: Any, node: Any, value: Scalar | None = None) -> Scalar:
    """The row with another value, an expression's or a given one, of the field that a target names."""
    path = item.indirection
    if type(node).__name__ == "SetToDefault":
        raise env.error("0A000", "cannot set a subfield to DEFAULT", item)
    if any(type(part).__name__ != "String" for part in path):
        raise unsupported("assignment to a part of a column", "Assign the whole.", env.binding.position(item))
    places: list[int] = []
    inner = row
    for part in path:
        places.append(_place(env, inner, part.sval, item))
        inner = field_of(inner, places[-1])
    value = bind_scalar(env, node) if value is None else value
    found = coerce(env.binding, value, inner.type, "assignment", node)
    if found is None:
        kinds = f"is of type {display(inner.type)} but expression is of type {display(value.type)}"
        hint = "You will need to rewrite or cast the expression."
        message = f'subfield "{path[-1].sval}" {kinds}'
        raise SqlError("42804", message, hint=hint, position=env.binding.position(item))
    return _with(row, places, found)


def _place(env: Environment, row: Scalar, name: str, item: Any) -> int:
    of = f'cannot assign to field "{name}" of column "{item.name}" because'
    if row.type.row is None:
        raise env.error("42804", f"{of} its type {display(row.type)} is not a composite type", item)
    names = [known for known, _ in row.type.row.fields]
    if name not in names:
        raise env.error("42703", f"{of} there is no such column in data type {display(row.type)}", item)
    return names.index(name)


def _with(row: Scalar, places: list[int], value: Scalar) -> Scalar:
    fields = [field for _, field in fields_of(row)]
    place, *rest = places
    fields[place] = _with(fields[place], rest, value) if rest else value
    return Call("row", tuple(fields), row.type)
