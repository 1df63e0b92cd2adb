"""Rows with weights: tables with a column that counts each row, below 0 for rows that go.

Owns: which rows are equal. Values are equal here where their bits are: zeros of both signs are two values, as Python's
and Arrow's own comparisons would not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from executor.dataflow.hashing import hashes_of

#: The column of a change's rows that says by how many such rows there are more.
WEIGHT: Final = "__weight"

Integers = npt.NDArray[np.int64]
#: Makes one of equal rows, with the sum of their weights.
Consolidate = Callable[[pa.Table], pa.Table]

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions
#: Rows of a change that are few.
_FEW: Final = 32


class Inconsistent(Exception):
    """A change takes away rows that are not there."""


def consolidated(rows: pa.Table, merge: Consolidate) -> pa.Table:
    """Equal rows as one with the sum of their weights, without those where it is 0; equal in all bits."""
    names = [name for name in rows.column_names if name != WEIGHT]
    kinds = [rows.schema.field(name).type for name in names]
    if rows.num_rows <= _FEW and not any(map(_is_inexact, kinds)):
        return _few_consolidated(rows, names)
    if all(map(is_grouped, kinds)):
        rows = _without_pairs(rows, names)
        if rows.num_rows == 0:
            return rows
        found = _merged(rows, names)
    else:
        found = merge(rows)
    return found.filter(_compute.not_equal(found.column(WEIGHT), 0))


def _merged(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Equal rows as one with the sum of their weights. Only rows whose hashes others have, too, are grouped: that takes
    ten times as long as comparing hashes."""
    hashes = hashes_of(rows, names)
    ordered = np.sort(hashes)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not shared.size:
        return rows
    if 4 * shared.size < hashes.size:
        places = np.minimum(np.searchsorted(shared, hashes), shared.size - 1)
        are_shared = pa.array(shared[places] == hashes)
        alone, rows = rows.filter(_compute.invert(are_shared)), rows.filter(are_shared)
    else:
        alone = rows.slice(0, 0)
    # Zeros of both signs, which Arrow's grouping takes apart, are different rows here.
    grouped = rows.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    found = grouped.select([*names, f"{WEIGHT}_sum"]).rename_columns([*names, WEIGHT])
    return pa.concat_tables([alone.select(found.column_names), found]) if alone.num_rows else found


def _without_pairs(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows without those that went and came again, as the n-th of those that went and the n-th of those that came:
    an UPDATE gives such pairs, and grouping takes ten times as long as comparing them."""
    weights = weights_of(rows)
    gone, come = np.flatnonzero(weights == -1), np.flatnonzero(weights == 1)
    if gone.size != come.size or 2 * gone.size != weights.size:
        return rows
    before, after = some_of(rows, gone), some_of(rows, come)
    alike = np.ones(gone.size, np.bool_)
    for name in names:
        alike &= same_bits(before.column(name), after.column(name))
        if not alike.any():
            return rows
    if alike.all():
        return rows.slice(0, 0)
    return some_of(rows, np.sort(np.concatenate([gone[~alike], come[~alike]])))


def some_of(rows: pa.Table, places: Integers) -> pa.Table:
    """Rows at some places, in order."""
    if places.size and places[-1] - places[0] + 1 == places.size:
        return rows.slice(places[0], places.size)
    return rows.take(pa.array(places))


def same_bits(one: pa.ChunkedArray | pa.Array, other: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.bool_]:
    """Where two columns have the same value, NULL included."""
    if pa.types.is_floating(one.type):
        whole = pa.int32() if one.type.bit_width == 32 else pa.int64()
        one, other = (item.combine_chunks() if isinstance(item, pa.ChunkedArray) else item for item in (one, other))
        one, other = one.view(whole), other.view(whole)
    same = _compute.equal(one, other)
    if same.null_count:
        both = _compute.and_(_compute.is_null(one), _compute.is_null(other))
        same = _compute.or_(_compute.fill_null(same, fill_value=False), both)
    found: npt.NDArray[np.bool_] = (
        same.to_numpy(zero_copy_only=False) if isinstance(same, pa.Array) else same.to_numpy()
    )
    return found


def _few_consolidated(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """``consolidated`` of a few rows, as Python values: a call of Arrow's grouping takes ten times as long."""
    weights = rows.column(WEIGHT).to_pylist()
    columns = [_values(rows.column(name)) for name in names]
    totals: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], int] = {}
    for place, weight in enumerate(weights):
        key = tuple([column[place] for column in columns])
        totals[key] = totals.get(key, 0) + weight
        first.setdefault(key, place)
    kept = [(place, totals[key]) for key, place in first.items() if totals[key]]
    if len(kept) == len(weights):
        return rows
    found = pa.Table.from_batches(
        [batch_of(rows.select(names)).take(pa.array([place for place, _ in kept], pa.int32()))]
    )
    return found.append_column(WEIGHT, pa.array([total for _, total in kept], pa.int64()))


def _values(column: pa.ChunkedArray) -> list[object]:
    """A column's values, times as numbers: Python has no infinite ones."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values: list[object] = column.to_pylist()
    return values


def batch_of(rows: pa.Table) -> pa.RecordBatch:
    """A table's rows as one batch. Raises Inconsistent for more text than a batch holds."""
    if rows.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=rows.schema)
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise Inconsistent
    return batches[0]


def _is_inexact(kind: pa.DataType) -> bool:
    """Whether Python's values of a type are not equal where their bits are, or cannot be keys."""
    return bool(pa.types.is_floating(kind)) or not is_grouped(kind)


def is_grouped(kind: pa.DataType) -> bool:
    """Whether Arrow groups by values of a type."""
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_null(kind))


def weights_of(rows: pa.Table) -> Integers:
    """The weights of rows."""
    weights: Integers = rows.column(WEIGHT).to_numpy()
    return weights


def by_sign(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that go, and those that come."""
    come = weights_of(rows) > 0
    count = int(np.count_nonzero(come))
    if count in (0, come.size):
        none = rows.slice(0, 0)
        return (none, rows) if count else (rows, none)
    return rows.filter(pa.array(~come)), rows.filter(pa.array(come))


def repeated(rows: pa.Table) -> pa.Table:
    """Rows with weights as rows, each as often as its weight says."""
    weights = weights_of(rows)
    plain = rows.drop_columns([WEIGHT])
    if not weights.size or weights.max() <= 1:
        return plain
    return pa.Table.from_batches([batch_of(plain).take(pa.array(np.repeat(np.arange(len(weights)), weights)))])


def weighted(rows: pa.Table, weight: int) -> pa.Table:
    """Rows with a weight each."""
    return rows.append_column(WEIGHT, pa.array(np.full(rows.num_rows, weight, np.int64)))


def negated(rows: pa.Table) -> pa.Table:
    """Rows with their weights' signs changed."""
    place = rows.schema.get_field_index(WEIGHT)
    return rows.set_column(place, WEIGHT, _compute.negate(rows.column(WEIGHT)))
