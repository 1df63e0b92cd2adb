"""Polymorphic signatures: the types that anyarray, anyelement and anycompatible stand for in one call.

Owns: the step from a signature's declared names to the ``SqlType`` of each argument.
``planner.bind.conversion.resolution`` tells which type they stand for; a numeric gets the digits that all arguments
need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalog.postgres import type_oids
from catalog.values.errors import SqlError
from catalog.values.multiranges import multirange_of, range_of
from catalog.values.nested_types import is_declared
from catalog.values.ranges import subtype_of
from catalog.values.types import MULTIRANGES, NUMERIC, SqlType, array, by_name, by_oid
from planner.algebra.nodes import Literal, Scalar
from planner.bind.calls.overloading.overloads import ANY_SPAN, Overload
from planner.bind.conversion.coercion import as_numeric, coerce, common_numeric, numeric_of, target_type
from planner.bind.conversion.resolution import polymorphic_types
from planner.bind.state.environment import Environment

#: Pseudo-types that only arrays are of.
ARRAYS: Final = frozenset(("anyarray", "anycompatiblearray"))
#: Those whose operators' operands are brought to one type.
GATHERED: Final = ARRAYS | {"anyenum", *ANY_SPAN}
POLYMORPHIC: Final = GATHERED | {"anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"}


def coerced(env: Environment, chosen: Overload, arguments: Sequence[Scalar], nodes: Sequence[Any]) -> list[Scalar]:
    """A call's arguments in the types that its signature means for them. Raises 42804 where nothing says which."""
    found = []
    elements = _elements(chosen.arguments, arguments)
    for scalar, name, node in zip(arguments, chosen.arguments, nodes, strict=True):
        kind = named_type(name, elements) or target_type(name, scalar.type)
        if name == "text" and scalar.type.name == "varchar":
            kind = scalar.type
        item = coerce(env.binding, scalar, kind, "implicit", node)
        assert item is not None, "the signature was chosen so that its arguments coerce"
        found.append(item)
    return found


def result(chosen: Overload, arguments: Sequence[Scalar]) -> SqlType:
    """The type of a call's result; its arguments are coerced already."""
    return named_type(chosen.result, _elements(chosen.arguments, arguments)) or by_name(chosen.result)


def named_type(name: str, elements: dict[str, SqlType]) -> SqlType | None:
    """The type of a polymorphic name or of an array's (_text); None for every other."""
    if name in ANY_SPAN:
        return elements[name]
    if name in POLYMORPHIC:
        kind = elements["compatible" if "compatible" in name else "simple"]
        return array(kind) if name in ARRAYS else kind
    return array(by_name(name[1:])) if name.startswith("_") else None


def _elements(declared: Sequence[str], arguments: Sequence[Scalar]) -> dict[str, SqlType]:
    """The element type of both families, of those that occur, and the types of ranges and of multiranges."""
    found: dict[str, SqlType] = {}
    for family in ("simple", "compatible"):
        given = [
            (name, scalar)
            for name, scalar in zip(declared, arguments, strict=True)
            if name in POLYMORPHIC and ("compatible" in name) == (family == "compatible")
        ]
        pairs = [(name, scalar.type) for name, scalar in given]
        if spans := [kind for name, kind in pairs if name in ANY_SPAN and kind.name != "unknown"]:
            span = range_of(spans[0]) if spans[0].name in MULTIRANGES else spans[0]
            found |= {"anyrange": span, "anymultirange": multirange_of(span), family: subtype_of(span)}
        elif pairs:
            kind = _element(pairs)
            loose = [item for item in given if _is_written(item[1])] if kind.name == "numeric" else ()
            digits = [NUMERIC if name in ARRAYS else numeric_of(scalar) for name, scalar in loose]
            found[family] = common_numeric([kind, *digits]) if digits else kind
    return found


def _element(pairs: Sequence[tuple[str, SqlType]]) -> SqlType:
    names = [type_oids()[name] for name, _ in pairs]
    chosen = polymorphic_types([kind.oid for _, kind in pairs], names)
    assert chosen is not None, "the signature was chosen so that its arguments agree"
    plain = [chosen[oid] for oid, (name, _) in zip(names, pairs, strict=True) if name not in ARRAYS]
    arrays = [chosen[oid] for oid, (name, _) in zip(names, pairs, strict=True) if name in ARRAYS]
    own = {item.oid: item for _, kind in pairs if is_declared(kind) for item in _with_element(kind)}
    kinds = [own.get(oid) or by_oid(oid) for oid in (*plain, *arrays)]
    if any(kind.name == "unknown" for kind in kinds):
        raise input_is_unknown()
    kind = kinds[0] if plain else _of(kinds[0])
    given = [_of(item) if name in ARRAYS else item for name, item in pairs if item.name != "unknown"]
    if kind.name == "numeric":
        return common_numeric([as_numeric(item) for item in given]) if given else kind
    return kind


def input_is_unknown() -> SqlError:
    """42804: no argument says what a polymorphic type stands for."""
    return SqlError("42804", "could not determine polymorphic type because input has type unknown")


def _is_written(scalar: Scalar) -> bool:
    """Whether an argument is in quotes or a parameter, and may have digits of its own."""
    return scalar.type.name == "unknown" and scalar != Literal(None, scalar.type)


def _with_element(kind: SqlType) -> tuple[SqlType, ...]:
    """The types that a user's oid may mean beside an argument's: its own, its element's and its array's."""
    return (kind, array(kind)) if kind.element is None else (kind, kind.element)


def _of(kind: SqlType) -> SqlType:
    assert kind.element is not None
    return kind.element
