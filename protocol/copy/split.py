"""COPY data in any portions to blocks of whole lines: cheap and sequential.

Owns: where a line ends (not inside of quotes, not after a backslash), the header line, the end marker ``\\.``, and
which line a block begins with. Looks at bytes with C-speed searches only.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from msgspec import Struct

from protocol.copy.format import CopyFormat

#: Bytes of the first block: small enough that several threads soon have one.
BLOCK_SIZE: Final = 1 << 20
#: Each block is twice as large as the one before it, until it has so many times the first one's bytes: at the first
#: size, what a block costs besides its bytes is a tenth of all.
GROWTH: Final = 4
_BACKSLASH: Final = 0x5C
_MARKER: Final = b"\\."
_ANY_END: Final = re.compile(rb"[\r\n]")


class Block(Struct, frozen=True):
    """Whole lines of COPY data. ``line`` is the number of the first one, ``end`` the bytes that end each."""

    data: bytes
    line: int
    end: bytes = b"\n"


class LineSplitter:
    """Collects COPY data and cuts it into blocks."""

    __slots__ = (
        "_block_size",
        "_end",
        "_ended",
        "_header",
        "_largest",
        "_line",
        "_quotes",
        "_size",
        "_waiting",
        "header",
    )

    def __init__(self, format_: CopyFormat, block_size: int = BLOCK_SIZE) -> None:
        self._quotes = Quotes(format_) if format_.format == "csv" else None
        self._block_size = block_size
        self._largest = GROWTH * block_size
        self._waiting: list[bytes] = []
        self._size = 0
        self._line = 1
        self._end: bytes | None = None
        self._ended = False
        self._header = format_.header
        self.header: Block | None = None  # the header line, once it is met

    def split(self, data: bytes) -> list[Block]:
        """The blocks that are complete with these bytes."""
        if self._ended:
            return []
        self._waiting.append(data)
        self._size += len(data)
        if self._size < self._block_size:
            return []
        blocks: list[Block] = []
        data = self._gather()
        start = 0
        while len(data) - start >= self._block_size and not self._ended:
            cut = self._cut(data, start)
            if cut == start:
                break
            blocks += self._block(data[start:cut])
            start = cut
            self._block_size = min(2 * self._block_size, self._largest)
        rest = data[start:]
        self._waiting, self._size = [rest], len(rest)
        return blocks

    def finish(self) -> list[Block]:
        """The last block; its last line may lack its end."""
        rest = self._gather()
        self._waiting, self._size = [], 0
        return [] if self._ended or not rest else self._block(rest)

    def _gather(self) -> bytes:
        return self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)

    def _block(self, data: bytes) -> list[Block]:
        """A block of whole lines, without header and end marker."""
        end = self._end or self._detect_end(data, 0) or b"\n"
        self._end = end
        line = self._line
        self._line += count_byte(data, end[-1]) - self._escaped_ends(data, end)
        if self._header:
            self._header = False
            first = self._first_end(data, end)
            line += count_byte(data[:first], end[-1])
            self.header, data = Block(data[:first], 1, end), data[first:]
        data = self._before_marker(data, end)
        return [Block(data, line, end)] if data else []

    def _escaped_ends(self, data: bytes, end: bytes) -> int:
        """Ends of lines after a backslash, which PostgreSQL does not count."""
        if self._quotes is not None or b"\\" not in data or b"\\" + end not in data:
            return 0
        return len(re.findall(rb"(?<!\\)(?:\\\\)*\\" + end, data))

    def _first_end(self, data: bytes, end: bytes) -> int:
        """The position after the first line."""
        position = data.find(end)
        while position >= 0 and self._inside(data, 0, position):
            position = data.find(end, position + 1)
        return len(data) if position < 0 else position + len(end)

    def _before_marker(self, data: bytes, end: bytes) -> bytes:
        """What stands before a line that is only ``\\.``; nothing that follows it counts."""
        position = data.find(_MARKER) if b"\\" in data else -1
        while position >= 0:
            begins = position == 0 or data.endswith(end, 0, position)
            ends = position + 2 == len(data) or data.startswith(end, position + 2)
            if begins and ends and not (self._quotes and self._quotes.open_at(data, 0, position) is not None):
                self._ended = True
                return data[:position]
            position = data.find(_MARKER, position + 1)
        return data

    def _detect_end(self, data: bytes, start: int) -> bytes | None:
        """How lines end, from the first end of a line; None while the data does not tell."""
        match = _ANY_END.search(data, start)
        while match and self._inside(data, start, match.start()):
            match = _ANY_END.search(data, match.end())
        if match is None:
            return None
        if match.group() == b"\n":
            return b"\n"
        following = data[match.end() : match.end() + 1]
        return None if not following else b"\r\n" if following == b"\n" else b"\r"

    def _inside(self, data: bytes, start: int, position: int) -> bool:
        """Whether the end of a line at ``position`` belongs to a value: quoted (CSV) or after a backslash (text)."""
        if self._quotes is not None:
            return self._quotes.open_at(data, start, position) is not None
        before = position
        while before > start and data[before - 1] == _BACKSLASH:
            before -= 1
        return (position - before) % 2 == 1

    def _cut(self, data: bytes, start: int) -> int:
        """The position after the last line that ends within a block's size, or of all data; or ``start``."""
        if self._end is None:
            self._end = self._detect_end(data, start)
        if self._end is None:
            return start
        cut = self._last_end(data, start, start + self._block_size, self._end)
        return cut if cut > start else self._last_end(data, start, len(data), self._end)

    def _last_end(self, data: bytes, start: int, stop: int, end: bytes) -> int:
        position = stop
        while (position := data.rfind(end, start, position)) >= 0:
            if self._quotes is None:
                if not self._inside(data, start, position):
                    return position + len(end)
                continue
            opened = self._quotes.open_at(data, start, position)
            if opened is None:
                return position + len(end)
            position = opened
        return start


class Quotes:
    """Where CSV's quotes are open."""

    __slots__ = ("_quote", "_section")

    def __init__(self, format_: CopyFormat) -> None:
        self._quote = format_.quote.encode()
        self._section = None if format_.escape == format_.quote else _section(format_)

    def open_at(self, data: bytes, start: int, position: int) -> int | None:
        """A quote after which everything up to ``position`` is quoted; None where ``position`` is outside of quotes.

        ``start`` is outside of quotes. Where the quote escapes itself, an odd number of them is open.
        """
        if self._section is None:
            odd = count_byte(data, self._quote[0], start, position) % 2
            return data.rfind(self._quote, start, position) if odd else None
        last = None
        for match in self._section.finditer(data, start, position):
            last = match
        return last.start() if last is not None and not last["close"] else None


def _section(format_: CopyFormat) -> re.Pattern[bytes]:
    """A quoted section, whose end may be missing."""
    quote, escape = re.escape(format_.quote.encode()), re.escape(format_.escape.encode())
    pattern = rb"%b(?:%b[%b%b]|[^%b])*(?P<close>%b?)" % (quote, escape, quote, escape, quote, quote)
    return re.compile(pattern, re.DOTALL)


def count_byte(data: bytes, byte: int, start: int = 0, stop: int | None = None) -> int:
    """How often a byte occurs; faster than bytes.count where it does so often."""
    size = (len(data) if stop is None else stop) - start
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, size, start) == byte)) if size > 0 else 0
