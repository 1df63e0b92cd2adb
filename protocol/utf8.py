"""Text from the wire: UTF-8, and PostgreSQL's error for other bytes.

Owns: SQLSTATE 22021 and its wording (pg_verify_mbstr, report_invalid_encoding).
"""

from __future__ import annotations

from catalog.values.errors import SqlError


def decode_utf8(data: bytes) -> str:
    """The text of UTF-8 bytes. Raises 22021 if they are not UTF-8 or contain a zero byte."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise invalid_encoding(data, error.start) from None
    if "\0" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return text


def first_invalid(data: bytes) -> int | None:
    """Index of the first byte that is not UTF-8 text, or None."""
    try:
        return None if "\0" not in data.decode() else data.index(0)
    except UnicodeDecodeError as error:
        zero = data.find(0)
        return error.start if zero < 0 else min(error.start, zero)


def invalid_encoding(data: bytes, start: int) -> SqlError:
    """The error 22021; shows as many bytes as the sequence at ``start`` announces."""
    lead = data[start]
    length = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 if lead < 0xF8 else 1
    shown = " ".join(f"0x{byte:02x}" for byte in data[start : start + length])
    return SqlError("22021", f'invalid byte sequence for encoding "UTF8": {shown}')
