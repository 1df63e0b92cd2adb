"""The law with live tables: a view whose query joins a stream with tables below its grouping equals the query over the
rows that have arrived and the tables as they are, whatever happened to them.

The views are those that are written here, and random ones over a stream and up to three joins. Between reads rows of
the stream arrive, rows of the tables are inserted, updated, deleted and truncated, and the server is restarted.
PostgreSQL gets the same statements and evaluates the views' queries; numerics must show the same digits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import psycopg
import pytest

from tests.rig.compare import assert_same_rows
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

STREAM: Final = "k integer, i integer, n numeric(10,2), u numeric, f double precision, t text, b boolean, d timestamp"
SIDE: Final = "id integer, name text, p numeric(10,2), w numeric, r double precision, z integer, flag boolean"
OTHER: Final = "k integer, w integer"
SHAPES: Final = {
    "joined": "SELECT name, count(*), sum(n), avg(i), min(t) FROM x JOIN side ON x.k = id GROUP BY name",
    "one_group": "SELECT count(*), sum(n * p), max(p), avg(p), count(name) FROM x, side WHERE x.k = id AND x.i > 1",
    "crossed": "SELECT name, count(*) AS n, sum(p) AS p, min(z) FROM x CROSS JOIN side GROUP BY name",
    "crossed_alone": "SELECT count(*), min(z), max(name), sum(w), bool_or(flag) FROM x CROSS JOIN side",
    "kept_left": "SELECT x.k, name, count(*), count(id), sum(i), sum(z) FROM x LEFT JOIN side ON x.k = id AND z > x.i"
    " GROUP BY 1, 2",
    "semi": "SELECT t, count(*), sum(u) FROM x WHERE EXISTS (SELECT FROM side WHERE id = x.k AND z > x.i) GROUP BY t",
    "anti": "SELECT t, avg(n) FROM x WHERE NOT EXISTS (SELECT FROM side WHERE id = x.k) GROUP BY t",
    "member": "SELECT t, count(*) FROM x WHERE k IN (SELECT id FROM side WHERE flag) GROUP BY t",
    "not_member": "SELECT t, count(*) FROM x WHERE k NOT IN (SELECT id FROM side WHERE id IS NOT NULL) GROUP BY t",
    "marked": "SELECT t, count(*) FROM x WHERE k IN (SELECT id FROM side) OR i > 3 GROUP BY t",
    "two": "SELECT name, count(DISTINCT t), count(*) AS c FROM x JOIN side ON x.k = id JOIN other o ON z = o.k"
    " GROUP BY ROLLUP (name)",
    "distinct_rows": "SELECT DISTINCT name, t FROM x JOIN side ON x.k = side.id WHERE t <> 'b'",
    "hours": "SELECT date_trunc('hour', d) AS h, name, count(*), sum(i) FROM x JOIN side ON x.k = id GROUP BY 1, 2",
    "filtered": "SELECT name, count(*) FILTER (WHERE i > 1) AS c, sum(n) FILTER (WHERE flag) AS s,"
    " sum(p) FILTER (WHERE i IS NULL) AS q, avg(n) FILTER (WHERE flag AND i > 1) FROM x JOIN side ON x.k = id"
    " GROUP BY name",
    "with_having": "SELECT name, sum(i) FROM x JOIN side ON x.k = id GROUP BY name HAVING count(*) > 1 AND max(p) > 2",
    "expressions": "SELECT upper(name) AS u, coalesce(sum(i), 0) + count(*) AS s, sum(i + z) AS m, sum(i * 2) AS d"
    " FROM x LEFT JOIN side ON x.k = id AND p > 2 GROUP BY upper(name)",
    "by_both": "SELECT t || name AS both_names, sum(i * 2) AS s FROM x, side WHERE x.k = id AND i + id > 1 GROUP BY 1",
    "digits": "SELECT name, sum(u), avg(u), min(u), max(u), sum(w), avg(w), min(w), max(w), sum(u * w)"
    " FROM x JOIN side ON x.k = id GROUP BY name",
    "floats": "SELECT name, sum(f), avg(f), sum(r), avg(r), min(r), stddev(f), corr(f, r), var_pop(z), stddev(p)"
    " FROM x JOIN side ON x.k = id GROUP BY name",
    "of_copies": "SELECT name, array_agg(z ORDER BY z), string_agg(t, ',' ORDER BY t), sum(r), count(*), sum(i),"
    " percentile_cont(0.5) WITHIN GROUP (ORDER BY i), mode() WITHIN GROUP (ORDER BY z), bit_xor(z), bit_xor(i)"
    " FROM x JOIN side ON x.k = id GROUP BY name",
    "sets": "SELECT name, count(DISTINCT i), sum(DISTINCT z), array_agg(DISTINCT t), string_agg(DISTINCT name, ','),"
    " count(DISTINCT (t, z)) FROM x JOIN side ON x.k = id GROUP BY name",
    "conditions": "SELECT count(*), sum(CASE WHEN flag THEN i ELSE z END), sum(10 / nullif(i, 0)), max(10 / (z + 100))"
    " FROM x LEFT JOIN side ON x.k = id",
    "compared": "SELECT t, count(*) FROM x WHERE i > (SELECT min(w) FROM other) GROUP BY t",
    "correlated": "SELECT t, sum((SELECT max(o.w) FROM other o WHERE o.k = x.k)) FROM x GROUP BY t",
    "per_row": "SELECT id, z, (SELECT count(*) FROM x WHERE x.i < s.z) FROM side s",
    "unnested": "SELECT name, e, count(*) FROM x JOIN side ON x.k = id, unnest(array[i, z]) e GROUP BY name, e",
    "signs": "SELECT name, min(f::text), max(f), count(*), count(r / f) FROM x JOIN side ON x.k = id AND f < 1 + r * 0"
    " AND f <> 0 GROUP BY name",
    "above": "SELECT name, c, w FROM (SELECT name, count(*) AS c FROM x JOIN side ON x.k = id GROUP BY name) g"
    " LEFT JOIN other o ON o.k = g.c",
    "twice": "WITH g AS (SELECT name, sum(i) AS s FROM x JOIN side ON x.k = id GROUP BY name)"
    " SELECT name, s FROM g WHERE s = (SELECT max(s) FROM g)",
    "again": "SELECT c, count(*) FROM (SELECT name, count(*) AS c FROM x JOIN side ON x.k = id GROUP BY name) g"
    " GROUP BY c",
    "last": "SELECT DISTINCT ON (name) name, i, t FROM x JOIN side ON x.k = id ORDER BY name, i DESC, t, z",
    "highest": "SELECT name, i FROM x JOIN side ON x.k = id ORDER BY i DESC, name DESC LIMIT 3",
    "all_kept": "SELECT name, count(i), sum(i), avg(n), max(t), sum(p), sum(f) FROM side LEFT JOIN x ON x.k = id"
    " GROUP BY name",
    "all_kept_sets": "SELECT name, count(*), count(DISTINCT t), sum(p), array_agg(i ORDER BY i), sum(r)"
    " FROM side LEFT JOIN x ON x.k = id GROUP BY name",
    "all_kept_alone": "SELECT count(*), count(t), sum(i), max(z) FROM side LEFT JOIN x ON x.k = id AND x.i > 1",
    "full_kept": "SELECT p.name, w.k, avg(i * w.w), count(*) FILTER (WHERE x.i > 2), bool_or(x.t = p.name)"
    " FROM x FULL JOIN side p ON x.k = p.id LEFT JOIN other w ON w.k = x.i GROUP BY 1, 2",
    "arms": "SELECT name, count(*), sum(v), min(u) FROM (SELECT k, i AS v, u FROM x UNION ALL SELECT k, w, NULL FROM"
    " other UNION ALL SELECT i, k, u * 2 FROM x) a JOIN side ON a.k = id GROUP BY name",
    "arms_alone": "SELECT DISTINCT name FROM (SELECT k FROM x UNION SELECT k FROM other) a JOIN side ON a.k = id",
    "unequal": "SELECT z, count(*), sum(n) FROM x JOIN side ON x.i < z GROUP BY z",
}
RANDOM: Final = 12
STEPS: Final = 8
#: Without ``--whole``, for every other shape; the restart is in their midst.
FEW_STEPS: Final = 4
SEEDS: Final = range(3)
#: Aggregates over a column or expression of whole numbers, of numerics, of doubles and of texts.
OF_INTEGERS: Final = (
    *("count({0})", "sum({0})", "avg({0})", "min({0})", "max({0})", "count(DISTINCT {0})", "sum(DISTINCT {0})"),
    *("bit_and({0})", "bit_or({0})", "bit_xor({0})", "var_samp({0})", "bool_and({0} > 1)", "bool_or({0} < 1)"),
    *("array_agg({0} ORDER BY {0})", "percentile_disc(0.5) WITHIN GROUP (ORDER BY {0})", "regr_slope({0}, {0})"),
)
OF_NUMERICS: Final = ("count({0})", "sum({0})", "avg({0})", "min({0})", "max({0})", "sum(DISTINCT {0})")
OF_DOUBLES: Final = ("count({0})", "sum({0})", "avg({0})", "min({0})", "max({0})", "stddev_pop({0})")
OF_TEXTS: Final = ("count({0})", "min({0})", "max({0})", "count(DISTINCT {0})", "string_agg({0}, '-' ORDER BY {0})")
JOINS: Final = (
    *(" FULL JOIN side s ON x.k = s.id", " RIGHT JOIN side s ON x.k = s.id"),
    *(" JOIN side s ON x.k = s.id", " LEFT JOIN side s ON x.k = s.id", " LEFT JOIN side s ON x.k = s.id AND s.z > x.i"),
    *(" JOIN side s ON x.k + 1 = s.id AND s.flag", " CROSS JOIN side s", " JOIN side s ON x.i < s.z"),
)
MORE: Final = (
    *("", "", " JOIN other o ON o.k = s.z", " LEFT JOIN other o ON o.k = x.i AND s.flag"),
    " JOIN (SELECT k, max(w) AS w FROM other GROUP BY k) o ON o.k = x.k",
)
CONDITIONS: Final = (
    *("x.i > 1", "s.flag", "x.i + s.z > 2", "x.b OR s.flag", "x.t <> s.name", "x.n > s.p"),
    "EXISTS (SELECT FROM other h WHERE h.k = x.k)",
    "NOT EXISTS (SELECT FROM other h WHERE h.k = x.k AND h.w > x.i)",
    "x.i IN (SELECT w FROM other)",
    "x.i >= (SELECT min(w) FROM other)",
    "(x.k IN (SELECT k FROM other) OR s.flag)",
)
INTEGERS: Final = ("x.i", "x.k", "s.z", "x.i + x.k", "x.i + s.z", "coalesce(s.z, x.i)", "CASE WHEN x.b THEN s.z END")
NUMERICS: Final = ("x.n", "x.u", "s.p", "s.w", "x.n * s.p", "x.u + s.w", "x.n * 2")
DOUBLES: Final = ("x.f", "s.r", "x.f + s.r")
TEXTS: Final = ("x.t", "s.name", "x.t || s.name", "upper(x.t)")
KEYS: Final = (*INTEGERS, *TEXTS, "s.flag", "x.b", "date_trunc('day', x.d)", "x.n", "s.p", "x.d::date")


class Views:
    """Random queries over the stream and joined tables."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def query(self) -> str:
        """One query."""
        rows = f"FROM x{self._one(*JOINS)}{self._one(*MORE)}"
        if conditions := self._some(CONDITIONS, 2):
            rows += f" WHERE {' AND '.join(conditions)}"
        keys = self._some(KEYS, 2)
        outputs = [*keys, "count(*)", *(self._aggregate() for _ in range(self._source.randint(0, 5)))]
        names = [f"{output} AS c{place}" for place, output in enumerate(outputs)]
        grouped = f"SELECT {', '.join(names)} {rows}"
        if keys:
            grouped += f" GROUP BY {', '.join(str(place) for place in range(1, len(keys) + 1))}"
        if self._source.random() < 0.2:
            grouped += f" HAVING {self._one('count(*) > 1', 'max(s.z) > 1', 'sum(x.i) > 2')}"
        if self._source.random() < 0.15:
            return f"SELECT c0, count(*), count(c{len(outputs) - 1}) FROM ({grouped}) g GROUP BY c0"
        return grouped

    def _aggregate(self) -> str:
        values, calls = self._source.choice(
            ((INTEGERS, OF_INTEGERS), (NUMERICS, OF_NUMERICS), (DOUBLES, OF_DOUBLES), (TEXTS, OF_TEXTS))
        )
        call = self._one(*calls).format(self._one(*values))
        return f"{call} FILTER (WHERE {self._one('s.flag', 'x.i > 1', 'x.b AND s.flag')})" if self._rarely() else call

    def _rarely(self) -> bool:
        return self._source.random() < 0.2

    def _some(self, choices: Sequence[str], most: int) -> list[str]:
        return self._source.sample(choices, self._source.randint(0, most))

    def _one(self, *choices: str) -> str:
        return self._source.choice(choices)


