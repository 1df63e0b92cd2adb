"""Multiranges, each carried as the concatenated bytes of its ranges, which sort as multirange_cmp() does.

Owns: the canonical form (ranges that are not empty, in order, with something between any two), and the text form. Bytes
are ``catalog.values.ranges``'; of a multirange of one range they are that range's, of one without ranges none.

The union of many ranges needs their lower cuts, sorted, and their upper cuts, sorted, and not which belong together: a
range of it begins at the i-th lower cut where the i-1st upper cut lies below that, and ends at the i-th upper cut where
the i+1st lower cut lies above that. Everything else is made of unions and complements: ``a * b`` is the complement of
the union of both complements.
https://www.postgresql.org/docs/15/rangetypes.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from catalog.values import ranges
from catalog.values.errors import SqlError
from catalog.values.types import MULTIRANGES, SqlType, by_name

#: A numpy array of any type.
Vector = np.ndarray
_BLANKS: Final = " \t\n\v\f\r"
_RANGE: Final = re.compile(r'[\[(](?:[^"\\\])]|\\.|"(?:[^"\\]|\\.|"")*")*[\])]', re.DOTALL)


def range_of(kind: SqlType) -> SqlType:
    """The range type of a multirange type."""
    return by_name(MULTIRANGES[kind.name])


def multirange_of(kind: SqlType) -> SqlType:
    """The multirange type of a range type."""
    return by_name(kind.name.replace("range", "multirange"))


def width_of(kind: SqlType) -> int:
    """The number of bytes of a range."""
    return 2 * ranges.width_of(range_of(kind)) + 4


def made(kind: SqlType, parts: Iterable[bytes]) -> bytes:
    """The union of ranges, as a multirange."""
    half = width_of(kind) // 2
    present = [part for part in parts if part[0] != ranges.EMPTY]
    lower, upper = (sorted(part[side : side + half] for part in present) for side in (0, half))
    starts = [cut for place, cut in enumerate(lower) if not place or upper[place - 1] < cut]
    ends = [cut for place, cut in enumerate(upper, 1) if place == len(lower) or cut < lower[place]]
    return b"".join(cut for pair in zip(starts, ends, strict=True) for cut in pair)


def parts_of(kind: SqlType, data: bytes) -> list[bytes]:
    """A multirange's ranges."""
    width = width_of(kind)
    return [data[place : place + width] for place in range(0, len(data), width)]


def malformed_multirange(text: str, detail: str) -> SqlError:
    """The error 22P02 for a malformed multirange."""
    return SqlError("22P02", f'malformed multirange literal: "{text}"', detail)


def split_multirange(text: str) -> Iterator[str]:
    """The texts of a multirange's ranges, without those that are "empty" (multirange_in()). Raises 22P02."""
    body = text.strip(_BLANKS)
    if body[:1] != "{":
        raise malformed_multirange(text, "Missing left brace.")
    place = _after_blanks(text, body, 1)
    while body[place] != "}":
        if (found := _RANGE.match(body, place)) is not None:
            yield found[0]
            place = found.end()
        elif body[place] in "[(":
            raise malformed_multirange(text, "Unexpected end of input.")
        elif body[place : place + 5].lower() == "empty":
            place += 5
        else:
            raise malformed_multirange(text, "Expected range start.")
        place = _after_blanks(text, body, place)
        if body[place] == ",":
            place = _after_blanks(text, body, place + 1)
            if body[place] == "}":
                raise malformed_multirange(text, "Expected range start.")
        elif body[place] != "}":
            raise malformed_multirange(text, "Expected comma or end of multirange.")
    if place + 1 != len(body):
        raise malformed_multirange(text, "Junk after closing right brace.")


def _after_blanks(text: str, body: str, place: int) -> int:
    while place < len(body) and body[place] in _BLANKS:
        place += 1
    if place == len(body):
        raise malformed_multirange(text, "Unexpected end of input.")
    return place


def read(text: str, kind: SqlType, value: Callable[[str], object]) -> bytes:
    """A multirange from its text; ``value`` reads a bound's text. Raises 22P02 and the errors of ``value``."""
    return made(kind, [ranges.read(part, range_of(kind), value) for part in split_multirange(text)])


def written(kind: SqlType, data: bytes, shown: Callable[[object], str] = str) -> str:
    """A multirange's text; ``shown`` writes a bound's value (multirange_out())."""
    return "{" + ",".join(ranges.written(range_of(kind), part, shown) for part in parts_of(kind, data)) + "}"


def united(parts: Vector, counts: Vector) -> tuple[Vector, Vector]:
    """The canonical bytes of multiranges, and the number of ranges in each.

    ``parts`` are ranges, as rows of a matrix. Each multirange is made of the next ranges, as many as ``counts`` says,
    in any order.
    """
    half = parts.shape[1] // 2
    rows = np.repeat(np.arange(len(counts), dtype=">u4"), counts)
    present = parts[:, 0] != 0
    parts, rows = parts[present], rows[present]
    lower, upper = (_in_order(parts[:, :half], rows), _in_order(parts[:, half:], rows))
    starts = np.append(True, rows[1:] != rows[:-1])[: len(rows)]
    starts[1:] |= _keys(upper)[:-1] < _keys(lower)[1:]
    ends = np.append(starts[1:], True)[: len(rows)]
    lengths = np.bincount(rows[starts].astype(np.int64), minlength=len(counts)) * parts.shape[1]
    return np.hstack((lower[starts], upper[ends])).reshape(-1), lengths


def _in_order(cuts: Vector, rows: Vector) -> Vector:
    """Each row's cuts in sorted order. The row's number is the first part of the sort key, so the data are almost
    sorted already."""
    keys = _keys(np.hstack((rows.view(np.uint8).reshape(-1, 4), cuts)))
    return cuts if (keys[:-1] <= keys[1:]).all() else cuts[np.argsort(keys, kind="stable")]


def _keys(data: Vector) -> Vector:
    """The rows of a matrix as values that compare as their bytes do."""
    return np.ascontiguousarray(data).view(f"S{data.shape[1]}").reshape(-1)
