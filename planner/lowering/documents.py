"""How documents are gathered, which both engines' aggregates and their lowering share.

json_agg() writes rows and arrays on lines of their own, but not the null that stands for one (json_agg_transfn).
"""

from __future__ import annotations

from catalog.values.errors import unsupported
from planner.algebra.nodes import Call, Case, Scalar


def comes_on_lines(item: Scalar) -> bool:
    """Whether json_agg() writes a document on a line of its own where it is not null."""
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
    """Whether a document is a row's, which is never null."""
    return isinstance(item, Call) and item.function == "json_row"


def separator(item: Scalar) -> str:
    """What stands between documents that are joined as they are. Raises 0A000 where one may be null among rows."""
    if is_row(item):
        return ", \n "
    if comes_on_lines(item):
        raise unsupported("json_agg() of arrays, or of rows that may be NULL", "Use jsonb_agg().")
    return ", "
