"""Spark reads the Parquet files of a file-fed stream as executor.files.reader does: the same values, LSNs and
ordinals."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.objects import ColumnDefinition, Stream
from catalog.values.errors import SqlError
from catalog.values.types import INT8
from executor.engine import ArrivedFiles, Inputs, Job
from executor.files.followed_folders import SourceFile
from executor.files.reader import read_files
from executor.spark.engine import SparkEngine
from planner.algebra.nodes import AggregateCall
from tests.rig.compare import assert_same_rows
from tests.spark.build import COLUMNS, STREAM, delta, grouped, listed, rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NAMES = ["k", "s", "i", "b", "n", "m", "f", "t", "ok", "d", "ts"]
Arrived = list[tuple[int, tuple[SourceFile, ...]]]


def stream(names: list[str] = NAMES, **options: str) -> Stream:
    columns = tuple(ColumnDefinition(name, COLUMNS[name]) for name in names)
    return Stream(STREAM, "feed", columns, tuple({"source": "files", **options}.items()))


def recorded(path: Path) -> SourceFile:
    stat = path.stat()
    return str(path), stat.st_size, stat.st_mtime_ns


def everything(spark: SparkEngine, folder: Path, feed: Stream, arrived: Arrived) -> list[tuple[object, ...]]:
    """All rows with LSN and ordinal, through Spark."""
    names = [item.name for item in feed.columns] + ["__lsn", "__ordinal"]
    leaf, c = delta(*names)
    statement, state = listed("all", leaf, [c[name] for name in names])
    inputs = Inputs({STREAM: ArrivedFiles(feed, tuple(arrived))})
    result = spark.run(Job(1, (statement,), (state,), inputs, 0, 9, folder / "out"))
    return tuples(pa.concat_tables([pq.read_table(path) for path in result.runs["all"]]))


def tuples(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(item.to_pylist() for item in table.columns), strict=True))


def check(spark: SparkEngine, folder: Path, feed: Stream, arrived: Arrived) -> int:
    """Checks that both ways of reading agree; returns the number of rows."""
    expected = [row for lsn, files in arrived for row in tuples(read_files(files, feed, lsn))]
    assert_same_rows(everything(spark, folder, feed, arrived), expected)
    return len(expected)


def test_parquet_with_several_row_groups_and_narrower_types(spark: SparkEngine, tmp_path: Path) -> None:
    table = rows(1000, seed=5).select(NAMES)
    table = table.set_column(0, "k", table.column("k").cast(pa.int16())).append_column(
        "extra", pa.nulls(1000, pa.int8())
    )
    files = []
    for index in range(2):
        path = tmp_path / f"{index}.parquet"
        pq.write_table(table.slice(index * 500, 500), path, row_group_size=100)
        files.append(recorded(path))
    assert check(spark, tmp_path, stream(format="parquet"), [(7, tuple(files))]) == 1000


def test_counting_rows_reads_no_column(spark: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(rows(3, seed=1), path)
    leaf, _ = delta()
    statement, state = grouped("g", leaf, [], [AggregateCall("count", (), INT8)], ["sum"])
    inputs = Inputs({STREAM: ArrivedFiles(stream(["k"]), ((1, (recorded(path),)),))})
    result = spark.run(Job(1, (statement,), (state,), inputs, 0, 9, tmp_path / "out"))
    assert tuples(pq.read_table(result.runs["g"][0])) == [(3,)]


@pytest.mark.parametrize("text", [b"a\0b", b"caf\xe9"])
def test_what_is_no_text_is_an_error(spark: SparkEngine, tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.parquet"
    made = pa.Array.from_buffers(pa.string(), 1, pa.array([text]).buffers())
    pq.write_table(pa.table({"t": made}), path)
    with pytest.raises(SqlError, match="22021"):
        everything(spark, tmp_path, stream(["t"]), [(1, (recorded(path),))])


def test_a_file_that_changed_or_vanished(spark: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(rows(1, seed=1), path)
    arrived: Arrived = [(1, (recorded(path),))]
    feed = stream(["k", "i"])
    pq.write_table(rows(20, seed=1), path)
    with pytest.raises(SqlError) as changed:
        everything(spark, tmp_path, feed, arrived)
    path.unlink()
    with pytest.raises(SqlError) as vanished:
        everything(spark, tmp_path, feed, arrived)
    assert (changed.value.sqlstate, vanished.value.sqlstate) == ("58P01", "58P01")


def test_a_parquet_file_without_a_column(spark: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(rows(1, seed=1).select(["k"]), path)
    with pytest.raises(SqlError, match='no column "i"'):
        everything(spark, tmp_path, stream(["k", "i"]), [(1, (recorded(path),))])
