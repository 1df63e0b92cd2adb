"""Small frames and whole records survive their encoding."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.commit.encoding import frames
from executor.commit.encoding.payloads import Kind, decode_record, decode_references, encode_record
from executor.commit.records import (
    CatalogChange,
    FilesArrived,
    Followed,
    Part,
    RowValues,
    Spooled,
    SpoolReference,
    StreamRows,
    TableChange,
)

_COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "flag": (pa.bool_(), st.booleans()),
    "tiny": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "small": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "big": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "real": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "text": (pa.string(), st.text(max_size=20)),
    "bytes": (pa.binary(), st.binary(max_size=20)),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times()),
    "stamp": (pa.timestamp("us"), st.datetimes()),
    "zoned": (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    "amount": (pa.decimal128(12, 2), st.integers(-(10**11), 10**11).map(lambda n: Decimal(n).scaleb(-2))),
    "span": (
        pa.month_day_nano_interval(),
        st.tuples(*[st.integers(-1000, 1000)] * 3).map(lambda t: pa.MonthDayNano([t[0], t[1], t[2] * 1000])),
    ),
}


@st.composite
def batches(draw: st.DrawFn, most_rows: int = 12) -> pa.RecordBatch:
    """A batch with a few columns of any type that a stream may have."""
    (batch,) = draw(alike(most_rows, 1))
    return batch


@st.composite
def alike(draw: st.DrawFn, most_rows: int = 3, most: int = 6) -> list[pa.RecordBatch]:
    """Batches with the same columns; some columns have no NULL."""
    names = draw(st.lists(st.sampled_from(sorted(_COLUMNS)), min_size=1, max_size=5, unique=True))
    values = [_COLUMNS[name][1] | st.none() if draw(st.booleans()) else _COLUMNS[name][1] for name in names]
    found = []
    for rows in draw(st.lists(st.integers(1, most_rows), min_size=1, max_size=most)):
        columns = [
            pa.array(draw(st.lists(value, min_size=rows, max_size=rows)), _COLUMNS[name][0])
            for name, value in zip(names, values, strict=True)
        ]
        found.append(pa.RecordBatch.from_arrays(columns, names=names))
    return found


@pytest.mark.slow
@given(batches())
def test_frame_gives_the_batch_back(batch: pa.RecordBatch) -> None:
    frame = frames.encode(batch)
    assert frame is not None
    decoded = frames.decode(pa.py_buffer(frame))
    decoded.validate(full=True)
    assert decoded.equals(batch)


@pytest.mark.slow
@given(alike())
def test_frames_are_decoded_together(some: list[pa.RecordBatch]) -> None:
    encoded = [frames.encode(batch) for batch in some]
    rows, counts = frames.decode_all([frame for frame in encoded if frame is not None])
    rows.validate(full=True)
    assert rows.equals(pa.Table.from_batches(some))
    assert counts == [batch.num_rows for batch in some]


@pytest.mark.slow
@given(batches())
def test_values_give_the_frame_of_their_batch(batch: pa.RecordBatch) -> None:
    rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    encoder = frames.ValuesEncoder(batch.schema)
    assert encoder.is_possible
    frame = encoder.encode(rows)
    assert frame is not None
    decoded = frames.decode(pa.py_buffer(frame))
    decoded.validate(full=True)
    assert decoded.equals(batch)
    (part,) = _round_trip((RowValues(7, rows, frame),))
    assert part == StreamRows(7, (batch,))


_KINDS = {
    pa.int16(): st.integers(-(1 << 15), (1 << 15) - 1),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.float64(): st.floats(),
    pa.string(): st.one_of(st.text(max_size=20), st.integers(0, 300).map("ä".__mul__)),
}


@given(st.data())
def test_a_row_of_values_is_read_back(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(_KINDS)), min_size=1, max_size=6))
    schema = pa.schema([(f"c{place}", kind) for place, kind in enumerate(kinds)])
    row = tuple(data.draw(st.one_of(st.none(), _KINDS[kind])) for kind in kinds)
    frame = frames.ValuesEncoder(schema).encode([row])
    assert frame is not None
    expected = pa.record_batch([pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)], schema=schema)
    assert frame == frames.encode(expected)
    (part,) = decode_record(pa.py_buffer(b"".join(encode_record((RowValues(7, [row], frame),)).pieces)))
    assert isinstance(part, StreamRows)
    assert frames.encode(part.batches[0]) == frame


def test_values_that_make_no_frame() -> None:
    assert not frames.ValuesEncoder(pa.schema([("a", pa.list_(pa.int64()))])).is_possible
    texts = frames.ValuesEncoder(pa.schema([("a", pa.string())]))
    assert texts.encode([("x" * frames.LARGEST,)]) is None
    with pytest.raises(pa.ArrowException):
        frames.ValuesEncoder(pa.schema([("a", pa.int16())])).encode([(1 << 15,)])
    with pytest.raises(pa.ArrowException):
        frames.ValuesEncoder(pa.schema([("a", pa.int32())])).encode([("1",)])


@pytest.mark.parametrize(
    "batch",
    [
        pa.record_batch([pa.array([1, 2, 3])], names=["sliced"]).slice(1),
        pa.record_batch([pa.array([[1], [2, 3]])], names=["nested"]),
        pa.record_batch([pa.array([], pa.int64())], names=["empty"]),
        pa.record_batch([pa.array(["x" * frames.LARGEST])], names=["large"]),
        pa.record_batch([pa.array(range(frames.MOST_ROWS + 1))], names=["many"]),
    ],
    ids=lambda batch: batch.schema.names[0],
)
def test_frame_leaves_to_ipc(batch: pa.RecordBatch) -> None:
    assert frames.encode(batch) is None
    (part,) = _round_trip((StreamRows(1, (batch,)),))
    assert isinstance(part, StreamRows)
    assert [each.to_pydict() for each in part.batches] == ([batch.to_pydict()] if batch.num_rows else [])


def test_frame_of_one_row_is_small() -> None:
    frame = frames.encode(pa.record_batch([pa.array([1]), pa.array(["abc"])], names=["k", "v"]))
    assert frame is not None
    assert len(frame) <= 96


@pytest.mark.slow
@given(st.lists(batches(most_rows=3), min_size=1, max_size=3), st.data())
def test_record_gives_its_parts_back(found: list[pa.RecordBatch], data: st.DataObject) -> None:
    parts: tuple[Part, ...] = (
        *(StreamRows(number + 1, (batch, batch)) for number, batch in enumerate(found)),
        TableChange(7, pa.Table.from_batches([found[0]]), None),
        TableChange(8, None, found[0].schema.empty_table()),
        TableChange(9),
        Spooled(3, (SpoolReference(1, 64, 10, 1000), SpoolReference(2, 64, 5, 400))),
        FilesArrived(4, (("/data/ä b.parquet", 17, 1_700_000_000_000_000_001),), "parquet"),
        FilesArrived(16400, (("/data/a.csv", 17, 1), ("/data/b.csv", 0, 2)), "csv", (3, None), 7),
        Followed(16400, 9),
        CatalogChange('{"add": "ü"}'),
    )
    record = tuple(data.draw(st.permutations(parts)))
    decoded = _round_trip(record)
    assert len(decoded) == len(record)
    for part, again in zip(record, decoded, strict=True):
        _assert_same(part, again)


def test_references_are_found_without_decoding_rows() -> None:
    references = (SpoolReference(1, 64, 10, 1000), SpoolReference(2, 64, 5, 400))
    encoded = encode_record((CatalogChange("{}"), Spooled(3, references[:1]), Spooled(4, references[1:])))
    assert encoded.kind is Kind.COMMIT_OF_DATA
    assert encoded.references == references
    assert decode_references(pa.py_buffer(b"".join(encoded.pieces))) == references


def test_one_streams_rows_leave_the_others_out() -> None:
    batch = pa.record_batch([pa.array([1])], names=["a"])
    encoded = encode_record((StreamRows(1, (batch,)), StreamRows(2, (batch,)), TableChange(3, pa.table(batch), None)))
    decoded = decode_record(pa.py_buffer(b"".join(encoded.pieces)), relations=(2,))
    assert [part.batches for part in decoded if isinstance(part, StreamRows)] == [(), (batch,)]
    assert decoded[2] == TableChange(3)


def _round_trip(record: tuple[Part, ...]) -> tuple[Part, ...]:
    encoded = encode_record(record)
    payload = b"".join(encoded.pieces)
    assert len(payload) == encoded.length
    return decode_record(pa.py_buffer(payload))


def _assert_same(part: Part, again: Part) -> None:
    match part, again:
        case StreamRows(stream, own), StreamRows(other, found):
            assert stream == other
            assert pa.Table.from_batches(found).equals(pa.Table.from_batches(own))
        case TableChange(table, inserted, deleted), TableChange(other, again_inserted, again_deleted):
            assert table == other
            for before, after in ((inserted, again_inserted), (deleted, again_deleted)):
                assert (before is None) == (after is None)
                assert before is None or before.equals(after)
        case _:
            assert part == again
