"""What Parquet files say of themselves in their footers: rows, columns, their sizes and bounds.

Owns: a cache of footers by path, size and time of change, since planning reads them and reading does again, and which
of a file's columns both engines may read as they are. Footers know nothing of tables or of how rows are read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, field

from catalog.values.types import SqlType
from executor.files.followed_folders import SourceFile

_KEPT: Final = 10_000
_INTEGERS: Final[Mapping[str, int]] = {"int2": 16, "int4": 32, "int8": 64}
_TEXTS: Final = ("text", "varchar", "bpchar")
#: Types whose values are the same in a file, in Arrow and in an engine.
_PLAIN: Final = (*_INTEGERS, *_TEXTS, "bool", "float4", "float8", "numeric", "date", "timestamp", "timestamptz")


class Footer(Struct, frozen=True):
    """``sizes``: bytes of each column once it is read from storage, not yet decoded to Arrow. ``bounds``: the least and
    the greatest value of columns of numbers and dates, where the file tells.
    """

    rows: int
    columns: Mapping[str, pa.DataType]
    sizes: Mapping[str, int]
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def size(self, names: tuple[str, ...]) -> int:
        """Bytes of some columns."""
        return sum(self.sizes.get(name, 0) for name in names)


_CACHE: OrderedDict[SourceFile, Footer] = OrderedDict()
_LOCK: Final = threading.Lock()


def footer(file: SourceFile) -> Footer:
    """A file's footer. Raises OSError, pa.ArrowException."""
    with _LOCK:
        known = _CACHE.get(file)
        if known is not None:
            _CACHE.move_to_end(file)
            return known
    found = _read(file[0])
    with _LOCK:
        _CACHE[file] = found
        if len(_CACHE) > _KEPT:
            _CACHE.popitem(last=False)
    return found


def _read(path: str) -> Footer:
    metadata = pq.read_metadata(path)
    schema = metadata.schema.to_arrow_schema()
    columns = {item.name: item.type for item in schema}
    sizes: dict[str, int] = {}
    bounds: dict[str, tuple[Any, Any] | None] = {}
    for group in range(metadata.num_row_groups):
        part = metadata.row_group(group)
        for place in range(part.num_columns):
            column = part.column(place)
            name = column.path_in_schema.partition(".")[0]
            sizes[name] = sizes.get(name, 0) + column.total_uncompressed_size
            if _is_ordered(columns.get(name)):
                bounds[name] = _wider(bounds[name], column) if name in bounds else _bounds(column)
    known = {name: found for name, found in bounds.items() if found is not None}
    return Footer(metadata.num_rows, columns, sizes, known)


def _is_ordered(kind: pa.DataType | None) -> bool:
    types = pa.types
    return kind is not None and (types.is_integer(kind) or types.is_decimal(kind) or types.is_date32(kind))


def _bounds(column: Any) -> tuple[Any, Any] | None:
    """A column chunk's bounds; of one that has only NULLs there are none."""
    try:
        found = column.statistics
        return (found.min, found.max) if found is not None and found.has_min_max else None
    except (pa.ArrowException, ValueError, OverflowError):  # a date that Python does not have
        return None


def _wider(known: tuple[Any, Any] | None, column: Any) -> tuple[Any, Any] | None:
    found = _bounds(column)
    if known is None or found is None:
        return None
    return min(known[0], found[0]), max(known[1], found[1])


def is_exact(own: pa.DataType, kind: SqlType) -> bool:
    """Whether a file's values are the type's without rounding, parsing or a check: at most they get wider."""
    types = pa.types
    if kind.name not in _PLAIN:
        return False
    if own == kind.arrow:
        return True
    if kind.name in _INTEGERS:
        is_signed, is_unsigned = types.is_signed_integer(own), types.is_unsigned_integer(own)
        widest = kind.arrow.bit_width - (not is_signed)
        return bool((is_signed or is_unsigned) and own.bit_width <= widest)
    if kind.name == "numeric" and types.is_decimal(own) and own.scale >= 0:
        return bool(own.scale <= kind.scale and own.precision - own.scale <= kind.precision - kind.scale)
    if kind.name in _TEXTS:
        text = own.value_type if types.is_dictionary(own) else own
        return bool(types.is_string(text) or types.is_large_string(text) or types.is_string_view(text))
    return bool(kind.name == "float8" and types.is_float32(own))
