"""Files of JSON documents that grow line by line, each with a checksum of all lines up to its own.

    <CRC-32 of this line's document, begun with that of the line before, as 8 hexadecimal digits> <document>\n

A line that was changed, lost or put elsewhere is no line of the file, nor is any behind it. Whether lines are missing
at the end the file cannot tell: another one says how long it was, by an ``End``. Files of earlier versions have the
documents alone.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

_DIGITS: Final = 8


class End(Struct, frozen=True):
    """How long a file was, and its checksum up to there."""

    length: int = 0
    check: int = 0


class Lines(Struct, frozen=True):
    """The documents that a file has, and where each line ends. ``is_plain``: it is of an earlier version."""

    documents: tuple[Any, ...] = ()
    ends: tuple[End, ...] = ()
    is_plain: bool = False

    @property
    def end(self) -> End:
        """Where the last line ends that is one."""
        return self.ends[-1] if self.ends else End()

    def confirms(self, end: End) -> bool:
        """Whether the file has the lines up to there as they were."""
        return end == End() or end in self.ends


def add_lines(before: End, documents: Iterable[Any]) -> tuple[bytes, list[End]]:
    """Lines behind an end, and where each of them ends."""
    pieces, ends, end = list[bytes](), list[End](), before
    for document in documents:
        text = json.dumps(document, separators=(",", ":")).encode()
        check = zlib.crc32(text, end.check)
        pieces.append(b"%0*x %s\n" % (_DIGITS, check, text))
        end = End(end.length + len(pieces[-1]), check)
        ends.append(end)
    return b"".join(pieces), ends


def read_lines(data: bytes) -> Lines:
    """The lines up to the first that is none. Of a plain file, those that are whole."""
    if data.startswith(b"["):
        return _read_plain(data)
    documents, ends, end = list[Any](), list[End](), End()
    for line in data.splitlines(keepends=True):
        text = line[_DIGITS + 1 : -1]
        check = zlib.crc32(text, end.check)
        if line != b"%0*x %s\n" % (_DIGITS, check, text):
            break
        end = End(end.length + len(line), check)
        documents.append(json.loads(text))
        ends.append(end)
    return Lines(tuple(documents), tuple(ends))


def _read_plain(data: bytes) -> Lines:
    documents, ends, end = list[Any](), list[End](), End()
    for line in data.splitlines(keepends=True):
        try:
            documents.append(json.loads(line if line.endswith(b"\n") else b"torn"))
        except ValueError:
            break
        end = End(end.length + len(line))
        ends.append(end)
    return Lines(tuple(documents), tuple(ends), is_plain=True)
