"""The states of views that keep the first rows of each key are written, whatever columns they have."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.executor.client import Client, open_database
from tests.rig.process import wait_until

NUMBERED = "SELECT k FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY k) AS r FROM s) q WHERE"


@pytest.mark.parametrize(("condition", "wanted"), [("r = 1", [1, 2]), ("r <= 2", [1, 1, 2, 2])])
def test_first_rows_of_which_only_the_key_is_read_are_written(
    tmp_path: Path, condition: str, wanted: list[int]
) -> None:
    options = {"maintenance_engine": "embedded", "maintenance_rows": 1, "maintenance_idle": 0.0}
    database = open_database(tmp_path, **options)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (k integer) SERVER stream")
    client.run(f"CREATE VIEW v AS {NUMBERED} {condition}")
    client.run("INSERT INTO s VALUES (1), (1), (1), (2)")
    wait_until(lambda: client.run("SELECT rows_behind FROM millstream.views") == [(0,)], 60, "maintenance")
    client.run("INSERT INTO s VALUES (2)")
    client.session.close()
    database.close()
    database = open_database(tmp_path, **options)
    client = Client(database)
    assert sorted(client.run("SELECT k FROM v")) == [(value,) for value in wanted]
    client.session.close()
    database.close()


VALUES = {
    "jsonb": ("'10'", "'9'", "'[1]'", "'\"a\"'", "'null'", "NULL", "'true'"),
    "inet": ("'10.0.0.1'", "'9.0.0.1'", "'9.0.0.0/8'", "NULL"),
    "interval": ("'1 day'", "'25 hours'", "'-1 mon'", "'2 hours'"),
    "timetz": ("'10:00+02'", "'09:30+00'"),
    "numeric": ("10", "9", "2.5", "NULL"),
}


@pytest.mark.parametrize("order", ["", "DESC", "DESC NULLS LAST", "NULLS FIRST"])
@pytest.mark.parametrize("kind", VALUES)
def test_first_rows_are_those_of_the_types_order(tmp_path: Path, kind: str, order: str) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(f"CREATE FOREIGN TABLE s (k integer, v {kind}) SERVER stream; CREATE TABLE t (k integer, v {kind})")
        queries = {
            "first": f"SELECT DISTINCT ON (k) k, v FROM {{}} ORDER BY k, v {order}",
            "three": f"SELECT v FROM {{}} ORDER BY v {order} LIMIT 3",
        }
        for name, query in queries.items():
            client.run(f"CREATE VIEW {name} AS {query.format('s')}")
        for value in VALUES[kind]:
            client.run(f"INSERT INTO s VALUES (1, {value}); INSERT INTO t VALUES (1, {value})")
            for name, query in queries.items():
                assert sorted(map(str, client.run(f"SELECT * FROM {name}"))) == sorted(
                    map(str, client.run(query.format("t")))
                )
