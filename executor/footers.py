"""What Parquet files say of themselves at their ends: rows, columns and their sizes.

Owns: a cache of footers by path, size and time of change, since planning asks for them and reading does again; and
which of a file's columns both engines may read as they are. Knows nothing of tables or of how rows are read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.types import SqlType
from executor.sources import SourceFile

_KEPT: Final = 10_000
_INTEGERS: Final[Mapping[str, int]] = {"int2": 16, "int4": 32, "int8": 64}
_TEXTS: Final = ("text", "varchar", "bpchar")
#: Types whose values are the same in a file, in Arrow and in an engine.
_PLAIN: Final = (*_INTEGERS, *_TEXTS, "bool", "float4", "float8", "numeric", "date", "timestamp", "timestamptz")


@dataclass(frozen=True, slots=True)
class Footer:
    """``sizes``: bytes of each column once it is read from storage, not yet decoded to Arrow."""

    rows: int
    columns: Mapping[str, pa.DataType]
    sizes: Mapping[str, int]

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
    sizes: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        part = metadata.row_group(group)
        for place in range(part.num_columns):
            column = part.column(place)
            name = column.path_in_schema.partition(".")[0]
            sizes[name] = sizes.get(name, 0) + column.total_uncompressed_size
    schema = metadata.schema.to_arrow_schema()
    return Footer(metadata.num_rows, {field.name: field.type for field in schema}, sizes)


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
