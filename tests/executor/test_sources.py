"""Files count once they are complete, must not change, and are read as the stream's rows in order of arrival."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.objects import ColumnDefinition, Stream
from catalog.values.errors import SqlError
from catalog.values.types import BOOL, DATE, FLOAT8, INT8, TEXT, TIMESTAMP, numeric
from executor.files.followed_folders import ROW_BITS, FileSource, SourceFile
from executor.files.reader import read_files

COLUMNS = (
    ColumnDefinition("id", INT8),
    ColumnDefinition("name", TEXT),
    ColumnDefinition("price", numeric(7, 2)),
    ColumnDefinition("day", DATE),
    ColumnDefinition("at", TIMESTAMP),
    ColumnDefinition("ok", BOOL),
    ColumnDefinition("ratio", FLOAT8),
)
SECOND = 1_000_000_000


class Clock:
    """A clock in nanoseconds that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000 * SECOND

    def __call__(self) -> int:
        return self.now


def stream(**options: str) -> Stream:
    return Stream(16400, "feed", COLUMNS, tuple({"source": "files", **options}.items()))


def write(path: Path, content: str | bytes, mtime: int) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, ns=(mtime, mtime))
    return path


def recorded(path: Path) -> SourceFile:
    stat = path.stat()
    return str(path), stat.st_size, stat.st_mtime_ns


def known(files: list[SourceFile]) -> dict[str, tuple[int, int]]:
    return {path: (size, mtime) for path, size, mtime in files}


def test_a_file_counts_when_two_looks_saw_the_same(tmp_path: Path) -> None:
    clock = Clock()
    source = FileSource(tmp_path, "csv", "s", clock)
    file = write(tmp_path / "a.csv", "1\n", clock.now)
    assert source.poll({}) == []
    write(file, "1\n2\n", clock.now)
    assert source.poll({}) == [], "it grew since"
    assert source.poll({}) == [recorded(file)]


def test_a_file_that_is_not_taken_is_found_again(tmp_path: Path) -> None:
    """Also at the next look within the first second: a refused file stays refused."""
    clock = Clock()
    file = write(tmp_path / "a.csv", "wrong\n", clock.now)
    source = FileSource(tmp_path, "csv", "s", clock)
    assert [source.poll({}) for _ in range(4)] == [[], *[[recorded(file)]] * 3]


def test_an_old_file_counts_at_once(tmp_path: Path) -> None:
    clock = Clock()
    file = write(tmp_path / "a.csv", "1\n", clock.now - SECOND - 1)
    assert FileSource(tmp_path, "csv", "s", clock).poll({}) == [recorded(file)]


def test_files_come_oldest_first_and_only_once(tmp_path: Path) -> None:
    clock = Clock()
    source = FileSource(tmp_path, "csv", "s", clock)
    late = write(tmp_path / "a.csv", "1\n", clock.now - 2 * SECOND)
    early = write(tmp_path / "b.csv", "1\n", clock.now - 3 * SECOND)
    found = source.poll({})
    assert found == [recorded(early), recorded(late)]
    assert source.poll(known(found)) == []


def test_work_in_progress_other_kinds_and_folders_do_not_count(tmp_path: Path) -> None:
    clock = Clock()
    for name in ("_SUCCESS", "_temporary.csv", ".hidden.csv", "data.parquet", "notes.md"):
        write(tmp_path / name, "1\n", 0)
    (tmp_path / "folder.csv").mkdir()
    assert FileSource(tmp_path, "csv", "s", clock).poll({}) == []


def test_what_arrived_must_stay(tmp_path: Path) -> None:
    clock = Clock()
    source = FileSource(tmp_path, "csv", "s", clock)
    file = write(tmp_path / "a.csv", "1\n", 0)
    before = known(source.poll({}))
    write(file, "2\n", 5)
    with pytest.raises(SqlError) as changed:
        source.poll(before)
    assert (changed.value.sqlstate, "a.csv" in changed.value.message) == ("58P01", True)
    file.unlink()
    with pytest.raises(SqlError) as vanished:
        source.poll(before)
    assert (vanished.value.sqlstate, "no longer exists" in vanished.value.message) == ("58P01", True)


def test_a_folder_that_does_not_exist_is_58p01(tmp_path: Path) -> None:
    with pytest.raises(SqlError) as caught:
        FileSource(tmp_path / "gone", "csv", "s").poll({})
    assert caught.value.sqlstate == "58P01"


CSV = (
    "id,name,price,day,at,ok,ratio\n"
    '1,"a ""b"", c",12.345,2024-02-29,2024-01-01 10:11:12.5,true,0.5\n'
    '2,"",-12.345,,,false,\n'
    "3,,,,,,1e3\n"
)
ROWS = [
    (1, 'a "b", c', Decimal("12.35"), dt.date(2024, 2, 29), dt.datetime(2024, 1, 1, 10, 11, 12, 500_000), True, 0.5),
    (2, "", Decimal("-12.35"), None, None, False, None),
    (3, None, None, None, None, None, 1000.0),
]


def values(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(table.column(item.name).to_pylist() for item in COLUMNS), strict=True))


