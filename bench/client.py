"""A PostgreSQL client with as little of its own time in the figures as Python allows: bytes on a blocking socket.

Owns: start-up without a password, simple queries, COPY from memory in 64 KiB messages, and large results and pipelines
of which only the bytes are counted. Nothing is decoded; a server's error is raised as text.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Final

BLOCK: Final = 64 * 1024
_HEADER: Final = struct.Struct("!ci")


def _frame(kind: bytes, body: bytes) -> bytes:
    return _HEADER.pack(kind, len(body) + 4) + body


#: ReadyForQuery outside a transaction.
_READY: Final = b"Z\0\0\0\5I"
_EXECUTE: Final = _frame(b"E", b"\0\0\0\0\0")
_SYNC: Final = _frame(b"S", b"")


def _extended(text: str, form: int) -> bytes:
    """Parse, Bind, Execute and Sync of a statement without parameters."""
    parse = _frame(b"P", b"\0" + text.encode() + b"\0\0\0")
    bind = _frame(b"B", b"\0\0\0\0\0\0" + struct.pack("!hh", 1, form))
    return parse + bind + _EXECUTE + _SYNC


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

    def fetch(self, text: str, binary: bool = False) -> int:
        """Reads a result as fast as the socket gives it, in text or by the extended protocol in binary; its bytes."""
        if not binary:
            self._send(b"Q", text.encode() + b"\0")
        else:
            self._socket.sendall(_extended(text, 1))
        return self._drain()

    def pipeline(self, text: str, keys: Sequence[int]) -> int:
        """One prepared statement for every key, all sent before an answer is awaited; the answers' bytes."""
        requests = [_frame(b"P", b"\0" + text.encode() + b"\0\0\0")]
        for key in keys:
            value = str(key).encode()
            requests.append(_frame(b"B", b"\0\0\0\0" + struct.pack("!hi", 1, len(value)) + value + b"\0\0"))
            requests.append(_EXECUTE)
        requests.append(_SYNC)
        sender = threading.Thread(target=self._socket.sendall, args=(b"".join(requests),))
        sender.start()
        try:
            return self._drain()
        finally:
            sender.join()

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

    def _drain(self) -> int:
        """Reads until the server is ready; how many bytes came. The end of an answer is told by its last bytes."""
        assert not self._buffer
        size, tail = 0, b""
        while not tail.endswith(_READY):
            data = self._socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the server closed the connection")
            if not size and data[:1] == b"E":
                raise RuntimeError(_error(data[5:]))
            size += len(data)
            tail = (tail + data)[-len(_READY) :]
        return size

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
