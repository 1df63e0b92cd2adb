"""Arrays of several dimensions or with lower bounds other than 1: ``[0:1]={{1,2},{3,NULL}}`` and the binary form.

Arrow carries the flat elements and the array's shape (``catalog.values.array_shapes``). Elements are encoded and
decoded as one column; a column of one-dimensional arrays with bound 1 only is written as a column of lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from struct import error as StructError
from struct import pack, unpack_from
from typing import Any, Final

import numpy as np
import pyarrow as pa

from catalog.values.array_shapes import EMPTY, MOST, Shape, dimensions, lowers, shaped, split_shaped, too_many, written
from catalog.values.errors import SqlError
from catalog.values.nested_types import delimiter_of
from catalog.values.types import SqlType
from protocol.compute import pc
from protocol.values.codec import Codec, Codecs, ColumnError, Value, bad_binary, codec_over
from protocol.values.framing import framed
from protocol.values.nested.quoting import quoted

_SHAPE: Final = pa.list_(pa.int32())


def shaped_codec(codecs: Codecs) -> Codec:
    """The codec of all such types over the codecs of their elements."""
    return codec_over(codecs, _text, _binary, _from_text, _from_binary, _column_from_text, _column_from_binary)


def _element(type_: SqlType) -> SqlType:
    assert type_.element is not None
    return type_.element


def _parts(array: pa.Array) -> tuple[pa.Array, list[int], list[Sequence[int] | None]]:
    """All elements, where each row's elements begin, and the rows' shapes, None for NULL."""
    items, shapes = array.flatten()
    lengths = np.asarray(pc.list_value_length(items).fill_null(0))
    return items.flatten(), [0, *np.cumsum(lengths).tolist()], shapes.to_pylist()


def _as_lists(array: pa.Array) -> pa.Array | None:
    """The arrays as lists; None if some array has several dimensions or a lower bound other than 1."""
    items, shapes = array.flatten()
    lengths = np.asarray(pc.list_value_length(shapes).fill_null(0))
    if (lengths > 3).any():
        return None
    lowers_at = np.cumsum(lengths)[lengths == 3] - 1
    return items if (np.asarray(shapes.flatten())[lowers_at] == 1).all() else None


def _text(codecs: Codecs, array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    element = _element(type_)
    if (lists := _as_lists(array)) is not None:
        return codecs["array"].text(lists, SqlType("array", element=element), timezone)
    items, bounds, shapes = _parts(array)
    mark = delimiter_of(element)
    texts = quoted(codecs[element.name].text(items, element, timezone).cast(pa.string()), mark).to_pylist()
    return pa.array(
        [
            None if shape is None else written(texts[bounds[row] : bounds[row + 1]], shape, mark)
            for row, shape in enumerate(shapes)
        ],
        pa.string(),
    )


def _binary(codecs: Codecs, array: pa.Array, type_: SqlType) -> pa.Array:
    element = _element(type_)
    if (lists := _as_lists(array)) is not None:
        return codecs["array"].binary(lists, SqlType("array", element=element))
    items, bounds, shapes = _parts(array)
    nulls = np.concatenate([[0], np.cumsum(np.asarray(pc.is_null(items)))])
    fields = framed(codecs[element.name].binary(items, element)).cast(pa.binary()).to_pylist()
    found: list[bytes | None] = []
    for row, shape in enumerate(shapes):
        first, end = bounds[row], bounds[row + 1]
        if shape is None:
            found.append(None)
            continue
        head = pack(">iii", shape[0], int(nulls[end] > nulls[first]), element.oid)
        pairs = zip(dimensions(shape), lowers(shape), strict=True)
        found.append(b"".join([head, *(pack(">ii", *pair) for pair in pairs), *fields[first:end]]))
    return pa.array(found, pa.binary())


def _from_text(codecs: Codecs, text: str, type_: SqlType, timezone: str) -> Value:
    element = _element(type_)
    parse = codecs[element.name].from_text
    items, shape = split_shaped(text)
    return tuple(None if item is None else parse(item, element, timezone) for item in items), shape


def split_shaped_binary(data: bytes, element: SqlType) -> tuple[list[bytes | None], Shape]:
    """The elements' fields in an array's binary form, and the array's shape. Raises 22P03, 42804 and 54000."""
    try:
        count, flags, oid = unpack_from(">iii", data)
        if count > MOST:
            raise too_many(count)
        if flags not in (0, 1) or count < 0:
            raise bad_binary("array")
        if oid != element.oid:
            raise SqlError("42804", f"binary data has array element type {oid} instead of expected {element.oid}")
        sizes = [unpack_from(">ii", data, 12 + 8 * place) for place in range(count)]
        shape = shaped([size for size, _ in sizes], [low for _, low in sizes])
        position = 12 + 8 * count
        items: list[bytes | None] = []
        for _ in range(prod(dimensions(shape)) if shape != EMPTY else 0):
            (length,) = unpack_from(">i", data, position)
            position += 4
            if length < -1:
                raise bad_binary("array")
            items.append(None if length < 0 else data[position : position + length])
            position += max(length, 0)
    except StructError:
        raise bad_binary("array") from None
    if position != len(data) or any(size < 0 for size, _ in sizes):
        raise bad_binary("array")
    return items, shape


def _from_binary(codecs: Codecs, data: bytes, type_: SqlType) -> Value:
    element = _element(type_)
    parse = codecs[element.name].from_binary
    items, shape = split_shaped_binary(data, element)
    return tuple(None if item is None else parse(item, element) for item in items), shape


def column(
    array: pa.Array,
    split: Callable[[Any], tuple[Sequence[str | bytes | None], Shape]],
    decode: Callable[[pa.Array], pa.Array],
    arrow: pa.DataType,
) -> pa.Array:
    """Splits each array in Python and decodes all elements as one column."""
    items: list[str | bytes | None] = []
    bounds, shapes = [0], []
    for index, value in enumerate(array.to_pylist()):
        try:
            found, shape = ((), EMPTY) if value is None else split(value)
        except SqlError as error:
            raise ColumnError(index, error) from None
        items.extend(found)
        shapes.append(shape)
        bounds.append(len(items))
    try:
        elements = decode(pa.array(items, array.type))
    except ColumnError as error:
        raise ColumnError(int(np.searchsorted(np.array(bounds[1:]), error.index, "right")), error.error) from None
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), elements)
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays([lists, pa.array(shapes, _SHAPE)], fields=list(arrow), mask=mask)


def _column_from_text(codecs: Codecs, strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    element = _element(type_)
    decode = codecs[element.name].column_from_text
    return column(strings, split_shaped, lambda items: decode(items, element, timezone), type_.arrow)


def _column_from_binary(codecs: Codecs, binaries: pa.Array, type_: SqlType) -> pa.Array:
    element = _element(type_)
    decode = codecs[element.name].column_from_binary
    split = partial(split_shaped_binary, element=element)
    return column(binaries, split, lambda items: decode(items, element), type_.arrow)
