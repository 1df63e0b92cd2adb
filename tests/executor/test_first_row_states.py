"""The states of views that keep the first rows of each key are written, whatever columns they have."""

from __future__ import annotations

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
