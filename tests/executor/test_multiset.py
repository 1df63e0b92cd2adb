"""The rows of a dataflow's node: changes and look-ups against a plain counter."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.dataflow.rows.hashing import NO_HASHES, hashes_of
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.weighted_rows import WEIGHT, Inconsistent, consolidated, repeated
from executor.small import AnyTable, SmallTable, few, table_of

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.string()), ("n", pa.decimal128(12, 2)), (WEIGHT, pa.int64())])

NUMBER = pa.decimal128(38, 2)

Row = tuple[Any, ...]
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(0, 5)),
    st.sampled_from([None, "", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "ä" * 9]),
    st.sampled_from([None, Decimal("1.50"), Decimal("-2.00")]),
)


def unused(rows: pa.Table) -> pa.Table:
    raise AssertionError("Arrow groups by values of these types")


def table(rows: Counter[Row]) -> pa.Table:
    columns = list(zip(*((*row, weight) for row, weight in rows.items()), strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], SCHEMA)


def few_of(rows: Counter[Row]) -> AnyTable:
    return few(table(rows))


def counted(rows: AnyTable) -> Counter[Row]:
    found = Counter[Row]()
    for *row, weight in zip(*(column.to_pylist() for column in table_of(rows).columns), strict=True):
        found[tuple(row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


@given(st.lists(st.lists(st.tuples(ROWS, st.integers(1, 3)), max_size=12), max_size=12), st.randoms())
def test_rows_are_those_of_all_changes(changes: list[list[tuple[Row, int]]], random: Any) -> None:
    rows = Multiset(table(Counter()), [("k",), ("k", "t")], unused)
    model = Counter[Row]()
    for change in changes:
        delta = Counter[Row]()
        for row, weight in change:
            delta[row] += weight
        for row in random.sample(sorted(model, key=repr), len(model) // 2):
            delta[row] -= random.randint(0, model[row])
        rows.change(random.choice((table, few_of))(delta))
        model.update(delta)
        model = Counter({row: weight for row, weight in model.items() if weight})
        if random.random() < 0.5:  # the rows that came lately become a segment
            assert counted(rows.lookup((), hashes_of(table(model), ()))) == model
            everything = table_of(repeated(rows.lookup((), NO_HASHES)))
            assert Counter(zip(*(c.to_pylist() for c in everything.columns), strict=True)) == model
        assert len(model) <= rows.count <= model.total()
        keys = {row[:2] for row in random.sample(sorted(model, key=repr), len(model) // 3)}
        wanted = Counter({row: weight for row, weight in model.items() if row[:2] in keys})
        assert counted(rows.lookup(("k", "t"), hashes_of(table(wanted), ("k", "t")))) == wanted
        if random.random() < 0.3:
            taken = rows.take(("k", "t"), hashes_of(few_of(wanted), ("k", "t")))
            assert counted(taken) == wanted
            rows.add(random.choice((table_of, few))(taken))


def test_rows_that_are_not_there_cannot_go() -> None:
    rows = Multiset(table(Counter({(1, "a", None): 1})), [], unused)
    with pytest.raises(Inconsistent):
        rows.change(table(Counter({(1, "b", None): -1})))


def test_rows_that_were_given_twice_can_go_one_by_one() -> None:
    given_twice = pa.concat_tables([table(Counter({(1, "a", None): 1}))] * 2)
    rows = Multiset(given_twice, [], unused)
    rows.change(table(Counter({(1, "a", None): -1})))
    assert counted(rows.lookup((), np.empty(0, np.uint64))) == {(1, "a", None): 1}


def test_few_changes_leave_large_segments_as_they_are() -> None:
    rows = Multiset(table(Counter({(place, "a", None): 1 for place in range(1000)})), [("k",)], unused)
    (large,) = rows._segments
    for place in range(20):
        rows.change(table(Counter({(place, "a", None): -1, (place, "b", None): 1})))
    assert rows._segments[0] is large
    assert len(rows._segments) < 8
    assert rows.count == 1000


def test_rows_of_nested_types_are_consolidated_by_the_engine() -> None:
    rows = pa.table({"x": pa.array([[1], [1], None]), WEIGHT: pa.array([1, -1, 1])})
    asked: list[pa.Table] = []

    def merge(found: pa.Table) -> pa.Table:
        asked.append(found)
        return pa.table({"x": pa.array([[1], None]), WEIGHT: pa.array([0, 1])})

    assert consolidated(rows, merge).num_rows == 1
    assert asked == [rows]


def test_rows_come_as_often_as_their_weights_say() -> None:
    assert repeated(table(Counter({(1, "a", None): 3, (2, "b", None): 1}))).column("k").to_pylist() == [1, 1, 1, 2]


@pytest.mark.parametrize(
    "pair",
    [
        (pa.array([5], pa.int16()), pa.array([5], pa.int64())),
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array([float("nan")]), pa.array([-float("nan")])),
        (pa.array(["abcdefghij"]), pa.chunked_array([pa.array(["x", "abcdefghij"]).slice(1)])),
        (
            pa.array([Decimal("7.5")], pa.decimal128(38, 2)),
            pa.array([0, 1, Decimal("7.5")], pa.decimal128(38, 2)).slice(2),
        ),
        (pa.array([None], pa.string()), pa.array([None], pa.int64())),
        (pa.array([date(2020, 1, 1)]), pa.array([date(2020, 1, 1)])),
        (pa.array([[1]]), pa.array([[2]])),
    ],
)
def test_equal_keys_have_equal_hashes(pair: tuple[Any, Any]) -> None:
    one, other = (hashes_of(pa.table({"k": column}), ("k",)) for column in pair)
    assert one.tolist() == other.tolist()


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.text(max_size=20),
            st.none() | st.decimals(-(10**36), 10**36, places=2),
            st.none() | st.floats(),
            st.none() | st.dates(),
            st.none() | st.datetimes(),
            st.none() | st.binary(max_size=20),
            st.none() | st.booleans(),
            st.none() | st.integers(-(2**15), 2**15 - 1),
            st.none() | st.datetimes(timezones=st.just(UTC)),
        ),
        max_size=8,
    )
)
def test_few_rows_have_the_hashes_of_many(rows: list[Row]) -> None:
    kinds = [pa.int64(), pa.string(), NUMBER, pa.float64(), pa.date32(), pa.timestamp("us"), pa.binary(), pa.bool_()]
    kinds += [pa.int16(), pa.timestamp("us", "UTC")]
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    many = pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], list("abcdefghij"))
    for names in (*many.column_names, "abcdefgh", "ja"):
        some = few(many.select([*names]))
        assert isinstance(some, SmallTable) or "d" in names
        assert hashes_of(some, [*names]).tolist() == hashes_of(many, [*names]).tolist()


def test_zeros_of_both_signs_are_two_values() -> None:
    kinds = pa.schema([("x", pa.float64()), (WEIGHT, pa.int64())])

    def one(value: float, weight: int) -> pa.Table:
        return pa.table([pa.array([value]), pa.array([weight])], kinds)

    rows = Multiset(one(-0.0, 1), [("x",)], unused)
    rows.change(few(one(0.0, 2)))
    assert sorted(map(str, table_of(rows.lookup((), NO_HASHES)).column("x").to_pylist())) == ["-0.0", "0.0"]
    rows.change(few(one(0.0, -2)))
    with pytest.raises(Inconsistent):
        rows.change(few(one(0.0, -1)))
    assert str(table_of(rows.lookup(("x",), hashes_of(one(0.0, 1), ["x"]))).column("x").to_pylist()) == "[-0.0]"


def test_other_keys_have_other_hashes() -> None:
    texts = pa.table({"k": [*map(str, range(10_000)), *("a" * length for length in range(40))]})
    numbers = pa.table({"a": list(range(10_000)), "b": [7] * 10_000})
    assert len(set(hashes_of(texts, ("k",)).tolist())) == 10_040
    assert len({*hashes_of(numbers, ("a", "b")).tolist(), *hashes_of(numbers, ("b", "a")).tolist()}) >= 19_999
