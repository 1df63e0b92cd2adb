"""All queries of TPC-H pipeline by pipeline: what they give, and what they give where they leave after any pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pytest

from catalog.errors import SqlError
from executor.database import Database
from executor.separation import choosing
from tests.executor.client import Client, open_database
from tests.executor.test_separation import Asked, leave, outcome, separable
from tests.executor.test_separation import whole as as_a_whole
from tests.executor.test_separation_slices import Leaving, cut_small
from tests.rig.tpch import TABLES, Tpch

pytestmark = pytest.mark.slow

QUERIES = sorted(Path(__file__).with_name("tpch").glob("q*.sql"), key=lambda path: int(path.stem[1:]))
SCALE = 0.01


@pytest.fixture(scope="module")
def database(tpch: Tpch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_database(tmp_path_factory.mktemp("tpch-separation"))
    client = Client(database)
    for name, columns in TABLES.items():
        client.run(f"CREATE TABLE {name} ({columns})")
        client.copy(f"COPY {name} FROM STDIN", _rows(database, tpch.csv(SCALE, name)))
    yield database
    database.close()


def _rows(database: Database, path: Path) -> list[pyarrow.RecordBatch]:
    columns = next(item for item in database.catalog.objects.values() if item.name == path.stem).columns
    kinds = pyarrow.csv.ConvertOptions(column_types={column.name: column.type.arrow for column in columns})
    found: list[pyarrow.RecordBatch] = pyarrow.csv.read_csv(path, convert_options=kinds).to_batches()
    return found


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_leaves_after_every_pipeline(
    path: Path, database: Database, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at all sides of joins of several tables; with ``--whole`` at breakers alone, too."""
    monkeypatch.setattr(choosing, "LONG", 0.0)
    client, query = separable(database), path.read_text()
    wanted = as_a_whole(client, query)
    for cut in (0, 1) if whole else (1,):
        monkeypatch.setattr(choosing, "_PROBED", 0 if cut else 1 << 60)
        monkeypatch.setattr(choosing, "_SMALLER", 0 if cut else 1)
        assert outcome(client, query) == wanted
        for after in range(1, 20):
            with monkeypatch.context() as patch:
                Asked(patch, after)
                query_id = leave(client, query)
            if query_id is None:
                break
            found = client.run(f"SELECT * FROM millstream.resume('{query_id}')")
            assert (found if "order by" in query else sorted(found)) == wanted, (cut, after)
            assert database.separation.forget(client.session.reader.client(), query_id)


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_leaves_inside_its_pipelines(path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a stop between two slices of an aggregation's input, or two pipelines, and once more on its way."""
    monkeypatch.setattr(choosing, "LONG", 0.0)
    cut_small(monkeypatch)
    client, query = separable(database), path.read_text()
    wanted = as_a_whole(client, query)
    for stops in ((1, 3), (2,), (4, 5)):
        with monkeypatch.context() as patch:
            seen = Leaving(patch, *stops)
            query_id = leave(client, query)
            if query_id is None:
                break
            found = None
            while found is None:
                try:
                    found = client.run(f"SELECT * FROM millstream.resume('{query_id}')")
                except SqlError as error:
                    assert error.sqlstate == "57014", error
        assert (found if "order by" in query else sorted(found)) == wanted, stops
        assert path.stem not in ("q1", "q6") or seen.slices
