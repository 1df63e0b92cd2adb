"""hstore in binary (hstore_send()): the number of pairs, then each pair's key and value, each after its length in 32
bits; the length -1 is NULL."""

from __future__ import annotations

from typing import Final

from catalog.values.errors import SqlError
from catalog.values.forms.hstores import pairs, shown, unique
from protocol.utf8 import decode_utf8
from protocol.values.codec import Codec
from protocol.values.forms.form_codec import Binary, formed_codec, short, too_long

_NULL: Final = b"\xff\xff\xff\xff"
#: The most pairs, as in PostgreSQL (MaxAllocSize / sizeof(Pairs)).
_MOST: Final = 0x3FFFFFFF // 40


def _write(text: str) -> bytes:
    found = pairs(text)
    pieces = [len(found).to_bytes(4, "big")]
    for item in (item for pair in found.items() for item in pair):
        data = None if item is None else item.encode()
        pieces.append(_NULL if data is None else len(data).to_bytes(4, "big") + data)
    return b"".join(pieces)


def _read(data: bytes) -> str:
    """A value's text. Raises 08P01, 22P03, 22004 and 54000."""
    count, place = _number(data, 0), 4
    if not 0 <= count <= _MOST:
        raise SqlError("54000", f"number of pairs ({count}) exceeds the maximum allowed ({_MOST})")
    found: list[tuple[str, str | None]] = []
    for _ in range(count):
        key, place = _item(data, place)
        if key is None:
            raise SqlError("22004", "null value not allowed for hstore key")
        value, place = _item(data, place)
        found.append((key, value))
    if place != len(data):
        raise too_long()
    return shown(unique(found))


def _item(data: bytes, place: int) -> tuple[str | None, int]:
    length, begin = _number(data, place), place + 4
    if length < 0:
        return None, begin
    if begin + length > len(data):
        raise short()
    return decode_utf8(data[begin : begin + length]), begin + length


def _number(data: bytes, place: int) -> int:
    if place + 4 > len(data):
        raise short()
    return int.from_bytes(data[place : place + 4], "big", signed=True)


_BINARY: Final[Binary] = {"hstore": (_write, _read)}
CODECS: Final[dict[str, Codec]] = {"hstore": formed_codec("hstore", _BINARY)}
