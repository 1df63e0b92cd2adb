"""A PostgreSQL client with as little of its own time in the figures as Python allows: bytes on a blocking socket.

Owns: start-up without a password, simple queries, and COPY from memory in 64 KiB messages. Results are counted, not
decoded; a server's error is raised as text.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Final

BLOCK: Final = 64 * 1024
_HEADER: Final = struct.Struct("!ci")


class Client:
    """One connection."""

    def __init__(self, port: int, user: str, database: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        body = struct.pack("!i", 196608) + f"user\0{user}\0database\0{database}\0\0".encode()
        self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self._until_ready()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def query(self, text: str) -> int:
        """Runs statements and reads all results; how many rows came."""
        self._send(b"Q", text.encode() + b"\0")
        return self._until_ready()

    def copy(self, command: str, data: memoryview | bytes) -> None:
        """COPY ... FROM STDIN of these bytes; returns when they are acknowledged."""
        self._send(b"Q", command.encode() + b"\0")
        kind, body = self._message()
        if kind == b"E":
            raise RuntimeError(_error(body))
        assert kind == b"G", kind
        view = memoryview(data)
        for start in range(0, len(view), BLOCK):
            self._send(b"d", view[start : start + BLOCK])
        self._send(b"c", b"")
        self._until_ready()

    def _send(self, kind: bytes, body: bytes | memoryview) -> None:
        self._socket.sendall(b"".join((_HEADER.pack(kind, len(body) + 4), body)))

    def _until_ready(self) -> int:
        rows, failure = 0, None
        while True:
            kind, body = self._message()
            if kind == b"D":
                rows += 1
            elif kind == b"E":
                failure = _error(body)
            elif kind == b"Z":
                if failure is not None:
                    raise RuntimeError(failure)
                return rows
            elif kind == b"R":
                assert body == b"\0\0\0\0", "the server asks for a password"

    def _message(self) -> tuple[bytes, bytes]:
        while len(self._buffer) < 5:
            self._receive()
        kind, length = _HEADER.unpack_from(self._buffer)
        while len(self._buffer) < length + 1:
            self._receive()
        body = bytes(self._buffer[5 : length + 1])
        del self._buffer[: length + 1]
        return kind, body

    def _receive(self) -> None:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._buffer += data


def _error(body: bytes) -> str:
    fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
    return f"{fields.get(b'C')}: {fields.get(b'M')}"
