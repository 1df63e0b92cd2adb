"""The law when the inputs of a continuous view are renamed, or gain or lose columns: the view keeps its meaning."""

from __future__ import annotations

import psycopg
import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

#: The judge evaluates views by name, so they are compared with PostgreSQL's own views.
VIEWS = {
    "counted": "SELECT k, count(*) AS n, sum(v) AS total FROM x GROUP BY k",
    "named": "SELECT t.name, c.n FROM (SELECT k, count(*) AS n FROM x GROUP BY k) c JOIN t ON t.id = c.k",
    "below": "SELECT f.name, count(*) AS n FROM x JOIN f ON f.id = x.k GROUP BY f.name",
    "missing": "SELECT * FROM t WHERE id NOT IN (SELECT k FROM x WHERE k IS NOT NULL)",
    "through": "SELECT label, n FROM labels RIGHT JOIN (SELECT k, count(*) AS n FROM x GROUP BY k) c ON c.k = number",
    "upon": "SELECT max(n) AS most, count(*) AS groups FROM counted",
}
STEPS = (
    "ALTER TABLE t RENAME COLUMN name TO called",
    "ALTER TABLE t RENAME TO things",
    "ALTER TABLE things RENAME id TO number",
    "ALTER TABLE things ADD COLUMN name text DEFAULT 'new'",
    "ALTER VIEW labels RENAME COLUMN label TO sign",
    "ALTER VIEW labels RENAME TO signs",
    "UPDATE things SET called = called || '!' WHERE number < 3",
    "ALTER TABLE things DROP COLUMN name",
    "ALTER TABLE things RENAME COLUMN called TO name",
    "ALTER TABLE f RENAME COLUMN name TO word",
    "ALTER TABLE f RENAME TO g",
    "DELETE FROM things WHERE number = 2",
)


def _tell(mirror: Mirror, text: str) -> None:
    for connection in (mirror.client, mirror.judge):
        connection.execute(text.encode())


def test_views_go_on_meaning_what_they_did(postgres: Postgres) -> None:
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 3}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        mirror.stream("x", "k integer, v integer")
        for table in ("t", "f"):
            mirror.table(table, "id integer PRIMARY KEY, name text")
            mirror.insert(table, [(1, "a"), (2, "b"), (3, "c"), (9, "d")], one_statement=True)
        _tell(mirror, "CREATE VIEW labels AS SELECT id AS number, name AS label FROM t WHERE id <> 3")
        for name, query in VIEWS.items():
            _tell(mirror, f"CREATE VIEW {name} AS {query}")
            mirror.views[name] = f"SELECT * FROM {name}"
        for number, step in enumerate(STEPS):
            mirror.insert("x", [(number % 4, number), (number % 3, 1), (None, 2)], one_statement=True)
            if number % 2:
                mirror.check()
            _tell(mirror, step)
            mirror.check()
            if number % 4 == 2:
                mirror.restart(crash=number % 8 == 2)
                mirror.check()
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            mirror.client.execute("ALTER TABLE things DROP COLUMN number")


def test_a_renamed_column_is_read_in_the_transaction_that_renames_it(postgres: Postgres) -> None:
    settings = {"maintenance_engine": "embedded", "spark_enabled": False}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        mirror.stream("x", "k integer, v integer")
        mirror.table("t", "id integer PRIMARY KEY, name text")
        mirror.insert("t", [(1, "a"), (2, "b")], one_statement=True)
        mirror.view("named", VIEWS["named"])
        mirror.insert("x", [(1, 1), (2, 2), (1, 3)], one_statement=True)
        read = "SELECT * FROM named ORDER BY name"
        before = mirror.client.execute(read).fetchall()
        with mirror.client.transaction(force_rollback=True):
            mirror.client.execute("ALTER TABLE t RENAME COLUMN name TO called")
            assert mirror.client.execute(read).fetchall() == before
        assert mirror.client.execute(read).fetchall() == before
        mirror.client.execute("ALTER TABLE t RENAME COLUMN name TO called")
        assert mirror.client.execute(read).fetchall() == before
