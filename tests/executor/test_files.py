"""Foreign tables over files: read at each query, with the columns' types, and never written."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.values.errors import SqlError
from planner import placement
from tests.executor.client import Client, open_database

TABLE = pa.table(
    {
        "i": pa.array([1, 2, None], pa.int32()),
        "n": pa.array([Decimal("1.255"), Decimal("-2.5"), None], pa.decimal128(9, 3)),
        "t": ["a", "b,c", None],
        "d": pa.array([dt.date(2024, 2, 29), None, None], pa.date32()),
        "other": [1, 2, 3],
    }
)
COLUMNS = "i bigint, n numeric(9,2), t text, d date"
ROWS = [(1, Decimal("1.26"), "a", dt.date(2024, 2, 29)), (2, Decimal("-2.50"), "b,c", None), (None,) * 4]


def create(client: Client, name: str, path: Path, **options: str) -> None:
    listed = "".join(f", {key} '{value}'" for key, value in options.items())
    client.run(f"CREATE FOREIGN TABLE {name} ({COLUMNS}) SERVER files OPTIONS (path '{path}'{listed})")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "files"
    found.mkdir()
    pq.write_table(TABLE, found / "a.parquet")
    (found / "a.csv").write_text('i|n|t|d\n1|1.255|a|2024-02-29\n2|-2.5|"b,c"|\n|||\n')
    lines = ({"i": 1, "n": "1.255", "t": "a", "d": "2024-02-29"}, {"i": 2, "n": "-2.5", "t": "b,c"}, {"t": None})
    (found / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return found


@pytest.mark.parametrize(
    "options",
    [{}, {"format": "csv", "header": "true", "delimiter": "|"}, {"format": "json"}],
    ids=lambda item: str(item),
)
def test_rows_are_read_in_the_columns_types(client: Client, folder: Path, options: dict[str, str]) -> None:
    create(client, "f", folder, **options)
    assert client.run("SELECT * FROM f") == ROWS
    assert client.run("SELECT count(*) FROM f") == [(3,)]
    assert client.run("SELECT n, f.i FROM f JOIN (VALUES (2)) AS v(i) ON v.i = f.i") == [(Decimal("-2.50"), 2)]
    assert ("  ->  File Scan on f (d)",) in client.run("EXPLAIN SELECT d FROM f")


def test_files_are_looked_for_at_each_query(client: Client, folder: Path) -> None:
    create(client, "f", folder / "*.parquet")
    create(client, "one", folder / "a.parquet")
    assert client.run("SELECT count(*) FROM f") == [(3,)]
    pq.write_table(TABLE, folder / "b.parquet")
    assert client.run("SELECT count(*) FROM f") == [(6,)]
    assert client.run("SELECT count(*) FROM one") == [(3,)]
    (folder / "a.parquet").unlink()
    with pytest.raises(SqlError, match="could not open file") as caught:
        client.run("SELECT * FROM one")
    assert caught.value.sqlstate == "58P01"
    assert client.run("SELECT count(*) FROM f") == [(3,)]


def test_what_does_not_fit_says_where(client: Client, folder: Path) -> None:
    create(client, "f", folder / "a.parquet")
    pq.write_table(TABLE.drop_columns("d"), folder / "a.parquet")
    with pytest.raises(SqlError, match='has no column "d"'):
        client.run("SELECT * FROM f")
    assert client.run("SELECT i FROM f") == [(1,), (2,), (None,)]
    (folder / "a.parquet").write_text("not at all")
    with pytest.raises(SqlError, match='does not fit foreign table "f"') as caught:
        client.run("SELECT i FROM f")
    assert caught.value.sqlstate == "22P04"


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("INSERT INTO f VALUES (1)", "0A000"),
        ("UPDATE f SET i = 1", "0A000"),
        ("DELETE FROM f", "0A000"),
        ("TRUNCATE f", "0A000"),
        ("COPY f FROM STDIN", "0A000"),
        ("DROP TABLE f", "42809"),
        ("CREATE VIEW c AS SELECT s.i, count(*) FROM s JOIN f ON f.i = s.i GROUP BY s.i", "0A000"),
        ("CREATE FOREIGN TABLE g (i int) SERVER files", "HV00J"),
        ("CREATE FOREIGN TABLE g (i int) SERVER files OPTIONS (path 'x', source 'files')", "HV00D"),
        ("CREATE FOREIGN TABLE g (i int) SERVER files OPTIONS (path 'x', format 'orc')", "22023"),
        ("CREATE FOREIGN TABLE g (i int) SERVER files OPTIONS (path 'x', header 'perhaps')", "42601"),
        ("CREATE FOREIGN TABLE g (i int) SERVER files OPTIONS (path 'x', delimiter '\"')", "22023"),
        ("CREATE FOREIGN TABLE g (i int) SERVER files OPTIONS (path 'x', delimiter 'ab')", "0A000"),
        ("CREATE FOREIGN TABLE g (i int) SERVER stream OPTIONS (source 'files', path 'x', null 'a,b')", "0A000"),
        ("CREATE FOREIGN TABLE g (i int) SERVER stream OPTIONS (source 'files', path 'x', header 'perhaps')", "42601"),
        ("CREATE FOREIGN TABLE g () SERVER files OPTIONS (path 'x')", "42601"),
        ("CREATE FOREIGN TABLE g (i interval) SERVER files OPTIONS (path 'x')", "0A000"),
        ("CREATE FOREIGN TABLE g (i int PRIMARY KEY) SERVER files OPTIONS (path 'x')", "0A000"),
    ],
)
def test_what_it_is_not_for(client: Client, folder: Path, text: str, sqlstate: str) -> None:
    create(client, "f", folder)
    client.run("CREATE FOREIGN TABLE s (i int) SERVER stream")
    with pytest.raises(SqlError) as caught:
        client.run(text)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.slow
def test_it_serves_views_and_changes_and_survives_a_restart(tmp_path: Path, folder: Path) -> None:
    database = open_database(tmp_path / "data")
    client = Client(database)
    create(client, "f", folder)
    client.run("CREATE VIEW v AS SELECT i, t FROM f WHERE i > 1; CREATE TABLE t AS SELECT * FROM v")
    client.run("INSERT INTO t SELECT i, t FROM f WHERE i = 1")
    database.close()
    client = Client(open_database(tmp_path / "data"))
    assert client.run("SELECT * FROM t ORDER BY i") == [(1, "a"), (2, "b,c")]
    assert client.run("SELECT * FROM v") == [(2, "b,c")]
    assert client.run("DROP FOREIGN TABLE f CASCADE") == "DROP FOREIGN TABLE"
    client.session.database.close()


def test_the_cheaper_engine_answers(client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(client, "f", folder)
    wanted = "Engine: embedded (about 3 rows of files: 0.00 s embedded, 0.15 s on Spark)"
    assert (wanted,) in client.run("EXPLAIN SELECT i FROM f")
    monkeypatch.setattr(placement, "EMBEDDED_ROWS", 0.1 / client.session.database.core.engine.power.cores)
    wanted = "Engine: embedded (about 3 rows of files: 30.00 s embedded, 0.15 s on Spark, but Spark is switched off)"
    assert (wanted,) in client.run("EXPLAIN SELECT i FROM f")
