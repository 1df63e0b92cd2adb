"""Keys of rows compare as the rows do in PostgreSQL's order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.order_keys import WIDEST, Ordering
from executor.dataflow.rows.weighted_rows import weighted
from planner.incremental.dataflow.graph import OrderKey

VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "int": (pa.int32(), (-(2**31), -7, 0, 5, 2**31 - 1)),
    "bigint": (pa.int64(), (-(2**63), -1, 0, 1, 2**63 - 1)),
    "bool": (pa.bool_(), (False, True)),
    "date": (pa.date32(), (date(1, 1, 1), date(1999, 12, 31), date(2000, 1, 1))),
    "timestamp": (pa.timestamp("us"), (datetime(1, 1, 1), datetime(1970, 1, 1), datetime(2024, 2, 29, 12))),
    "numeric": (pa.decimal128(38, 2), tuple(map(Decimal, ("-99999999999999999999.25", "-0.01", "0", "1", "1e30")))),
    "float": (pa.float64(), (-np.inf, -1e300, -1.5, 0.0, 1e-300, 2.0, np.inf, np.nan)),
    "real": (pa.float32(), (-np.inf, -1.5, 0.0, 2.5, np.inf, np.nan)),
    "text": (pa.string(), ("", "A", "AB", "Z", "a", "a" * 9, "a" * 33, "b", "é", "日本")),
}


def keys(ordering: Ordering, columns: dict[str, pa.Array]) -> list[bytes]:
    rows = pa.table(columns)
    found: list[bytes] = ordering.fitting(rows).keys(rows).tolist()
    return found


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_values_have_the_order_of_their_type(name: str, descending: bool, nulls_first: bool) -> None:
    kind, values = VALUES[name]
    wanted = [*(reversed(values) if descending else values)]
    wanted = [None, *wanted] if nulls_first else [*wanted, None]
    shuffled = random.Random(1).sample(range(len(wanted)), len(wanted))
    ordering = Ordering((), (OrderKey("v", descending, nulls_first),), (), (0,))
    found = np.argsort(np.array(keys(ordering, {"v": pa.array([wanted[place] for place in shuffled], kind)})))
    assert [shuffled[place] for place in found] == list(range(len(wanted)))


def test_zeros_and_nans_are_each_one_value() -> None:
    ordering = Ordering((), (OrderKey("v", False, False),), (), (0,))
    one, other, nan, negative = keys(ordering, {"v": pa.array([0.0, -0.0, np.nan, -np.nan])})
    assert one == other
    assert nan == negative > one


def test_columns_count_one_after_the_other_and_ties_last() -> None:
    order = (OrderKey("a", False, False), OrderKey("b", True, False))
    ordering = Ordering(("g",), order, ("c",), (0, 0))
    columns = {
        "g": pa.array([1, 1, 1, 1, 2]),
        "a": pa.array(["x", "x", "xy", "x", "w"]),
        "b": pa.array([2, 1, 9, 1, 0]),
        "c": pa.array([0, 1, 2, 3, 4]),
    }
    found = keys(ordering, columns)
    assert found[0] < min(found[1], found[3]) < max(found[1], found[3]) < found[2]
    fitted = ordering.fitting(pa.table(columns))
    array = fitted.keys(pa.table(columns))
    least, greatest = fitted.ends(array)
    assert all(least[place] < array[place] < greatest[place] for place in range(5))
    assert len(set(fitted.partitions(array).tolist())) == 2
    peers = fitted.peers(array, behind=False)
    assert peers[1] == peers[3] <= min(array[1], array[3])
    assert peers[0] < peers[1]


def test_a_place_is_looked_for_where_all_rows_have_gone() -> None:
    ordering = Ordering((), (OrderKey("v", False, False),), (), (0,))
    rows = pa.table({"v": pa.array(range(1000))})
    kept = Multiset(weighted(rows, 1), (), lambda table: table)
    keys = ordering.keys(rows)
    wanted = np.tile(keys, 300)
    assert kept.take_within(ordering, (keys[:1], keys[-1:])).num_rows == 1000
    least, greatest = ordering.ends(wanted)
    assert (kept.near(ordering, wanted, 1, behind=True)[:, 0] == greatest).all()
    assert (kept.near(ordering, wanted, 1, behind=False)[:, 0] == least).all()


def test_nothing_follows_a_text_that_is_cut() -> None:
    order = (OrderKey("a", False, False), OrderKey("b", False, False))
    ordering = Ordering((), order, ("b",), (0, 0))
    long = "x" * WIDEST
    one, other, third = keys(ordering, {"a": pa.array([f"{long}b", f"{long}a", "y"]), "b": pa.array([1, 2, 0])})
    assert one == other < third


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("partition", [(), ("p",)])
@pytest.mark.parametrize("by", [0, 1, 255, 1 << 40, 1 << 63, 1 << 70])
def test_keys_are_moved_by_a_distance_as_far_as_there_are_values(
    descending: bool, partition: tuple[str, ...], by: int
) -> None:
    least, greatest = -(2**63), 2**63 - 1
    values = (least, least + 1, -256, -1, 0, 1, 255, 2**40, greatest)
    ordering = Ordering(partition, (OrderKey("v", descending, False),), (), (0,))
    partitions = pa.array([1] * len(values), pa.int64())

    def keys_of(numbers: Sequence[int]) -> Any:
        return ordering.keys(pa.table({"v": pa.array(numbers, pa.int64()), "p": partitions}))

    for step in (by, -by):
        wanted = [min(max(value + (-step if descending else step), least), greatest) for value in values]
        assert ordering.moved(keys_of(values), step).tolist() == keys_of(wanted).tolist()
    null = ordering.keys(pa.table({"v": pa.array([None], pa.int64()), "p": partitions[:1]}))
    assert (ordering.moved(null, -by) <= null).all() and (ordering.moved(null, by) >= null).all()
    assert (ordering.moved(null, -by) > max(keys_of(values))).all()  # NULLS LAST