def test_csv_is_postgresql_s(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", CSV, 0)
    table = read_files([recorded(file)], stream(format="csv", header="true"), 42)
    assert values(table) == ROWS
    assert [field.type for field in table.schema][:-2] == [item.type.arrow for item in COLUMNS]


def test_quoted_fields_of_csv_may_have_several_lines(tmp_path: Path) -> None:
    """Wherever the reader's portions of a large file end, and whatever else the quotes contain."""
    text = 'one\n\n"two", "",\r\nthree'
    fed = Stream(1, "s", (ColumnDefinition("t", TEXT),), (("format", "csv"),))
    file = write(tmp_path / "a.csv", '"{}"\n'.format(text.replace('"', '""')) * 100_000, 0)
    read = read_files([recorded(file)], fed, 1)
    assert (read.num_rows, read.column("t").unique().to_pylist()) == (100_000, [text])


def test_truth_values_of_csv_are_those_that_copy_writes_and_more(tmp_path: Path) -> None:
    fed = Stream(1, "s", (ColumnDefinition("b", BOOL),), (("format", "csv"),))
    file = write(tmp_path / "a.csv", "t\nf\nTrue\nFALSE\nyes\nN\n1\n0\n", 0)
    assert read_files([recorded(file)], fed, 1).column("b").to_pylist() == [True, False] * 4


def test_json_lines_by_name(tmp_path: Path) -> None:
    text = '{"name": "x", "id": 1, "other": [1], "price": "1.00"}\n{"id": 2, "ok": true, "day": "2024-01-01"}\n'
    file = write(tmp_path / "a.json", text, 0)
    table = read_files([recorded(file)], stream(format="json"), 42)
    assert values(table) == [
        (1, "x", Decimal("1.00"), None, None, None, None),
        (2, None, None, dt.date(2024, 1, 1), None, True, None),
    ]


@pytest.mark.parametrize("last", ['{"id": 3, "name": "z"}', '{"id": "3", "name": "z"}', ' {"id":3,"name":"z"} '])
def test_json_of_several_portions(tmp_path: Path, last: str) -> None:
    """One line is longer than a portion, and the last portion needs the exact parser."""
    long = "x" * (3 << 20)
    lines = [
        *(f'{{"id": 1, "name": "{number:07}"}}' for number in range(100_000)),
        f'{{"id": 2, "name": "{long}"}}',
        last,
    ]
    table = read_files([recorded(write(tmp_path / "a.json", "\n".join(lines), 0))], stream(format="json"), 42)
    assert table.column("id").to_pylist() == [1] * 100_000 + [2, 3]
    assert table.column("name").to_pylist() == [f"{number:07}" for number in range(100_000)] + [long, "z"]


@pytest.mark.parametrize(
    "wrong", ['{"id": x}', '{"id": 1.5}', '{"id": 1}{"id": 2}', '[{"id": 1}]', '{"name": "\\ud800"}']
)
def test_an_error_of_json_in_the_last_portion_names_its_line(tmp_path: Path, wrong: str) -> None:
    lines = "".join(f'{{"id": 1, "name": "{number:07}"}}\n' for number in range(100_000))
    file = write(tmp_path / "a.json", f"{lines}\n{wrong}\n" + lines, 0)
    with pytest.raises(SqlError) as caught:
        read_files([recorded(file)], stream(format="json"), 42)
    assert f'file "{file}", line 100002' in str(caught.value.where)


def test_parquet_columns_by_name_are_cast_and_rows_numbered(tmp_path: Path) -> None:
    files = []
    for index in range(2):
        data = {"extra": [0, 0], **{item.name: pa.array([None, None], item.type.arrow) for item in COLUMNS}}
        data["id"] = pa.array([index, index + 10], pa.int16())
        data["price"] = pa.array([Decimal("1.005"), Decimal("-1.005")])
        pq.write_table(pa.table(data), tmp_path / f"{index}.parquet")
        files.append(recorded(tmp_path / f"{index}.parquet"))
    table = read_files(files, stream(format="parquet"), 42)
    assert table.column("id").to_pylist() == [0, 10, 1, 11]
    assert table.column("price").to_pylist() == [Decimal("1.01"), Decimal("-1.01")] * 2
    assert table.column("__lsn").to_pylist() == [42] * 4
    assert table.column("__ordinal").to_pylist() == [0, 1, 1 << ROW_BITS, (1 << ROW_BITS) + 1]


@pytest.mark.parametrize(
    ("name", "content", "sqlstate"),
    [
        ("a.csv", "1,x,1,oops,,,\n", "22007"),
        ("a.csv", "1,x\n", "22P04"),
        ("a.csv", "1,x,123456.00,,,,\n", "22003"),
        ("a.csv", "9223372036854775808,,,,,,\n", "22003"),
        ("a.json", '{"id": "x"}\n', "22P02"),
    ],
)
def test_files_that_do_not_fit_raise_their_types_errors(tmp_path: Path, name: str, content: str, sqlstate: str) -> None:
    file = write(tmp_path / name, content, 0)
    with pytest.raises(SqlError) as caught:
        read_files([recorded(file)], stream(format=name.partition(".")[2]), 1)
    assert (caught.value.sqlstate, f'file "{file}", line 1' in str(caught.value.where)) == (sqlstate, True)


def test_a_parquet_file_without_a_column_names_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    with pytest.raises(SqlError, match='no column "name"'):
        read_files([recorded(tmp_path / "a.parquet")], stream(), 1)


def test_a_file_changed_between_arrival_and_reading_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", CSV, 0)
    before = recorded(file)
    write(file, CSV + CSV, 0)
    with pytest.raises(SqlError, match="changed"):
        read_files([before], stream(format="csv"), 1)
    file.unlink()
    with pytest.raises(SqlError, match="no longer exists"):
        read_files([before], stream(format="csv"), 1)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    for name in ("a.csv", "a.json"):
        file = write(tmp_path / name, "", 0)
        assert read_files([recorded(file)], stream(format=name.partition(".")[2]), 1).num_rows == 0
