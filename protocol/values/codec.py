"""The definition of a value codec, and what all codecs share.

Owns: ``Codec``, ``ColumnError`` and the helpers that look into Arrow's buffers. Knows no type in particular.

Columns are Arrow arrays with nulls: a column's text form is ``string`` or ``binary``, its binary form ``binary`` or
``fixed_size_binary``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from protocol.compute import constant, pc

Value = object
#: A numpy array of any type.
Vector = np.ndarray

#: The characters that C's isspace() treats as blank and PostgreSQL's input functions skip.
BLANKS = " \t\n\v\f\r"


class ColumnError(Exception):
    """A value of a column is invalid: the value's ``index``, and the error that PostgreSQL raises for this value."""

    def __init__(self, index: int, error: SqlError) -> None:
        super().__init__(index, error)
        self.index = index
        self.error = error


class Codec(Struct, frozen=True):
    """The conversions of one type.

    ``text`` and ``binary`` encode columns. ``from_text`` and ``from_binary`` decode one parameter and raise
    ``SqlError``. ``column_from_text`` and ``column_from_binary`` decode columns and raise ``ColumnError``. The ``str``
    argument is the session's time zone, for ``text`` with further settings (``styles``).
    """

    text: Callable[[pa.Array, SqlType, str], pa.Array]
    binary: Callable[[pa.Array, SqlType], pa.Array]
    from_text: Callable[[str, SqlType, str], Value]
    from_binary: Callable[[bytes, SqlType], Value]
    column_from_text: Callable[[pa.Array, SqlType, str], pa.Array]
    column_from_binary: Callable[[pa.Array, SqlType], pa.Array]


#: Codecs by the names of types.
Codecs = Mapping[str, Codec]


def codec_over(
    codecs: Codecs,
    text: Callable[[Codecs, pa.Array, SqlType, str], pa.Array],
    binary: Callable[[Codecs, pa.Array, SqlType], pa.Array],
    from_text: Callable[[Codecs, str, SqlType, str], Value],
    from_binary: Callable[[Codecs, bytes, SqlType], Value],
    column_from_text: Callable[[Codecs, pa.Array, SqlType, str], pa.Array],
    column_from_binary: Callable[[Codecs, pa.Array, SqlType], pa.Array],
) -> Codec:
    """The codec of types that are built from other types, made from those types' codecs."""
    return Codec(
        text=partial(text, codecs),
        binary=partial(binary, codecs),
        from_text=partial(from_text, codecs),
        from_binary=partial(from_binary, codecs),
        column_from_text=partial(column_from_text, codecs),
        column_from_binary=partial(column_from_binary, codecs),
    )


def vector(array: pa.Array, dtype: str) -> Vector:
    """The values of a fixed-width array, without copying; the values at nulls are arbitrary."""
    values = np.frombuffer(array.buffers()[1], dtype=dtype)
    return values[array.offset : array.offset + len(array)]


def validity(array: pa.Array) -> pa.Buffer | None:
    """The array's null bitmap, counted from its first row."""
    if array.null_count == 0:
        return None
    valid = pc.is_valid(array)
    return valid.buffers()[1] if valid.offset == 0 else pa.concat_arrays([valid]).buffers()[1]


def offsets(array: pa.Array) -> Vector:
    """Where each value of a binary or string array begins in the array's data buffer, and where the last value ends."""
    return np.frombuffer(array.buffers()[1], dtype="<i4")[array.offset : array.offset + len(array) + 1]


def value_bytes(array: pa.Array) -> Vector:
    """All bytes of a binary or string array, from its first value to its last."""
    bounds = offsets(array)
    data = array.buffers()[2]
    if data is None:
        return np.empty(0, np.uint8)
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]


def fixed(data: Vector, like: pa.Array) -> pa.Array:
    """A fixed-size binary array over the rows of ``data``, null where ``like`` is null."""
    count = len(data)
    flat = np.ascontiguousarray(data).view(np.uint8).reshape(count, -1) if count else np.empty((0, 1), np.uint8)
    width = data.dtype.itemsize * (data.shape[1] if data.ndim > 1 else 1)
    return pa.Array.from_buffers(pa.binary(width), count, [validity(like), pa.py_buffer(flat)])


