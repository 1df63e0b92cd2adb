"""A client that sends exactly the bytes that a test wants and shows exactly the received bytes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from types import TracebackType

Message = tuple[str, bytes]


class Wire:
    """One socket. Messages are (type letter, body)."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._buffer = b""
        self.backend = (0, b"")

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def start(self, user: str = "millstream", minor: int = 0, **parameters: str) -> list[Message]:
        """Sends the start-up packet; returns messages up to ReadyForQuery or an error."""
        pairs = {"user": user, **parameters}
        body = b"".join(f"{name}\0{value}\0".encode() for name, value in pairs.items()) + b"\0"
        self.socket.sendall(struct.pack(">ihh", len(body) + 8, 3, minor) + body)
        messages = self.until_ready()
        for letter, content in messages:
            if letter == "K":
                self.backend = (struct.unpack(">I", content[:4])[0], content[4:])
        return messages

    def send(self, *messages: Message) -> None:
        """Sends messages in one write."""
        self.socket.sendall(b"".join(frame(letter, body) for letter, body in messages))

    def query(self, text: str) -> list[Message]:
        """Sends a Query; returns messages up to ReadyForQuery."""
        self.send(("Q", text.encode() + b"\0"))
        return self.until_ready()

    def read(self, count: int) -> bytes:
        """Reads bytes; fewer if the server has closed the connection."""
        while len(self._buffer) < count:
            data = self.socket.recv(65536)
            if not data:
                break
            self._buffer += data
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def message(self) -> Message | None:
        """The next message; None at the end of the connection."""
        head = self.read(5)
        if len(head) < 5:
            return None
        return chr(head[0]), self.read(struct.unpack(">i", head[1:])[0] - 4)

    def until_ready(self) -> list[Message]:
        """Messages up to ReadyForQuery or the end of the connection."""
        return self.until("Z")

    def until(self, letter: str) -> list[Message]:
        """Messages up to the first of a type, or the end of the connection."""
        messages: list[Message] = []
        while (message := self.message()) is not None:
            messages.append(message)
            if message[0] == letter:
                break
        return messages


def frame(letter: str, body: bytes) -> bytes:
    """One message."""
    return letter.encode() + struct.pack(">i", len(body) + 4) + body


def letters(messages: Sequence[Message]) -> str:
    """The types, in order."""
    return "".join(letter for letter, _ in messages)


def error_fields(messages: Sequence[Message]) -> dict[str, str]:
    """The fields of the first error or notice."""
    body = next(body for letter, body in messages if letter in "EN")
    return {chr(part[0]): part[1:].decode() for part in body.split(b"\0") if part}


def rows(messages: Sequence[Message]) -> list[tuple[bytes | None, ...]]:
    """The fields of all DataRows."""
    found = []
    for letter, body in messages:
        if letter != "D":
            continue
        fields: list[bytes | None] = []
        position = 2
        for _ in range(struct.unpack(">h", body[:2])[0]):
            (length,) = struct.unpack(">i", body[position : position + 4])
            position += 4
            fields.append(None if length < 0 else body[position : position + length])
            position += max(length, 0)
        found.append(tuple(fields))
    return found


def tags(messages: Sequence[Message]) -> list[str]:
    """The tags of all CommandCompletes."""
    return [body[:-1].decode() for letter, body in messages if letter == "C"]


def parse(text: str, name: str = "", oids: Sequence[int] = ()) -> Message:
    """Parse."""
    return "P", f"{name}\0{text}\0".encode() + struct.pack(f">h{len(oids)}I", len(oids), *oids)


def bind(
    parameters: Sequence[bytes | None] = (),
    statement: str = "",
    portal: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> Message:
    """Bind."""
    body = f"{portal}\0{statement}\0".encode() + struct.pack(f">h{len(formats)}h", len(formats), *formats)
    body += struct.pack(">h", len(parameters))
    for value in parameters:
        body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return "B", body + struct.pack(f">h{len(results)}h", len(results), *results)


def describe(kind: str, name: str = "") -> Message:
    """Describe."""
    return "D", f"{kind}{name}\0".encode()


def execute(portal: str = "", limit: int = 0) -> Message:
    """Execute."""
    return "E", f"{portal}\0".encode() + struct.pack(">i", limit)


def close(kind: str, name: str = "") -> Message:
    """Close."""
    return "C", f"{kind}{name}\0".encode()


SYNC: Message = ("S", b"")
FLUSH: Message = ("H", b"")
