"""Calls of functions that an extension provides.

Owns: which canonical function computes each, and the error (0A000) for those that Millstream cannot compute.
"""

from __future__ import annotations

from typing import Any

from catalog.routines import Function
from catalog.values.errors import unsupported
from catalog.values.types import RECORD_OID, TEXT, SqlType, array, shaped
from planner.algebra.nodes import Call, Cast, Literal, Scalar
from planner.bind.conversion.array_items import is_shaped
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.rows import fields_of
from planner.bind.state.environment import Environment


def require_computed(env: Environment, function: Function, node: Any) -> None:
    """Raises 0A000 for a member that is there by name alone."""
    if function.extension and not (function.computed or function.body):
        words = f"function {function.name}() of extension {function.extension}"
        raise unsupported(words, position=env.binding.position(node))


def takes_any(function: Function, oid: int, given: Scalar) -> bool:
    """Whether a parameter is any row, or an array of any dimensions."""
    return oid == RECORD_OID or (function.computed == "hs_of_array" and is_shaped(given))


def call_member(env: Environment, function: Function, given: list[Scalar], kind: SqlType, node: Any) -> Scalar:
    """The value of a call."""
    match function.computed:
        case "hs_of_row":
            return _of_row(env, given[0], kind, node)
        case "hs_of_array" if is_shaped(given[0]):
            return Call("hs_of_shaped", (Cast(given[0], TEXT, True),), kind)
        case "hs_matrix":
            return Cast(Call("hs_matrix", tuple(given), TEXT), shaped(TEXT), True)
        case computed:
            return Call(computed, tuple(given), kind)


def _of_row(env: Environment, row: Scalar, kind: SqlType, node: Any) -> Scalar:
    """hstore(row): its fields' texts by their names; all NULL where it is NULL."""
    names, texts = [], []
    for name, value in fields_of(row):
        shown = coerce(env.binding, value, TEXT, "explicit", node)
        assert shown is not None, "every type has a text"
        names.append(name)
        texts.append(shown)
    return Call("hs_pairs", (Literal(tuple(names), array(TEXT)), Call("array", tuple(texts), array(TEXT))), kind)
