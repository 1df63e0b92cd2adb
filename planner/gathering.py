"""How documents are gathered, which both engines' aggregates and their lowering share."""

from __future__ import annotations

from planner.expression import Call, Case, Scalar


def comes_on_lines(item: Scalar) -> bool:
    """Whether json_agg() writes a document on a line of its own: one of a row or an array (json_agg_transfn)."""
    match item:
        case Call(function="json_row"):
            return True
        case Call(function="json_value" | "to_json", arguments=(value,)):
            return value.type.element is not None or value.type.row is not None or comes_on_lines(value)
        case Case(branches=branches, otherwise=otherwise):
            return any(comes_on_lines(found) for found in (*(result for _, result in branches), otherwise))
        case _:
            return False
