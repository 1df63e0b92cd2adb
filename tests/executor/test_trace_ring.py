"""The ring: a delta does not depend on which rows were in memory, on batch sizes, or on when rows were merged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from executor.commit.encoding.frames import ValuesEncoder
from executor.commit.log import Log
from executor.commit.records import Part, RowValues, Spooled, StreamRows, TransactionRecord
from executor.commit.recovery import StreamReader, replay
from executor.commit.sequencer import Sequencer
from executor.traces.budget import TraceBudget
from executor.traces.layout import Layout
from executor.traces.ring import Ring
from tests.rig.sampling import examples

SCHEMA = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
STREAM = 7
OTHER = 8
SEGMENT = 16 * 1024


class Place(NamedTuple):
    """A row and its position."""

    lsn: int
    ordinal: int
    a: int
    b: str | None


def rows(first: int, count: int) -> pa.RecordBatch:
    values = range(first, first + count)
    texts = [None if value % 5 == 0 else f"text {value}" for value in values]
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64()), pa.array(texts, pa.string())], schema=SCHEMA)


def row_values(batch: pa.RecordBatch) -> RowValues:
    """The same rows in the form in which an INSERT passes them."""
    values = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    frame = ValuesEncoder(SCHEMA).encode(values)
    assert frame is not None
    return RowValues(STREAM, values, frame)


def places(table: pa.Table) -> list[Place]:
    columns = [table.column(name).to_pylist() for name in ("__lsn", "__ordinal", "a", "b")]
    return [Place(*values) for values in zip(*columns, strict=True)]


def publish(ring: Ring, lsn: int, record: TransactionRecord) -> None:
    for part in record:
        if isinstance(part, StreamRows | RowValues | Spooled) and part.stream == STREAM:
            ring.publish(lsn, part)


class Fixture:
    """A log, and rings with different budgets that all get the same records."""

    def __init__(self, folder: Path, budgets: tuple[int, ...], spool_memory: int) -> None:
        self.log = Log(folder, SEGMENT)
        self.sequencer = Sequencer(self.log, spool_memory=spool_memory)
        self.rings = [
            Ring(Layout.plain(SCHEMA), StreamReader(self.log, STREAM), TraceBudget(budget)) for budget in budgets
        ]
        self.sequencer.on_publish(self._publish)
        self.expected: list[Place] = []
        self.count = 0

    def _publish(self, lsn: int, record: TransactionRecord) -> None:
        for ring in self.rings:
            publish(ring, lsn, record)

    def commit(self, parts: list[tuple[str, list[int]]]) -> None:
        """Commits a transaction; a part is (kind, sizes of its batches)."""
        made: list[Part] = []
        ordinal, lsn = 0, self.sequencer.visible + 1
        for kind, sizes in parts:
            batches = []
            for size in sizes:
                batches.append(rows(self.count, size))
                if kind != "other":
                    values = zip(*(column.to_pylist() for column in batches[-1].columns), strict=True)
                    self.expected += [Place(lsn, ordinal + at, *value) for at, value in enumerate(values)]
                    ordinal += size
                self.count += size
            if kind == "values":
                made += [row_values(batch) for batch in batches if batch.num_rows]
            elif kind == "spooled":
                made.append(Spooled(STREAM, tuple(self.sequencer.spool(STREAM, batch) for batch in batches)))
            else:
                made.append(StreamRows(OTHER if kind == "other" else STREAM, tuple(batches)))
        assert self.sequencer.submit(made, sync=False).wait(30)

    def close(self) -> None:
        self.sequencer.close()
        self.log.close()


_parts = st.tuples(st.sampled_from(["rows", "values", "spooled", "other"]), st.lists(st.integers(0, 200), max_size=3))
_small = st.sampled_from([[("rows", [1])], [("values", [1])]])
_transactions = st.lists(_small | st.lists(_parts, max_size=3), max_size=20)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(_transactions, st.integers(0, 20_000), st.sampled_from([0, 2000, 1 << 30]), st.data())
def test_tiny_budgets_give_what_infinite_ones_give(
    tmp_path_factory: pytest.TempPathFactory,
    transactions: list[list[tuple[str, list[int]]]],
    budget: int,
    spool_memory: int,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("ring")
    with closing(Fixture(folder, (0, budget, 1 << 40), spool_memory)) as fixture:
        for transaction in transactions:
            fixture.commit(transaction)
        last = fixture.sequencer.visible
        after = data.draw(st.integers(0, last), label="after")
        _assert_all_alike(fixture, budget, after, data.draw(st.integers(after, last), label="upto"))
        assert fixture.rings[0].bytes == 0
        assert fixture.rings[1].bytes <= budget
    shutil.rmtree(folder)


def _assert_all_alike(fixture: Fixture, budget: int, after: int, upto: int) -> None:
    expected = [place for place in fixture.expected if after < place.lsn <= upto]
    replayed = Ring(Layout.plain(SCHEMA), StreamReader(fixture.log, STREAM), TraceBudget(budget))
    for lsn, record in replay(fixture.log, 0):
        publish(replayed, lsn, record)
    above = sum(place.lsn > after for place in fixture.expected)
    for ring in (*fixture.rings, replayed):
        assert ring.rows_after(after) == above  # first: of single rows that are no batch yet, too
        delta = ring.delta(after, upto)
        assert places(delta) == expected
        assert ring.rows(after, upto) == len(expected)
        unplaced = ring.delta(after, upto, places=False)
        assert unplaced.schema == delta.schema
        assert unplaced.drop_columns(["__lsn", "__ordinal"]).equals(delta.drop_columns(["__lsn", "__ordinal"]))
        assert unplaced.column("__lsn").null_count == unplaced.column("__ordinal").null_count == delta.num_rows
        assert delta.schema.field("a") == SCHEMA.field("a")


@pytest.fixture
def fixture(tmp_path: Path) -> Iterator[Fixture]:
    with closing(Fixture(tmp_path / "log", (1 << 30,), 1 << 30)) as fixture:
        yield fixture


@pytest.mark.slow
def test_many_single_rows_become_few_chunks(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", SEGMENT)
    ring = Ring(Layout.plain(SCHEMA), StreamReader(log, STREAM), TraceBudget(1 << 30))
    for lsn in range(1, 10_001):
        assert ring.append(lsn, [rows(lsn, 1)]) == 1
    delta = ring.delta(0, 10_000)
    assert delta.num_rows == 10_000
    assert delta.column("a").num_chunks < 200
    assert delta.column("a").to_pylist() == list(range(1, 10_001))
    assert delta.column("__lsn").to_pylist() == list(range(1, 10_001))
    assert ring.delta(4321, 4322).column("a").to_pylist() == [4322]
    assert ring.rows(17, 9000) == 8983
    log.close()


@pytest.mark.slow
@pytest.mark.parametrize("asked", [0, 7, 64, 1000])
def test_values_become_few_chunks(tmp_path: Path, asked: int) -> None:
    """However often rows are read in between."""
    log = Log(tmp_path / "log", SEGMENT)
    ring = Ring(Layout.plain(SCHEMA), StreamReader(log, STREAM), TraceBudget(1 << 30))
    for lsn in range(1, 5001):
        assert ring.publish(lsn, row_values(rows(lsn, 1))) == 1
        if asked and lsn % asked == 0:
            assert ring.rows(0, lsn) == lsn
    delta = ring.delta(0, 5000)
    assert delta.column("a").num_chunks < 200
    assert [place.lsn for place in places(delta)] == delta.column("a").to_pylist() == list(range(1, 5001))
    assert ring.delta(4321, 4322).column("a").to_pylist() == [4322]
    assert ring.buffered_rows == 5000
    log.close()


def test_large_batches_are_not_copied(fixture: Fixture) -> None:
    ring = fixture.rings[0]
    batch = rows(0, 5000)
    ring.append(1, [batch])
    ring.append(2, [rows(5000, 10)])
    found = ring.delta(0, 2).column("a").chunk(0)
    assert found.buffers()[1].address == batch.column(0).buffers()[1].address


def test_no_commit_copies_much(fixture: Fixture) -> None:
    """A writer waits while rows are merged: batches of some hundred rows are not copied, however many arrive."""
    ring = fixture.rings[0]
    for lsn in range(1, 201):
        ring.append(lsn, [rows(300 * lsn, 300)])
    assert [len(chunk) for chunk in ring.delta(0, 200).column("a").chunks] == [300] * 200


def test_release_frees_memory_and_forgets(fixture: Fixture) -> None:
    for _ in range(100):
        fixture.commit([("rows", [10])])
    (ring,) = fixture.rings
    before = ring.bytes
    assert (ring.buffered_rows, ring.total_rows) == (1000, 1000)
    ring.release(70)
    assert ring.bytes < before
    assert places(ring.delta(70, 100)) == [place for place in fixture.expected if place.lsn > 70]
    assert ring.rows(80, 100) == 200
    with pytest.raises(SqlError) as caught:
        ring.delta(69, 100)
    assert caught.value.sqlstate == "72000"
    ring.release(100)
    assert ring.bytes == 0
    assert ring.delta(100, 100).num_rows == 0
    fixture.commit([("rows", [3])])
    assert ring.rows(100, 101) == 3


def test_empty_delta_has_the_schema(fixture: Fixture) -> None:
    delta = fixture.rings[0].delta(0, 5)
    assert delta.num_rows == 0
    assert delta.schema.names == ["a", "b", "__lsn", "__ordinal"]
