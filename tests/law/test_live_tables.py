"""The replacement text that CREATE VIEW suggests for a view that reads a table once is accepted, has the same meaning,
and follows the table.

The views are created from the suggested text; PostgreSQL evaluates the original text over the acknowledged rows and the
tables at each check.
"""

from __future__ import annotations

import random

import psycopg
import pytest

from tests.rig.mirror import mirrored
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

VIEWS = {
    "joined": "SELECT name, count(*), sum(n), avg(i), min(t) FROM x JOIN side ON k = id GROUP BY name",
    "all_kept": "SELECT name, count(*) AS c, count(i) AS d, sum(i) AS s, avg(n) AS a, max(t) FROM side LEFT JOIN x"
    " ON k = id GROUP BY name HAVING count(*) > 0",
    "one_group": 'SELECT count(*) AS "All", sum(n * p) AS s, max(p) AS p FROM x a, side WHERE a.k = id AND a.i > 1',
    "sets": "SELECT name, count(DISTINCT t), count(*) AS c FROM x JOIN side ON k = id JOIN other USING (k)"
    " GROUP BY ROLLUP (name)",
    "distinct_rows": "SELECT DISTINCT name, t FROM x JOIN side ON x.k = side.id WHERE t <> 'b'",
    "full_kept": "SELECT p.name, w.k, avg(i * w.w), count(*) FILTER (WHERE x.i > 2), bool_or(x.t = p.name)"
    " FROM x FULL JOIN side p ON x.k = p.id LEFT JOIN other w ON w.k = x.i GROUP BY 1, 2",
    "crossed": "SELECT name, count(*) AS n, sum(p) AS p FROM x CROSS JOIN side GROUP BY name",
    "filtered": "SELECT name, count(*) FILTER (WHERE i > 1) AS c, sum(n) FILTER (WHERE t = 'a') AS s,"
    " sum(p) FILTER (WHERE i IS NULL) AS q FROM x JOIN side ON k = id GROUP BY name",
    "expressions": "SELECT upper(name) AS u, coalesce(sum(i), 0) + count(*) AS s, sum(i) / nullif(count(i), 0) AS m"
    " FROM x LEFT JOIN side ON k = id AND p > 2 GROUP BY upper(name)",
    "by_both": "SELECT t || name AS both_names, sum(i * 2) AS s FROM x, side WHERE k = id AND i + id > 1"
    " GROUP BY t || name",
}
#: Views for which no other text is suggested.
OTHERS = (
    "SELECT name, string_agg(t, ',') FROM x JOIN side ON k = id GROUP BY name",
    "SELECT name, count(*) FROM x JOIN side ON k = id WHERE i > (SELECT min(k) FROM other) GROUP BY name",
    "SELECT name, stddev(i) FROM x JOIN side ON k = id GROUP BY name",
)
_BEFORE = "This definition follows the changes of the table; it starts without the rows that have arrived: "


def test_the_text_that_is_told_reads_tables_as_they_are(postgres: Postgres) -> None:
    source = random.Random(11)
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 30}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        told: list[tuple[str, str, str]] = []  # severity, message and hint
        mirror.client.add_notice_handler(lambda notice: told.append(_parts(notice)))
        mirror.table("side", "id integer, name text, p numeric(10, 2)")
        mirror.table("other", "k integer, w integer")
        mirror.stream("x", "k integer, n numeric(10, 2), i integer, t text")
        for table in ("side", "other"):
            mirror.insert(table, [_of_table(table, source) for _ in range(6)], one_statement=True)
        for name, query in VIEWS.items():
            told.clear()
            mirror.view(name, query)
            assert {severity for severity, _, _ in told} == {"WARNING"}, name
            assert all("is read as of the view's creation" in message for _, message, _ in told)
            hint = told[-1][2]
            assert hint.startswith(_BEFORE), f"{name}: {hint}"
            told.clear()
            mirror.client.execute(hint.removeprefix(_BEFORE).encode())
            warning = f'view "{name}" starts again: its result of earlier rows of x is lost'
            assert told == [("WARNING", warning, "")]
        for _ in range(6):
            mirror.insert("x", [_of_stream(source) for _ in range(source.choice((1, 20)))], one_statement=True)
            mirror.check()
            for connection in (mirror.client, mirror.judge):
                connection.execute(b"UPDATE side SET name = name || 'x', p = p + 1 WHERE id = 2")
            mirror.insert("side", [_of_table("side", source)], one_statement=True)
            mirror.check()
        for number, query in enumerate(OTHERS):
            told.clear()
            mirror.client.execute(f"CREATE VIEW unknown{number} AS {query}".encode())
            severity, message, hint = told[-1]
            assert severity == "WARNING"
            assert "is read as of the view's creation" in message
            assert hint.startswith("There is no form of this view"), query


def _parts(notice: psycopg.errors.Diagnostic) -> tuple[str, str, str]:
    return notice.severity_nonlocalized or "", notice.message_primary or "", notice.message_hint or ""


def _of_table(table: str, source: random.Random) -> list[object]:
    key = source.randint(0, 4)
    return [key, source.choice("abc"), source.randint(0, 500) / 100] if table == "side" else [key, source.randint(1, 3)]


def _of_stream(source: random.Random) -> list[object]:
    row = [source.randint(0, 5), source.randint(-500, 500) / 100, source.randint(0, 5), source.choice("abc")]
    return [None if source.random() < 0.1 else value for value in row]
