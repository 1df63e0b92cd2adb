"""Cuts COPY data, received in portions of any size, into blocks of whole lines: sequential, in time linear in the bytes
for any data.

Owns: where a line ends (not within quotes, not after a backslash), the header line, the end marker ``\\.``, and the
number of each block's first line. Searches bytes at C speed only. Bytes without a whole line are searched again only
once there are twice as many.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from msgspec import Struct

from catalog.values.errors import SqlError
from protocol.copy.format import CopyFormat
from protocol.values.codec import Vector

#: Bytes of the first block: few enough that several threads soon have one each.
BLOCK_SIZE: Final = 1 << 20
#: The limit of a block's size, in sizes of the first block: each block is twice as large as the one before. At the
#: first size, a block's fixed costs are a tenth of all its costs.
GROWTH: Final = 4
#: The most bytes of a line.
LONGEST: Final = (1 << 30) - 1
_MARKER: Final = b"\\."
_NEWLINE: Final = 0x0A
_RETURN: Final = 0x0D
_LINE_END: Final = re.compile(rb"[\r\n]")


class Block(Struct, frozen=True):
    """Whole lines of COPY data. ``line`` is the first line's number, ``end`` the bytes that end each line."""

    data: bytes
    line: int
    end: bytes = b"\n"


class LineSplitter:
    """Collects COPY data and cuts it into blocks."""

    __slots__ = (
        "_block_size",
        "_end",
        "_ended",
        "_enough",
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
        self._enough = block_size  # bytes to collect before looking for lines
        self._largest = GROWTH * block_size
        self._waiting: list[bytes] = []
        self._size = 0
        self._line = 1
        self._end: bytes | None = None
        self._ended = False
        self._header = format_.header
        self.header: Block | None = None  # the header line, once complete

    def split(self, data: bytes) -> list[Block]:
        """The blocks that these bytes complete. Raises 54000 for a line that is too long."""
        if self._ended:
            return []
        self._waiting.append(data)
        self._size += len(data)
        if self._size < self._enough:
            return []
        blocks: list[Block] = []
        data = self._gather()
        start, is_line = 0, True
        while len(data) - start >= self._block_size and not self._ended:
            cut = self._cut(data, start)
            is_line = cut > start
            if not is_line:
                break
            blocks += self._block(data[start:cut])
            start = cut
            self._block_size = min(2 * self._block_size, self._largest)
        rest = data[start:]
        self._waiting, self._size = [rest], len(rest)
        self._enough = self._block_size if is_line else max(self._block_size, min(2 * len(rest), LONGEST))
        if len(rest) >= LONGEST:
            raise too_long(len(rest))
        return blocks

    def is_due(self, size: int) -> bool:
        """Whether the next ``size`` bytes make ``split`` look for lines instead of only collecting the bytes."""
        return not self._ended and self._size + size >= self._enough

    def finish(self) -> list[Block]:
        """The last block, whose last line may lack its end."""
        rest = self._gather()
        self._waiting, self._size = [], 0
        return [] if self._ended or not rest else self._block(rest)

    def _gather(self) -> bytes:
        return self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)

    def _block(self, data: bytes) -> list[Block]:
        """A block of whole lines, without the header line and the end marker."""
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
        """The number of ends of lines after a backslash, which PostgreSQL does not count as lines."""
        if self._quotes is not None or b"\\" not in data or b"\\" + end not in data:
            return 0
        return len(re.findall(rb"(?<!\\)(?:\\\\)*+\\" + end, data))

    def _first_end(self, data: bytes, end: bytes) -> int:
        """The position after the first line."""
        position = self._first_of(data, 0, re.compile(re.escape(end)), partial(_ends, data, 0, len(data), end))
        return len(data) if position is None else position + len(end)

    def _before_marker(self, data: bytes, end: bytes) -> bytes:
        """The data before a line that is only ``\\.``; data after that line is ignored."""
        if b"\\" not in data or _MARKER not in data:  # a search for one byte is faster
            return data
        lines = re.compile(rb"(?:\A|(?<=%b))\\\.(?=%b|\Z)" % (end, end))
        places = np.fromiter((match.start() for match in lines.finditer(data)), np.int64)
        position = self._first(data, 0, places, escapes=False)
        if position is None:
            return data
        self._ended = True
        return data[:position]

    def _detect_end(self, data: bytes, start: int) -> bytes | None:
        """The characters that end lines, taken from the first end of a line; None if the data does not show them
        yet."""
        ends = partial(_places, data, start, len(data), _NEWLINE, _RETURN)
        position = self._first_of(data, start, _LINE_END, ends)
        if position is None:
            return None
        if data[position] == _NEWLINE:
            return b"\n"
        following = data[position + 1 : position + 2]
        return None if not following else b"\r\n" if following == b"\n" else b"\r"

    def _first_of(self, data: bytes, start: int, wanted: re.Pattern[bytes], places: Callable[[], Vector]) -> int | None:
        """The first match of ``wanted`` that is not part of a value.

        Usually the very first match is not; only if it is, ``places`` computes all matches.
        """
        match = wanted.search(data, start)
        if match is None:
            return None
        position = self._first(data, start, np.array([match.start()]))
        return self._first(data, start, places()) if position is None else position

    def _first(self, data: bytes, start: int, places: Vector, escapes: bool = True) -> int | None:
        """The first of some places that is not part of a value: not quoted (CSV), and not after a backslash (text), if
        ``escapes`` says that a backslash escapes it. ``start`` must not be part of a value."""
        if self._quotes is not None:
            places = places[self._quotes.outside(data, start, places)]
            return int(places[0]) if len(places) else None
        found = map(int, places)
        return next((place for place in found if not escapes or not is_escaped(data, start, place)), None)

    def _cut(self, data: bytes, start: int) -> int:
        """The position after the last line that ends within the block size, else of the last line in the data, else
        ``start``."""
        if self._end is None:
            self._end = self._detect_end(data, start)
        if self._end is None:
            return start
        cut = self._last_end(data, start, start + self._block_size, self._end)
        return cut if cut > start else self._last_end(data, start, len(data), self._end)

    def _last_end(self, data: bytes, start: int, stop: int, end: bytes) -> int:
        position = data.rfind(end, start, stop)
        if position < 0:
            return start
        if self._quotes is not None:
            if not self._quotes.is_open(data, start, position):
                return position + len(end)
            places = _ends(data, start, position, end)
            places = places[self._quotes.outside(data, start, places)]
            return int(places[-1]) + len(end) if len(places) else start
        while position >= 0:
            if not is_escaped(data, start, position):
                return position + len(end)
            position = data.rfind(end, start, position)
        return start


