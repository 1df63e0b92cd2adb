"""A REPEATABLE READ transaction reads continuous views as of its snapshot, however far they have moved since."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from tests.executor.client import Client, open_database
from tests.rig.beside import Beside

VIEWS = (
    "CREATE FOREIGN TABLE s (g int, n int) SERVER stream; CREATE TABLE t (g int PRIMARY KEY, name text);"
    "INSERT INTO t SELECT g, 'g' || g FROM generate_series(0, 9) g;"
    "CREATE VIEW grouped AS SELECT g, count(*) AS rows, sum(n) AS total, max(n) AS most FROM s GROUP BY g;"
    "CREATE VIEW whole AS SELECT count(*) AS rows, sum(n) AS total FROM s;"
    "CREATE VIEW named AS SELECT t.name, x.total FROM (SELECT g, sum(n) AS total FROM s GROUP BY g) x JOIN t USING (g);"
    "CREATE VIEW above AS SELECT sum(total) AS total FROM grouped"
)
READS = (
    "SELECT * FROM grouped ORDER BY g",
    "SELECT * FROM whole",
    "SELECT * FROM named ORDER BY name",
    "SELECT g.total, w.total FROM (SELECT sum(total) AS total FROM grouped) g, whole w",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as database:
        Client(database).run(VIEWS)
        yield database


def add(client: Client, source: random.Random, rows: int) -> None:
    """Inserts rows into the stream with one statement."""
    values = ", ".join(f"({source.randrange(10)}, {source.randrange(100)})" for _ in range(rows))
    client.run(f"INSERT INTO s VALUES {values}")


@pytest.mark.parametrize("reads_first", [True, False], ids=["read before", "not read before"])
def test_a_view_that_has_moved_on_is_read_as_of_the_snapshot(database: Database, reads_first: bool) -> None:
    source, writer, other, reader = random.Random(1), Client(database), Client(database), Client(database)
    add(writer, source, 20)
    expected = [other.run(read) for read in READS]
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    reader.run(READS[0] if reads_first else "SELECT count(*) FROM t")
    late = Client(database)
    for round in range(18):
        add(writer, source, 200 if round == 8 else 3)
        writer.run(f"UPDATE t SET name = name || 'x' WHERE g = {round % 10}")
        for read in READS:
            other.run(read)
        if round == 6:
            late.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
            kept = [other.run(read) for read in READS]
            assert [late.run(read) for read in READS] == kept
        assert [reader.run(read) for read in READS] == expected
    assert [late.run(read) for read in READS] == kept
    for client in (reader, late):
        client.run("COMMIT")
    assert not database.core.pinned.lsns
    assert [reader.run(read) for read in READS] == [other.run(read) for read in READS] != expected
    assert not any(runtime._kept for runtime in database.core.runtimes())


def test_read_only_transactions_under_load_never_fail(database: Database) -> None:
    """Two reads in one transaction agree, and two sums of one LSN are equal, while rows arrive."""
    writer, over = Client(database), []

    def write() -> None:
        source = random.Random(2)
        while not over:
            add(writer, source, 5)

    def read() -> None:
        client = Client(database)
        for _ in range(12):
            client.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            first = [client.run(read) for read in READS]
            assert [client.run(read) for read in READS] == first
            ((grouped, whole),) = first[3]
            assert grouped == whole
            client.run("COMMIT")

    writing = Beside(write)
    readers = [Beside(read) for _ in range(2)]
    try:
        for reader in readers:
            reader.result()
    finally:
        over.append(True)
        writing.result()


@pytest.mark.parametrize("method", ["auto", "incremental"])
def test_a_view_that_has_failed_since_is_read_as_of_the_snapshot(database: Database, method: str) -> None:
    writer, other, reader, late = (Client(database) for _ in range(4))
    writer.run(f"CREATE VIEW tens WITH (method = '{method}') AS SELECT g, 10 / n AS tenth FROM s")
    writer.run("CREATE VIEW higher AS SELECT g, sum(tenth) FROM tens GROUP BY g")
    writer.run("INSERT INTO s VALUES (1, 2), (2, 5)")
    reads = ("SELECT * FROM tens ORDER BY g", "SELECT * FROM higher ORDER BY g")
    expected = [other.run(read) for read in reads]
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert reader.run(reads[0]) == expected[0]
    writer.run("INSERT INTO s VALUES (3, 1)")
    late.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    late.run("SELECT count(*) FROM t")
    writer.run("INSERT INTO s VALUES (3, 0)")
    for read in reads:
        with pytest.raises(SqlError, match="division by zero"):
            other.run(read)
    assert [reader.run(read) for read in reads] == expected
    assert late.run("SELECT count(*) FROM tens") == [(3,)]


@pytest.mark.parametrize("first", ["SELECT 1", "INSERT INTO s VALUES (1, 1)", "EXPLAIN SELECT 1"])
def test_the_first_statement_takes_the_snapshot_whatever_it_reads(database: Database, first: str) -> None:
    reader, writer = Client(database), Client(database)
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.run(first)
    writer.run("INSERT INTO t VALUES (10, 'ten'); INSERT INTO s VALUES (1, 1)")
    assert reader.run("SELECT count(*) FROM t") == [(10,)]
    assert reader.run("SELECT rows FROM whole") == [(0,)]
    reader.run("COMMIT")
    assert writer.run("SELECT count(*) FROM t") == [(11,)]
