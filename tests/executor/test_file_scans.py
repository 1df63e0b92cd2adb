"""The parts of foreign tables' files that are read: only used columns, and only row groups and partitions that filters
leave."""

from __future__ import annotations

import datetime as dt
import math
import shutil
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.objects import FileTable
from catalog.values.errors import SqlError
from executor.core.plans import plan_of
from executor.database.database import Database
from executor.embedded.instance import Instance
from executor.embedded.printing.dialect import DuckPrinter
from executor.files import file_tables
from executor.files.followed_folders import OwnFiles
from planner.rules import optimise
from planner.statements.statement import Query
from tests.executor.client import Client, in_own_schema, open_database

ROWS = 1000
GROUP = 100


@pytest.fixture
def client(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A session whose engine itself reads files of any size."""
    monkeypatch.setattr(file_tables, "_FEW_ROWS", 0)
    with in_own_schema(database) as made:
        yield made


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A session in its own database."""
    monkeypatch.setattr(file_tables, "_FEW_ROWS", 0)
    with closing(open_database(tmp_path / "data")) as opened:
        yield Client(opened)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with ROWS rows, which no test changes."""
    path = tmp_path_factory.mktemp("many") / "numbers.parquet"
    table = pa.table(
        {
            "i": pa.array(range(ROWS), pa.int32()),
            "f": pa.array([1.5] * (ROWS - 1) + [math.nan], pa.float32()),
            "d": [Decimal(i) / 4 for i in range(ROWS)],
            "t": pa.array([f"t{i:04d}" for i in range(ROWS)], pa.large_string()),
            "z": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i) for i in range(ROWS)],
        },
        schema=pa.schema(
            [
                ("i", pa.int32()),
                ("f", pa.float32()),
                ("d", pa.decimal128(9, 2)),
                ("t", pa.large_string()),
                ("z", pa.timestamp("us", tz="UTC")),
            ]
        ),
    )
    pq.write_table(table, path, row_group_size=GROUP)
    return path


@pytest.fixture
def numbers(client: Client, many: Path) -> None:
    create(client, many)


def create(client: Client, path: Path) -> None:
    """Foreign table n (i ascending in row groups of 100, and a NaN that is missing in statistics) and a small table."""
    client.run(
        "CREATE FOREIGN TABLE n (i bigint, f float8, d numeric(12,2), t text, z timestamptz) "
        f"SERVER files OPTIONS (path '{path}')"
    )
    client.run("CREATE TABLE small (i bigint, name text); INSERT INTO small VALUES (7, 'seven'), (950, 'late')")


QUERIES = (
    "SELECT count(*), sum(i), min(t), max(d) FROM n",
    "SELECT count(*), sum(d) FROM n WHERE i >= 950 AND d < 245",
    "SELECT count(*) FROM n WHERE f > 100",
    "SELECT i FROM n WHERE f = 'NaN'",
    "SELECT i, f FROM n ORDER BY f DESC, i LIMIT 2",
    "SELECT max(f), min(f) FROM n",
    "SELECT i, t FROM n WHERE t = 't0500'",
    "SELECT i FROM n WHERE z = timestamptz '2024-01-02 00:00:00+00'",
    "SELECT name, d FROM n JOIN small USING (i) ORDER BY name",
    "SELECT i FROM n WHERE i IN (SELECT i FROM small WHERE name = 'late')",
    "SELECT a.i, b.i FROM n a JOIN n b ON a.i = b.i + 990 ORDER BY 1",
    "SELECT count(*) FROM n, small WHERE n.i < small.i",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("numbers")
def test_the_engine_reads_what_our_reader_reads(client: Client, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = client.run(query)
    monkeypatch.setattr(file_tables, "_FEW_ROWS", ROWS * 100)
    assert str(found) == str(client.run(query))  # NaN is not NaN
    assert found


def explained(client: Client, query: str) -> str:
    """DuckDB's plan of a query over files, and how much it read."""
    statement = client.bind(query)
    assert isinstance(statement, Query)
    plan = plan_of(optimise(statement.relation))
    rows = {}
    for reading in plan.files:
        owner = client.session.catalog.objects[reading.scan.oid]
        leaf = f"v{reading.scan.oid}"
        asked = {leaf: (file_tables.find(owner), reading.scan.sources)}  # type: ignore[arg-type]
        found = file_tables.rows(asked, lambda: False)[leaf]
        assert isinstance(found, file_tables.FileRows)
        rows[leaf] = found
    database = Instance(1, folders=tuple(item.folder for item in rows.values()))
    connection = database.acquire()
    try:
        text = DuckPrinter(read=rows).print_relation(plan.relation)
        return str(connection.execute(f"EXPLAIN ANALYZE {text}").fetchall()[0][1])
    finally:
        database.release(connection)
        database.close()


@pytest.mark.usefixtures("numbers")
def test_columns_in_use_and_row_groups_that_a_filter_leaves_are_read(client: Client) -> None:
    read = explained(client, "SELECT sum(d) FROM n WHERE i BETWEEN 310 AND 320")
    assert "Row Groups Scanned: 1 / 10" in read
    assert ("        ->  File Scan on n (i, d)",) in client.run(
        "EXPLAIN SELECT sum(d) FROM n WHERE i BETWEEN 310 AND 320"
    )
    read = explained(client, "SELECT d FROM n WHERE f > 100")
    assert "Row Groups Scanned: 10 / 10" in read


@pytest.mark.usefixtures("numbers")
def test_parameters_are_constants_and_changes_read_files_too(client: Client) -> None:
    statement = client.bind("SELECT d FROM n WHERE i = $1")
    for value in (3, 4):
        batches = client.session.execute(statement, (value,)).batches or ()
        assert [found for batch in batches for found in batch.column(0).to_pylist()] == [Decimal(value) / 4]
    assert client.run("INSERT INTO small SELECT i, t FROM n WHERE i >= 998") == "INSERT 0 2"
    assert client.run("BEGIN; DELETE FROM small WHERE name = 'late'") == "DELETE 1"
    assert client.run("SELECT name FROM small JOIN n USING (i) ORDER BY name") == [("seven",), ("t0998",), ("t0999",)]
    client.run("ROLLBACK")
    assert client.run("SELECT count(*) FROM small JOIN n USING (i)") == [(4,)]


@pytest.mark.slow
def test_the_engine_reaches_the_folder_of_the_files_alone(alone: Client, many: Path, tmp_path: Path) -> None:
    create(alone, many)
    assert alone.run("SELECT count(*) FROM n") == [(ROWS,)]
    (folder,) = alone.session.database.core.engine._of_files
    assert Path(folder) == many.parent
    elsewhere = tmp_path / "links"
    elsewhere.mkdir()
    (elsewhere / "link.parquet").symlink_to(many)
    alone.run(f"CREATE FOREIGN TABLE linked (i int) SERVER files OPTIONS (path '{elsewhere}')")
    assert alone.run("SELECT count(*) FROM linked JOIN n USING (i)") == [(ROWS,)]
    assert list(alone.session.database.core.engine._of_files) == [folder]
    connection = alone.session.database.core.engine._of_files[folder].acquire()
    for text in ("SELECT * FROM read_csv('/etc/passwd')", "ATTACH '/var/tmp/x.db'", "SET threads = 4"):
        with pytest.raises(SqlError):
            connection.execute(text)
    alone.session.database.core.engine._of_files[folder].release(connection)


@pytest.mark.slow
def test_few_folders_have_an_instance(alone: Client, tmp_path: Path) -> None:
    for number in range(10):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        pq.write_table(pa.table({"i": [number]}), folder / "x.parquet")
        alone.run(f"CREATE FOREIGN TABLE of{number} (i bigint) SERVER files OPTIONS (path '{folder}')")
        assert alone.run(f"SELECT i FROM of{number}") == [(number,)]
    assert alone.run("SELECT i FROM of0") == [(0,)]
    kept = list(alone.session.database.core.engine._of_files)
    assert kept == [str(tmp_path / f"folder{number}") for number in (3, 4, 5, 6, 7, 8, 9, 0)]


def test_files_of_several_types_are_read_by_us(client: Client, many: Path, tmp_path: Path) -> None:
    numbers = Path(shutil.copy(many, tmp_path))
    create(client, numbers)
    client.run(f"CREATE FOREIGN TABLE m (i int, d numeric(9,1)) SERVER files OPTIONS (path '{numbers}')")
    assert client.run("SELECT sum(d) FROM m WHERE i < 4") == [(Decimal("1.6"),)]  # 0.25 and 0.75 are rounded
    pq.write_table(pa.table({"i": [1.0], "d": [None], "f": ["x"]}), numbers)
    assert client.run("SELECT i FROM m") == [(1,)]
    with pytest.raises(SqlError, match='has no column "t"'):
        client.run("SELECT t FROM n")
    numbers.write_text("not at all")
    with pytest.raises(SqlError, match='does not fit foreign table "n"'):
        client.run("SELECT i FROM n")


# Partitions -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(client: Client, tmp_path: Path) -> Path:
    """Foreign table p of year=*/kind=* folders."""
    root = tmp_path / "tree"
    for year in (2023, 2024, 2025):
        for kind in ("a", "b%20c", "__HIVE_DEFAULT_PARTITION__"):
            folder = root / f"year={year}" / f"kind={kind}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"v": [year * 10 + len(kind)]}), folder / "x.parquet")
    (root / "_work").mkdir()
    (root / "_work" / "y.parquet").write_text("not yet")
    client.run(
        "CREATE FOREIGN TABLE p (v bigint, year int, kind text) "
        f"SERVER files OPTIONS (path '{root}', partition 'year, kind')"
    )
    return root


@pytest.mark.parametrize("few", [0, ROWS], ids=["engine", "reader"])
@pytest.mark.usefixtures("tree")
def test_partition_columns_are_columns(client: Client, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_tables, "_FEW_ROWS", few)
    assert client.run("SELECT year, kind, v FROM p WHERE year = 2024 ORDER BY kind") == [
        (2024, "a", 20241),
        (2024, "b c", 20245),
        (2024, None, 20266),
    ]
    assert client.run("SELECT kind, count(*) FROM p GROUP BY kind ORDER BY kind") == [("a", 3), ("b c", 3), (None, 3)]
    assert client.run("SELECT DISTINCT year FROM p ORDER BY 1") == [(2023,), (2024,), (2025,)]
    assert client.run("SELECT count(*) FROM p") == [(9,)]
    assert client.run("SELECT count(*) FROM p WHERE year > 3000") == [(0,)]


def read(client: Client, query: str) -> str:
    """EXPLAIN's text about the files that a query reads."""
    lines = [line for (line,) in client.run(f"EXPLAIN {query}") if line.startswith("Files of p:")]  # type: ignore[misc]
    return lines[0].removeprefix("Files of p: ")


@pytest.mark.usefixtures("tree")
def test_files_of_other_partitions_are_left_out(client: Client) -> None:
    assert read(client, "SELECT v FROM p") == "9"
    assert read(client, "SELECT v FROM p WHERE year >= 2024 AND v > 0 AND kind <> 'a'") == "2 of 9"
    assert read(client, "SELECT v FROM p WHERE kind IS NULL") == "3 of 9"
    assert read(client, "SELECT v FROM p WHERE year = 2024 OR v = 1") == "9"
    assert read(client, "SELECT a.v FROM p a, p b WHERE a.year = 2023 AND b.year = 2025 AND a.v = b.v") == "6 of 9"
    assert read(client, "SELECT v FROM p WHERE 1 / (year - 2024) = 1") == "9"
    with pytest.raises(SqlError, match="division by zero"):
        client.run("SELECT v FROM p WHERE 1 / (year - 2024) = 1")


def test_a_file_that_is_in_no_partition_is_an_error(client: Client, tree: Path) -> None:
    stray = tree / "year=2024" / "x.parquet"
    pq.write_table(pa.table({"v": [1]}), stray)
    with pytest.raises(SqlError, match='is in no folder "kind="') as caught:
        client.run("SELECT v FROM p")
    assert caught.value.sqlstate == "22P04"
    stray.unlink()
    (tree / "year=2024").rename(tree / "year=soon")
    with pytest.raises(SqlError, match='partition column "year" of foreign table "p" has a value that is not integer'):
        client.run("SELECT v FROM p")


@pytest.mark.parametrize(
    ("columns", "partition", "sqlstate"),
    [("v int", "w", "42703"), ("v int", "v", "42601"), ("v int, f float8", "f", "0A000")],
)
def test_what_cannot_be_a_partition_column(client: Client, columns: str, partition: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        client.run(f"CREATE FOREIGN TABLE q ({columns}) SERVER files OPTIONS (path '/', partition '{partition}')")
    assert caught.value.sqlstate == sqlstate


def test_statistics_come_from_footers(client: Client, many: Path, tmp_path: Path) -> None:
    numbers = Path(shutil.copy(many, tmp_path))
    create(client, numbers)
    table = client.session.catalog.find("n", client.session.search_path)
    assert isinstance(table, FileTable)
    found = file_tables.statistics(file_tables.find(table), ["d", "f", "i", "t"])
    assert found.rows == ROWS
    bounds = {name: (column.low, column.high) for name, column in found.columns.items()}
    assert bounds == {"i": (0, ROWS - 1), "d": (Decimal(0), Decimal(ROWS - 1) / 4)}  # statistics' bounds exclude NaN
    numbers.unlink()
    assert file_tables.statistics(OwnFiles(table, (("gone", 1, 1),)), ["i"]).rows == 0
