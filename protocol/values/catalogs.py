"""The types that only system catalogs are made of: "char", vectors, oids with names, and texts of their own form.

An oid that is shown by name (regclass and its kin) comes here as a number, or as the name's text where the session has
looked it up already; binary is the number.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from catalog.errors import SqlError, invalid_text, unsupported
from catalog.opaque import canonical
from catalog.types import NAMED_OIDS, OPAQUE, VECTORS, SqlType, array
from protocol.compute import constant, pc
from protocol.values import numbers, strings
from protocol.values.arrays import array_codec
from protocol.values.codec import Codec, Value, by_value

_OID: Final = numbers.CODECS["oid"]
_TEXT: Final = strings.CODECS["text"]


def _named_text(values: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return values if pa.types.is_string(values.type) else values.cast(pa.string())


def _char_from_text(text: str, type_: SqlType, timezone: str) -> str:
    return text[:1]


def _char_column(texts: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
    return pc.utf8_slice_codeunits(texts, 0, 1)


def _char_binary(values: pa.Array, type_: SqlType) -> pa.Array:
    return pc.if_else(pc.equal(values, constant("")), constant("\0"), values).cast(pa.binary())


def _char_from_binary(data: bytes, type_: SqlType) -> str:
    return data.rstrip(b"\0").decode()


_CHAR: Final = replace(
    _TEXT, from_text=_char_from_text, column_from_text=_char_column, binary=_char_binary, from_binary=_char_from_binary
)


def _vector(name: str) -> Codec:
    """int2vector and oidvector: as arrays in binary, blanks between the elements in text."""
    element = SqlType(VECTORS[name])
    kind = array(element)
    arrays = array_codec({element.name: numbers.CODECS[element.name]})

    def text(values: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
        braced = arrays.text(values, kind, timezone)
        return pc.replace_substring(pc.utf8_slice_codeunits(braced, 1, -1), ",", " ")

    def from_text(words: str, type_: SqlType, timezone: str) -> Value:
        return tuple(numbers.parse_integer(word, element) for word in words.split())

    def column(texts: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
        return by_value(texts, lambda words: from_text(words, type_, ""), type_.arrow)

    return replace(arrays, text=text, from_text=from_text, column_from_text=column)


def _inet_binary(text: str) -> bytes:
    """Family, bits, not a cidr, length, address."""
    found = ipaddress.ip_interface(text)
    packed = found.ip.packed
    return bytes((2 if found.version == 4 else 3, found.network.prefixlen, 0, len(packed))) + packed


def _lsn_binary(text: str) -> bytes:
    high, low = text.split("/")
    return (int(high, 16) << 32 | int(low, 16)).to_bytes(8, "big")


def _inet_from_binary(data: bytes) -> str:
    if len(data) < 4:
        raise SqlError("08P01", "insufficient data left in message")
    family, bits, _, length = data[:4]
    if family not in (2, 3) or length != len(data) - 4 or length != (4 if family == 2 else 16) or bits > 8 * length:
        raise SqlError("22P03", 'invalid external "inet" value')
    return f"{ipaddress.ip_address(data[4:])}/{bits}"


def _lsn_from_binary(data: bytes) -> str:
    if len(data) != 8:
        raise SqlError("22P03", "incorrect binary data format")
    return f"{data[:4].hex()}/{data[4:].hex()}"


def _binary_of(write: Callable[[str], bytes], values: pa.Array, type_: SqlType) -> pa.Array:
    found = [None if text is None else write(text) for text in values.to_pylist()]
    return pa.array(found, pa.binary())


def _no_binary(values: pa.Array, type_: SqlType) -> pa.Array:
    if values.null_count < len(values):
        raise unsupported(f"binary format of type {type_}", "Ask for text.")
    return values.cast(pa.binary())


def _not_from_binary(data: object, type_: SqlType) -> Value:
    raise unsupported(f"binary format of type {type_}", "Send text.")


def _no_column_from_binary(values: pa.Array, type_: SqlType) -> pa.Array:
    return by_value(values, lambda data: _not_from_binary(data, type_), pa.string())


_BINARY: Final[dict[str, Callable[[str], bytes]]] = {"inet": _inet_binary, "pg_lsn": _lsn_binary}
_FROM_BINARY: Final[dict[str, Callable[[bytes], str]]] = {"inet": _inet_from_binary, "pg_lsn": _lsn_from_binary}


def _bytes(data: object) -> bytes:
    """An item of a binary column."""
    assert isinstance(data, bytes)
    return data


def _opaque(name: str) -> Codec:
    """A type of texts of their own form (``catalog.opaque``)."""
    if name == "pg_node_tree":
        return _TEXT

    def from_text(text: str, type_: SqlType, timezone: str) -> Value:
        return canonical(name, text)

    def column(texts: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
        return by_value(texts, lambda text: canonical(name, text), pa.string())

    def from_binary(data: bytes, type_: SqlType) -> Value:
        return canonical(name, _FROM_BINARY[name](data))

    def column_from_binary(values: pa.Array, type_: SqlType) -> pa.Array:
        texts = by_value(values, lambda data: _FROM_BINARY[name](_bytes(data)), pa.string())
        return column(texts, type_)

    codec = replace(_TEXT, from_text=from_text, column_from_text=column)
    if name not in _BINARY:
        return replace(
            codec, binary=_no_binary, from_binary=_not_from_binary, column_from_binary=_no_column_from_binary
        )
    binary = partial(_binary_of, _BINARY[name])
    return replace(codec, binary=binary, from_binary=from_binary, column_from_binary=column_from_binary)


def _named_from_text(text: str, type_: SqlType, timezone: str) -> Value:
    """A number; what a name means is known to the session alone."""
    if not text.strip().isdigit():
        raise invalid_text(str(type_), text)
    return int(text)


CODECS: Final[dict[str, Codec]] = {
    "char": _CHAR,
    "xid": _OID,
    "cid": _OID,
    **dict.fromkeys(NAMED_OIDS, replace(_OID, text=_named_text, from_text=_named_from_text)),
    **{name: _vector(name) for name in VECTORS},
    **{name: _opaque(name) for name in OPAQUE},
}
