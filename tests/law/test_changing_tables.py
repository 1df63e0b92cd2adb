"""The law with changing tables: a view reads its tables as they are, but for those that it reads once, below groupings
and as of its creation: where its options ask for it, or it cannot do otherwise.

CREATE VIEW's notices say which are which. In PostgreSQL the view's query reads copies of the latter, made at that
moment. The views' subqueries, joins and set operations are random (``queries``), and so are the changes of the tables.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

import psycopg
import pytest

from tests.law.queries import Queries
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

TABLES: Final = ("t1", "t2", "t3")
STREAMS: Final = ("s", "z")
#: A view that others read: a continuous one in Millstream, over the tables' columns.
HELD: Final = "SELECT k AS id, count(*)::int AS n, max(t) AS label FROM z GROUP BY k"
VIEWS: Final = 10
STEPS: Final = 6
FROZEN: Final = "WITH (tables = 'frozen')"
#: Views that once showed rows of two LSNs, with the tables that are as of their creation where they are to be frozen.
SHAPES: Final = (
    ("select id, n, (select count(*) from s where s.v < r.n) from {t1} r", {"t1"}),
    ("select id, n in (select v from s where s.k < r.n) from {t1} r", {"t1"}),
    ("select id, n from {t1} r where exists (select from s where s.v < r.n)", set()),
    ("select id, (select count(*) from s where s.v = r.n) from {t1} r", set()),
    (
        "with x as (select * from {t1}) select x.id, x.n, c, m from x join (select k, count(*) as c, max(x.n) as m"
        " from s join x on x.id = k group by k) g on g.k = x.id",
        {"t1"},
    ),
    ("select id, n, (select count(*) from s join {t2} u on s.k = u.id where s.v < r.n) from {t1} r", {"t1", "t2"}),
    ("select r.id, u.n, (select count(*) from s where s.v < r.n) from {t1} r join {t2} u on u.id = r.id", {"t1", "t2"}),
    ("select id, max(n), count(*) from {t1} left join s on id = k group by id", {"t1"}),
    ("select id, n, c from {t1} left join (select k, count(*) as c from s group by k) g on id = k", set()),
    ("select k, count(*) from s group by k having k > (select 1 from {t1} limit 1)", set()),
    ("select id, n, (select sum(v) from s) from {t1} where id in (select n from {held})", set()),
    ("select k from (select k from s union select v from s) g where k > (select 1 from {t1} limit 1)", set()),
)


@pytest.fixture(scope="module")
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    chosen = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 7, "maintenance_idle": 0.05}
    with Millstream(settings=chosen) as server, mirrored(server, postgres) as pair:
        yield pair


@pytest.mark.parametrize("frozen", [False, True])
def test_each_table_is_of_one_moment(mirror: Mirror, frozen: bool) -> None:
    expected = {number: found if frozen else set() for number, (_, found) in enumerate(SHAPES)}
    play(mirror, random.Random(1), dict(enumerate(text for text, _ in SHAPES)), FROZEN if frozen else "", expected)


@pytest.mark.parametrize("options", ["", FROZEN])
@pytest.mark.parametrize("seed", sample(range(2), (0,)))
def test_any_view_beside_tables_that_change(mirror: Mirror, seed: int, options: str) -> None:
    source = random.Random(seed)
    queries = Queries(source, STREAMS, (*TABLES, "held"))
    play(mirror, source, {number: queries.above(source.randint(1, 3)) for number in range(VIEWS)}, options)


def play(
    mirror: Mirror,
    source: random.Random,
    texts: dict[int, str],
    options: str,
    frozen: dict[int, set[str]] | None = None,
) -> None:
    """Creates views, then runs steps, and checks every view after each."""
    mirror.views.clear()
    for stream in STREAMS:
        mirror.stream(stream, "k integer, v integer, t text")
    for table in TABLES:
        mirror.table(table, "id integer, n integer, label text")
        both(mirror, f"INSERT INTO {table} VALUES {rows(source, 5)}")
    both(mirror, f"CREATE VIEW held AS {HELD}")
    try:
        for number, text in texts.items():
            found = create(mirror, f"v{number}", text, options)
            assert frozen is None or found == frozen[number], text
        mirror.check_outcomes()
        for step in range(STEPS):
            if step == STEPS // 2:
                mirror.restart(crash=source.random() < 0.5)
            both(mirror, f"INSERT INTO {source.choice(STREAMS)} VALUES {rows(source, source.choice((2, 5, 25)))}")
            change(mirror, source, step)
            mirror.check_outcomes()
    finally:
        clear(mirror)


def create(mirror: Mirror, name: str, text: str, options: str) -> set[str] | None:
    """Creates a view, and copies of the tables that are as of its creation; None if the view cannot be continuous."""
    notices: list[str] = []
    plain = text.format(**{item: item for item in (*TABLES, "held")})

    def hear(diagnostic: psycopg.errors.Diagnostic) -> None:
        notices.append(diagnostic.message_primary or "")

    mirror.client.add_notice_handler(hear)
    try:
        columns = len(mirror.judge.execute(plain.encode()).description or ())
        names = ", ".join(f"c{place}" for place in range(columns))
        mirror.client.execute(f"CREATE VIEW {name} ({names}) {options} AS {plain}".encode())
    except psycopg.errors.FeatureNotSupported:
        return None
    finally:
        mirror.client.remove_notice_handler(hear)
    found = {match[1] for item in notices if (match := re.match(r'table "(\w+)" is joined below', item))}
    copies = {table: f"{name}_{table}" if table in found else table for table in TABLES}
    for table in found:
        mirror.judge.execute(f"CREATE TABLE {copies[table]} AS SELECT * FROM {table}".encode())
    mirror.views[name] = text.format(held="held", **copies)
    return found


def change(mirror: Mirror, source: random.Random, step: int) -> None:
    """Changes a table: alone, in a block with a row of a stream, or in one that is rolled back."""
    table = source.choice(TABLES)
    statements = [
        f"INSERT INTO {table} (id, n, label) VALUES {rows(source, 2)}",
        f"UPDATE {table} SET n = coalesce(n, 0) + 1 WHERE id < {source.randint(1, 6)}",
        f"UPDATE {table} SET id = id + 1, label = 'w'",
        f"DELETE FROM {table} WHERE id = {source.randint(0, 5)}",
        f"TRUNCATE {table}",
        f"ALTER TABLE {table} ADD COLUMN more{step} integer DEFAULT 3",
    ]
    chosen = source.choice(statements)
    if source.random() < 0.6:
        both(mirror, chosen)
        return
    for statement in (
        "BEGIN",
        chosen,
        f"INSERT INTO s VALUES {rows(source, 2)}",
        source.choice(("COMMIT", "ROLLBACK")),
    ):
        both(mirror, statement)


def both(mirror: Mirror, statement: str) -> None:
    for connection in (mirror.client, mirror.judge):
        connection.execute(statement.encode())


def rows(source: random.Random, number: int) -> str:
    """Rows of two small numbers and a text, any of which may be NULL."""
    numbers, texts = ("NULL", *map(str, range(5))), ("NULL", "'x'", "'y'")
    return ", ".join(
        f"({source.choice(numbers)}, {source.choice(numbers)}, {source.choice(texts)})" for _ in range(number)
    )


def clear(mirror: Mirror) -> None:
    """Drops everything except the two connections."""
    for name in mirror.views:
        mirror.client.execute(f"DROP VIEW {name}".encode())
    both(mirror, "DROP VIEW held")
    for stream in STREAMS:
        mirror.client.execute(f"DROP FOREIGN TABLE {stream}".encode())
        mirror.judge.execute(f"DROP TABLE {stream}".encode())
    for table in TABLES:
        both(mirror, f"DROP TABLE {table}")
    for (name,) in mirror.judge.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    ).fetchall():
        mirror.judge.execute(f"DROP TABLE {name}".encode())
