"""Lines of JSON by pyarrow's parser, where it means what json_to_record means.

Owns: which portions of a file those are. What pyarrow takes and PostgreSQL does not, or reads otherwise, is looked for
in the bytes beforehand (bytes that are no text, NaN, several objects a line, doubles that may be too small for theirs);
a value of another JSON type than its column's, and a key that comes twice, are pyarrow's own errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from catalog.objects import ColumnDefinition
from catalog.types import MAX_PRECISION, SqlType
from protocol.values.codec import ColumnError
from protocol.values.registry import decode_text_column

#: Types whose values JSON's numbers and truth values are as they stand.
_NATIVE: Final = frozenset(("int2", "int4", "int8", "float8", "bool"))
#: Types that read something else than a string's text, too.
_DOCUMENTS: Final = ("json", "jsonb")
_OPEN, _CLOSE, _NEWLINE = (ord(character) for character in "{}\n")
_SUSPECT: Final = (b"\0", b"\\u0000", b"NaN", b"Inf")
#: What may be the exponent of a double that is read as zero: 1e-400 is out of range.
_TINY: Final = re.compile(rb"[0-9][eE]-[0-9]{3}")


def is_plain(wanted: Sequence[ColumnDefinition]) -> bool:
    """Whether the columns are of types that pyarrow can read."""
    return all(item.type.name not in _DOCUMENTS for item in wanted)


def has_one_object_a_line(portion: bytes) -> bool:
    """Whether every line begins and ends as an object does: no line break is within one then."""
    data = np.frombuffer(portion, np.uint8)
    ends = np.append(np.flatnonzero(data == _NEWLINE), len(data))
    starts = np.concatenate(([0], ends[:-1] + 1))
    if (ends == starts).any():
        return False
    return bool((data[starts] == _OPEN).all() and (data[ends - 1] == _CLOSE).all())


def read(portion: bytes, wanted: Sequence[ColumnDefinition]) -> pa.Table | None:
    """The rows of whole lines, none of them blank; None where the exact way must decide."""
    if any(sign in portion for sign in _SUSPECT) or not _is_text(portion):
        return None
    if any(item.type.name == "float8" for item in wanted) and _TINY.search(portion):
        return None
    kinds = pa.schema([(item.name, _read_as(item.type)) for item in wanted])
    options = pajson.ParseOptions(explicit_schema=kinds, unexpected_field_behavior="ignore")
    try:
        table = pajson.read_json(pa.BufferReader(portion), parse_options=options)
        if table.num_rows != portion.count(b"\n") + 1:
            return None
        columns = [_finished(table.column(item.name), item.type) for item in wanted]
    except (pa.ArrowException, ColumnError):
        return None
    return pa.Table.from_arrays(columns, names=kinds.names)


def _read_as(kind: SqlType) -> pa.DataType:
    if kind.name in _NATIVE:
        return kind.arrow
    if kind.name == "numeric":  # digits beyond its scale are an error
        return pa.decimal128(MAX_PRECISION, kind.scale)
    return pa.string()


def _finished(column: pa.ChunkedArray, kind: SqlType) -> pa.ChunkedArray:
    """A column in its type. Raises ColumnError, pa.ArrowException."""
    if kind.name in _NATIVE:
        return column
    if kind.name == "numeric":
        return column.cast(kind.arrow)
    return pa.chunked_array([decode_text_column(chunk, kind) for chunk in column.chunks], kind.arrow)


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False
