"""ALTER FOREIGN TABLE of streams: old records keep their layout, and views keep their meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.options import Options
from tests.executor.client import Client
from tests.rig.beside import Beside
from tests.rig.process import wait_until

Row = tuple[object, ...]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database with a stream and a view over it."""
    opened = Database(Options(tmp_path, spark_enabled=False))
    client = Client(opened)
    client.run("CREATE FOREIGN TABLE s (k int, a text, v int DEFAULT 1) SERVER stream")
    client.run("CREATE VIEW base AS SELECT k, sum(v), count(*) FROM s GROUP BY k")
    yield opened
    opened.close()


def run(database: Database, *texts: str) -> object:
    return [Client(database).run(text) for text in texts][-1]


@pytest.mark.slow
def test_columns_come_and_go_and_old_records_are_read(database: Database, tmp_path: Path) -> None:
    run(
        database,
        "INSERT INTO s VALUES (1, 'x', 2)",
        "ALTER FOREIGN TABLE s ADD COLUMN b bigint NOT NULL DEFAULT 7, DROP COLUMN a",
        "CREATE VIEW later AS SELECT k, b, c FROM (SELECT k, b, count(*) AS c FROM s GROUP BY 1, 2) AS g",
        "INSERT INTO s VALUES (1, 3, 9)",
        "INSERT INTO s (k) VALUES (2)",
        "ALTER TABLE s ADD a numeric DEFAULT 1.5, ALTER v DROP DEFAULT",
        "INSERT INTO s (k, a) VALUES (2, 2.5)",
    )
    expected: dict[str, list[Row]] = {
        "SELECT * FROM base ORDER BY 1": [(1, 5, 2), (2, 1, 2)],
        "SELECT * FROM later ORDER BY 1, 2": [(1, 9, 1), (2, 7, 2)],
    }
    for query, rows in expected.items():
        assert run(database, query) == rows
    database.close()
    again = Database(Options(tmp_path, spark_enabled=False))
    for query, rows in expected.items():
        assert run(again, query) == rows
    run(again, "INSERT INTO s VALUES (3, 4, 5, 6)")
    assert run(again, "SELECT * FROM later WHERE k = 3") == [(3, 5, 1)]
    again.close()


@pytest.mark.slow
def test_a_stream_is_altered_when_its_writers_have_ended(database: Database) -> None:
    """The writers are a COPY and a transaction with rows."""
    client, other = Client(database), Client(database)
    client.run("BEGIN")
    client.run("INSERT INTO s VALUES (1, 'x', 2)")
    sink = other.session.copy_in(other.planned("COPY s FROM STDIN"))
    altered = Beside(run, database, "ALTER FOREIGN TABLE s ADD b int DEFAULT 4, DROP a, ADD c text")
    wait_until(lambda: any(not item.granted for item in database.core.tables.locks.shown()), 60, "the wait for both")
    batch = pa.table({"k": pa.array([2], pa.int32()), "a": ["y"], "v": pa.array([5], pa.int32())}).to_batches()[0]
    sink.write(sink.prepare(batch))
    assert sink.finish() == 1
    client.run("INSERT INTO s VALUES (3, 'z', 6)")
    client.run("COMMIT")
    altered.result()
    run(database, "CREATE VIEW w AS SELECT k, v, b, c, count(*) FROM s GROUP BY 1, 2, 3, 4")
    client.run("INSERT INTO s VALUES (4, 7, 8, 'new')")
    assert run(database, "SELECT * FROM w") == [(4, 7, 8, "new", 1)]
    assert run(database, "SELECT * FROM base ORDER BY k") == [(1, 2, 1), (2, 5, 1), (3, 6, 1), (4, 7, 1)]


