"""PostgreSQL's own rows of its system catalogs, as Arrow.

Owns: reading a file of ``catalog.postgres`` into columns with given types. Knows nothing of Millstream's objects, whose
rows the other files of this folder make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import as_file, files
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

from catalog.objects import ColumnDefinition
from catalog.postgres import unescaped
from catalog.values.types import VECTORS, SqlType


def _compute() -> Any:
    import pyarrow.compute as pc

    return pc


pc: Final[Any] = _compute()

_NULL: Final = "\\N"


@cache
def texts(catalog: str) -> pa.Table:
    """A file's rows in COPY's text format, NULL where the file says so."""
    with as_file(files("catalog.postgres").joinpath(f"{catalog}.tsv")) as path:
        with path.open(encoding="utf-8") as file:
            names = file.readline().rstrip("\n").split("\t")
        return pyarrow.csv.read_csv(
            path,
            parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[_NULL], strings_can_be_null=True
            ),
        )


@cache
def stored(catalog: str, columns: tuple[ColumnDefinition, ...]) -> pa.Table:
    """The rows of a system catalog in its columns."""
    found = texts(catalog)
    arrays = [_typed(found.column(item.name).combine_chunks(), item.type) for item in columns]
    return pa.Table.from_arrays(arrays, names=[item.name for item in columns])


def _typed(column: pa.Array, kind: SqlType) -> pa.Array:
    """A column of texts converted to the Arrow form of a type."""
    if kind.name in VECTORS:
        return _lists(column, str.split, kind)
    if kind.element is not None:
        return _lists(column, _elements, kind)
    if kind.name == "bool":
        return pc.equal(column, "t")
    if pa.types.is_string(kind.arrow):
        return pa.array([None if text is None else unescaped(text) for text in column.to_pylist()], pa.string())
    return column.cast(kind.arrow)


def _lists(column: pa.Array, split: Callable[[str], list[str]], kind: SqlType) -> pa.Array:
    assert kind.element is not None
    found = [None if text is None else split(text) for text in column.to_pylist()]
    return pa.array(found, pa.list_(pa.string())).cast(kind.arrow)


def _elements(text: str) -> list[str]:
    """The elements of arrays of names or numbers, which contain neither commas nor quotes."""
    return [item.strip('"') for item in unescaped(text).strip("{}").split(",")] if text != "{}" else []


@cache
def by_oid(catalog: str, column: str) -> Mapping[int, str]:
    """The text of one column in each row of a file, by the oid in the first column."""
    found = texts(catalog)
    keys, values = found.column(0).to_pylist(), found.column(column).to_pylist()
    return {int(key): unescaped(value) for key, value in zip(keys, values, strict=True) if value is not None}
