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

from executor.dataflow.rows.hashing import hashes_of
from executor.small import AnyTable, SmallTable, few, table_of
from executor.small.small_table import FEW

#: The column of a change's rows that says by how many such rows there are more.
WEIGHT: Final = "__weight"

Integers = npt.NDArray[np.int64]
#: Makes one of equal rows, with the sum of their weights.
Consolidate = Callable[[pa.Table], pa.Table]

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions


class Inconsistent(Exception):
    """A change takes away rows that are not there."""


def consolidated(rows: AnyTable, merge: Consolidate) -> AnyTable:
    """Equal rows as one with the sum of their weights, without those where it is 0; equal in all bits."""
    if isinstance(rows, SmallTable):
        return _few_consolidated(rows)
    small = few(rows)
    if isinstance(small, SmallTable):
        found = _few_consolidated(small)
        return rows if found is small else found.table
    names = [name for name in rows.column_names if name != WEIGHT]
    if all(is_grouped(rows.schema.field(name).type) for name in names):
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


def _few_consolidated(rows: SmallTable) -> SmallTable:
    """``consolidated`` of a few rows: a call of Arrow's grouping takes ten times as long. The rows themselves, where no
    two are equal."""
    weights = rows.column(WEIGHT)
    totals: dict[tuple[object, ...], int] = {}
    first: list[int] = []
    for place, (key, weight) in enumerate(zip(rows.drop_columns([WEIGHT]).rows(), weights, strict=True)):
        known = totals.get(key)
        if known is None:
            first.append(place)
        totals[key] = weight + (known or 0)
    kept = [(place, total) for place, total in zip(first, totals.values(), strict=True) if total]
    if len(kept) == len(weights):
        return rows
    return _with_weights(rows.take([place for place, _ in kept]), [total for _, total in kept])


def _with_weights(rows: SmallTable, weights: list[int]) -> SmallTable:
    """The same rows with other weights."""
    place = rows.column_names.index(WEIGHT)
    cells = [*rows.cells[:place], weights, *rows.cells[place + 1 :]]
    return SmallTable(rows.column_names, rows.types, cells, rows.num_rows)


def batch_of(rows: pa.Table) -> pa.RecordBatch:
    """A table's rows as one batch. Raises Inconsistent for more text than a batch holds."""
    if rows.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=rows.schema)
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise Inconsistent
    return batches[0]


def is_grouped(kind: pa.DataType) -> bool:
    """Whether Arrow groups by values of a type."""
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_null(kind))


def weights_of(rows: AnyTable) -> Integers:
    """The weights of rows."""
    if isinstance(rows, SmallTable):
        return np.array(rows.column(WEIGHT), np.int64)
    weights: Integers = rows.column(WEIGHT).to_numpy()
    return weights


def chosen(rows: AnyTable, are_chosen: npt.NDArray[np.bool_]) -> AnyTable:
    """The rows for which there is a true value."""
    return rows.filter(are_chosen.tolist() if isinstance(rows, SmallTable) else pa.array(are_chosen))


def by_sign(rows: AnyTable) -> tuple[AnyTable, AnyTable]:
    """The rows that go, and those that come."""
    come = weights_of(rows) > 0
    count = int(np.count_nonzero(come))
    if count in (0, come.size):
        none = chosen(rows, np.zeros(come.size, np.bool_)) if isinstance(rows, SmallTable) else rows.slice(0, 0)
        return (none, rows) if count else (rows, none)
    return chosen(rows, ~come), chosen(rows, come)


def repeated(rows: AnyTable) -> AnyTable:
    """Rows with weights as rows, each as often as its weight says."""
    plain = rows.drop_columns([WEIGHT])
    if isinstance(rows, SmallTable):
        times = rows.column(WEIGHT)
        if max(times, default=1) <= 1:
            return plain
        places = [place for place, weight in enumerate(times) for _ in range(weight)]
        return plain.take(places) if len(places) <= FEW else plain.table.take(pa.array(places))
    weights = weights_of(rows)
    if not weights.size or weights.max() <= 1:
        return plain
    return pa.Table.from_batches([batch_of(plain).take(pa.array(np.repeat(np.arange(len(weights)), weights)))])


def weighted(rows: AnyTable, weight: int) -> AnyTable:
    """Rows with a weight each."""
    if isinstance(rows, SmallTable):
        return rows.append_column(WEIGHT, pa.int64(), [weight] * rows.num_rows)
    return rows.append_column(WEIGHT, pa.array(np.full(rows.num_rows, weight, np.int64)))


def weighted_once(rows: AnyTable) -> AnyTable:
    """Rows with weights as rows with weight 1 or -1, as often as they say."""
    weights = weights_of(rows)
    if not weights.size or np.abs(weights).max() <= 1:
        return rows
    plain: pa.Table = table_of(rows)
    many = plain.take(pa.array(np.repeat(np.arange(len(weights)), np.abs(weights))))
    signs = pa.array(np.sign(many.column(WEIGHT).to_numpy()))
    return few(many.set_column(many.schema.get_field_index(WEIGHT), WEIGHT, signs))


def negated(rows: AnyTable) -> AnyTable:
    """Rows with their weights' signs changed."""
    if isinstance(rows, SmallTable):
        return _with_weights(rows, [-weight for weight in rows.column(WEIGHT)])
    place = rows.schema.get_field_index(WEIGHT)
    return rows.set_column(place, WEIGHT, _compute.negate(rows.column(WEIGHT)))
