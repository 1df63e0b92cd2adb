"""One item of ORDER BY: whether its type can be sorted, and what ASC, DESC, USING, NULLS FIRST and LAST say."""

from __future__ import annotations

from typing import Any, Final

from pglast.enums import SortByDir, SortByNulls

from catalog.values.errors import SqlError, unsupported
from catalog.values.opaque import check_sorted, refuse_order
from catalog.values.types import TEXT, SqlType
from planner.algebra.nodes import Scalar
from planner.bind.calls.operator_calls.operation import NO_OPERATOR
from planner.bind.conversion.resolution import Ambiguous, operator, pathway
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Binding, Environment

#: Operators that order, and whether they do from the last to the first; those of texts' bytes do as ours compare texts.
_DESCENDING: Final = {"<": False, ">": True, "~<~": False, "~>~": True}
#: Those of rows' stored bytes, which PostgreSQL keeps for itself.
_OF_BYTES: Final = ("*<", "*>")


def direction(binding: Binding, item: Any, kind: SqlType) -> tuple[bool, bool]:
    """(descending, nulls_first) of a SortBy node; PostgreSQL sorts nulls as if larger than all.

    Raises 0A000 for types whose order is not that of their texts.
    """
    check_sorted(kind, "an ordering operator", lambda: binding.start(item.node))
    refuse_order(kind, "ORDER BY", lambda: binding.position(item))
    descending = item.sortby_dir == SortByDir.SORTBY_DESC
    if item.sortby_dir == SortByDir.SORTBY_USING:
        symbol = names_of(item.useOp)[-1]
        if symbol not in ("<", ">"):
            _check_operator(binding, symbol, TEXT if kind.name == "unknown" else kind, item)
        descending = _DESCENDING[symbol]
    if item.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT:
        return descending, descending
    return descending, item.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST


def _check_operator(binding: Binding, symbol: str, kind: SqlType, item: Any) -> None:
    """Raises 42883, 42809 and 0A000 for what does not order values of a type."""
    position = binding.position(item)
    words = f"{display(kind)} {symbol} {display(kind)}"
    try:
        found = operator(symbol, kind.oid, kind.oid)
    except Ambiguous:
        raise SqlError("42725", f"operator is not unique: {words}", hint=NO_OPERATOR, position=position) from None
    if found is None:
        raise SqlError("42883", f"operator does not exist: {words}", hint=NO_OPERATOR, position=position)
    if kind.oid not in (found.left, found.right) and pathway(kind.oid, found.left, "implicit") == "function":
        raise SqlError("42883", f"operator requires run-time type coercion: {words}", position=position)
    if symbol in _OF_BYTES:
        raise unsupported(f"ORDER BY with the operator {symbol}", "Write < or >.", position)
    if symbol not in _DESCENDING:
        message = f"operator {symbol} is not a valid ordering operator"
        hint = 'Ordering operators must be "<" or ">" members of btree operator families.'
        raise SqlError("42809", message, hint=hint, position=position)


def check_sortable(env: Environment, scalar: Scalar, node: Any) -> None:
    """Raises 42883 for a type without an order."""
    check_sorted(scalar.type, "an ordering operator", lambda: env.binding.start(node))
