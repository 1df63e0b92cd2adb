"""Lines of JSON by pyarrow's parser, where it means what json_to_record means.

Owns: which portions of a file those are. What pyarrow takes and PostgreSQL does not, or reads otherwise, is looked for
in the bytes beforehand (bytes that are no text, NaN, several objects a line) or in the result (doubles that may be too
small for theirs); a value of another JSON type than its column's, and a key that comes twice, are pyarrow's own errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from catalog.objects import ColumnDefinition
from catalog.values.types import MAX_PRECISION, SqlType
from protocol.values.codec import ColumnError, vector
from protocol.values.registry import decode_text_column

#: Types whose values JSON's numbers and truth values are as they stand.
_NATIVE: Final = frozenset(("int2", "int4", "int8", "float8", "bool"))
#: Types that read something else than a string's text, too.
_DOCUMENTS: Final = ("json", "jsonb")
_OPEN, _CLOSE, _NEWLINE = (ord(character) for character in "{}\n")
_SUSPECT: Final = (b"\0", b"\\u0000", b"NaN", b"Inf")
#: What may be a double that is read as zero: 1e-400 is out of range.
_TINY: Final = (re.compile(rb"e-[0-9]{3}"), re.compile(rb"E-[0-9]{3}"), re.compile(rb"0{300}"))


def is_plain(wanted: Sequence[ColumnDefinition]) -> bool:
    """Whether the columns are of types that pyarrow can read."""
    return all(item.type.name not in _DOCUMENTS for item in wanted)


def object_lines(portion: bytes) -> int:
    """The number of lines where each begins and ends as an object does, so that no line break is within one; else 0."""
    data = np.frombuffer(portion, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    if not len(data) or data[0] != _OPEN or data[-1] != _CLOSE:
        return 0  # so that a line follows each end
    are_objects = (data[ends - 1] == _CLOSE).all() and (data[ends + 1] == _OPEN).all()
    return len(ends) + 1 if are_objects else 0


def read(portion: bytes, lines: int, wanted: Sequence[ColumnDefinition]) -> pa.Table | None:
    """The rows of so many lines as ``object_lines`` has them; None where the exact way must decide."""
    if any(_has(portion, sign) for sign in _SUSPECT) or not _is_text(portion):
        return None
    kinds = pa.schema([(item.name, _read_as(item.type)) for item in wanted])
    options = pajson.ParseOptions(explicit_schema=kinds, unexpected_field_behavior="ignore")
    whole = pajson.ReadOptions(use_threads=False, block_size=len(portion) + 1)  # several portions are read at once
    try:
        table = pajson.read_json(pa.BufferReader(portion), whole, options)
        if table.num_rows != lines:
            return None
        columns = [table.column(item.name) for item in wanted]
        if any(_may_be_tiny(column, portion) for column in columns if column.type == pa.float64()):
            return None
        finished = [_finished(column, item.type) for column, item in zip(columns, wanted, strict=True)]
    except (pa.ArrowException, ColumnError):
        return None
    return pa.Table.from_arrays(finished, names=kinds.names)


def _has(portion: bytes, sign: bytes) -> bool:
    return sign[:1] in portion and sign in portion  # one byte is found sooner


def _may_be_tiny(column: pa.ChunkedArray, portion: bytes) -> bool:
    """Whether a double may be read as zero that is none, or is not finite."""
    values = [vector(chunk, "<f8") for chunk in column.chunks]
    if all(np.isfinite(part).all() and (part != 0).all() for part in values):
        return False
    return not all(np.isfinite(part).all() for part in values) or any(sign.search(portion) for sign in _TINY)


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
