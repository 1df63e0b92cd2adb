"""Functions of bytea as functions of the engine.

Owns: ``FUNCTIONS``, ``octets_*``, with PostgreSQL's errors (bytea.c, varlena.c, encode.c).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from catalog.values.errors import SqlError
from executor.embedded.functions.batches import Functions
from planner.bind.conversion.literals import read_bytea

_OUTSIDE: Final = "2202E"
_LARGEST: Final = 2**31 - 1


def _index(value: int, count: int) -> int:
    if not 0 <= value < count:
        raise SqlError(_OUTSIDE, f"index {value} out of valid range, 0..{count - 1}")
    return value


def _get_byte(data: bytes, index: int) -> int:
    return data[_index(index, len(data))]


def _get_bit(data: bytes, index: int) -> int:
    place = _index(index, len(data) * 8)
    return data[place // 8] >> place % 8 & 1


def _set_byte(data: bytes, index: int, value: int) -> bytes:
    place = _index(index, len(data))
    return data[:place] + bytes((value & 255,)) + data[place + 1 :]


def _set_bit(data: bytes, index: int, value: int) -> bytes:
    place = _index(index, len(data) * 8)
    if value not in (0, 1):
        raise SqlError("22023", "new bit must be 0 or 1")
    byte, mask = data[place // 8], 1 << place % 8
    return data[: place // 8] + bytes((byte | mask if value else byte & ~mask,)) + data[place // 8 + 1 :]


def _from(data: bytes, start: int) -> bytes:
    return data[max(start - 1, 0) :]


def _part(data: bytes, start: int, count: int) -> bytes:
    if count < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return data[max(start - 1, 0) : max(start - 1 + count, 0)]


def _overlay_count(data: bytes, new: bytes, start: int, count: int) -> bytes:
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    if start + count > _LARGEST:
        raise SqlError("22003", "integer out of range")
    return _part(data, 1, start - 1) + new + _from(data, start + count)


def _overlay(data: bytes, new: bytes, start: int) -> bytes:
    return _overlay_count(data, new, start, len(new))


def _position(data: bytes, part: bytes) -> int:
    return data.find(part) + 1


def _hashed(name: str) -> Callable[[bytes], bytes]:
    return lambda data: hashlib.new(name, data).digest()


@lru_cache(256)
def _like_pattern(pattern: bytes) -> re.Pattern[bytes]:
    pieces, place = [], 0
    while place < len(pattern):
        byte = pattern[place : place + 1]
        if byte == b"\\":
            place += 1
            if place == len(pattern):
                raise SqlError("22025", "LIKE pattern must not end with escape character")
            pieces.append(re.escape(pattern[place : place + 1]))
        else:
            pieces.append({b"%": b".*", b"_": b"."}.get(byte, re.escape(byte)))
        place += 1
    return re.compile(b"".join(pieces), re.DOTALL)


def _like(data: bytes, pattern: bytes) -> bool:
    return _like_pattern(pattern).fullmatch(data) is not None


def _encode_escape(data: bytes) -> str:
    shown = {0: "\\000", 92: "\\\\", **{byte: f"\\{byte:03o}" for byte in range(128, 256)}}
    return "".join(shown.get(byte) or chr(byte) for byte in data)


def as_text(data: bytes) -> str:
    """Octets in UTF-8. Raises 22021."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        wrong = " ".join(f"0x{octet:02x}" for octet in data[error.start : max(error.end, error.start + 1)])
        raise SqlError("22021", f'invalid byte sequence for encoding "UTF8": {wrong}') from None
    if "\0" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return text


FUNCTIONS: Final[Functions] = {
    "octets_get_byte": (_get_byte, "INTEGER"),
    "octets_get_bit": (_get_bit, "INTEGER"),
    "octets_set_byte": (_set_byte, "BLOB"),
    "octets_set_bit": (_set_bit, "BLOB"),
    "octets_from": (_from, "BLOB"),
    "octets_part": (_part, "BLOB"),
    "octets_overlay": (_overlay, "BLOB"),
    "octets_overlay_count": (_overlay_count, "BLOB"),
    "octets_position": (_position, "INTEGER"),
    "octets_btrim": (lambda data, chars: data.strip(chars) if chars else data, "BLOB"),
    "octets_ltrim": (lambda data, chars: data.lstrip(chars) if chars else data, "BLOB"),
    "octets_rtrim": (lambda data, chars: data.rstrip(chars) if chars else data, "BLOB"),
    "octets_bit_count": (lambda data: int.from_bytes(data, "big").bit_count(), "BIGINT"),
    "octets_like": (_like, "BOOLEAN"),
    "octets_encode_escape": (_encode_escape, "VARCHAR"),
    "octets_read": (read_bytea, "BLOB"),
    "octets_as_text": (as_text, "VARCHAR"),
    "octets_of_text": (str.encode, "BLOB"),
    **{f"octets_sha{bits}": (_hashed(f"sha{bits}"), "BLOB") for bits in (224, 384, 512)},
}
