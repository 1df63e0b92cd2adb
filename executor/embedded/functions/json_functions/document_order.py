"""jsonb's order and equality (jsonb_util.c, compareJsonbContainers) as bytes that compare alike.

Owns: ``order_key``. Objects are above arrays, these above bare values; more elements are above fewer; then booleans,
numbers, strings and null, part by part. A bare value counts as an array of one: only an empty array is below it.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, Final

from catalog.values.json_documents import Number, parse, sorted_keys

_NULL, _STRING, _NUMBER, _BOOLEAN, _ARRAY, _OBJECT = (bytes((tag,)) for tag in (0, 1, 2, 3, 16, 17))
_BIAS: Final = 1 << 31
_INVERTED: Final = bytes(255 - byte for byte in range(256))


def order_key(document: str) -> bytes:
    """The bytes of a document's place in the order."""
    value = parse(document)
    if isinstance(value, dict | list):
        return _part(value, b"\1")
    return _ARRAY + _count(1) + b"\0" + _part(value)


def _count(number: int) -> bytes:
    return struct.pack(">I", number)


def _part(value: Any, whole: bytes = b"") -> bytes:
    """A value within a document; ``whole``: a byte that tells an array at the top from a bare value."""
    if isinstance(value, dict):
        parts = [_text(key) + _part(value[key]) for key in sorted_keys(value)]
        return _OBJECT + _count(len(value)) + b"".join(parts)
    if isinstance(value, list):
        return _ARRAY + _count(len(value)) + whole + b"".join(map(_part, value))
    if isinstance(value, Number):
        return _NUMBER + _number(Decimal(value))
    if isinstance(value, str):
        return _STRING + _text(value)
    return _NULL if value is None else _BOOLEAN + bytes((value,))


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass") + b"\0"


def _number(value: Decimal) -> bytes:
    """Sign, exponent and digits; all inverted below zero."""
    if not value:
        return b"\x80"
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0").encode() + b"\0"
    size = struct.pack(">I", value.adjusted() + _BIAS) + digits
    return b"\x81" + size if value > 0 else b"\x7f" + size.translate(_INVERTED)
