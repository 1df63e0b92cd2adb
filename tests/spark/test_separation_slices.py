"""Pipelines that Spark reads in slices of whole files give the same rows as whole ones, and can leave inside."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from executor.core import spark_queries
from executor.database.database import Database
from executor.separation import steps
from executor.spark.engine import SparkEngine
from tests.executor.client import Client, open_database
from tests.executor.separating import TABLES, Leaving, cut_small, go_on, leave, outcome, separable, whole
from tests.executor.test_separation_slices import QUERIES
from tests.rig.sampling import sample

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FOREIGN = {
    "files": "SELECT k % 7 AS m, count(*), sum(v), avg(v), min(v) FROM f GROUP BY 1 ORDER BY 1",
    "folders": "SELECT p, k, count(*), sum(v) FROM c WHERE v > 20 GROUP BY p, k ORDER BY 1, 2",
    "rows of files": "SELECT k, v FROM f WHERE v > 900 ORDER BY v, k",
    "first rows of files": "SELECT v FROM f WHERE k <> 7 ORDER BY v DESC, k LIMIT 5 OFFSET 2",
    "files and a table": "SELECT w, sum(v) FROM f JOIN u USING (k) WHERE f.v < 900 GROUP BY w ORDER BY w",
}
TWICE = {
    "twice": "SELECT k, sum(v) FROM t WHERE v > 10 GROUP BY k HAVING sum(v) > (SELECT max(v) * 2 FROM t WHERE k < 60) "
    "ORDER BY k",
    "at its end": "SELECT sum(v), max(k), count(*) FROM t",
}
CHOSEN = {
    name: QUERIES[name]
    for name in (
        "groups",
        "no row",
        "joins",
        "shared",
        "sampled",
        "ordered rows",
        "rows of arms",
        "digits of one value",
    )
}
ALL = CHOSEN | FOREIGN | TWICE
#: Queries that the embedded engine's tests cover in more detail.
RARE = ("shared", "sampled", "rows of arms", "digits of one value")


@pytest.fixture(scope="module")
def database(spark: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("slices")
    opened = open_database(folder / "data")
    opened.analytics.spark = spark
    client = Client(opened)
    client.run(TABLES)
    client.run("DELETE FROM t WHERE id % 10 = 3")
    for part in range(5):
        numbers = range(part, 4000, 5)
        rows = pa.table({"k": [n % 60 for n in numbers], "v": [n * 7919 % 1000 for n in numbers]})
        (folder / "f").mkdir(exist_ok=True)
        pq.write_table(rows, folder / "f" / f"{part}.parquet")
        (folder / "c" / f"p={part % 3}").mkdir(parents=True, exist_ok=True)
        pyarrow.csv.write_csv(rows, folder / "c" / f"p={part % 3}" / f"{part}.csv")
    client.run(f"CREATE FOREIGN TABLE f (k bigint, v bigint) SERVER files OPTIONS (path '{folder}/f')")
    client.run(
        "CREATE FOREIGN TABLE c (k bigint, v bigint, p int) SERVER files "
        f"OPTIONS (path '{folder}/c', format 'csv', header 'true', partition 'p')"
    )
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)
    monkeypatch.setattr(steps, "LONG", 0.0)
    monkeypatch.setattr(spark_queries, "_ROWS_OF_FILE", 100)


def on(database: Database, engine: str) -> Client:
    client = separable(database)
    client.session.query_engine = engine
    return client


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sample(ALL, ALL.keys() - RARE))
def test_in_slices_as_a_whole(name: str, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = on(database, "spark")
    wanted = whole(on(database, "embedded"), ALL[name])
    with monkeypatch.context() as patch:
        seen = Leaving(patch)
        assert outcome(client, ALL[name]) == wanted
    assert seen.slices
    assert seen.progress == sorted(seen.progress)
    assert go_on(client, ALL[name], (2,), monkeypatch) == wanted


@pytest.mark.parametrize("name", ["folders", "twice"])
def test_what_left_inside_goes_on_embedded(name: str, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = whole(on(database, "embedded"), ALL[name])
    with monkeypatch.context() as patch:
        Leaving(patch, 2)
        query_id = leave(on(database, "spark"), ALL[name])
    assert query_id is not None
    client = on(database, "embedded")
    assert client.run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted


def test_what_is_carried_shrinks(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state has the groups so far, and only the unread rows that pass the filter."""
    sizes = []
    for after in (1, 3):
        with monkeypatch.context() as patch:
            Leaving(patch, after)
            query_id = leave(on(database, "spark"), "SELECT k % 7 AS m, sum(v) FROM t WHERE v < 500 GROUP BY 1")
        assert query_id is not None
        stored = database.separation.stored.get(query_id)
        groups, rest = sorted(run.rows for run in stored.runs.values())
        assert (stored.finished, groups) == (0, 7)
        sizes.append(rest)
        database.separation.stored.delete(query_id)
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 2
    assert sizes[0] < 900
