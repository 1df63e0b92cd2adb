"""Lines of text files: how many there are, and how they end. A file is looked through in portions, a bit of CSV's
quotes and no more: a line break is within a field where the number of quotes before it is odd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from catalog.errors import SqlError

_PORTION: Final = 1 << 22
_NEWLINE, _RETURN, _QUOTE = ord("\n"), ord("\r"), ord('"')

_Integers = npt.NDArray[np.intp]


def count_lines(path: str, quotes: bool) -> int:
    """Lines that are not blank; with ``quotes`` a line goes on where it ends between two of them. Raises OSError."""
    lines, blank = 0, True  # whether the line that goes on at the portion's begin has had nothing yet
    for portion in _portions(path, quotes):
        ends, _ = portion.places(portion.data == _NEWLINE)
        filled = np.flatnonzero((portion.data != _NEWLINE) & (portion.data != _RETURN))
        if not len(ends):
            blank = blank and not len(filled)
            continue
        counts = np.diff(np.searchsorted(filled, ends), prepend=0)
        lines += int(np.count_nonzero(counts)) + (not blank and int(counts[0]) == 0)
        blank = not len(filled) or int(filled[-1]) < int(ends[-1])
    return lines + (not blank)


def line_end(path: str) -> str | None:
    """What ends the lines of a CSV file that has line breaks within quotes, too; None where there are none of these.

    Raises 22P04 where its lines end in several ways: no reader of Spark's knows which is which then.
    """
    found, within = set[str](), False
    for portion in _portions(path, True):
        newlines, inner_newlines = portion.places(portion.data == _NEWLINE)
        returns, inner_returns = portion.places(portion.data == _RETURN)
        within |= bool(len(inner_newlines) or len(inner_returns))
        both = np.isin(returns + 1, newlines)
        found |= {"\r\n"} if both.any() else set()
        found |= {"\n"} if len(newlines) > np.count_nonzero(both) else set()
        found |= {"\r"} if not both.all() else set()
    if within and len(found) > 1:
        raise SqlError("22P04", f'file "{path}" has line breaks within quotes, and lines that end in several ways')
    return (found or {"\n"}).pop() if within else None


class _Portion(Struct, frozen=True):
    """Some bytes of a file, and where its quotes are; ``is_open``: they begin within two of these."""

    data: npt.NDArray[np.uint8]
    quotes: _Integers
    is_open: bool

    def places(self, wanted: npt.NDArray[np.bool_]) -> tuple[_Integers, _Integers]:
        """Where the wanted bytes are outside of quotes, and where within."""
        places = np.flatnonzero(wanted)
        within = (np.searchsorted(self.quotes, places) + self.is_open) % 2 == 1
        return places[~within], places[within]


def _portions(path: str, quotes: bool) -> Iterator[_Portion]:
    """A file's bytes; none ends between the two of ``\\r\\n``."""
    is_open = False
    with open(path, "rb") as file:
        while portion := file.read(_PORTION):
            if portion.endswith(b"\r"):
                portion += file.read(1)
            data = np.frombuffer(portion, np.uint8)
            places = np.flatnonzero(data == _QUOTE) if quotes else np.empty(0, np.intp)
            yield _Portion(data, places, is_open)
            is_open ^= bool(len(places) % 2)