@pytest.fixture(scope="module")
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    chosen = {
        "maintenance_engine": "embedded",
        "spark_enabled": False,
        "maintenance_rows": 12,
        "maintenance_idle": 0.05,
    }
    with Millstream(settings=chosen) as server, mirrored(server, postgres) as pair:
        yield pair


def test_each_shape_follows_its_tables(mirror: Mirror, whole: bool) -> None:
    shapes = SHAPES if whole else dict(list(SHAPES.items())[::2])
    play(mirror, random.Random(5), shapes, STEPS if whole else FEW_STEPS)


@pytest.mark.parametrize("seed", sample(SEEDS, (0,)))
def test_random_views_follow_their_tables(mirror: Mirror, seed: int, whole: bool) -> None:
    source = random.Random(seed)
    views = Views(source)
    play(mirror, source, {f"v{number}": views.query() for number in range(RANDOM)}, STEPS if whole else FEW_STEPS)


def play(mirror: Mirror, source: random.Random, queries: dict[str, str], steps: int) -> None:
    """Creates views, all of which must be live, and checks each after each step."""
    mirror.views.clear()
    mirror.stream("x", STREAM)
    mirror.table("side", SIDE)
    mirror.table("other", OTHER)
    for table in ("side", "other"):
        both(mirror, f"INSERT INTO {table} VALUES {rows(table, source, 5)}")
    told: list[str] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        told.append(f"{notice.message_primary} {notice.message_detail}")

    mirror.client.add_notice_handler(hear)
    for name, query in queries.items():
        columns = len(mirror.judge.execute(query.encode()).description or ())
        names = ", ".join(f"c{place}" for place in range(columns))
        try:
            mirror.client.execute(f"CREATE VIEW {name} ({names}) AS {query}".encode())
        except psycopg.errors.FeatureNotSupported:  # random queries may break a rule
            assert queries is not SHAPES, query
            continue
        mirror.views[name] = query
        assert not told, query
    kinds = mirror.client.execute(b"SELECT DISTINCT tables FROM millstream.views").fetchall()
    assert kinds == [("live",)], kinds
    check(mirror)
    for step in range(steps):
        if step == steps // 2:
            mirror.restart(crash=source.random() < 0.5)
        if source.random() < 0.8:
            both(mirror, f"INSERT INTO x VALUES {rows('x', source, source.choice((1, 3, 20)))}")
        for _ in range(source.randint(0, 2)):
            change(mirror, source)
        check(mirror)
    for name in mirror.views:
        mirror.client.execute(f"DROP VIEW {name}".encode())
    mirror.client.execute(b"DROP FOREIGN TABLE x")
    mirror.judge.execute(b"DROP TABLE x")
    both(mirror, "DROP TABLE side, other")


