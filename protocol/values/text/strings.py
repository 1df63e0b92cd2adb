"""text, varchar, bpchar and name: UTF-8 in both formats, with declared lengths in characters.

A bpchar's trailing blanks are insignificant: its value is kept without them and padded to the declared length for
output.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from protocol.compute import pc
from protocol.utf8 import decode_utf8, first_invalid, invalid_encoding
from protocol.values.codec import Codec, ColumnError, offsets, value_bytes

_NAME_LENGTH: Final = 63


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    if type_.name == "bpchar" and type_.modifiers:
        return pc.utf8_rpad(array, type_.modifiers[0], " ")
    return array


def bpchar_out(text: str, type_: SqlType) -> str:
    """One bpchar, padded to its length."""
    return text.ljust(type_.modifiers[0]) if type_.modifiers else text


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
    return _text(array, type_, "").cast(pa.binary())


def fit_string(text: str, type_: SqlType) -> str:
    """The text as the type stores it. Raises 22001 if characters other than blanks exceed the declared length."""
    if type_.name == "name":
        encoded = text.encode()
        return text if len(encoded) <= _NAME_LENGTH else encoded[:_NAME_LENGTH].decode(errors="ignore")
    if type_.modifiers and len(text) > type_.modifiers[0]:
        if text[type_.modifiers[0] :].strip(" "):
            raise _too_long(type_)
        text = text[: type_.modifiers[0]]
    return text.rstrip(" ") if type_.name == "bpchar" else text


def _too_long(type_: SqlType) -> SqlError:
    return SqlError("22001", f"value too long for type {type_}")


def _from_text(text: str, type_: SqlType, timezone: str) -> str:
    return fit_string(text, type_)


def _from_binary(data: bytes, type_: SqlType) -> str:
    return fit_string(decode_utf8(data), type_)


def column_from_strings(strings: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
    """The texts as the type stores them. Raises 22001 if characters other than blanks exceed the declared length."""
    if type_.name == "bpchar" and _ends_in_blank(strings):
        strings = pc.utf8_rtrim(strings, " ")
    if type_.name == "name" and _exceeds(strings, _NAME_LENGTH):
        return pa.array(
            [None if text is None else fit_string(text, type_) for text in strings.to_pylist()], pa.string()
        )
    if type_.modifiers and _exceeds(strings, type_.modifiers[0]):
        return _shorten(strings, type_)
    return strings


def _exceeds(strings: pa.Array, length: int) -> bool:
    """Whether some text may have more than ``length`` characters, judged by its bytes."""
    bounds = offsets(strings)
    return len(bounds) > 1 and int((bounds[1:] - bounds[:-1]).max()) > length


def _ends_in_blank(strings: pa.Array) -> bool:
    bounds = offsets(strings)
    data = value_bytes(strings)
    if b" " not in data.tobytes():
        return False
    # For an empty text, this reads the end of the text before it: at worst, a trim without effect.
    return bool((data[np.maximum(bounds[1:] - bounds[0] - 1, 0)] == 0x20).any())


def _shorten(strings: pa.Array, type_: SqlType) -> pa.Array:
    length = type_.modifiers[0]
    excess = pc.utf8_ltrim(pc.utf8_slice_codeunits(strings, length), " ")
    wrong = pc.indices_nonzero(pc.greater(pc.binary_length(excess), 0))
    if len(wrong):
        raise ColumnError(wrong[0].as_py(), _too_long(type_))
    return pc.utf8_slice_codeunits(strings, 0, length)


def utf8_column(binaries: pa.Array) -> pa.Array:
    """Bytes as text. Raises 22021 if they are not UTF-8 or contain a zero byte."""
    try:
        strings = binaries.cast(pa.string())
        if not (value_bytes(strings) == 0).any():
            return strings
    except pa.ArrowInvalid:
        pass
    for index, data in enumerate(binaries.to_pylist()):
        if data is not None and (start := first_invalid(data)) is not None:
            raise ColumnError(index, invalid_encoding(data, start))
    raise AssertionError("Arrow and Python disagree on UTF-8")


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    return column_from_strings(utf8_column(binaries), type_)


_STRING: Final = Codec(
    text=_text,
    binary=_binary,
    from_text=_from_text,
    from_binary=_from_binary,
    column_from_text=column_from_strings,
    column_from_binary=_column_from_binary,
)
CODECS: Final[dict[str, Codec]] = dict.fromkeys(("text", "varchar", "bpchar", "name", "unknown", "void"), _STRING)
