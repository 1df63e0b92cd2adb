"""Kept rows of views that a stop of the database saves and the next start takes up: as rows that were never given up.

The judge is the query of each view, which reads the tables as they are.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from executor.maintained import kept_rows
from planner.algebra.nodes import Relation
from tests.executor.client import Client, open_database
from tests.executor.test_maintained_views import change, create, kept
from tests.executor.view_queries import MAINTAINED, TABLES, bag
from tests.rig.crash import copy_crashed
from tests.rig.sampling import sample

GROUPED = "SELECT g, count(*) n, sum(v) s, avg(v) m FROM a GROUP BY g"
JOINED = "SELECT a.k, a.t, b.w FROM a LEFT JOIN b ON a.k = b.k"
OPTION = "WITH (method = 'incremental')"


@pytest.fixture
def fills(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The views whose rows are made anew."""
    found: list[str] = []
    fill = kept_rows.KeptRows.fill

    def noted(self: kept_rows.KeptRows, whole: Callable[[Relation, Mapping[str, pa.Table]], pa.Table]) -> None:
        found.append(self._expanded.views[0][0].view.name)
        fill(self, whole)

    monkeypatch.setattr(kept_rows.KeptRows, "fill", noted)
    return found


def begin(client: Client) -> None:
    client.run(TABLES)
    client.run("INSERT INTO a SELECT i, i % 5, i, 'x' || i % 3 FROM generate_series(1, 60) i")
    client.run("INSERT INTO b SELECT i % 50, i % 4, i, 'y' FROM generate_series(1, 80) i")
    client.run(f"CREATE MATERIALIZED VIEW grouped {OPTION} AS {GROUPED}")
    client.run(f"CREATE MATERIALIZED VIEW joined {OPTION} AS {JOINED}")
    client.run(f"CREATE MATERIALIZED VIEW upper {OPTION} AS SELECT n, count(*) c, sum(s) s FROM grouped GROUP BY n")


def check(client: Client) -> None:
    upper = f"SELECT n, count(*), sum(s) FROM ({GROUPED}) x GROUP BY n"
    for view, query in (("upper", upper), ("joined", JOINED), ("grouped", GROUPED)):
        assert bag(client.run(f"SELECT * FROM {view}")) == bag(client.run(query)), view


def test_what_changes_have_taken_is_saved(tmp_path: Path) -> None:
    asked = "SELECT part, changes, rows_read FROM millstream.paths WHERE view = 'grouped' AND changes > 0 ORDER BY part"
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        begin(client)
        for number in range(3):
            client.run(f"SELECT * FROM grouped; INSERT INTO a VALUES ({100 + number}, 1, 1, 'x')")
        client.run("SELECT * FROM grouped")
        found = client.run(asked)
        assert found and all(changes == 3 for _, changes, _ in found)
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("SELECT * FROM grouped")
        assert client.run(asked) == found


@pytest.mark.parametrize("seed", sample(range(6), (0,)))
def test_views_equal_their_queries_after_restarts(tmp_path: Path, seed: int, fills: list[str]) -> None:
    drawn, restored = random.Random(seed), 0
    queries = tuple(drawn.sample(MAINTAINED, 30))
    with closing(open_database(tmp_path)) as database:
        create(Client(database), queries)
    for _ in range(4):
        with closing(open_database(tmp_path)) as database:
            client = Client(database)
            for _ in range(drawn.randint(0, 3)):
                client.run(change(drawn))
            fills.clear()
            read = [place for place in range(len(queries)) if drawn.random() < 0.7]
            for place in read:
                assert bag(client.run(f"SELECT * FROM v{place}")) == bag(client.run(queries[place])), place
            restored += len(read) - len(set(fills))
            for _ in range(drawn.randint(0, 2)):
                client.run(change(drawn))
            for place in drawn.sample(read, 9):
                assert bag(client.run(f"SELECT * FROM v{place}")) == bag(client.run(queries[place])), place
    assert restored > len(queries) / 2


def test_nothing_is_made_anew_after_a_stop(tmp_path: Path, fills: list[str]) -> None:
    with closing(open_database(tmp_path)) as database:
        begin(Client(database))
        check(Client(database))
    assert sorted(fills) == ["grouped", "joined", "upper"]
    for number in range(3):
        with closing(open_database(tmp_path)) as database:
            client = Client(database)
            if number == 1:
                client.run("UPDATE a SET v = v + 1, g = g + 1 WHERE k % 7 = 2; DELETE FROM b WHERE w = 9")
            check(client)
            client.run("UPDATE a SET v = v + 1 WHERE k = 3; INSERT INTO b VALUES (3, 3, 3, 'z')")
            check(client)
            assert kept(database) == {"grouped", "joined", "upper"}
    assert len(fills) == 3