def test_an_alter_and_rows_of_one_transaction(database: Database) -> None:
    client = Client(database)
    for text in (
        "BEGIN",
        "INSERT INTO s VALUES (1, 'x', 2)",
        "ALTER FOREIGN TABLE s DROP a, ADD b int",
        "INSERT INTO s VALUES (1, 3, 4)",
        "CREATE VIEW w AS SELECT b, count(*) FROM s GROUP BY b",
        "COMMIT",
        "INSERT INTO s VALUES (1, 3, 4)",
    ):
        client.run(text)
    assert run(database, "SELECT * FROM base") == [(1, 8, 3)]
    client.run("BEGIN")
    client.run("ALTER FOREIGN TABLE s ADD d int")
    client.run("ROLLBACK")
    client.run("INSERT INTO s VALUES (1, 3, 4)")
    assert run(database, "SELECT * FROM w") == [(4, 2)]


REFUSED = [
    ("2BP01", "ALTER FOREIGN TABLE s DROP COLUMN v"),
    ("2BP01", "ALTER FOREIGN TABLE s ALTER n DROP NOT NULL"),
    ("2BP01", "ALTER FOREIGN TABLE s OPTIONS (SET watermark 'ts - interval ''1 s''')"),
    ("2BP01", "ALTER FOREIGN TABLE s DROP ts"),
    ("42701", "ALTER FOREIGN TABLE s ADD COLUMN v int"),
    ("42703", "ALTER FOREIGN TABLE s DROP COLUMN nobody"),
    ("42703", "ALTER FOREIGN TABLE s ALTER nobody SET DEFAULT 1"),
    ("42704", "ALTER FOREIGN TABLE s OPTIONS (DROP header)"),
    ("42710", "ALTER FOREIGN TABLE s OPTIONS (ADD watermark 'ts')"),
    ("42804", "ALTER FOREIGN TABLE s ALTER v SET DEFAULT true"),
    ("42809", "ALTER FOREIGN TABLE t ADD COLUMN v int"),
    ("HV00D", "ALTER FOREIGN TABLE s OPTIONS (ADD colour 'red')"),
    ("0A000", "ALTER FOREIGN TABLE s OPTIONS (ADD source 'files')"),
    ("0A000", "ALTER FOREIGN TABLE s DROP COLUMN v CASCADE"),
    ("0A000", "ALTER FOREIGN TABLE s ALTER v SET NOT NULL"),
    ("0A000", "ALTER FOREIGN TABLE s ALTER v TYPE bigint"),
    ("0A000", "ALTER FOREIGN TABLE s ADD u uuid NOT NULL DEFAULT gen_random_uuid()"),
    ("0A000", "ALTER FOREIGN TABLE s ADD u int NOT NULL"),
    ("0A000", "ALTER FOREIGN TABLE s ADD u int[]"),
    ("0A000", "ALTER FOREIGN TABLE one DROP k"),
]


def test_what_is_refused(tmp_path: Path) -> None:
    database = Database(Options(tmp_path, spark_enabled=False))
    client = Client(database)
    client.run(
        "CREATE FOREIGN TABLE s (k int, a text, v int, n int NOT NULL, ts timestamp, b int) SERVER stream "
        "OPTIONS (watermark 'ts')"
    )
    client.run("CREATE TABLE t (k int)")
    client.run("CREATE FOREIGN TABLE one (k int) SERVER stream")
    client.run("CREATE VIEW reader AS SELECT k, sum(v), count(n) FROM s GROUP BY k")
    client.run("CREATE VIEW kept WITH (retention = '1 s') AS SELECT tumble(ts, '1 s'), k FROM s GROUP BY 1, 2")
    for state, text in REFUSED:
        with pytest.raises(SqlError) as caught:
            client.run(text)
        assert caught.value.sqlstate == state, text
    for text in (
        "ALTER FOREIGN TABLE s OWNER TO millstream",
        "ALTER FOREIGN TABLE s ADD COLUMN IF NOT EXISTS v int, DROP COLUMN IF EXISTS nobody, ALTER a SET DEFAULT 'x'",
        "ALTER FOREIGN TABLE s DROP COLUMN a",
    ):
        assert client.run(text) == "ALTER FOREIGN TABLE"
    database.close()
