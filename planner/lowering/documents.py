"""How JSON documents are aggregated: rules that both engines' aggregates and their lowering share.

json_agg() writes rows and arrays on lines of their own, but not the null that replaces a missing one
(json_agg_transfn).
"""

from __future__ import annotations

from catalog.values.errors import unsupported
from planner.algebra.nodes import Call, Case, Scalar


def comes_on_lines(item: Scalar) -> bool:
    """Whether json_agg() writes a document, if it is not null, on its own line."""
    match item:
        case Call(function="json_row"):
            return True
        case Call(function="json_value" | "to_json", arguments=(value,)):
            return value.type.element is not None or value.type.row is not None or comes_on_lines(value)
        case Case(branches=branches, otherwise=otherwise):
            return any(comes_on_lines(found) for found in (*(result for _, result in branches), otherwise))
        case _:
            return False


def is_row(item: Scalar) -> bool:
    """Whether a document is made of a row, so that it is never null."""
    return isinstance(item, Call) and item.function == "json_row"


def separator(item: Scalar) -> str:
    """The separator of documents that are joined unchanged. Raises 0A000 if a document among rows may be null."""
    if is_row(item):
        return ", \n "
    if comes_on_lines(item):
        raise unsupported("json_agg() of arrays, or of rows that may be NULL", "Use jsonb_agg().")
    return ", "