def variable(data: Vector, lengths: Vector, like: pa.Array) -> pa.Array:
    """A binary array that cuts ``data`` into consecutive values of ``lengths`` bytes, null where ``like`` is null."""
    bounds = np.zeros(len(lengths) + 1, dtype="<i4")
    np.cumsum(lengths, out=bounds[1:])
    return pa.Array.from_buffers(
        pa.binary(), len(lengths), [validity(like), pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(data))]
    )


def pieces(data: Vector, starts: Vector, ends: Vector, like: pa.Array) -> pa.Array:
    """A binary array of separate pieces of ``data``, in order, null where ``like`` is null."""
    bounds = np.empty(2 * len(starts) + 1, "<i4")
    bounds[0], bounds[1::2], bounds[2::2] = 0, starts, ends
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    every = pa.Array.from_buffers(pa.binary(), 2 * len(starts), buffers)  # and the bytes between them
    odd = pa.Array.from_buffers(
        pa.int32(), len(starts), [validity(like), pa.py_buffer(np.arange(1, 2 * len(starts), 2, dtype=np.int32))]
    )
    return pc.take(every, odd, boundscheck=False)


def joined(elements: pa.Array, bounds: Vector, separator: str | bytes) -> pa.Array:
    """Binary values: for each two neighbours of ``bounds``, the elements between them joined as one value."""
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), elements), separator)


def from_vector(data: Vector, arrow: pa.DataType, like: pa.Array) -> pa.Array:
    """An array of a fixed-width Arrow type over numpy values, null where ``like`` is null."""
    return pa.Array.from_buffers(arrow, len(data), [validity(like), pa.py_buffer(np.ascontiguousarray(data))])


def big_endian(array: pa.Array, dtype: str) -> pa.Array:
    """The binary form of a fixed-width array, in network byte order."""
    return fixed(vector(array, "<" + dtype).astype(">" + dtype), array)


def network_vector(binaries: pa.Array, dtype: str, type_name: str) -> Vector:
    """The numbers in fields that each hold one number in network byte order. Raises 22P03 for another length.

    The values at nulls are 0.
    """
    width = np.dtype(dtype).itemsize
    lengths = np.diff(offsets(binaries))
    if binaries.null_count == 0 and (lengths == width).all():
        return value_bytes(binaries).view(dtype)
    valid = np.asarray(pc.is_valid(binaries))
    wrong = np.flatnonzero(valid & (lengths != width))
    if len(wrong):
        raise ColumnError(int(wrong[0]), bad_binary(type_name))
    result = np.zeros(len(binaries), dtype=dtype)
    result[valid] = value_bytes(binaries.drop_null()).view(dtype)
    return result


def bad_binary(type_name: str) -> SqlError:
    """The error 22P03 for a type."""
    return SqlError("22P03", f"incorrect binary data format for type {type_name}")


def by_value(strings: pa.Array, parse: Callable[[str], Value], arrow: pa.DataType) -> pa.Array:
    """Decodes a column value by value, each distinct text once: exact, but slow."""
    encoded = strings.dictionary_encode()
    values: list[Value] = []
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            values.append(parse(text))
        except SqlError as error:
            raise ColumnError(int(pc.index(encoded.indices, pa.scalar(code, pa.int32())).as_py()), error) from None
    return pa.array(values, arrow).take(encoded.indices)


def fast_or_exact(
    strings: pa.Array,
    plain: str,
    convert: Callable[[pa.Array], pa.Array],
    parse: Callable[[str], Value],
    arrow: pa.DataType,
) -> pa.Array:
    """Converts the texts that match the regular expression ``plain`` together, and the others one by one with
    ``parse``.

    For texts that match ``plain``, ``convert`` must agree with ``parse`` or raise ArrowInvalid.
    """
    matches = pc.match_substring_regex(strings, plain)
    others = pc.fill_null(pc.invert(matches), constant(False))
    try:
        converted = convert(pc.if_else(others, constant(None), strings))
    except pa.ArrowInvalid:
        return by_value(strings, parse, arrow)
    if not pc.any(others).as_py():
        return converted
    rows = pc.indices_nonzero(others)
    try:
        exact = by_value(strings.take(rows), parse, arrow)
    except ColumnError as error:
        raise ColumnError(rows[error.index].as_py(), error.error) from None
    return pc.replace_with_mask(converted, others, exact)