def too_long(size: int) -> SqlError:
    """PostgreSQL's error for a line or a row that exceeds the limit."""
    return SqlError("54000", "out of memory", f"Cannot enlarge string buffer containing {size} bytes.")


class Quotes:
    """Finds the quoted sections of CSV data. Each ``start`` must be outside of quotes."""

    __slots__ = ("_quote", "_section")

    def __init__(self, format_: CopyFormat) -> None:
        self._quote = format_.quote.encode()[0]
        self._section = None if format_.escape == format_.quote else _section(format_)

    def is_open(self, data: bytes, start: int, position: int) -> bool:
        """Whether a position is quoted. If the quote escapes itself, that is so after an odd number of quotes."""
        if self._section is None:
            return bool(count_byte(data, self._quote, start, position) % 2)
        return not self.outside(data, start, np.array([position]))[0]

    def outside(self, data: bytes, start: int, places: Vector) -> Vector:
        """A mask of the places that are not quoted. ``places`` must ascend, and none may hold a quote."""
        if not len(places):
            return np.ones(0, bool)
        stop = int(places[-1])
        if self._section is None:
            borders = _places(data, start, stop, self._quote)
        else:
            found = self._section.finditer(data, start, stop)
            pairs = ((match.start(), match.end() if match["close"] else stop + 1) for match in found)
            borders = np.fromiter((place for pair in pairs for place in pair), np.int64)
        is_outside: Vector = np.searchsorted(borders, places, "right") % 2 == 0
        return is_outside


def _section(format_: CopyFormat) -> re.Pattern[bytes]:
    """A pattern for a quoted section, whose closing quote may be missing."""
    quote, escape = re.escape(format_.quote.encode()), re.escape(format_.escape.encode())
    pattern = rb"%b(?:[^%b%b]++|%b[%b%b]?)*+(?P<close>%b?)" % (quote, quote, escape, escape, quote, escape, quote)
    return re.compile(pattern, re.DOTALL)


def is_escaped(data: bytes, start: int, position: int) -> bool:
    """Whether an odd number of backslashes precedes a position."""
    before, width = position, 16
    while before > start:
        piece = data[max(start, before - width) : before]
        left = piece.rstrip(b"\\")
        before -= len(piece) - len(left)
        if left:
            break
        width *= 2
    return (position - before) % 2 == 1


def _ends(data: bytes, start: int, stop: int, end: bytes) -> Vector:
    """The places of ends of lines."""
    places = _places(data, start, stop, end[0])
    if len(end) == 1:
        return places
    values = np.frombuffer(data, np.uint8)
    places = places[places + 1 < stop]
    both: Vector = places[values[places + 1] == end[1]]
    return both


def _places(data: bytes, start: int, stop: int, *wanted: int) -> Vector:
    """The places of some bytes."""
    values = np.frombuffer(data, np.uint8, stop - start, start) if stop > start else np.empty(0, np.uint8)
    found = values == wanted[0]
    for byte in wanted[1:]:
        found |= values == byte
    places: Vector = np.flatnonzero(found) + start
    return places


def count_byte(data: bytes, byte: int, start: int = 0, stop: int | None = None) -> int:
    """The number of times that a byte occurs; faster than bytes.count for a frequent byte."""
    size = (len(data) if stop is None else stop) - start
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, size, start) == byte)) if size > 0 else 0
