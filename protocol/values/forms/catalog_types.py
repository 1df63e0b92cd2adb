"""Types that only system catalogs use: "char", vectors, oids shown as names, and types that PostgreSQL alone writes.

An oid that is shown as a name (regclass and similar types) arrives here as a number, or as text if the session has
already looked up the name; its binary form is the number.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.errors import invalid_text
from catalog.values.forms.numbers import read_unsigned
from catalog.values.types import INTERNAL, NAMED_OIDS, VECTORS, SqlType, array
from protocol.compute import constant, pc
from protocol.utf8 import decode_utf8
from protocol.values.codec import Codec, Value, by_value
from protocol.values.forms.form_codec import Binary, formed_codec
from protocol.values.nested.arrays import array_codec
from protocol.values.numbers import integers_and_floats
from protocol.values.text import strings

_OID: Final = integers_and_floats.CODECS["oid"]
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
    """int2vector and oidvector: like arrays in binary; elements separated by blanks in text."""
    element = SqlType(VECTORS[name])
    kind = array(element)
    arrays = array_codec({element.name: integers_and_floats.CODECS[element.name]})

    def text(values: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
        braced = arrays.text(values, kind, timezone)
        return pc.replace_substring(pc.utf8_slice_codeunits(braced, 1, -1), ",", " ")

    def from_text(words: str, type_: SqlType, timezone: str) -> Value:
        return tuple(integers_and_floats.parse_integer(word, element) for word in words.split())

    def column(texts: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
        return by_value(texts, lambda words: from_text(words, type_, ""), type_.arrow)

    return replace(arrays, text=text, from_text=from_text, column_from_text=column)


def _unsigned(text: str, type_: SqlType, timezone: str = "") -> Value:
    return read_unsigned(text, type_.name)


def _unsigned_column(texts: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
    return by_value(texts, lambda text: _unsigned(text, type_), type_.arrow)


def _named_from_text(text: str, type_: SqlType, timezone: str) -> Value:
    """The number in a text; only the session can look up names."""
    if not text.strip().isdigit():
        raise invalid_text(str(type_), text)
    return int(text)


_WORDS: Final = replace(_OID, from_text=_unsigned, column_from_text=_unsigned_column)
#: Types that are sent as text and have no input.
_WRITTEN: Final = frozenset(("pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list"))
_AS_TEXT: Final[Binary] = dict.fromkeys(_WRITTEN | {"refcursor"}, (str.encode, decode_utf8))

CODECS: Final[dict[str, Codec]] = {
    "char": _CHAR,
    "xid": _WORDS,
    "cid": _WORDS,
    **dict.fromkeys(NAMED_OIDS, replace(_OID, text=_named_text, from_text=_named_from_text)),
    **{name: _vector(name) for name in VECTORS},
    **{name: formed_codec(name, _AS_TEXT) for name in INTERNAL | {"aclitem", "anyarray", "refcursor"}},
}
