"""Assignments to parts of a column: SET column.field, SET column[i], and INSERT INTO t (column.field, column[i]).

Owns: PostgreSQL's errors for such targets. The column is assigned its former value with the field, element or slice
replaced. A NULL column becomes a row or array that has only this part.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import JSONB, TEXT, SqlType, shaped
from planner.algebra.nodes import Call, Cast, Scalar
from planner.bind.calls.families.arrays import hstore_key, place_of, require_dimensions, subscripted
from planner.bind.calls.families.json_functions import with_part as with_member
from planner.bind.calls.operator_calls.array_shapes import put
from planner.bind.conversion.array_items import is_shaped
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.domains import into_domain
from planner.bind.conversion.rows import declared_row, field_of, fields_of
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment

_REQUIRES: Final = 'subscripted assignment to "{}" requires type'


def assign_part(env: Environment, whole: Scalar, item: Any) -> Scalar:
    """The column after one item of a SET list that names a part of it. Raises 42703, 42804 and 0A000."""
    if type(item.val).__name__ == "MultiAssignRef":
        raise unsupported("assignment to a part of a column", "Assign the whole.", env.binding.position(item))
    return with_part(env, whole, item, item.val)


def with_part(env: Environment, whole: Scalar, item: Any, node: Any, value: Scalar | None = None) -> Scalar:
    """The column with another value, an expression's or a given one, of the part that a target names."""
    if type(node).__name__ == "SetToDefault":
        part = "a subfield" if type(item.indirection[-1]).__name__ == "String" else "an array element"
        raise env.error("0A000", f"cannot set {part} to DEFAULT", item)
    value = env.bind(node) if value is None else value
    return _changed(env, whole, item.indirection, item, node, value)


def _changed(env: Environment, whole: Scalar, path: Sequence[Any], item: Any, node: Any, value: Scalar) -> Scalar:
    """The whole with a value at a path of fields and subscripts, of which there is one."""
    indices = list(takewhile(_is_subscript, path))
    if indices:
        return _with_element(env, whole, indices, path[len(indices) :], item, node, value)
    if type(path[0]).__name__ != "String":
        raise unsupported("assignment to a part of a column", "Assign the whole.", env.binding.position(item))
    name, *rest = path
    place = _place(env, whole, name.sval, item)
    fields = [field for _, field in fields_of(whole)]
    if rest:
        found = _changed(env, fields[place], rest, item, node, value)
    else:
        kind = field_of(whole, place).type
        found = _assigned(env, value, kind, f'subfield "{name.sval}" is of type', item, node)
    fields[place] = into_domain(env.binding, found, declared_row(whole).domain(place), node)
    return Call("row", tuple(fields), whole.type)


def _is_subscript(part: Any) -> bool:
    return type(part).__name__ == "A_Indices"


def _with_element(
    env: Environment, whole: Scalar, indices: Sequence[Any], rest: Sequence[Any], item: Any, node: Any, value: Scalar
) -> Scalar:
    element = whole.type.element
    is_slice = any(index.is_slice for index in indices)
    if whole.type == JSONB and not rest:
        document = _assigned(env, value, JSONB, _REQUIRES.format(item.name), item, node)
        return with_member(env, whole, indices, document)
    if whole.type.name == "hstore" and not rest:
        given = _assigned(env, value, TEXT, _REQUIRES.format(item.name), item, node)
        return Call("hs_assign", (whole, hstore_key(env, indices, item), given), whole.type)
    if element is None:
        message = f"cannot subscript type {display(whole.type)} because it does not support subscripting"
        raise env.error("42804", message, item)
    if whole.type.name not in ("array", "shaped") or (rest and is_slice):
        raise unsupported("assignment to a part of a column", "Assign the whole.", env.binding.position(item))
    require_dimensions(indices)
    kind = whole.type
    if isinstance(whole, Cast) and is_shaped(whole.argument):  # another item of the same list, which may say bounds
        whole = whole.argument
    elif not is_shaped(whole):
        whole = Cast(whole, shaped(element))
    if rest:
        inner = subscripted(env, whole, indices, item)
        given = _changed(env, inner, rest, item, node, value)
    else:
        wanted = shaped(element) if is_slice else element
        given = _assigned(env, value, wanted, _REQUIRES.format(item.name), item, node)
    found = put(whole, indices, lambda index: place_of(env, index), given)
    return found if kind == found.type else Cast(found, kind)


def _assigned(env: Environment, value: Scalar, kind: SqlType, words: str, item: Any, node: Any) -> Scalar:
    found = coerce(env.binding, value, kind, "assignment", node)
    if found is None:
        message = f"{words} {display(kind)} but expression is of type {display(value.type)}"
        hint = "You will need to rewrite or cast the expression."
        raise SqlError("42804", message, hint=hint, position=env.binding.position(item))
    return found


def _place(env: Environment, row: Scalar, name: str, item: Any) -> int:
    of = f'cannot assign to field "{name}" of column "{item.name}" because'
    if row.type.row is None:
        raise env.error("42804", f"{of} its type {display(row.type)} is not a composite type", item)
    names = [known for known, _ in row.type.row.fields]
    if name not in names:
        raise env.error("42703", f"{of} there is no such column in data type {display(row.type)}", item)
    return names.index(name)
