"""jsonb's sort order and equality (jsonb_util.c, compareJsonbContainers), as bytes that compare in the same way.

Owns: ``order_key``. Objects sort after arrays, and these after single scalars; containers with more elements sort after
those with fewer; then the parts compare one by one: booleans, numbers, strings, null, in descending order of types. A
single scalar counts as an array of one element: only the empty array sorts before it.
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
    """Bytes that compare as documents do."""
    value = parse(document)
    if isinstance(value, dict | list):
        return _part(value, b"\1")
    return _ARRAY + _count(1) + b"\0" + _part(value)


def _count(number: int) -> bytes:
    return struct.pack(">I", number)


def _part(value: Any, whole: bytes = b"") -> bytes:
    """The key of a value within a document; ``whole``: a byte that distinguishes an array at the top from a single
    scalar."""
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
    """Sign, exponent and digits; all inverted for negative numbers."""
    if not value:
        return b"\x80"
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0").encode() + b"\0"
    size = struct.pack(">I", value.adjusted() + _BIAS) + digits
    return b"\x81" + size if value > 0 else b"\x7f" + size.translate(_INVERTED)
