"""Queries over foreign tables of files run in steps, and leave with the rows that they still have to read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import force_setattr

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.files import file_tables
from executor.separation import service, slices
from executor.separation.running_queries import Request, RunningQuery
from tests.executor.client import Client, open_database
from tests.executor.separating import Leaving, go_on, leave, separable
from tests.executor.separating import whole as as_a_whole

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("everywhere", "in_slices"), pytest.mark.sample(9)]

QUERIES = {
    "groups": "SELECT k % 7 AS m, count(*), sum(v), avg(v), max(s) FROM f GROUP BY 1 ORDER BY 1",
    "groups of groups": "SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM f GROUP BY k) g GROUP BY n ORDER BY n",
    "with a table": "SELECT w, count(*), sum(v) FROM f JOIN u USING (k) GROUP BY w ORDER BY w",
    "a table with files": "SELECT count(*), sum(u.k) FROM u WHERE k IN (SELECT k FROM f WHERE v < 500 GROUP BY k)",
    "lines": "SELECT b, count(*), sum(a) FROM c GROUP BY b ORDER BY b",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    root = tmp_path_factory.mktemp("separated-files")
    (root / "f").mkdir()
    for number in range(5):
        first = number * 400
        table = pa.table(
            {
                "k": pa.array([row % 97 for row in range(first, first + 400)], pa.int32()),
                "v": pa.array([row * 7919 % 1000 for row in range(first, first + 400)], pa.int64()),
                "s": pa.array([f"text {row}" for row in range(first, first + 400)], pa.string()),
            }
        )
        pq.write_table(table, root / f"f/{number}.parquet")
    (root / "c.csv").write_text("a,b\n" + "".join(f"{row},{row % 5}\n" for row in range(9000)))
    database = open_database(root / "data")
    create(database, root)
    yield database
    database.close()


def create(database: Database, root: Path) -> None:
    """The tables over the files of a folder, and one with rows of its own."""
    Client(database).run(
        f"CREATE FOREIGN TABLE f (k int, v bigint, s text) SERVER files OPTIONS (path '{root / 'f'}');"
        f"CREATE FOREIGN TABLE c (a int, b int) SERVER files OPTIONS (path '{root / 'c.csv'}', format 'csv', "
        "header 'true');"
        "CREATE TABLE u (k int, w text); INSERT INTO u SELECT g % 60, 'w' || g % 11 FROM generate_series(1, 300) g"
    )


@pytest.fixture(params=["the engine reads", "we read"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "the engine reads":
        monkeypatch.setattr(file_tables, "_FEW_ROWS", 0)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("name", QUERIES)
def test_at_every_stop(name: str, database: Database, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """One in seven of dozens of stops; with ``--whole`` all."""
    client, query = separable(database), QUERIES[name]
    wanted = as_a_whole(client, query)
    with monkeypatch.context() as patch:
        seen = Leaving(patch)
        assert client.run(query) == wanted
    assert seen.slices
    for after in range(1, seen.stops + 1, 1 if whole or seen.stops < 20 else 7):
        assert go_on(client, query, (after,), monkeypatch) == wanted, after
    assert go_on(client, query, (seen.stops + 1,), monkeypatch) is None


@pytest.mark.usefixtures("reader")
def test_what_has_left_needs_no_files(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client, query = separable(database), QUERIES["with a table"]
    wanted = as_a_whole(client, query)
    Leaving(monkeypatch, 2)
    query_id = leave(client, query)
    assert query_id is not None
    shutil.copytree(database.core.options.shared_directory / "queries", tmp_path / "two/shared/queries")
    other = open_database(tmp_path / "two")
    try:
        assert Client(other).run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted
    finally:
        other.close()


@pytest.fixture(scope="module")
def sharing(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Database]]:
    """Two servers that read the same files, of which the second one has no tables."""
    root = database.core.options.data_directory.parent
    one, two = (
        open_database(tmp_path_factory.mktemp(name) / "data", shared_files=str(root), storage_bandwidth=1000)
        for name in ("one", "two")
    )
    create(one, root)
    yield one, two
    two.close()
    one.close()


def taken_along(source: Database, target: Database, query_id: str) -> int:
    """Copies an artifact to another server; returns the number of its rows."""
    folder = f"queries/{query_id}"
    shutil.copytree(source.core.options.shared_directory / folder, target.core.options.shared_directory / folder)
    return source.separation.stored.get(query_id).rows


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "lines"])
def test_shared_files_stay_where_they_are(
    name: str, sharing: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tables, "_FEW_ROWS", 0)
    source, target = sharing
    client, query = separable(source), QUERIES[name]
    wanted = as_a_whole(client, query)
    with monkeypatch.context() as patch:
        seen = Leaving(patch)
        assert client.run(query) == wanted
    for after in range(1, seen.stops + 1):
        with monkeypatch.context() as patch:
            Leaving(patch, after)
            query_id = leave(client, query)
        assert query_id is not None
        assert taken_along(source, target, query_id) < 600
        with monkeypatch.context() as patch:
            Leaving(patch, 1)
            again = leave(separable(target), f"SELECT * FROM millstream.resume('{query_id}')")
        if again is not None:
            assert target.separation.stored.get(again).rows < 600
        assert Client(target).run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted, after


def test_files_that_are_no_longer_shared_or_the_same(
    sharing: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tables, "_FEW_ROWS", 0)
    source, _ = sharing
    client = separable(source)
    with monkeypatch.context() as patch:
        Leaving(patch, 1)
        query_id = leave(client, QUERIES["groups of groups"])
    query = f"SELECT * FROM millstream.resume('{query_id}')"
    folder = source.core.options.shared_files
    for other, state in (("", "55000"), (str(source.core.options.data_directory), "XX001")):
        force_setattr(source.core.options, "shared_files", other)
        with pytest.raises(SqlError) as failed:
            client.run(query)
        assert failed.value.sqlstate == state
    force_setattr(source.core.options, "shared_files", folder)
    file = Path(folder) / "f/4.parquet"
    found = file.stat()
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000))
    with pytest.raises(SqlError, match="has changed since the query left") as failed:
        client.run(query)
    assert failed.value.sqlstate == "XX001"
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert client.run(query) == as_a_whole(client, QUERIES["groups of groups"])


def test_a_shared_file_that_is_gone_already(
    sharing: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The query continues with the rows that it has read, and the session that wanted its state gets the reason."""
    monkeypatch.setattr(file_tables, "_FEW_ROWS", 0)
    source, _ = sharing
    client, query = separable(source), QUERIES["groups of groups"]
    wanted, file = as_a_whole(client, query), Path(source.core.options.shared_files) / "f/4.parquet"
    requests: list[Request] = []

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            if not requests:  # the groups have been computed
                file.rename(tmp_path / "away")
                requests.append(self.ask("checkpoint", by_cost=False))

    monkeypatch.setattr(service, "RunningQuery", Query)
    try:
        assert client.run(query) == wanted
    finally:
        (tmp_path / "away").rename(file)
    (request,) = requests
    assert request.error is not None
    assert request.error.sqlstate == "58030"


def test_explain_carries_no_shared_files(
    database: Database, sharing: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tables, "_FEW_ROWS", 0)
    monkeypatch.setattr(slices, "SLICE", 1e9)

    def carried(source: Database) -> list[int]:
        query = "SELECT count(*) FROM f WHERE v > (SELECT avg(v) FROM f)"
        ((text,),) = separable(source).run(f"EXPLAIN (FORMAT json) {query}")
        (document,) = json.loads(text)
        return [item["Leaving"]["Bytes"] for item in document["Pipelines"] if "Leaving" in item]

    (shared,), (all_of_it,) = carried(sharing[0]), carried(database)
    assert shared < 100 < 4 * 2000 <= all_of_it