def test_rows_that_nobody_reads_stay_saved(tmp_path: Path, fills: list[str]) -> None:
    with closing(open_database(tmp_path)) as database:
        begin(Client(database))
        check(Client(database))
    for _ in range(2):
        with closing(open_database(tmp_path)) as database:
            Client(database).run("UPDATE a SET v = v + 1 WHERE k = 3")
    with closing(open_database(tmp_path)) as database:
        check(Client(database))
    assert len(fills) == 3


def test_after_a_kill_the_rows_of_the_stop_before_follow_the_log(tmp_path: Path, fills: list[str]) -> None:
    with closing(open_database(tmp_path / "live")) as database:
        begin(Client(database))
        check(Client(database))
    with closing(open_database(tmp_path / "live")) as database:
        client = Client(database)
        check(client)
        client.run("UPDATE a SET v = v + 1 WHERE k % 3 = 0; DELETE FROM b WHERE w < 5")
        check(client)
        client.run("INSERT INTO a VALUES (99, 1, 1, 'new')")
        copy_crashed(tmp_path / "live", tmp_path / "crashed")
    with closing(open_database(tmp_path / "crashed")) as database:
        check(Client(database))
    assert len(fills) == 3


@pytest.mark.parametrize("harm", ["file", "document", "older"])
def test_files_that_are_not_what_was_written_count_for_nothing(tmp_path: Path, harm: str, fills: list[str]) -> None:
    with closing(open_database(tmp_path)) as database:
        begin(Client(database))
        check(Client(database))
    (folder,) = tmp_path.glob("servers/*/kept")
    shutil.copytree(folder, tmp_path / "older")
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("UPDATE a SET v = v + 1")
        check(client)
    if harm == "older":
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "older", folder)
    else:
        for path in folder.glob("*.arrow" if harm == "file" else "*.json"):
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
    with closing(open_database(tmp_path)) as database:
        check(Client(database))
    assert len(fills) == 6


def test_another_definition_or_table_is_not_taken_for_the_one_that_was(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        begin(client)
        check(client)
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("DROP MATERIALIZED VIEW joined; DROP MATERIALIZED VIEW grouped CASCADE")
        client.run("ALTER TABLE a ALTER COLUMN v TYPE bigint USING v * 2; ALTER TABLE b DROP COLUMN t")
        other = GROUPED.replace("sum(v)", "sum(v + 1)")
        client.run(f"CREATE MATERIALIZED VIEW grouped {OPTION} AS {other}")
        client.run(f"CREATE MATERIALIZED VIEW joined {OPTION} AS {JOINED}")
        assert bag(client.run("SELECT * FROM grouped")) == bag(client.run(other))
        assert bag(client.run("SELECT * FROM joined")) == bag(client.run(JOINED))
    (folder,) = tmp_path.glob("servers/*/kept")
    assert len([*folder.glob("*.arrow")]) == 2
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("ALTER TABLE a ADD COLUMN z int DEFAULT 5; TRUNCATE b; INSERT INTO b VALUES (7, 7, 7)")
        assert bag(client.run("SELECT * FROM grouped")) == bag(client.run(other))
        assert bag(client.run("SELECT * FROM joined")) == bag(client.run(JOINED))


def test_values_of_all_kinds_are_saved(tmp_path: Path, fills: list[str]) -> None:
    """Also those that Arrow has as structs, lists and bytes, and floats with all their bits."""
    columns = "k int, f float8, n numeric, i interval, j jsonb, l int[], b bytea, u uuid, r int4range, z timestamptz"
    query = "SELECT t.*, x.c FROM t JOIN (SELECT k, count(*) c FROM t GROUP BY k) x USING (k)"
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(f"CREATE TABLE t ({columns})")
        client.run(
            "INSERT INTO t VALUES (1, '-0', 1.50, '1 month 2 days', '{\"a\": [1]}', '{1,NULL}', '\\x00ff',"
            " '00000000-0000-0000-0000-000000000001', '[1,5)', '2024-01-01 00:00+02')"
        )
        client.run("INSERT INTO t VALUES (1, 'nan'), (2, 'infinity'), (2, 0)")
        client.run(f"CREATE MATERIALIZED VIEW v {OPTION} AS {query}")
        client.run("SELECT * FROM v")
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("INSERT INTO t VALUES (2, 1), (3, 2)")
        assert bag(client.run("SELECT v::text FROM v")) == bag(client.run(f"SELECT t::text FROM ({query}) t"))
    assert fills == ["v"]
