"""Large batches as packed blocks: they are read back unchanged, for all types, ranges and nulls."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest

from executor.commit.encoding import packed_columns as packed
from executor.commit.encoding.payloads import decode_batches, encode_batches

ROWS = packed.FEWEST_ROWS
GENERATOR = np.random.default_rng(7)


def there_and_back(*arrays: pa.Array) -> pa.RecordBatch:
    """A batch with these columns, written to a packed block and read back."""
    batch = pa.record_batch(list(arrays), [f"c{index}" for index in range(len(arrays))])
    pieces = packed.encode(batch)
    assert pieces is not None
    data = b"".join(pieces)
    assert len(data) % 8 == 0
    result = packed.decode(pa.py_buffer(data))
    result.validate(full=True)
    assert result.equals(batch)
    assert result.schema.equals(batch.schema)
    return result


def between(low: int, high: int) -> list[int]:
    """Numbers within a range, including both ends."""
    return [low, high, *GENERATOR.integers(low, high, ROWS - 2, endpoint=True).tolist()]


def with_nulls(values: list[object]) -> list[object]:
    return [None if index % 3 == 1 else value for index, value in enumerate(values)]


@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us")])
@pytest.mark.parametrize("width", [0, 1, 8, 9, 15, 16, 17, 31, 32, 33, 63])
def test_numbers_of_every_width(kind: pa.DataType, width: int) -> None:
    most = 2 ** (kind.bit_width - 1) - 1
    span = min(2**width - 1, most)
    for low in (0, -span // 2, most - span, -most - 1):
        values = pa.array(between(low, low + span), pa.int64())
        column = values.cast(pa.int32()).cast(kind) if kind == pa.date32() else values.cast(kind)
        there_and_back(column)
        if kind == pa.int64():
            there_and_back(pa.array(with_nulls(column.to_pylist()), kind))


def test_the_whole_range_of_64_bits() -> None:
    there_and_back(pa.array([-(2**63), 2**63 - 1, *between(-5, 5)], pa.int64()))


@pytest.mark.parametrize("precision", [1, 9, 15, 18, 19, 38])
def test_decimals(precision: int) -> None:
    most = 10**precision - 1
    for low, high in ((0, 9), (-9, 0), (-most, most), (most - 3, most), (-most, -most + 3)):
        low, high = max(low, -most), min(high, most)
        numbers = [low, high, *(low + (high - low) * index // ROWS for index in range(ROWS))]
        with decimal.localcontext() as context:
            context.prec = 50
            values: list[object] = [decimal.Decimal(number).scaleb(-1) for number in numbers]
        kind = pa.decimal128(precision, 1)
        there_and_back(pa.array(values, kind), pa.array(with_nulls(values), kind))


def test_what_stands_under_a_null_does_not_matter() -> None:
    words = np.tile(np.array([5, -1, 2**62, 77], "<i8"), ROWS // 2)
    valid = pa.py_buffer(np.packbits(np.zeros(ROWS, np.uint8), bitorder="little"))
    column = pa.Array.from_buffers(pa.decimal128(15, 2), ROWS, [valid, pa.py_buffer(words)])
    assert there_and_back(column).column(0).null_count == ROWS


@pytest.mark.parametrize("length", [0, 1, 20, 300, 70_000])
def test_texts(length: int) -> None:
    texts: list[object] = ["x" * (index * 7 % (length + 1)) for index in range(64)] * (ROWS // 64)
    noise: list[object] = [GENERATOR.bytes(index % min(length + 1, 40)) for index in range(ROWS)]
    there_and_back(pa.array(texts), pa.array(with_nulls(texts), pa.string()), pa.array(noise, pa.binary()))


def test_texts_that_begin_within_their_buffer() -> None:
    whole = pa.array(["skipped", *(f"text {index}" for index in range(ROWS))])
    offsets = whole.buffers()[1].slice(4)
    column = pa.Array.from_buffers(pa.string(), ROWS, [None, offsets, whole.buffers()[2]])
    there_and_back(column)
    long = pa.array(["skipped", *("y" * 70_000 if index == 9 else "" for index in range(ROWS))])
    there_and_back(pa.Array.from_buffers(pa.string(), ROWS, [None, long.buffers()[1].slice(4), long.buffers()[2]]))


def test_other_types_and_nulls_only() -> None:
    numbers = GENERATOR.normal(size=ROWS)
    there_and_back(
        pa.array(numbers),
        pa.array(numbers.astype(np.float32)),
        pa.array(numbers > 0),
        pa.array(with_nulls((numbers > 0).tolist()), pa.bool_()),
        pa.nulls(ROWS, pa.int32()),
        pa.nulls(ROWS, pa.string()),
        pa.array([pa.MonthDayNano([1, 2, index]) for index in range(ROWS)]),
        pa.array(between(0, 10**15), pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        pa.array(between(0, 86_399_999_999), pa.int64()).cast(pa.time64("us")),
    )


def test_nullability_and_names_are_kept() -> None:
    schema = pa.schema([pa.field("a b", pa.int32(), nullable=False), pa.field("ü", pa.string())])
    batch = pa.record_batch([pa.array(range(ROWS), pa.int32()), pa.array(["z"] * ROWS)], schema=schema)
    pieces = packed.encode(batch)
    assert pieces is not None
    assert packed.decode(pa.py_buffer(b"".join(pieces))).schema.equals(schema)


def test_what_is_not_packed_goes_another_way() -> None:
    numbers = pa.record_batch([pa.array(range(ROWS + 1), pa.int64())], ["n"])
    nested = pa.record_batch([pa.array([[1]] * ROWS)], ["n"])
    for batch in (numbers.slice(1), numbers.slice(0, ROWS - 1), nested):
        assert packed.encode(batch) is None
    together = [numbers, numbers.slice(1)]
    for batches in ([numbers], together, [numbers, numbers], [nested]):
        found = decode_batches(pa.py_buffer(b"".join(encode_batches(batches))))
        assert pa.Table.from_batches(found).equals(pa.Table.from_batches(batches))


def test_regular_rows_are_short() -> None:
    prices = pa.array([decimal.Decimal(index) / 100 for index in range(ROWS)], pa.decimal128(15, 2))
    batch = pa.record_batch([prices, pa.array(range(ROWS), pa.int64()), pa.array(["A"] * ROWS)], ["p", "n", "t"])
    assert sum(len(piece) for piece in encode_batches([batch])) < 6 * ROWS
