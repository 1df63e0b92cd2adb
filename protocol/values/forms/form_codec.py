"""Makes codecs of types whose values are texts in PostgreSQL's output form (``catalog.values.forms``).

Owns: ``formed_codec``, and ``Binary``, with which a family's file describes how one value of a type is written and read
in binary.
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
#: For each type: a function from a value's text to its binary form, and one back, whose text need not be in output
#: form.
Binary = Mapping[str, tuple[Callable[[str], bytes], Callable[[bytes], str]]]


def short() -> SqlError:
    """The error 08P01 for a field that ends too early."""
    return SqlError("08P01", "insufficient data left in message")


def too_long() -> SqlError:
    """The error 22P03 for a field with bytes after its value."""
    return SqlError("22P03", "incorrect binary data format")


def exactly(data: bytes, length: int) -> bytes:
    """A field, checked to have ``size`` bytes. Raises 08P01 and 22P03."""
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
    """The bytes of an item of a binary column."""
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
