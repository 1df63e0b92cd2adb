"""Parquet files as a FROM item of DuckDB, which reads only the needed columns and skips row groups by their statistics.

Owns: its text. The caller must have checked that each file has the columns, in types that can be widened to the
declared ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from catalog.values.types import SqlType
from executor.files.file_tables import FileColumn, FileRows
from planner.algebra.nodes import ROW_ID

_ZERO: Final = "chr(0)"
_RAISED: Final = """error('!22021!invalid byte sequence for encoding "UTF8": 0x00')::boolean"""


def select(rows: FileRows, type_text: Callable[[SqlType], str]) -> str:
    """A SELECT of some columns of files under their declared names, and of the number of a row's file; ``type_text``
    writes a type."""
    columns = [f"{_value(column, type_text(column.type))} AS {_name(column.name)}" for column in rows.columns]
    columns.append(f"file_index AS {_name(ROW_ID)}")
    paths = ", ".join(map(_text, rows.paths))
    source = f"read_parquet([{paths}], hive_partitioning = false, union_by_name = false)"
    # The check is a filter and not part of the value, so that comparisons with these columns still skip row groups by
    # statistics.
    checks = [f"NOT contains({_name(column.name)}, {_ZERO})" for column in rows.columns if _is_text(column)]
    where = f" WHERE CASE WHEN {' AND '.join(_or_null(check) for check in checks)} THEN true ELSE {_RAISED} END"
    return f"SELECT {', '.join(columns)} FROM {source}{where if checks else ''}"


def _or_null(check: str) -> str:
    return f"coalesce({check}, true)"


def _is_text(column: FileColumn) -> bool:
    """Whether a file may have values that PostgreSQL's type cannot hold: texts with a zero byte."""
    return column.values is None and column.type.name in ("text", "varchar", "bpchar")


def _value(column: FileColumn, kind: str) -> str:
    if column.values is not None:
        return _partition(column.values, kind)
    name = _name(column.name)
    value = name if column.is_own else f"CAST({name} AS {kind})"
    # DuckDB knows nothing about the result of a CASE, so it does not skip row groups whose NaN values are missing from
    # the statistics.
    return f"CASE WHEN {name} IS NULL THEN NULL ELSE {value} END" if column.guarded else value


def _partition(values: tuple[str | None, ...], kind: str) -> str:
    """The partition value of a row's file."""
    if len(set(values)) == 1:
        return f"CAST({_text(values[0])} AS {kind})"
    listed = ", ".join(map(_text, values))
    return f"list_extract(CAST([{listed}] AS {kind}[]), CAST(file_index AS BIGINT) + 1)"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"
