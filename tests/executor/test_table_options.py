"""The view option ``tables``: what CREATE VIEW tells, what ALTER VIEW refuses, and what millstream.views shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from tests.executor.client import Client, open_database

RELATIONS = """
    CREATE TABLE t (id int, name text);
    INSERT INTO t VALUES (1, 'a'), (2, 'b');
    CREATE FOREIGN TABLE s (k int, w text, at timestamp) SERVER stream OPTIONS (watermark 'at');
"""
JOINED = "SELECT name, count(*) AS c FROM s JOIN t ON k = id GROUP BY name"
IN_ORDER = "SELECT name, array_agg(w) AS w FROM s JOIN t ON k = id GROUP BY name"


def test_tables_are_live_or_frozen(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(RELATIONS)
    assert _told(client, f"CREATE VIEW live AS {JOINED}") == []
    assert _told(client, f"CREATE VIEW asked WITH (tables = 'live') AS {JOINED}") == []
    ((sqlstate, _, hint),) = _told(client, f"CREATE VIEW frozen WITH (tables = 'frozen') AS {JOINED}")
    assert (sqlstate, hint) == ("00000", None)
    ((sqlstate, detail, hint),) = _told(client, f"CREATE VIEW arrived AS {IN_ORDER}")
    assert sqlstate == "01000"
    assert detail is not None and "array_agg() without ORDER BY" in detail
    assert hint == "Write array_agg(... ORDER BY ...)."
    client.run("CREATE VIEW alone AS SELECT k, count(*) FROM s GROUP BY k")
    client.run("INSERT INTO s VALUES (1, 'x', NULL), (2, 'y', NULL); UPDATE t SET name = 'c' WHERE id = 2")
    kinds = [("alone", None), ("arrived", "frozen"), ("asked", "live"), ("frozen", "frozen"), ("live", "live")]
    for _ in range(2):
        assert client.run("SELECT name, tables FROM millstream.views ORDER BY name") == kinds
        assert client.run("SELECT * FROM live ORDER BY name") == [("a", 1), ("c", 1)]
        assert client.run("SELECT * FROM frozen ORDER BY name") == [("a", 1), ("b", 1)]
        assert client.run("SELECT * FROM arrived ORDER BY name") == [("a", ["x"]), ("b", ["y"])]
        database.close()
        database = open_database(tmp_path)
        client = Client(database)
    database.close()


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        (f"CREATE VIEW v WITH (tables = 'live') AS {IN_ORDER}", "array_agg() without ORDER BY"),
        (
            "CREATE VIEW v WITH (tables = 'live', emit = 'final') AS SELECT date_bin('1 hour', at, '2000-01-01') AS h,"
            " name, count(*) FROM s JOIN t ON k = id GROUP BY 1, 2",
            "emit = 'final'",
        ),
        ("ALTER VIEW w SET (tables = 'frozen')", "cannot change the option tables of view"),
        ("ALTER VIEW x RESET (tables)", "cannot change the option tables of view"),
        (f"CREATE OR REPLACE VIEW w WITH (tables = 'frozen') AS {JOINED}", "cannot change the option tables of view"),
    ],
)
def test_refusals(tmp_path: Path, statement: str, word: str) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(RELATIONS)
    client.run(f"CREATE VIEW w AS {JOINED}; CREATE VIEW x WITH (tables = 'frozen') AS {JOINED}")
    with pytest.raises(SqlError) as raised:
        client.run(statement)
    assert raised.value.sqlstate == "0A000"
    assert word in raised.value.message
    assert raised.value.hint
    database.close()


def test_a_replaced_view_may_choose_again(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(RELATIONS)
    client.run(f"CREATE VIEW w AS {JOINED}")
    client.run(f"CREATE OR REPLACE VIEW w WITH (tables = 'frozen', restart = true) AS {JOINED}")
    assert client.run("SELECT tables FROM millstream.views") == [("frozen",)]
    database.close()


def _told(client: Client, statement: str) -> list[tuple[str, str | None, str | None]]:
    """The SQLSTATEs, details and hints of what is told of tables."""
    notices = client.session.execute(client.bind(statement)).notices
    return [(item.sqlstate, item.detail, item.hint) for item in notices]
