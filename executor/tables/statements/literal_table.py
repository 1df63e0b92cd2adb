"""Literal rows of VALUES as Arrow, without an engine.

Owns: which rows need no engine (``executor.rows.literal_rows`` checks how a value fits its column).
"""

from __future__ import annotations

import contextlib
import datetime

import pyarrow as pa

from catalog.values.nested_types import holds
from catalog.values.times.precision import expressed
from catalog.values.times.zones import session_zone
from catalog.values.types import TIMESTAMP, TIMESTAMPTZ, SqlType
from executor.embedded.connection import Parameters
from executor.printing.nodes import column_name
from executor.rows.literal_rows import literal_rows
from executor.rows.point_reads import key_value
from planner.algebra.nodes import Cast, Literal, Parameter, Scalar, Value, Values


def literals(row: tuple[Scalar, ...], parameters: Parameters, time_zone: str) -> tuple[Value, ...] | None:
    """The values of a literal row; None if an engine is needed. Raises the error of a value that does not fit."""
    rows = literal_rows((tuple([_local(item, parameters, time_zone) for item in row]),), tuple(parameters))
    return None if rows is None else rows[0]


def has_rows(values: Values) -> bool:
    """Whether literal rows contain row values."""
    return any(holds(column.type, _is_row) for column in values.columns)


def literal_table(values: Values, parameters: Parameters, time_zone: str) -> pa.Table | None:
    """Literal rows as a table with columns c<id>; None if a cell needs an engine."""
    rows = [literals(row, parameters, time_zone) for row in values.rows]
    if not rows or None in rows or not values.columns or has_rows(values):
        return None
    try:
        cells = zip(*[row for row in rows if row is not None], strict=True)
        arrays = [pa.array(each, column.type.arrow) for each, column in zip(cells, values.columns, strict=True)]
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None
    return pa.Table.from_arrays(arrays, names=[column_name(column) for column in values.columns])


def _is_row(kind: SqlType) -> bool:
    return kind.row is not None or kind.name == "shaped"


def _local(item: Scalar, parameters: Parameters, time_zone: str) -> Scalar:
    """CURRENT_TIMESTAMP for a timestamp without time zone: the session's local time."""
    if not isinstance(item, Cast) or item.explicit or not isinstance(item.argument, Literal | Parameter):
        return item
    if (item.argument.type, expressed(item.type)) != (TIMESTAMPTZ, TIMESTAMP):
        return item
    moment = key_value(item.argument, parameters)
    if isinstance(moment, datetime.datetime) and moment.tzinfo is not None:
        with contextlib.suppress(KeyError, ValueError, OverflowError):  # a zone that Python does not know
            return Literal(moment.astimezone(session_zone(time_zone)).replace(tzinfo=None), item.type)
    return item
