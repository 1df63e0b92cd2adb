"""The law with tables as rows arrive: a view WITH (tables = 'arrival') equals its query in which each row of the stream
sees the tables as they were at the end of the row's own transaction, for ever.

PostgreSQL is the judge: there each transaction that has rows of the stream gives them its number, and ends with a copy
of the tables under this number, which the views' queries join beside the number. Between reads there are several such
transactions, and changes of the tables alone; the server is killed and started again, tables get columns, and views
other policies and engines.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from tests.law.test_live_tables import CONDITIONS, JOINS, KEYS, MORE, OTHER, SIDE, STREAM, Views, both, outcome, rows
from tests.rig.compare import assert_same_rows
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(600)]

#: {side} and {other} are the tables; {s} and {o} are where the judge says at which moment.
SHAPES: Final = {
    "joined": "SELECT name, count(*), sum(n), avg(i), min(t) FROM x JOIN {side} s ON x.k = id{s} GROUP BY name",
    "products": "SELECT count(*), sum(n * p), max(p), avg(p), count(name) FROM x JOIN {side} s ON x.k = id{s}"
    " AND i > 1",
    "crossed": "SELECT name, count(*) AS n, sum(p) AS p, min(z) FROM x JOIN {side} s ON true{s} GROUP BY name",
    "kept_left": "SELECT x.k, name, count(*), count(id), sum(i), sum(z) FROM x LEFT JOIN {side} s"
    " ON x.k = id AND z > x.i{s} GROUP BY 1, 2",
    "semi": "SELECT t, count(*), sum(u) FROM x WHERE EXISTS (SELECT FROM {side} s WHERE id = x.k AND z > x.i{s})"
    " GROUP BY t",
    "anti": "SELECT t, avg(n) FROM x WHERE NOT EXISTS (SELECT FROM {side} s WHERE id = x.k{s}) GROUP BY t",
    "member": "SELECT t, count(*) FROM x WHERE k IN (SELECT id FROM {side} s WHERE flag{s}) GROUP BY t",
    "two": "SELECT name, count(DISTINCT t), count(*) AS c FROM x JOIN {side} s ON x.k = id{s}"
    " JOIN {other} o ON z = o.k{o} GROUP BY ROLLUP (name)",
    "distinct_rows": "SELECT DISTINCT name, t FROM x JOIN {side} s ON x.k = s.id{s} WHERE t <> 'b'",
    "digits": "SELECT name, sum(u), avg(u), min(u), sum(w), avg(w), max(w), sum(u * w) FROM x"
    " JOIN {side} s ON x.k = id{s} GROUP BY name",
    "floats": "SELECT name, sum(f), min(r), stddev(f), corr(f, r) FROM x JOIN {side} s ON x.k = id{s} GROUP BY name",
    "sets": "SELECT name, count(DISTINCT i), array_agg(z ORDER BY z), string_agg(DISTINCT t, ',') FROM x"
    " JOIN {side} s ON x.k = id{s} GROUP BY name",
    "compared": "SELECT t, count(*) FROM x WHERE i > (SELECT min(w) FROM {other} o WHERE true{o}) GROUP BY t",
    "last": "SELECT DISTINCT ON (name) name, i, t FROM x JOIN {side} s ON x.k = id{s} ORDER BY name, i DESC, t, z",
    "again": "SELECT c, count(*) FROM (SELECT name, count(*) AS c FROM x JOIN {side} s ON x.k = id{s} GROUP BY name) g"
    " GROUP BY c",
    "arms": "SELECT name, count(*), sum(v) FROM (SELECT k, i AS v{m} FROM x UNION ALL SELECT i, k{m} FROM x) x"
    " JOIN {side} s ON x.k = id{s} GROUP BY name",
    "enriched": "SELECT x.k, i, n, name, p, n * p AS v FROM x JOIN {side} s ON x.k = id{s}",
    "enriched_left": "SELECT i, t, upper(name), z FROM x LEFT JOIN {side} s ON x.k = id AND flag{s} WHERE t <> 'b'",
    "filtered": "SELECT i, n, f FROM x WHERE k IN (SELECT id FROM {side} s WHERE true{s}) AND n > 0",
    "unmatched": "SELECT i, t FROM x WHERE NOT EXISTS (SELECT FROM {other} o WHERE o.k = x.k{o})",
    "numbered": "SELECT x.k, name, z, row_number() OVER (PARTITION BY name ORDER BY i, t, n, u, f, b, d, z, x.k) FROM x"
    " JOIN {side} s ON x.k = id{s}",
    "grouped_in": "SELECT i, t, c FROM x LEFT JOIN (SELECT k, count(*) AS c{om} FROM {other} o GROUP BY k{om}) o"
    " ON o.k = x.k{o}",
    "highest": "SELECT name, i FROM x JOIN {side} s ON x.k = id{s} ORDER BY i DESC, name DESC LIMIT 3",
    "both_arms": "SELECT i, name FROM x JOIN {side} s ON x.k = id{s} UNION ALL SELECT x.k, o.w::text FROM x"
    " JOIN {other} o ON o.k = x.i{o}",
}
#: How the tables are called, in Millstream and by the judge.
HERE: Final = {"side": "side", "other": "other", "s": "", "o": "", "m": "", "om": ""}
THERE: Final = {
    "side": "side_then",
    "other": "other_then",
    "m": ", m",
    "om": ", m",
    "s": " AND s.m = x.m",
    "o": " AND o.m = x.m",
}
#: In random queries, what the judge reads in the place of the tables.
THEN: Final = (
    (" CROSS JOIN side s", " JOIN side_then s ON s.m = x.m"),
    (" side s ON ", " side_then s ON s.m = x.m AND "),
    (" other o ON ", " other_then o ON o.m = x.m AND "),
    (" FROM other h WHERE ", " FROM other_then h WHERE h.m = x.m AND "),
    (" FROM other GROUP BY k) o ON ", ", m FROM other_then GROUP BY k, m) o ON o.m = x.m AND "),
    (" FROM other)", " FROM other_then t WHERE t.m = x.m)"),
)
RANDOM: Final = 12
STEPS: Final = 10
FEW_STEPS: Final = 4
SEEDS: Final = range(4)
#: Rows after which views are maintained in the background, and seconds without any.
PACES: Final = ((12, 0.05), (40, 0.3), (10**6, 600.0))


@pytest.fixture(scope="module", params=range(len(PACES)), ids=["soon", "later", "by_readers"])
def pace(request: pytest.FixtureRequest) -> int:
    place: int = request.param
    return place


@pytest.fixture(scope="module")
def mirror(pace: int, postgres: Postgres) -> Iterator[Mirror]:
    rows_due, idle = PACES[pace]
    settings = {"maintenance_rows": rows_due, "maintenance_idle": idle, "log_segment_bytes": "1MB"}
    with Millstream(settings={**settings, "spark_enabled": False}) as server, mirrored(server, postgres) as pair:
        yield pair


@pytest.mark.parametrize("seed", sample(SEEDS, (0,)))
def test_rows_keep_what_the_tables_said(mirror: Mirror, pace: int, seed: int, whole: bool) -> None:
    """Each pace has a part of the shapes; with ``--whole`` it has all of them."""
    shapes = SHAPES if whole else dict(list(SHAPES.items())[pace :: len(PACES)])
    play(mirror, random.Random(seed), shapes, STEPS if whole else FEW_STEPS)


@pytest.mark.parametrize("pace", sample(range(len(PACES)), (0,)), indirect=True)
@pytest.mark.parametrize("seed", sample(SEEDS, (0,)))
def test_random_views_keep_what_the_tables_said(mirror: Mirror, seed: int) -> None:
    source = random.Random(seed + 100)
    views = Views(source)
    queries = [views.query() if place % 2 else _ungrouped(source) for place in range(RANDOM)]
    play(mirror, source, {f"v{place}": query for place, query in enumerate(queries)}, FEW_STEPS)


def _ungrouped(source: random.Random) -> str:
    """Rows of the stream with what a random join gives."""
    outputs = source.sample(KEYS, 3)
    names = ", ".join(f"{output} AS c{place}" for place, output in enumerate(outputs))
    return f"SELECT {names} FROM x{source.choice(JOINS)}{source.choice(MORE)} WHERE {source.choice(CONDITIONS)}"


def judged(query: str) -> str:
    """What a random query is for the judge."""
    for here, there in THEN:
        query = query.replace(here, there)
    return query


class Judge:
    """The tables of the mirror, and the judge's copies of them."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror, self._moment = mirror, 0
        mirror.stream("x", STREAM)
        mirror.table("side", SIDE)
        mirror.table("other", OTHER)
        for statement in (
            "ALTER TABLE x ADD COLUMN m bigint",
            f"CREATE TABLE side_then (m bigint, {SIDE})",
            f"CREATE TABLE other_then (m bigint, {OTHER})",
        ):
            mirror.judge.execute(statement.encode())

    def note(self) -> None:
        """The running transaction of the judge has rows of the stream and ends."""
        self._moment += 1
        judge, names = self._mirror.judge, "id, name, p, w, r, z, flag"
        judge.execute(f"UPDATE x SET m = {self._moment} WHERE m IS NULL".encode())
        judge.execute(f"INSERT INTO side_then (m, {names}) SELECT {self._moment}, {names} FROM side".encode())
        judge.execute(f"INSERT INTO other_then (m, k, w) SELECT {self._moment}, k, w FROM other".encode())

    def drop(self) -> None:
        """There is nothing any more."""
        for name in self._mirror.views:
            self._mirror.client.execute(f"DROP VIEW {name}".encode())
        self._mirror.views.clear()
        self._mirror.client.execute(b"DROP FOREIGN TABLE x")
        self._mirror.judge.execute(b"DROP TABLE x, side_then, other_then")
        both(self._mirror, "DROP TABLE side, other")


