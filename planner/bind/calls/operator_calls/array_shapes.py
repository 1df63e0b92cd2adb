"""Arrays of several dimensions in expressions: ARRAY[[...]], subscripts and slices, and functions of them.

Owns: the scalars that these become. The type of such an array is ``shaped``. A function that this module does not know
gets the list of the elements, and the engine raises 0A000 if the array has more than one dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from catalog.values.array_shapes import UNSAID, stacked
from catalog.values.errors import SqlError
from catalog.values.types import INT4, INT8, TEXT, SqlType, array, shaped
from planner.algebra.nodes import Call, Literal, Scalar
from planner.bind.calls.overloading.overloads import Overload
from planner.bind.conversion.array_items import is_shaped, items_of
from planner.bind.conversion.coercion import coerced_implicitly, common_type
from planner.bind.state.environment import Environment

#: Bounds that a slice does not say.
LEAST: Final = Literal(-(2**31), INT4)
MOST: Final = Literal(2**31 - 1, INT4)
_SAME: Final = {
    "array_ndims": "shaped_ndims",
    "array_dims": "shaped_dims",
    "array_length": "shaped_length",
    "array_lower": "shaped_lower",
}
#: Functions and operators that take the elements in order, whatever the shape.
_OF_ITEMS: Final = frozenset(
    ("cardinality", "array_to_string", "unnest", "array_contains", "array_contained", "array_overlaps")
)


def opened(name: str, arguments: Sequence[Scalar]) -> list[Scalar]:
    """A call's arguments, lists of elements where only these matter to it."""
    return list(map(items_of, arguments)) if name in _OF_ITEMS else list(arguments)


def call_of_shaped(
    env: Environment, chosen: Overload, written: str, arguments: Sequence[Scalar], nodes: Sequence[Any]
) -> Call | None:
    """A function of an array of any dimensions; None for what takes none."""
    if not any(map(is_shaped, arguments)):
        return None
    if chosen.name == "array_cat" and all(item.type.element is not None for item in arguments):
        kind = _common(env, arguments, nodes)
        left, right = (
            coerced_implicitly(env.binding, item, kind, node) for item, node in zip(arguments, nodes, strict=True)
        )
        return Call("shaped_cat", (left, right), kind)
    name = "shaped_upper" if written == "array_upper" else _SAME.get(chosen.name)
    if name is None:
        return None
    others = [
        coerced_implicitly(env.binding, item, INT4, node) for item, node in zip(arguments[1:], nodes[1:], strict=True)
    ]
    return Call(name, (arguments[0], *others), TEXT if chosen.name == "array_dims" else INT4)


def _common(env: Environment, arguments: Sequence[Scalar], nodes: Sequence[Any]) -> SqlType:
    kind = common_type([item.type for item in arguments], "ARRAY", lambda index: env.binding.start(nodes[index]))
    assert kind.element is not None
    return shaped(kind.element)


def array_of_arrays(env: Environment, scalars: Sequence[Scalar], nodes: Sequence[Any], place: Any) -> Scalar:
    """ARRAY[...] of arrays: one more dimension. Raises 2202E where constants are not alike."""
    kind = _common(env, scalars, nodes)
    assert kind.element is not None
    given = [coerced_implicitly(env.binding, item, kind, node) for item, node in zip(scalars, nodes, strict=True)]
    values = [item.value for item in given if isinstance(item, Literal) and isinstance(item.value, tuple)]
    if len(values) < len(given):
        return Call("stacked", (Call("array", tuple(given), array(kind)),), kind)
    try:
        shape = stacked([value[1] for value in values])
    except SqlError as error:
        error.position = None
        raise
    return Literal((tuple(item for value in values for item in value[0]), shape), kind)


def subscripted(scalar: Scalar, indices: Sequence[Any], place: Callable[[Any], Scalar]) -> Scalar:
    """value[i][j] and value[a:b][c:d]; a subscript among slices is one from 1 on."""
    assert scalar.type.element is not None
    if not any(item.is_slice for item in indices):
        return Call("shaped_at", (scalar, *(place(item.uidx) for item in indices)), scalar.type.element)
    low, high = [], []
    for item in indices:
        low.append(Literal(1, INT4) if not item.is_slice else LEAST if item.lidx is None else place(item.lidx))
        high.append(MOST if item.uidx is None else place(item.uidx))
    return Call("shaped_slice", (scalar, *low, *high), shaped(scalar.type.element))


def put(scalar: Scalar, indices: Sequence[Any], place: Callable[[Any], Scalar], given: Scalar) -> Scalar:
    """value[i][j] = given, and value[a:b][c:d] = given: the array of any dimensions after that."""
    if not any(item.is_slice for item in indices):
        return Call("shaped_put", (scalar, given, *(place(item.uidx) for item in indices)), scalar.type)
    unsaid = Literal(UNSAID, INT8)
    low, high = [], []
    for item in indices:
        first = unsaid if item.lidx is None else place(item.lidx)
        low.append(first if item.is_slice else Literal(1, INT4))
        high.append(unsaid if item.uidx is None else place(item.uidx))
    return Call("shaped_put", (scalar, given, *low, *high), scalar.type)
