"""Quotients and averages of which some values have more digits before the point than a ``QUOTIENT`` holds.

An average of 19-digit integers, nanoseconds since 1970 for instance, shows no decimals, where one of small ones shows
20, and a column has one scale. So a query that has overflowed is evaluated once more, with quotients of 16 decimals,
which are all that a value of 1 or more shows. A value below 1 stays an error then.

Owns: which relations may be evaluated so, and their form. Knows no engine.
"""

from __future__ import annotations

from operator import is_
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import LARGE_QUOTIENT, QUOTIENT, SPREAD, SqlType
from planner.algebra.functions import COMPARISONS
from planner.algebra.nodes import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Delta,
    Literal,
    Relation,
    Scan,
    Snapshot,
    Values,
)
from planner.algebra.walk import SCALARS, Node, transform, walk

#: What makes quotients, or passes them on.
_MADE: Final = frozenset(("avg", "avg_final", "div", "coalesce", "min", "max", "add", "sub", "neg", "abs"))
#: What takes quotients and makes something else of them, by the scale that their type says.
_TAKING: Final = frozenset((*COMPARISONS, "is_null", "is_not_null", "is_distinct", "round", "trunc", "scaled_text"))
_CAST: Final = frozenset(("int2", "int4", "int8", "float4", "float8", "text"))
_LARGE: Final = SqlType("numeric", LARGE_QUOTIENT)


def with_large_quotients(relation: Relation) -> Relation | None:
    """The relation with ``LARGE_QUOTIENT`` columns; None where it has no quotients, or does more with them than is
    known here."""
    nodes = list(walk(relation))
    if not any(_is_quotient(node.type) for node in nodes if isinstance(node, SCALARS)):
        return None
    if not all(map(_is_known, nodes)):
        return None
    found: Relation = transform(relation, _retyped)
    return found


def _is_quotient(kind: SqlType) -> bool:
    return kind.name == "numeric" and kind.modifiers == QUOTIENT


def _is_known(node: Node) -> bool:
    """Whether a node computes as well with large quotients."""
    match node:
        case Scan(kind="view"):
            return True
        case Scan() | Snapshot() | Delta() | Values():
            return not any(_is_quotient(column.type) for column in node.columns)
        case Cast(argument=argument, type=kind) if _is_quotient(argument.type):
            return kind.name in _CAST or (kind.name == "numeric" and not kind.is_loose)
        case AggregateCall(function=name) | Call(function=name) if _is_quotient(node.type):
            return name in _MADE
        case Call(function=name) if any(_is_quotient(item.type) for item in node.arguments):
            return name in _TAKING
        case ColumnRef() | Case() | Literal(value=None):
            return True
        case _ if isinstance(node, SCALARS):
            return not (_is_quotient(node.type) or (node.type.name == "numeric" and node.type.modifiers == SPREAD))
        case _:
            return True


def _retyped(node: Any) -> Any:
    """A node with the other type in the place of a quotient's."""
    found = {name: getattr(node, name) for name in node.__struct_fields__}
    new = {name: _part(value) for name, value in found.items()}
    # By identity: equal columns may differ in type.
    changed = {name: value for name, value in new.items() if value is not found[name]}
    return replace(node, **changed) if changed else node


def _part(value: Any) -> Any:
    """A part of a node, which is the same object where it has no quotients; nodes below are done."""
    if isinstance(value, SqlType):
        return _LARGE if _is_quotient(value) else value
    if isinstance(value, Column):
        return replace(value, type=_LARGE) if _is_quotient(value.type) else value
    if isinstance(value, tuple):
        items = tuple(map(_part, value))
        return value if all(map(is_, items, value)) else items
    return value