def play(mirror: Mirror, source: random.Random, shapes: dict[str, str], steps: int) -> None:
    """Creates views, and checks them while rows and changes come."""
    judge = Judge(mirror)
    for table in ("side", "other"):
        both(mirror, f"INSERT INTO {table} VALUES {rows(table, source, 5)}")
    late = dict(source.sample(sorted(shapes.items()), len(shapes) // 4))
    for name, shape in shapes.items():
        if name not in late:
            create(mirror, name, shape)
    for step in range(steps):
        if step in (steps // 3, steps - 2):
            mirror.restart(crash=step != steps - 2 or source.random() < 0.5)
        for _ in range(source.randint(1, 6)):
            transaction(mirror, judge, source)
        if source.random() < 0.2:
            column = f"added_{step}"
            both(mirror, f"ALTER TABLE side ADD COLUMN {column} integer DEFAULT 7")
            both(mirror, f"UPDATE side SET {column} = z, z = z + 1 WHERE id = 1")
            transaction(mirror, judge, source)
            both(mirror, f"ALTER TABLE side DROP COLUMN {column}")
        if source.random() < 0.7:
            check(mirror)
        for view in source.sample(sorted(mirror.views), 2):
            policy = source.choice(("fail", "null"))
            mirror.client.execute(f"ALTER VIEW {view} SET (on_error = '{policy}')".encode())
    check(mirror)
    assert mirror.views
    kinds = mirror.client.execute(b"SELECT DISTINCT tables FROM millstream.views").fetchall()
    assert ("arrival",) in kinds, kinds
    judge.drop()


def create(mirror: Mirror, name: str, shape: str) -> None:
    here, there = (shape.format(**HERE), shape.format(**THERE)) if "{" in shape else (shape, judged(shape))
    columns = len(mirror.judge.execute(there.encode()).description or ())
    names = ", ".join(f"c{place}" for place in range(columns))
    try:
        mirror.client.execute(f"CREATE VIEW {name} ({names}) WITH (tables = 'arrival') AS {here}".encode())
    except psycopg.errors.FeatureNotSupported:  # random queries may break a rule
        assert "{" not in shape, here
        return
    mirror.views[name] = there


def check(mirror: Mirror) -> None:
    for name, query in mirror.views.items():
        found, wanted = outcome(mirror.client, f"SELECT * FROM {name}"), outcome(mirror.judge, query)
        if isinstance(found, str) or isinstance(wanted, str):
            assert found == wanted, f"{name}: {query}"
            continue
        assert_same_rows(found, wanted, f"{name}: {query}")


def transaction(mirror: Mirror, judge: Judge, source: random.Random) -> None:
    """Rows of the stream, a change of a table, or several of both."""
    parts = [part(source) for _ in range(source.choice((1, 1, 1, 2, 4)))]
    end = "ROLLBACK" if len(parts) > 1 and source.random() < 0.15 else "COMMIT"
    if source.random() < 0.2:
        parts[1:1] = ["SAVEPOINT here", part(source), "ROLLBACK TO here"]
    if len(parts) == 1:
        mirror.client.execute(parts[0].encode())
    else:
        for statement in ("BEGIN", *parts, end):
            mirror.client.execute(statement.encode())
    mirror.judge.execute(b"BEGIN")
    for statement in parts:
        mirror.judge.execute(statement.encode())
    judge.note()
    mirror.judge.execute(end.encode())


def part(source: random.Random) -> str:
    """One statement."""
    if source.random() < 0.5:
        return f"INSERT INTO x VALUES {rows('x', source, source.choice((1, 2, 20)))}"
    columns: Any = source.choice(("z = z + 1", "name = name || 'x', p = p + 1", "flag = NOT flag, w = w * 2"))
    return str(
        source.choice(
            (
                f"INSERT INTO side (id, name, p, w, r, z, flag) VALUES {rows('side', source, 2)}",
                f"INSERT INTO other VALUES {rows('other', source, 2)}",
                f"UPDATE side SET {columns} WHERE id = {source.randint(0, 4)}",
                f"UPDATE side SET id = id + 1 WHERE z > {source.randint(0, 4)}",
                f"UPDATE other SET k = (k + 1) % 5 WHERE w < {source.randint(0, 5)}",
                f"DELETE FROM side WHERE id = {source.randint(0, 5)}",
                f"DELETE FROM other WHERE k = {source.randint(0, 5)}",
                "TRUNCATE other" if source.random() < 0.5 else "TRUNCATE side",
            )
        )
    )


def test_a_view_that_is_created_late_has_the_rows_since_then(mirror: Mirror) -> None:
    source = random.Random(8)
    judge = Judge(mirror)
    both(mirror, f"INSERT INTO side VALUES {rows('side', source, 5)}")
    transaction(mirror, judge, source)
    mirror.judge.execute(b"TRUNCATE x")
    create(mirror, "late", SHAPES["enriched_left"])
    for _ in range(4):
        transaction(mirror, judge, source)
    check(mirror)
    judge.drop()


def test_an_error_of_a_row_is_of_the_tables_of_then(mirror: Mirror) -> None:
    """A row that fails by what a table says is left out by the policy; a later change of the table does not heal it."""
    client = mirror.client
    client.execute(b"CREATE FOREIGN TABLE y (k integer, v integer) SERVER stream")
    client.execute(b"CREATE TABLE rates (k integer, rate integer)")
    client.execute(b"INSERT INTO rates VALUES (1, 2), (2, 0)")
    query = "SELECT y.k, v / rate AS q FROM y JOIN rates r ON r.k = y.k"
    client.execute(f"CREATE VIEW skipping WITH (tables = 'arrival', on_error = 'skip') AS {query}".encode())
    client.execute(f"CREATE VIEW nulls WITH (tables = 'arrival', on_error = 'null') AS {query}".encode())
    client.execute(b"INSERT INTO y VALUES (1, 10), (2, 10)")
    client.execute(b"UPDATE rates SET rate = 5 - rate")
    client.execute(b"INSERT INTO y VALUES (1, 30), (2, 30)")
    assert client.execute(b"SELECT * FROM skipping ORDER BY k, q").fetchall() == [(1, 5), (1, 10), (2, 6)]
    found = client.execute(b"SELECT * FROM nulls ORDER BY k, q").fetchall()
    assert found == [(1, 5), (1, 10), (2, 6), (2, None)]
    rejected = client.execute(b"SELECT number, sqlstate FROM millstream.rejected WHERE view = 'skipping'").fetchall()
    assert rejected == [(1, "22012")]
    client.execute(b"DROP FOREIGN TABLE y CASCADE")
    client.execute(b"DROP TABLE rates")
