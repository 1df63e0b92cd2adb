"""Spark reads a file-fed stream's files as executor.files.following does: the same values, LSNs and ordinals."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.errors import SqlError
from catalog.objects import ColumnDefinition, Stream
from catalog.types import INT8
from executor.engine import Inputs, Job
from executor.files.following import SourceFile, read_files
from executor.spark.engine import SparkEngine
from planner.expression import AggregateCall
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
    job = Job(1, (statement,), (state,), Inputs(()), 0, 9, folder / "out")
    result = spark.run_files(job, feed, arrived)
    return tuples(pa.concat_tables([pq.read_table(path) for path in result.runs["all"]]))


def tuples(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(item.to_pylist() for item in table.columns), strict=True))


def check(spark: SparkEngine, folder: Path, feed: Stream, arrived: Arrived) -> int:
    """Both ways of reading agree; the number of rows."""
    expected = [row for lsn, files in arrived for row in tuples(read_files(files, feed, lsn))]
    assert_same_rows(everything(spark, folder, feed, arrived), expected)
    return len(expected)


def text_of(table: pa.Table, header: bool) -> str:
    """CSV as PostgreSQL writes it."""

    def field(value: object) -> str:
        if value is None:
            return ""
        text = {True: "t", False: "f"}[value] if isinstance(value, bool) else str(value)
        plain = text != "" and not set(text) & set(',"\n') and text == text.strip()
        return text if plain else '"' + text.replace('"', '""') + '"'

    lines = [",".join(map(field, row)) for row in tuples(table)]
    return "".join(f"{line}\n" for line in ([",".join(table.column_names)] if header else []) + lines)


@pytest.mark.parametrize("header", ["true", "false"])
def test_csv(spark: SparkEngine, tmp_path: Path, header: str) -> None:
    arrived: Arrived = []
    for lsn in (3, 4):
        files = []
        for index in range(2):
            path = tmp_path / f"{lsn}-{index}.csv"
            path.write_text(text_of(rows(50, seed=lsn * 10 + index).select(NAMES), header == "true"), encoding="utf-8")
            files.append(recorded(path))
        arrived.append((lsn, tuple(files)))
    assert check(spark, tmp_path, stream(format="csv", header=header), arrived) == 200


@pytest.mark.parametrize("names", [["t"], ["k", "t"]])
def test_quoted_fields_of_csv_may_have_several_lines(spark: SparkEngine, tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "a.csv"
    fields = ('"one\n\n""two"", "', "plain", '""', '"\r\n"')
    path.write_bytes("".join("7," * (len(names) - 1) + field + "\n" for field in fields * 50).encode())
    assert check(spark, tmp_path, stream(names, format="csv"), [(1, (recorded(path),))]) == 200


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ('7,"one\ntwo"\r\n8,three\r\n9,"four"\r\n10,five', "false"),  # as Excel writes cells of several lines
        ('7,"one\r\ntwo"\n8,three\n9,"four"\n10,five\n', "false"),
        ('7,"one\rtwo"\r\n8,three\r\n9,"four"\r\n10,five\r\n', "false"),
        ("7,one\n8,two\r\n9,three\n10,four", "false"),
        ('k,"first\nname"\r\n7,one\r\n8,two\r\n9,three\r\n10,four', "true"),
    ],
)
def test_lines_of_csv_end_as_the_file_s_do(spark: SparkEngine, tmp_path: Path, text: str, header: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    fed = stream(["k", "t"], format="csv", header=header)
    assert check(spark, tmp_path, fed, [(1, (recorded(path),))]) == 4


def test_truth_values_of_csv(spark: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{word}\n" for word in ("t", "f", "true", "FALSE", "Yes", "n", "1", "0")))
    assert check(spark, tmp_path, stream(["ok"], format="csv"), [(1, (recorded(path),))]) == 8
    path.write_text("t\ntr\n")
    with pytest.raises(SqlError, match="22P02"):
        everything(spark, tmp_path, stream(["ok"], format="csv"), [(1, (recorded(path),))])


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


def test_json(spark: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        '{"k": 1, "t": "x", "other": 5}\n{"t": "é", "ok": true, "f": 1.5}\n{"d": "2024-02-29"}\n', encoding="utf-8"
    )
    assert check(spark, tmp_path, stream(["k", "t", "ok", "f", "d"], format="json"), [(2, (recorded(path),))]) == 3


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_counting_rows_reads_no_column(spark: SparkEngine, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(rows(3, seed=1), path)
    else:
        path.write_text('{"k": 1}\n' * 3 if kind == "json" else "1\n" * 3, encoding="utf-8")
    leaf, _ = delta()
    statement, state = grouped("g", leaf, [], [AggregateCall("count", (), INT8)], ["sum"])
    job = Job(1, (statement,), (state,), Inputs(()), 0, 9, tmp_path / "out")
    result = spark.run_files(job, stream(["k"], format=kind), [(1, (recorded(path),))])
    assert tuples(pq.read_table(result.runs["g"][0])) == [(3,)]


@pytest.mark.parametrize("line", ["1,oops", "99999999999,x", "x,1"])
def test_a_record_that_does_not_fit_is_22p04(spark: SparkEngine, tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"1,2\n{line}\n", encoding="utf-8")
    with pytest.raises(SqlError) as caught:
        everything(spark, tmp_path, stream(["k", "i"], format="csv"), [(1, (recorded(path),))])
    assert caught.value.sqlstate == "22P04"


def test_a_file_that_changed_or_vanished(spark: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,2\n", encoding="utf-8")
    arrived: Arrived = [(1, (recorded(path),))]
    feed = stream(["k", "i"], format="csv")
    path.write_text("1,2\n3,4\n", encoding="utf-8")
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
