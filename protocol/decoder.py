"""Bytes to frontend messages, incrementally.

Owns: framing, message length limits, the difference between the startup packet and what follows. Does not know what
is legal when (machine). A broken frame raises ``SqlError`` 08P01 and ends the connection; a whole frame with broken
contents comes out as ``Malformed``, after which the stream goes on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from struct import error as StructError
from struct import unpack_from
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from catalog.values.errors import SqlError
from protocol.messages import (
    NEWEST,
    Bind,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    DirectTls,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    GSSENCRequest,
    Malformed,
    Parse,
    PasswordMessage,
    PeerRequest,
    Query,
    SSLRequest,
    StartupMessage,
    Sync,
    Terminate,
)
from protocol.utf8 import decode_utf8

if TYPE_CHECKING:
    from protocol.values.transcoding import Transcoder

_uint16 = struct.Struct(">H").unpack_from  # counts are unsigned: up to 65535
_int32 = struct.Struct(">i").unpack_from

_CANCEL: Final = 80877102
SSL: Final = 80877103
_GSSENC: Final = 80877104
#: Millstream's own request code: in the range of the three above, which no protocol version uses.
PEER: Final = 80877904
_COPY_DATA: Final = ord("d")
#: The first byte of TLS (a handshake record); no start-up packet begins with it.
_HANDSHAKE: Final = 0x16
_LONGEST_KEY: Final = 256

_EXECUTE_ALL: Final = Execute("", 0)
_SYNC: Final = Sync()
_FLUSH: Final = Flush()


class Limits(Struct, frozen=True):
    """The longest messages in bytes: those with SQL text, those with data, and all others.

    PostgreSQL allows 1 GB for the first two (PQ_LARGE_MESSAGE_LIMIT) and 10,000 for the last. ``stranger`` limits
    messages before authentication (PG_MAX_AUTH_TOKEN_LENGTH).
    """

    text: int = 16 << 20
    data: int = (1 << 30) - 1
    other: int = 10_000
    stranger: int = 65_535


class Decoder:
    """Takes bytes in any portions and hands out messages in order."""

    __slots__ = ("_buffer", "_known", "_limits", "_missing", "_position", "_startup", "_waiting", "transcoder")

    def __init__(self, limits: Limits | None = None, *, startup: bool = True) -> None:
        self._buffer = b""
        self._position = 0
        self._waiting: list[bytes] = []  # portions after _buffer
        self._missing = 0  # bytes still missing from the next message
        self._startup = startup
        #: Set for a client whose encoding is not UTF8.
        self.transcoder: Transcoder | None = None
        limits = limits or Limits()
        text, data, other = limits.text, limits.data, limits.other
        self._known = dict.fromkeys(_PARSERS, other) | dict.fromkeys(b"QP", text) | dict.fromkeys(b"BdF", data)
        self._limits = dict.fromkeys(_PARSERS, limits.stranger) if startup else self._known

    def authenticated(self) -> None:
        """Marks the client as authenticated, which raises the limits of its messages."""
        self._limits = self._known

    def feed(self, data: bytes) -> None:
        """Takes received bytes without parsing them."""
        self._missing -= len(data)
        if not self._waiting and self._position == len(self._buffer):
            self._buffer, self._position = data, 0
        else:
            self._waiting.append(data)

    @property
    def size(self) -> int:
        """The number of bytes held."""
        return len(self._buffer) + sum(map(len, self._waiting))

    @property
    def buffered(self) -> bool:
        """Whether bytes remain that no message has used; TLS may begin only if there are none (CVE-2021-23222)."""
        return bool(self._waiting) or self._position < len(self._buffer)

    def ahead(self) -> tuple[bytes, int]:
        """The bytes that no message has used, from a position on."""
        if self._waiting:
            self._gather()
        return self._buffer, self._position

    def skip(self, position: int) -> None:
        """Drops the bytes of ``ahead`` before a position."""
        self._position = position

    def __iter__(self) -> Iterator[FrontendMessage]:
        """All messages that are complete."""
        while (message := self.next()) is not None:
            yield message

    def next(self) -> FrontendMessage | None:
        """The next complete message, or None until more bytes are fed. Raises 08P01 for a broken frame."""
        if self._missing > 0:
            return None
        if self._waiting:
            self._gather()
        if self._startup:
            return self._next_startup()
        buffer, start = self._buffer, self._position
        available = len(buffer) - start
        if available < 5:
            if available:
                self._check_kind(buffer[start])
            self._missing = 5 - available
            return None
        kind = buffer[start]
        length = _int32(buffer, start + 1)[0]
        end = start + 1 + length
        if length < 4 or kind not in _PARSERS or length > self._limits[kind]:
            raise self._broken(kind, length)
        if end > len(buffer):
            self._missing = end - len(buffer)
            return None
        if kind == _COPY_DATA:
            return self._copy_data()
        self._position = end
        parser, message_type = _PARSERS[kind]
        try:
            if self.transcoder is not None:
                body = self.transcoder.message(kind, buffer[start + 5 : end])
                return parser(body, 0, len(body))
            return parser(buffer, start + 5, end)
        except SqlError as error:
            return Malformed(message_type, error)
        except StructError:  # the message ends before its fields do, and no bytes follow it yet
            return Malformed(message_type, _invalid("insufficient data left in message"))
        except (ValueError, IndexError):
            return Malformed(message_type, _invalid("invalid message format"))

    def _gather(self) -> None:
        """Joins the unused bytes into one buffer."""
        self._buffer = b"".join((self._buffer[self._position :], *self._waiting))
        self._position = 0
        self._waiting.clear()

    def _copy_data(self) -> CopyData:
        """All consecutive complete CopyData messages as one."""
        buffer, position, size = self._buffer, self._position, len(self._buffer)
        limit = self._limits[_COPY_DATA]
        pieces = []
        while size - position >= 5 and buffer[position] == _COPY_DATA:
            length = _int32(buffer, position + 1)[0]
            end = position + 1 + length
            if length < 4 or length > limit or end > size:
                break
            pieces.append(buffer[position + 5 : end])
            position = end
        self._position = position
        return CopyData(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _next_startup(self) -> FrontendMessage | None:
        buffer, start = self._buffer, self._position
        available = len(buffer) - start
        if available < 4:
            self._missing = 4 - available
            return None
        if buffer[start] == _HANDSHAKE:
            self._position = len(buffer)
            return DirectTls(buffer[start:])
        length = _int32(buffer, start)[0]
        if not 8 <= length <= 10_000:
            raise _invalid("invalid length of startup packet")
        end = start + length
        if end > len(buffer):
            self._missing = end - len(buffer)
            return None
        self._position = end
        code = _int32(buffer, start + 4)[0]
        if code == SSL:
            return SSLRequest()
        if code == _GSSENC:
            return GSSENCRequest()
        if code == _CANCEL:
            if not 13 <= length <= 12 + _LONGEST_KEY:
                raise _invalid("invalid length of cancel request packet")
            return CancelRequest(_int32(buffer, start + 8)[0], buffer[start + 12 : end])
        if code == PEER:
            self._startup = False
            return PeerRequest(buffer[start + 8 : end])
        message = _startup(buffer, start + 4, end)
        self._startup = False
        return message

    def _check_kind(self, kind: int) -> None:
        if kind not in _PARSERS:
            raise self._broken(kind, 4)

    def _broken(self, kind: int, length: int) -> SqlError:
        if kind not in _PARSERS:
            return _invalid(f"invalid frontend message type {kind}")
        if length >= 4:
            return _invalid(
                f"message of type {chr(kind)!r} has {length} bytes, more than the limit of {self._limits[kind]}"
            )
        return _invalid("invalid message length")


def _invalid(message: str) -> SqlError:
    return SqlError("08P01", message)


def _startup(buffer: bytes, start: int, end: int) -> StartupMessage:
    major, minor = unpack_from(">hh", buffer, start)
    if major != 3:
        raise SqlError(
            "0A000", f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to {NEWEST[0]}.{NEWEST[1]}"
        )
    body = buffer[start + 4 : end]
    if not body.endswith(b"\0"):
        raise _invalid("invalid startup packet layout: expected terminator as last byte")
    fields = body[:-1].split(b"\0")
    if body != b"\0" and (len(fields) % 2 == 0 or fields[-1] != b""):
        raise _invalid("invalid startup packet layout: expected terminator as last byte")
    names, values = fields[:-1:2], fields[1::2]
    return StartupMessage(
        {decode_utf8(name): decode_utf8(value) for name, value in zip(names, values, strict=True)}, (major, minor)
    )


def _string(buffer: bytes, start: int, end: int) -> tuple[str, int]:
    """A zero-terminated text and the position after it. ValueError where the terminator is missing."""
    cut = buffer.index(0, start, end)
    return (decode_utf8(buffer[start:cut]) if cut > start else ""), cut + 1


def _finish(position: int, end: int) -> None:
    if position > end:
        raise _invalid("insufficient data left in message")
    if position < end:
        raise _invalid("invalid message format")


def _query(buffer: bytes, start: int, end: int) -> Query:
    text, position = _string(buffer, start, end)
    _finish(position, end)
    return Query(text)


def _parse(buffer: bytes, start: int, end: int) -> Parse:
    name, position = _string(buffer, start, end)
    text, position = _string(buffer, position, end)
    count = _uint16(buffer, position)[0]
    _finish(position + 2 + 4 * count, end)
    return Parse(name, text, unpack_from(f">{count}I", buffer, position + 2))


def _formats(buffer: bytes, position: int) -> tuple[tuple[int, ...], int]:
    count = _uint16(buffer, position)[0]
    position += 2
    if count == 0:
        return (), position
    return unpack_from(f">{count}h", buffer, position), position + 2 * count


def _bind(buffer: bytes, start: int, end: int) -> Bind:
    portal, position = _string(buffer, start, end)
    statement, position = _string(buffer, position, end)
    formats, position = _formats(buffer, position)
    parameters: list[bytes | None] = []
    count = _uint16(buffer, position)[0]
    position += 2
    for _ in range(count):
        length = _int32(buffer, position)[0]
        position += 4
        if length < 0:
            if length < -1:
                raise _invalid("insufficient data left in message")
            parameters.append(None)
            continue
        parameters.append(buffer[position : position + length])
        position += length
    results, position = _formats(buffer, position)
    if position != end:
        _finish(position, end)
    return Bind(portal, statement, formats, parameters, results)


def _target(buffer: bytes, start: int, end: int) -> tuple[Literal["S", "P"], str]:
    kind = buffer[start]
    name, position = _string(buffer, start + 1, end)
    _finish(position, end)
    if kind == 0x53:
        return "S", name
    if kind == 0x50:
        return "P", name
    raise _invalid(f"invalid DESCRIBE or CLOSE message subtype {kind}")


def _describe(buffer: bytes, start: int, end: int) -> Describe:
    return Describe(*_target(buffer, start, end))


def _close(buffer: bytes, start: int, end: int) -> Close:
    return Close(*_target(buffer, start, end))


def _execute(buffer: bytes, start: int, end: int) -> Execute:
    if buffer[start:end] == b"\0\0\0\0\0":
        return _EXECUTE_ALL
    portal, position = _string(buffer, start, end)
    _finish(position + 4, end)
    return Execute(portal, max(_int32(buffer, position)[0], 0))  # negative means no limit, too


def _copy_fail(buffer: bytes, start: int, end: int) -> CopyFail:
    text, position = _string(buffer, start, end)
    _finish(position, end)
    return CopyFail(text)


def _copy_data(buffer: bytes, start: int, end: int) -> CopyData:
    return CopyData(buffer[start:end])


def _password(buffer: bytes, start: int, end: int) -> PasswordMessage:
    return PasswordMessage(buffer[start:end])


def _function_call(buffer: bytes, start: int, end: int) -> FunctionCall:
    return FunctionCall(buffer[start:end])


def _sync(buffer: bytes, start: int, end: int) -> Sync:
    _finish(start, end)
    return _SYNC


def _flush(buffer: bytes, start: int, end: int) -> Flush:
    _finish(start, end)
    return _FLUSH


def _copy_done(buffer: bytes, start: int, end: int) -> CopyDone:
    _finish(start, end)
    return CopyDone()


def _terminate(buffer: bytes, start: int, end: int) -> Terminate:
    return Terminate()


_Parser = Callable[[bytes, int, int], FrontendMessage]
_PARSERS: Final[dict[int, tuple[_Parser, type[FrontendMessage]]]] = {
    ord("Q"): (_query, Query),
    ord("P"): (_parse, Parse),
    ord("B"): (_bind, Bind),
    ord("D"): (_describe, Describe),
    ord("E"): (_execute, Execute),
    ord("C"): (_close, Close),
    ord("H"): (_flush, Flush),
    ord("S"): (_sync, Sync),
    ord("d"): (_copy_data, CopyData),
    ord("c"): (_copy_done, CopyDone),
    ord("f"): (_copy_fail, CopyFail),
    ord("p"): (_password, PasswordMessage),
    ord("F"): (_function_call, FunctionCall),
    ord("X"): (_terminate, Terminate),
}
