"""System columns of tables: a row's version (xmin) and place (ctid), as functions of its values.

A table keeps no versions of a row, only the rows that were deleted and inserted. So both are computed from the values:

    xmin        a number of 32 bits by the values. It changes with the values, so that an optimistic lock, ``UPDATE ...
                WHERE id = 1 AND xmin = <as read>``, finds the row only if it is as it was read
    ctid        a number of 32 bits by the values, and the row's number among the rows with this number: no two rows of
    a table share one, and equal rows may exchange theirs without notice xmax, cmin, cmax   0: no transaction is
    deleting the row, and commands of a transaction have no numbers

The values do not tell the order of changes, so xmin as a number (``xmin::text::bigint``) raises 0A000, and so does ctid
in RETURNING, which does not see the equal rows.
"""

from __future__ import annotations

from typing import Any

from catalog.values.errors import unsupported
from catalog.values.types import INT8, SqlType
from planner.algebra.nodes import (
    Call,
    Cast,
    Column,
    ColumnRef,
    Literal,
    Relation,
    Scalar,
    Scan,
    SortKey,
    Window,
    WindowCall,
)
from planner.bind.state.bind_state import BindState

_TID, _XID = SqlType("tid"), SqlType("xid")
_NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")


def version_of(row: tuple[Column, ...]) -> Scalar:
    """xmin of a row of these columns."""
    return Call("row_version", tuple(map(ColumnRef, row)), _XID)


def placed(binding: BindState, scan: Scan, row: tuple[Column, ...]) -> tuple[Relation, Scalar]:
    """A table's rows, each with its number among those that share half of its hash; and their ctid over that."""
    number, values = binding.column("number", INT8, False), Call("row_hash", tuple(map(ColumnRef, row)), INT8)
    half = Call("div", (values, Literal(2**31, INT8)), INT8)
    call = WindowCall("row_number", (), INT8, (half,), (SortKey(values),))
    return Window(scan, ((number, call),)), Call("row_place", (values, ColumnRef(number)), _TID)


def refuse_number(binding: BindState, scalar: Scalar, target: SqlType, node: Any) -> None:
    """A version as a number says nothing of when the row came. Raises 0A000."""
    if target.name not in _NUMBERS:
        return
    while isinstance(scalar, Cast):
        scalar = scalar.argument
    if isinstance(scalar, Call) and scalar.function == "row_version":
        instead = "Compare xmin for equality, or find what has changed by a column of your own."
        raise unsupported("xmin as a number that grows", instead, binding.position(node))
