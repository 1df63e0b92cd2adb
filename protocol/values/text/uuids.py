"""uuid: its canonical lower-case text, except in binary format, which has the 16 bytes."""

from __future__ import annotations

import re
from functools import partial
from typing import Final
from uuid import UUID

import numpy as np
import pyarrow as pa

from catalog.values.errors import invalid_text
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import Codec, ColumnError, Vector, bad_binary, fast_or_exact, fixed, offsets, value_bytes
from protocol.values.text.hexadecimal import from_digits, to_digits

_CANONICAL: Final = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
#: PostgreSQL accepts a hyphen after any group of four digits, and braces around the whole.
_INPUT: Final = re.compile(r"(\{)?(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}(?(1)\})\Z")
_HYPHENS: Final = (8, 13, 18, 23)
_DIGITS: Final = [place for place in range(36) if place not in _HYPHENS]


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return array


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
    filled = array.fill_null(constant(str(UUID(int=0))))
    data = from_digits(np.ascontiguousarray(value_bytes(filled).reshape(-1, 36)[:, _DIGITS]).reshape(-1))
    assert data is not None, "a uuid is kept in its canonical form"
    return fixed(data.reshape(-1, 16), array)


def _from_text(text: str, type_: SqlType, timezone: str = "") -> str:
    if not _INPUT.match(text):
        raise invalid_text("uuid", text)
    return str(UUID(text.strip("{}").replace("-", "")))


def _from_binary(data: bytes, type_: SqlType) -> str:
    if len(data) != 16:
        raise bad_binary("uuid")
    return str(UUID(bytes=bytes(data)))


def _column_from_text(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return fast_or_exact(strings, _CANONICAL, pc.ascii_lower, partial(_from_text, type_=type_), pa.string())


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    filled = binaries.fill_null(bytes(16))
    wrong = np.flatnonzero(np.diff(offsets(filled)) != 16)
    if len(wrong):
        raise ColumnError(int(wrong[0]), bad_binary("uuid"))
    return _canonical(to_digits(value_bytes(filled)).reshape(-1, 32), binaries)


def _canonical(digits: Vector, like: pa.Array) -> pa.Array:
    text = np.full((len(digits), 36), ord("-"), np.uint8)
    text[:, _DIGITS] = digits
    strings = fixed(text, like).cast(pa.binary()).cast(pa.string())
    return strings


CODECS: Final[dict[str, Codec]] = {
    "uuid": Codec(
        text=_text,
        binary=_binary,
        from_text=_from_text,
        from_binary=_from_binary,
        column_from_text=_column_from_text,
        column_from_binary=_column_from_binary,
    )
}
