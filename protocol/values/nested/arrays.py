"""One-dimensional arrays of every type: ``{1,NULL,"a b"}`` and the binary form, made by their elements' codecs.

Arrays of several dimensions or with a lower bound other than 1 raise 0A000 here (``shaped_arrays`` carries them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from struct import error as StructError
from struct import unpack_from

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.nested_texts import no_dimensions, split_array
from catalog.values.nested_types import delimiter_of
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import Codec, Codecs, ColumnError, Value, Vector, bad_binary, codec_over, joined, variable
from protocol.values.framing import framed
from protocol.values.nested.quoting import quoted


def array_codec(codecs: Codecs) -> Codec:
    """The codec of all array types over the codecs of their elements."""
    return codec_over(codecs, _text, _binary, _from_text, _from_binary, _column_from_text, _column_from_binary)


def _element(type_: SqlType) -> SqlType:
    assert type_.element is not None
    return type_.element


def _bounds(array: pa.Array) -> Vector:
    """Where each row's elements begin in ``array.flatten()``; a null row has no elements."""
    bounds = np.zeros(len(array) + 1, np.int32)
    np.cumsum(np.asarray(pc.list_value_length(array).fill_null(constant(0))), out=bounds[1:])
    return bounds


def _text(codecs: Codecs, array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    element = _element(type_)
    delimiter = delimiter_of(element)
    texts = quoted(codecs[element.name].text(array.flatten(), element, timezone).cast(pa.string()), delimiter)
    body = joined(texts, _bounds(array), delimiter)
    texts = pc.binary_join_element_wise(constant("{"), body, constant("}"), constant(""))
    return pc.if_else(pc.is_valid(array), texts, constant(None))


def _binary(codecs: Codecs, array: pa.Array, type_: SqlType) -> pa.Array:
    element = _element(type_)
    elements = codecs[element.name].binary(array.flatten(), element)
    bounds = _bounds(array)
    lengths = np.diff(bounds)
    nulls = np.zeros(len(elements) + 1, np.int64)
    np.cumsum(np.asarray(pc.is_null(elements)), out=nulls[1:])
    head = np.empty((len(array), 5), ">i4")
    head[:, 0] = lengths > 0  # dimensions
    head[:, 1] = nulls[bounds[1:]] > nulls[bounds[:-1]]
    head[:, 2] = element.oid
    head[:, 3] = lengths
    head[:, 4] = 1  # lower bound
    kept = np.ones(head.shape, bool)
    kept[:, 3:] = (lengths > 0)[:, None]
    heads = variable(head[kept].view(np.uint8), kept.sum(axis=1) * 4, array)
    return pc.binary_join_element_wise(heads, joined(framed(elements), bounds, b""), constant(b""))


def _from_text(codecs: Codecs, text: str, type_: SqlType, timezone: str) -> tuple[Value, ...]:
    element = _element(type_)
    parse = codecs[element.name].from_text
    return tuple(
        None if item is None else parse(item, element, timezone) for item in split_array(text, delimiter_of(element))
    )


def split_binary(data: bytes, element: SqlType) -> list[bytes | None]:
    """The elements' fields in an array's binary form. Raises 22P03."""
    try:
        dimensions, flags, oid = unpack_from(">iii", data)
        if dimensions == 0 and len(data) == 12:
            return []
        if dimensions > 1:
            raise no_dimensions()
        count, lower = unpack_from(">ii", data, 12)
        if lower != 1:
            raise no_dimensions()
        if flags not in (0, 1) or oid != element.oid or count < 0:
            raise SqlError("42804", f"binary data has array element type {oid} instead of expected {element.oid}")
        items: list[bytes | None] = []
        position = 20
        for _ in range(count):
            (length,) = unpack_from(">i", data, position)
            position += 4
            items.append(None if length < 0 else data[position : position + length])
            position += max(length, 0)
    except StructError:
        raise bad_binary("array") from None
    if position != len(data):
        raise bad_binary("array")
    return items


def _from_binary(codecs: Codecs, data: bytes, type_: SqlType) -> tuple[Value, ...]:
    element = _element(type_)
    parse = codecs[element.name].from_binary
    return tuple(None if item is None else parse(item, element) for item in split_binary(data, element))


def column(
    array: pa.Array,
    split: Callable[..., Iterator[str | None] | list[bytes | None]],
    decode: Callable[[pa.Array], pa.Array],
    arrow: pa.DataType,
) -> pa.Array:
    """Splits each array in Python and decodes all elements as one column."""
    items: list[str | bytes | None] = []
    bounds: list[int | None] = [0]
    for index, value in enumerate(array.to_pylist()):
        try:
            items.extend(() if value is None else split(value))
        except SqlError as error:
            raise ColumnError(index, error) from None
        bounds.append(len(items))
    try:
        elements = decode(pa.array(items, array.type))
    except ColumnError as error:
        ends = np.array(bounds[1:])
        raise ColumnError(int(np.searchsorted(ends, error.index, "right")), error.error) from None
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), elements)
    return pc.if_else(pc.is_valid(array), lists, pa.scalar(None, arrow)) if array.null_count else lists


def _column_from_text(codecs: Codecs, strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    element = _element(type_)
    decode = codecs[element.name].column_from_text
    split = partial(split_array, delimiter=delimiter_of(element))
    return column(strings, split, lambda items: decode(items, element, timezone), type_.arrow)


def _column_from_binary(codecs: Codecs, binaries: pa.Array, type_: SqlType) -> pa.Array:
    element = _element(type_)
    decode = codecs[element.name].column_from_binary
    split = partial(split_binary, element=element)
    return column(binaries, split, lambda items: decode(items, element), type_.arrow)
