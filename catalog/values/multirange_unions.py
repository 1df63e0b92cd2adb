"""Unions of ranges, those of many multiranges at a time (``catalog.values.multiranges`` says how and has the bytes)."""

from __future__ import annotations

import numpy as np

#: A numpy array of any type.
Vector = np.ndarray


def united(parts: Vector, counts: Vector) -> tuple[Vector, Vector]:
    """The canonical bytes of multiranges, and how many each has.

    ``parts`` are ranges, a row of a matrix each; as many of them as ``counts`` says, in any order, make a multirange.
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
    """Each row's cuts in order. As a key, a row's number stands before them: what is to be sorted nearly is."""
    keys = _keys(np.hstack((rows.view(np.uint8).reshape(-1, 4), cuts)))
    return cuts if (keys[:-1] <= keys[1:]).all() else cuts[np.argsort(keys, kind="stable")]


def _keys(data: Vector) -> Vector:
    """The rows of a matrix as values that compare as their bytes do."""
    return np.ascontiguousarray(data).view(f"S{data.shape[1]}").reshape(-1)
