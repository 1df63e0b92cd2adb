"""Recognises, by their bytes, requests that clients repeat with other values: a batch of the extended protocol with one
statement, and the statements of a batch that runs many.

Owns: which messages form such a batch; ``Frame``, the bytes of a batch around its parameters' values; and ``Part``, the
bytes of one statement's Bind within a longer batch. Knows nothing of what statements mean.
"""

from __future__ import annotations

from struct import Struct as Format
from struct import error as FormatError
from struct import pack
from typing import Final

from msgspec import Struct

from protocol.decoder import Decoder
from protocol.messages import Bind, Describe, Execute, FrontendMessage, Parse, Sync

_int32 = Format(">i").unpack_from

#: Describe, Execute and Sync as bytes, for the unnamed portal.
DESCRIBE_PORTAL: Final = b"D\0\0\0\6P\0"
EXECUTE: Final = b"E\0\0\0\x09\0\0\0\0\0"
SYNC: Final = b"S\0\0\0\4"


class Batch(Struct, frozen=True):
    """Bind to the unnamed portal, an optional Describe, Execute without a row limit, and Sync. With ``parses``, a Parse
    of the unnamed statement comes first."""

    bind: Bind
    parses: bool
    describes: bool


class Frame(Struct, frozen=True):
    """The layout of all requests that begin with the same bytes, up to and including the length of the first
    parameter's value.

    Those bytes include the length of Bind. If a request has the same total length and the same ``tail``, the bytes in
    between are the values: a single value fills them, and several values must end exactly where the tail begins.
    """

    tail: bytes
    size: int
    first: int
    count: int

    def fields(self, request: bytes, start: int) -> tuple[bytes, ...] | None:
        """The parameters' values, of which the first begins at ``start``; None if the request does not fit or a value
        is NULL."""
        tail = self.tail
        if len(request) != self.size or not request.endswith(tail):
            return None
        if self.count == 1:
            return (request[start : -len(tail)],)
        position = start + self.first
        found = [request[start:position]]
        for _ in range(self.count - 1):
            length = int.from_bytes(request[position : position + 4], signed=True)
            if length < 0:
                return None
            position += 4
            found.append(request[position : position + length])
            position += length
        return tuple(found) if position == self.size - len(tail) else None


class Part(Struct, frozen=True):
    """The bytes around the ``count`` parameter values in every Bind of one statement to the unnamed portal."""

    head: bytes  # after the message's length
    tail: bytes
    count: int

    @classmethod
    def of(cls, bind: Bind) -> Part:
        """The part for a Bind's statement, with the unnamed portal in place of the Bind's own."""
        name, formats, results = bind.statement.encode(), bind.parameter_formats, bind.result_formats
        counts = pack(f">H{len(formats)}hH", len(formats), *formats, len(bind.parameters))
        tail = pack(f">H{len(results)}h", len(results), *results)
        return cls(b"\0" + name + b"\0" + counts, tail, len(bind.parameters))

    def fields(self, data: bytes, start: int) -> tuple[tuple[bytes, ...], int] | None:
        """The values of the Bind at ``start``, which has this ``head``, and the position after it; None for another or
        an incomplete message, and if a value is NULL."""
        tail, position = self.tail, start + 5 + len(self.head)
        if not data.startswith(b"B", start):
            return None
        found = []
        try:
            end = start + 1 + _int32(data, start + 1)[0]
            for _ in range(self.count):
                length = _int32(data, position)[0]
                position += 4
                if length < 0:
                    return None
                found.append(data[position : position + length])
                position += length
        except FormatError:
            return None
        return (tuple(found), end) if position + len(tail) == end and data.startswith(tail, position) else None


def parse_of(text: str, oids: tuple[int, ...]) -> bytes:
    """The bytes of a Parse of the unnamed statement."""
    body = b"\0" + text.encode() + b"\0" + pack(f">H{len(oids)}I", len(oids), *oids)
    return b"P" + pack(">I", len(body) + 4) + body


def messages_of(request: bytes) -> list[FrontendMessage] | None:
    """The messages of a request; None if the last one is incomplete. Raises 08P01 for a broken frame."""
    decoder = Decoder(startup=False)
    decoder.feed(request)
    messages = list(decoder)
    return None if decoder.buffered else messages


def batch_of(messages: list[FrontendMessage]) -> Batch | None:
    """The batch that the messages form, or None."""
    match messages:
        case [Bind(portal="") as bind, *rest]:
            parses = False
        case [Parse(name=""), Bind(portal="", statement="") as bind, *rest]:
            parses = True
        case _:
            return None
    match rest:
        case [Execute(portal="", max_rows=0), Sync()]:
            return Batch(bind, parses, False)
        case [Describe(kind="P", name=""), Execute(portal="", max_rows=0), Sync()]:
            return Batch(bind, parses, True)
        case _:
            return None


def frame_of(request: bytes, batch: Batch) -> tuple[bytes, Frame] | None:
    """The head of a batch's request and its frame; None without parameters or if one is NULL."""
    bind = batch.bind
    fields = [field for field in bind.parameters if field is not None]
    if not fields or len(fields) < len(bind.parameters):
        return None
    start = 1 + int.from_bytes(request[1:5]) if batch.parses else 0  # after Parse
    start += 5 + 1 + len(bind.statement.encode()) + 1 + 2 + 2 * len(bind.parameter_formats) + 2 + 4
    end = start + sum(map(len, fields)) + 4 * (len(fields) - 1)
    frame = Frame(request[end:], len(request), len(fields[0]), len(fields))
    assert frame.fields(request, start) == tuple(fields)
    return request[:start], frame
