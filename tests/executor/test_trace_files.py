"""Parquet files and sealed intervals, and the key index."""

from __future__ import annotations

import datetime as dt
import resource
import signal
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from executor.carriers import INTERVAL
from executor.traces.index import KeyIndex
from executor.traces.parquet import read_table, to_schema, to_stored, write_table
from executor.traces.sealed import delete_sealed, seal

EVERYTHING = pa.table(
    {
        "flag": pa.array([True, None]),
        "small": pa.array([1, None], pa.int16()),
        "amount": pa.array([Decimal("12345678901234567890.123456789012345678"), None], pa.decimal128(38, 18)),
        "text": pa.array(["ä", None]),
        "bytes": pa.array([b"\x00", None]),
        "date": pa.array([dt.date(2024, 2, 29), None]),
        "time": pa.array([dt.time(23, 59, 59, 999999), None], pa.time64("us")),
        "stamp": pa.array([dt.datetime(1, 1, 1, 0, 0, 0, 1), None], pa.timestamp("us")),
        "zoned": pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None], pa.timestamp("us", tz="UTC")),
        "span": pa.array([(14, 3, 4_000_005_000), None], pa.month_day_nano_interval()),
        "list": pa.array([[1, None], None], pa.list_(pa.int32())),
        "spans": pa.array([[(14, 3, 4_000_005_000), None], None], pa.list_(pa.month_day_nano_interval())),
        "rows": pa.array(
            [[{"at": dt.time(1, 2), "span": (1, 2, 3000)}, None], None],
            pa.list_(pa.struct([("at", pa.time64("us")), ("span", pa.month_day_nano_interval())])),
        ),
    }
)


def test_every_type_survives_parquet(tmp_path: Path) -> None:
    path = tmp_path / "all.parquet"
    write_table(path, EVERYTHING)
    assert read_table((path, path), EVERYTHING.schema).equals(pa.concat_tables([EVERYTHING, EVERYTHING]))
    assert read_table((), EVERYTHING.schema).equals(EVERYTHING.schema.empty_table())
    metadata = pq.ParquetFile(path).metadata
    assert metadata.row_group(0).column(0).compression == "SNAPPY"
    assert pq.read_schema(path).field("span").type == INTERVAL


@pytest.mark.slow
@given(
    st.lists(st.none() | st.tuples(st.integers(-999, 999), st.integers(-999, 999), st.integers(-(10**12), 10**12))),
    st.integers(0, 3),
)
def test_intervals_are_split_and_joined(values: list[tuple[int, int, int] | None], skipped: int) -> None:
    spans = [None if value is None else pa.MonthDayNano([value[0], value[1], value[2] * 1000]) for value in values]
    table = pa.table({"span": pa.array(spans, pa.month_day_nano_interval())}).slice(skipped)
    stored = to_stored(table)
    assert stored.column("span").type == INTERVAL
    assert stored.column("span").to_pylist() == [
        None if value is None else dict(zip(("months", "days", "microseconds"), value, strict=True))
        for value in values[skipped:]
    ]
    assert to_schema(stored, table.schema).equals(table)


def test_failed_write_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(SqlError) as caught:
            write_table(path, EVERYTHING)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.sqlstate == "58030"
    assert not path.exists()


def test_sealed_intervals_are_whole_and_those_left_behind_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "16400"
    assert delete_sealed(folder) == 0
    table = pa.table({"a": [1, 2], "__lsn": [6, 7], "__ordinal": [0, 0]})
    paths = [seal(folder, after, upto, table.schema, table.to_batches()) for after, upto in ((7, 300), (0, 5), (5, 7))]
    assert read_table([paths[2]], table.schema).equals(table)
    assert seal(folder, 5, 7, table.schema, table.slice(1).to_batches()) == paths[2]
    assert read_table([paths[2]], table.schema).num_rows == 1
    (folder / f"{paths[0].name}.new").write_bytes(b"x")
    (folder / "files.jsonl").write_bytes(b"")
    assert delete_sealed(folder) == 4
    assert [path.name for path in folder.iterdir()] == ["files.jsonl"]


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.text(max_size=2)), unique=True))
def test_index_finds_each_key_and_no_other(keys: list[tuple[int, str | None]]) -> None:
    table = pa.table(
        {"a": pa.array([key[0] for key in keys], pa.int32()), "b": pa.array([key[1] for key in keys], pa.string())}
    )
    index = KeyIndex(table, ["a", "b"])
    assert len(index) == len(keys)
    assert [index.get(key) for key in keys] == list(range(len(keys)))
    assert index.get((6, "")) is None


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(-(2**15), 2**15 - 1), (-3, 40), (-(2**63), 2**63 - 1), (2**63 - 9, 2**63 - 1)])
@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.int64()])
@given(data=st.data())
def test_index_finds_integers_close_together_or_far_apart(
    kind: pa.DataType, bounds: tuple[int, int], data: st.DataObject
) -> None:
    half = 2 ** (kind.bit_width - 1)
    some = st.none() | st.integers(max(bounds[0], -half), min(bounds[1], half - 1)) if bounds[0] < half else st.none()
    keys = data.draw(st.lists(some, unique=True))
    index = KeyIndex(pa.table({"k": pa.array(keys, kind)}), ["k"])
    assert len(index) == len(keys)
    assert [index.get((key,)) for key in keys] == list(range(len(keys)))
    known = [key for key in keys if key is not None]
    assert all(index.get((key + step,)) is None for key in known for step in (-1, 1) if key + step not in keys)
    assert None in keys or index.get((None,)) is None


def test_index_of_a_single_key() -> None:
    table = pa.table({"k": pa.chunked_array([[3, 1], [None, 2]]), "v": [10, 20, 30, 40]})
    index = KeyIndex(table, ["k"])
    assert [index.get((key,)) for key in (1, 2, 3, None, 4)] == [1, 3, 0, 2, None]