def check(mirror: Mirror) -> None:
    for name, query in mirror.views.items():
        found, wanted = outcome(mirror.client, f"SELECT * FROM {name}"), outcome(mirror.judge, query)
        if isinstance(found, str) or isinstance(wanted, str):
            assert found == wanted, f"{name}: {query}"
        else:
            assert_same_rows(found, wanted, f"{name}: {query}")


def outcome(connection: psycopg.Connection[Any], statement: str) -> list[tuple[Any, ...]] | str:
    """The rows, with numerics as they are shown, or an error's SQLSTATE."""
    try:
        found = connection.execute(statement.encode()).fetchall()
    except psycopg.Error as error:
        return str(error.sqlstate)
    return [tuple(str(value) if isinstance(value, Decimal) else value for value in row) for row in found]


def change(mirror: Mirror, source: random.Random) -> None:
    """Changes a table: alone, or in a block with a row of the stream."""
    statement = source.choice(
        (
            f"INSERT INTO side VALUES {rows('side', source, 2)}",
            f"INSERT INTO other VALUES {rows('other', source, 2)}",
            f"UPDATE side SET name = name || 'x', p = p + 1, z = z + 1 WHERE id = {source.randint(0, 4)}",
            f"UPDATE side SET id = id + 1, flag = NOT flag WHERE z > {source.randint(0, 4)}",
            f"UPDATE other SET k = (k + 1) % 5 WHERE w < {source.randint(0, 5)}",
            f"DELETE FROM side WHERE id = {source.randint(0, 5)}",
            f"DELETE FROM other WHERE k = {source.randint(0, 5)}",
            "TRUNCATE other" if source.random() < 0.5 else "TRUNCATE side",
        )
    )
    if source.random() < 0.7:
        both(mirror, statement)
        return
    end = source.choice(("COMMIT", "ROLLBACK"))
    for part in ("BEGIN", statement, f"INSERT INTO x VALUES {rows('x', source, 2)}", end):
        both(mirror, part)


def both(mirror: Mirror, statement: str) -> None:
    for connection in (mirror.client, mirror.judge):
        connection.execute(statement.encode())


def rows(relation: str, source: random.Random, number: int) -> str:
    """Rows of small values, any of which may be NULL."""

    def one(*values: object) -> str:
        return "NULL" if source.random() < 0.1 else str(source.choice(values))

    def row() -> list[str]:
        key, text = one(*range(5)), one("'a'", "'b'", "'c'")
        small = one(*range(-1, 5))
        exact, digits = one("1.5", "0.25", "-2.10", "3"), one("1", "2.50", "1.5", "0.125", "-3.0")
        double, truth = one("'0.5'", "'-0.0'", "'0.0'", "'3.25'", "'-1.125'"), one("true", "false")
        if relation == "side":
            return [key, text, exact, digits, double, small, truth]
        moment = one("'2026-01-01 10:15:00'", "'2026-01-01 10:45:00'", "'2026-01-02 03:00:00'")
        return [key, small] if relation == "other" else [key, small, exact, digits, double, text, truth, moment]

    return ", ".join(f"({', '.join(row())})" for _ in range(number))
