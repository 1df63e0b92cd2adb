"""Queries over continuous views: the views' row counts decide whether they run in steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.separation import steps
from tests.executor.client import Client, open_database, rows

QUERY = "SELECT c, count(*) FROM (SELECT k % 10 AS m, sum(c) AS c FROM {} GROUP BY 1) g GROUP BY c ORDER BY c"


def test_a_views_rows_are_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = open_database(tmp_path / "data", embedded_threads=2)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (k int, n int) SERVER stream")
    client.run("CREATE VIEW few AS SELECT k % 3 AS k, count(*) AS c FROM s GROUP BY 1")
    client.run("CREATE VIEW many AS SELECT k, count(*) AS c FROM s GROUP BY k")
    client.run("CREATE VIEW above AS SELECT c AS k, count(*) AS c FROM many GROUP BY 1")
    client.run(
        "INSERT INTO s SELECT g, 1 FROM generate_series(1, 20000) g; SELECT * FROM few, above; SELECT * FROM many"
    )
    # As if a core were a thousand times slower.
    monkeypatch.setattr(steps, "speed_of", lambda database, engine="embedded": 40_000)

    def way(view: str) -> str:
        lines = [line for (line,) in client.run(f"EXPLAIN {QUERY.format(view)}")]
        return next((line.strip() for line in lines if line.startswith("Execution")), "whole")

    assert way("few") == "whole"
    assert way("many") == "Execution: pipeline by pipeline (about 2.00 s)"
    assert way("above").startswith("Execution: pipeline by pipeline (about 2.")
    database.close()


def test_steps_are_chosen_anew_as_a_view_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of streams change no table."""
    database = open_database(tmp_path / "data", embedded_threads=2)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (k int, n int) SERVER stream")
    client.run("CREATE VIEW v AS SELECT k, count(*) AS c FROM s GROUP BY k")
    monkeypatch.setattr(steps, "speed_of", lambda database, engine="embedded": 40_000)
    monkeypatch.setattr(steps, "_PROBED", 1000)
    statement = client.bind("EXPLAIN SELECT count(*) FROM v a JOIN (SELECT * FROM v x JOIN v y USING (k)) b USING (k)")

    def explained(upto: int) -> list[str]:
        client.run(f"INSERT INTO s SELECT g, 1 FROM generate_series(1, {upto}) g; SELECT count(*) FROM v")
        found = [
            str(row[0]).strip() for batch in client.session.execute(statement).batches or () for row in rows(batch)
        ]
        return [line for line in found if line.startswith(("Execution", "Pipeline"))]

    assert explained(15_000) == []
    how, *pipelines = explained(60_000)
    assert how == "Execution: pipeline by pipeline (about 6.00 s)"
    assert len(pipelines) > 1
    assert explained(70_000)[0] == "Execution: pipeline by pipeline (about 7.00 s)"
    database.close()
