"""Types whose values are texts of their own form (``catalog.values.forms``): a codec made of how one value is written
in binary, and read.

Owns: ``formed_codec``, and ``Binary``, what a family's file says of each of its types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.opaque import canonical
from catalog.values.types import SqlType
from protocol.values.codec import Codec, Value, by_value
from protocol.values.text import strings

_TEXT: Final = strings.CODECS["text"]
#: Of each type: a value's text -> its binary form, and back, which need not be in the written form.
Binary = Mapping[str, tuple[Callable[[str], bytes], Callable[[bytes], str]]]


def short() -> SqlError:
    """08P01: a field that ends too early."""
    return SqlError("08P01", "insufficient data left in message")


def too_long() -> SqlError:
    """22P03: a field with more than a value."""
    return SqlError("22P03", "incorrect binary data format")


def exactly(data: bytes, length: int) -> bytes:
    """A field of so many bytes. Raises 08P01 and 22P03."""
    if len(data) != length:
        raise short() if len(data) < length else too_long()
    return data


def formed_codec(name: str, binary: Binary) -> Codec:
    """The codec of a type."""

    def from_text(text: str, type_: SqlType, timezone: str = "") -> Value:
        return canonical(name, text)

    def column(texts: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
        return by_value(texts, lambda text: canonical(name, text), pa.string())

    codec = replace(_TEXT, from_text=from_text, column_from_text=column)
    if name not in binary:
        return replace(codec, binary=_none, from_binary=_refused, column_from_binary=_column_refused)
    write, read = binary[name]

    def column_binary(values: pa.Array, type_: SqlType) -> pa.Array:
        return pa.array([None if text is None else write(text) for text in values.to_pylist()], pa.binary())

    def from_binary(data: bytes, type_: SqlType) -> Value:
        return canonical(name, read(data))

    def column_from_binary(values: pa.Array, type_: SqlType) -> pa.Array:
        return by_value(values, lambda data: from_binary(as_bytes(data), type_), pa.string())

    return replace(codec, binary=column_binary, from_binary=from_binary, column_from_binary=column_from_binary)


def as_bytes(data: object) -> bytes:
    """An item of a binary column."""
    assert isinstance(data, bytes)
    return data


def _none(values: pa.Array, type_: SqlType) -> pa.Array:
    if values.null_count < len(values):
        raise unsupported(f"binary format of type {type_}", "Request the text format.")
    return values.cast(pa.binary())


def _refused(data: object, type_: SqlType) -> Value:
    raise unsupported(f"binary format of type {type_}", "Send the text format.")


def _column_refused(values: pa.Array, type_: SqlType) -> pa.Array:
    return by_value(values, lambda data: _refused(data, type_), pa.string())
