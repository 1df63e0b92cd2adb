"""Users' Parquet files as rows of their stream or foreign table: typed columns, ``__lsn`` and ``__ordinal`` (child
process only).

Owns: reading Parquet with values of the columns' types, or of narrower ones; everything else reaches Spark converted. A
row's ordinal is its file's place in the log record that names it, then its place in the file, exactly as
``executor.files.reader`` numbers them, so that both engines see one arrival order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.values.errors import SqlError
from executor.files.followed_folders import ROW_BITS, verify
from executor.spark.driver.kept_plans import AS_NAMED
from executor.spark.frames import Frame

_NO_TEXT: Final = '22021:invalid byte sequence for encoding "UTF8"'
#: Columns that no file has: a row's arrival.
_HIDDEN: Final = frozenset(("__lsn", "__ordinal"))
#: Types that have NaN.
FLOATING: Final = ("FLOAT", "DOUBLE")


def verify_files(spec: Frame) -> None:
    """Raises 58P01 for a file that is not what arrived."""
    for file in zip(spec["files"], spec["sizes"], spec["mtimes"], strict=True):
        verify(file, spec["name"])


def own_schema(spec: Frame, schemas: Sequence[pa.Schema]) -> pa.Schema | None:
    """The columns that the job reads as all its files have them; None where it numbers rows or files differ.

    Raises 22P04 for a file that does not fit the stream.
    """
    names = [name for name, _ in spec["columns"] if name not in spec.get("partitions", {})]
    if any(name in _HIDDEN for name in names):
        return None
    found = {_picked(path, schema, names) for path, schema in zip(spec["files"], schemas, strict=True)}
    return found.pop() if len(found) == 1 else None


def values(spec: Frame) -> tuple[str, ...]:
    """The columns that the job reads, in the stream's types, of files that all have the same partition's values."""
    constants = {name: texts[0] for name, texts in spec.get("partitions", {}).items()}
    return tuple(
        f"CAST({_literal(constants[name])} AS {kind}) AS {quoted(name)}" if name in constants else _value(name, kind)
        for name, kind in spec["columns"]
    )


def read_raw(spark: Any, spec: Frame) -> Any:
    """The rows of all files, each of its own schema, numbered where the job asks for it.

    ``spec``: name, columns; files, sizes, mtimes, lsns, places and partitions' values by file.

    Raises 22P04 for a file that does not fit the stream.
    """
    frames = [frame for part in _parts(spec) for frame in _read_part(spark, part)]
    return reduce(lambda left, right: left.unionAll(right), frames)


def _parts(spec: Frame) -> list[Frame]:
    """A spec for the files of each partition."""
    partitions = spec.get("partitions", {})
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for place in range(len(spec["files"])):
        groups.setdefault(tuple(texts[place] for texts in partitions.values()), []).append(place)

    def part(places: list[int]) -> Frame:
        listed = {name: [spec[name][place] for place in places] for name in ("files", "lsns", "places")}
        values = {name: [texts[place] for place in places] for name, texts in partitions.items()}
        return spec | listed | {"partitions": values}

    return [part(places) for places in groups.values()]


def _read_part(spark: Any, spec: Frame) -> Iterator[Any]:
    """The rows of one partition's files: at once where they are of one schema, else each file's."""
    schema = own_schema(spec, [pq.read_schema(path) for path in spec["files"]])
    if schema is not None:
        yield _parquet(spark, schema, spec["files"]).selectExpr(*values(spec))
        return
    for path, lsn, place in zip(spec["files"], spec["lsns"], spec["places"], strict=True):
        yield _read_file(spark, spec, path, lsn, place)


def _read_file(spark: Any, spec: Frame, path: str, lsn: int, place: int) -> Any:
    """One file's rows; only the columns that the job reads, in their order."""
    names = [name for name, _ in spec["columns"] if name not in _HIDDEN and name not in spec["partitions"]]
    frame = _parquet(spark, _picked(path, pq.read_schema(path), names), [path])
    hidden = {"__lsn": f"{lsn}L", "__ordinal": f"{place << ROW_BITS}L + _metadata.row_index"}
    columns = zip(spec["columns"], values(spec), strict=True)
    return frame.selectExpr(
        *(f"{hidden[name]} AS `{name}`" if name in hidden else value for (name, _), value in columns)
    )


def _value(name: str, kind: str) -> str:
    value = f"CAST({quoted(name)} AS {kind})"
    if kind in FLOATING:
        value = guarded(value)
    return f"{_checked(value) if kind == 'STRING' else value} AS {quoted(name)}"


def _checked(value: str) -> str:
    """A text, or the error of one that is no UTF-8 or has a zero byte, as PostgreSQL has none."""
    is_wrong = f"contains({value}, char(0)) OR NOT is_valid_utf8({value})"
    return f"CASE WHEN {is_wrong} THEN raise_error({_literal(_NO_TEXT)}) ELSE {value} END"


def guarded(value: str) -> str:
    """The value where Spark does not compare it with a file's statistics: those leave NaN out, which is the largest."""
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {value} END"


def _literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _parquet(spark: Any, schema: pa.Schema, paths: Sequence[str]) -> Any:
    """The files with their own types; footers are read here, which saves Spark a job per file."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.read.options(**AS_NAMED).schema(from_arrow_schema(schema)).parquet(*paths)


def _picked(path: str, schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    for name in names:
        if name not in schema.names:
            raise SqlError("22P04", f'file "{path}" has no column "{name}"')
    return pa.schema([pa.field(name, _stored(schema.field(name).type)) for name in names])


def _stored(kind: pa.DataType) -> pa.DataType:
    """A column's type without what only Arrow knows of: how its writer held the values."""
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    return pa.binary() if types.is_large_binary(kind) or types.is_binary_view(kind) else kind


def quoted(name: str) -> str:
    """A name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
