"""Whether an expression may raise an error when it is evaluated over a row.

All answers are safe: an expression that is not known to give a value for every row may raise. An aggregate counts as
safe where its arguments are.
"""

from __future__ import annotations

from typing import Final

from catalog.values.times.precision import expressed
from catalog.values.types import OIDS, SqlType
from planner.algebra.nodes import Call, Cast, Literal
from planner.algebra.walk import Node, walk

#: Functions that are never NULL.
TOTAL: Final = frozenset(
    (
        "is_distinct",
        "is_not_distinct",
        "is_null",
        "is_not_null",
        "is_true",
        "is_false",
        "is_not_true",
        "is_not_false",
        "row",
    )
)
#: Functions that give a value, or NULL, for any arguments.
_SAFE: Final = TOTAL | {
    *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "in", "any", "all"),
    *("coalesce", "nullif", "greatest", "least", "concat", "concat_values", "concat_ws", "array", "cardinality"),
    *(
        "lower",
        "upper",
        "initcap",
        "char_length",
        "octet_length",
        "position",
        "starts_with",
        "left",
        "right",
        "reverse",
    ),
    *(
        "btrim",
        "ltrim",
        "rtrim",
        "replace",
        "ascii",
        "md5",
        "sign",
        "extract",
        "to_json",
        "json_value",
        "json_items",
        "field",
    ),
    *("scaled_text", "written_scale", "padded"),
    *("array_append", "array_prepend", "array_has", "array_contains", "array_contained", "array_overlaps"),
}
#: Patterns that are well formed when they end otherwise than in an escape.
_PATTERNS: Final = ("like", "ilike")
_TEXTS: Final = ("text", "varchar", "bpchar", "name")
#: Numbers from narrow to wide; each holds all values of those before it.
_WIDER: Final = ("int2", "int4", "int8")


def never_overflows(node: Call) -> bool:
    """Whether a product, sum or difference of numerics is in its type's range whatever its arguments are."""
    kinds = [item.type for item in node.arguments]
    if any(kind.name != "numeric" or kind.is_loose for kind in (node.type, *kinds)):
        return False
    left, right = (kind.precision - kind.scale for kind in kinds)
    before = {"mul": left + right, "add": max(left, right) + 1, "sub": max(left, right) + 1}.get(node.function)
    scale = sum(kind.scale for kind in kinds) if node.function == "mul" else max(kind.scale for kind in kinds)
    return before is not None and node.type.scale == scale and before <= node.type.precision - node.type.scale


def may_raise(node: Node) -> bool:
    """Whether anything in a tree, nested relations included, may raise an error for some row."""
    return any(not gives_a_value(item) for item in walk(node))


def gives_a_value(node: Node) -> bool:
    """Whether a node gives a value, or NULL, for any of those below it."""
    match node:
        case Call(function=function, arguments=(_, Literal(value=str(pattern)))) if function in _PATTERNS:
            return not pattern.endswith("\\")
        case Call(function=function):
            return function in _SAFE
        case Cast(argument=argument, type=target):
            return _widens(argument.type, target)
        case _:
            return True


def _widens(source: SqlType, target: SqlType) -> bool:
    """Whether every value of a type is one of another."""
    if expressed(source) == target or (target.name in _TEXTS and not target.modifiers):
        return True
    if source.name in ("int2", "int4") and target.name in OIDS:
        return True
    if source.name in _WIDER:
        return target.name == "float8" or target.name in _WIDER[_WIDER.index(source.name) :]
    return (source.name, target.name) in (("float4", "float8"), ("date", "timestamp"))
