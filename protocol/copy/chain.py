"""Finds the rows of COPY's binary format, all rows of a block at once.

A row is its number of fields (int16), then for each field its length (int32, -1 for NULL) and its bytes, so a row's
begin follows only from the row before. To avoid a loop over rows, every place that holds the right number of fields is
a candidate. The end of the row that would begin there is computed for all candidates together, one column at a time,
and is the candidate's successor. The rows are the chain of successors from the first candidate, followed by doubling
steps. Values that look like rows are candidates that are not in the chain.

Owns: the search. Does not know what is wrong where the chain ends.
"""

from __future__ import annotations

import numpy as np

from protocol.values.codec import Vector


def find_rows(data: bytes, start: int, width: int) -> tuple[Vector, Vector, int]:
    """All whole rows of ``width`` fields from ``start`` on, up to the first place that does not begin one.

    Returns the starts and the lengths of the rows' fields, as matrices with a row for each column, and where the last
    row ends.
    """
    candidates, ends = _whole(data, _candidates(data, start, width), width)
    if not len(candidates) or candidates[0] != start:
        return *no_rows(width), start
    rows = _chain(candidates, ends)
    return *_fields(data, candidates[rows], width), int(ends[rows][-1])


def no_rows(width: int) -> tuple[Vector, Vector]:
    """Starts and lengths of the fields of no row."""
    return np.empty((width, 0), np.int64), np.empty((width, 0), np.int32)


def _candidates(data: bytes, start: int, width: int) -> Vector:
    """Every place from ``start`` on where a number of fields could stand."""
    values = np.frombuffer(data, np.uint8)
    alike = values[start + 1 :] == width & 0xFF
    alike &= values[start:-1] == width >> 8
    return np.flatnonzero(alike) + start


def _lengths(data: bytes) -> Vector:
    """The length field that begins at each byte."""
    return np.ndarray((max(len(data) - 3, 0),), ">i4", data, 0, (1,))


def _whole(data: bytes, starts: Vector, width: int) -> tuple[Vector, Vector]:
    """The candidates whose rows have valid lengths and lie within the data, and where each of these rows ends."""
    lengths_at = _lengths(data)
    ends = starts + 2
    for _ in range(width):
        starts, ends = _kept(starts, ends, ends < len(lengths_at))
        lengths = lengths_at[ends]
        ends = ends + 4 + np.maximum(lengths, 0)
        starts, ends = _kept(starts, ends, (lengths >= -1) & (ends <= len(data)))
    return starts, ends


def _kept(starts: Vector, ends: Vector, mask: Vector) -> tuple[Vector, Vector]:
    return (starts, ends) if mask.all() else (starts[mask], ends[mask])


def _chain(starts: Vector, ends: Vector) -> Vector:
    """A mask of the candidates that follow each other from the first one on."""
    count = len(starts)
    if np.array_equal(ends[:-1], starts[1:]):
        return np.ones(count, bool)
    found = np.searchsorted(starts, ends)
    follows = (found < count) & (starts[np.minimum(found, count - 1)] == ends)
    step = np.append(np.where(follows, found, count), count)  # the last element stands for the end
    reached = np.zeros(count + 1, bool)
    reached[0] = True
    while step[0] != count:  # each step goes twice as far
        reached[step[reached]] = True
        step = step[step]
    reached[step[reached]] = True
    return reached[:count]


def _fields(data: bytes, rows: Vector, width: int) -> tuple[Vector, Vector]:
    """Starts and lengths of the fields of rows that are known to be whole."""
    lengths_at = _lengths(data)
    starts, lengths = np.empty((width, len(rows)), np.int64), np.empty((width, len(rows)), np.int32)
    position = rows + 2
    for column in range(width):
        lengths[column] = lengths_at[position]
        starts[column] = position + 4
        position = starts[column] + np.maximum(lengths[column], 0)
    return starts, lengths
