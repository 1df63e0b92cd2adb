"""Messages as bytes, written and read the slow and obvious way."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def message(kind: str, body: bytes = b"") -> bytes:
    """A message with its frame."""
    return kind.encode() + struct.pack(">i", len(body) + 4) + body


def startup(**parameters: str) -> bytes:
    """A startup packet of protocol 3.0."""
    body = struct.pack(">hh", 3, 0)
    body += b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items()) + b"\0"
    return struct.pack(">i", len(body) + 4) + body


def request(code: int, *numbers: int) -> bytes:
    """A request in place of a startup packet."""
    body = struct.pack(f">i{len(numbers)}i", code, *numbers)
    return struct.pack(">i", len(body) + 4) + body


def bind(
    portal: str, statement: str, formats: Sequence[int], parameters: Sequence[bytes | None], results: Sequence[int]
) -> bytes:
    """A Bind message."""
    body = f"{portal}\0{statement}\0".encode() + struct.pack(f">h{len(formats)}h", len(formats), *formats)
    body += struct.pack(">h", len(parameters)) + b"".join(map(field, parameters))
    return message("B", body + struct.pack(f">h{len(results)}h", len(results), *results))


def field(value: bytes | None) -> bytes:
    """A field with its length."""
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def data_row(fields: Sequence[bytes | None]) -> bytes:
    """A DataRow message."""
    return message("D", struct.pack(">h", len(fields)) + b"".join(map(field, fields)))


def split(data: bytes) -> list[tuple[str, bytes]]:
    """Backend messages: their kinds and bodies."""
    messages = []
    while data:
        (length,) = struct.unpack_from(">i", data, 1)
        messages.append((chr(data[0]), data[5 : length + 1]))
        data = data[length + 1 :]
    return messages
