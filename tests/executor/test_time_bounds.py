"""Views that compare times with now() follow changes and the passing of time; the judge is the query at that time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.queries import client as queries_client
from tests.executor.client import Client, open_database
from tests.executor.test_maintained_views import kept
from tests.executor.view_queries import bag
from tests.rig.sampling import sample

#: Not long ago, since the clock takes older rows out of states.
EPOCH = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
HOUR = timedelta(hours=1)
TABLES = """
CREATE TABLE e (id int, k int, v int, at timestamptz, ts timestamp, d date);
CREATE TABLE names (k int PRIMARY KEY, name text);
CREATE FOREIGN TABLE s (id int, k int, v int, at timestamptz, ts timestamp, d date) SERVER stream;
"""
OPTIONS = "WITH (method = 'incremental', refresh_policy = 'incremental')"
#: {0} is the relation of events, {1} the time as a timestamptz.
FOLLOWED = (
    "SELECT id, k FROM {0} WHERE at > {1} - interval '2 hours'",
    "SELECT k, count(*), sum(v), max(v) FROM {0} WHERE at BETWEEN {1} - interval '1 day' AND {1} GROUP BY k",
    "SELECT k, max(at) m FROM {0} GROUP BY k HAVING max(at) <= {1} - interval '90 minutes'",
    "SELECT id FROM {0} WHERE {1}::date - 1 <= d AND v > 3",
    "SELECT id FROM {0} WHERE ts >= ({1} - interval '1 month')::timestamp AND ts + interval '3 hours' < {1}::timestamp",
    "SELECT name, count(*) FROM {0} JOIN names USING (k) WHERE at > {1} - interval '3 hours' GROUP BY name",
    "SELECT x.id, y.id AS other FROM {0} x JOIN {0} y ON x.k = y.k AND x.v < y.v"
    " WHERE x.at > {1} - interval '2 hours' AND y.at < {1} - interval '1 hour'",
    "SELECT k, row_number() OVER (PARTITION BY k ORDER BY v, id) r FROM {0} WHERE at > {1} - interval '5 hours'",
    "SELECT id FROM {0} WHERE at > {1} - interval '2 hours' UNION ALL SELECT -id FROM {0} WHERE at < {1}",
    "SELECT count(*), min(v) FROM {0} WHERE at > {1} - interval '2 hours'",
    "WITH RECURSIVE r AS (SELECT k, 0 AS n FROM {0} WHERE at > {1} - interval '2 hours' UNION"
    " SELECT e.v, n + 1 FROM r JOIN {0} e USING (k) WHERE n < 3 AND e.at > {1} - interval '5 hours')"
    " SELECT k, n FROM r",
    "SELECT name FROM names WHERE NOT EXISTS"
    " (SELECT 1 FROM {0} e WHERE e.k = names.k AND at > {1} - interval '2 hours')",
)
NOT_FOLLOWED = (
    "SELECT id, at > {1} - interval '2 hours' AS late FROM {0}",
    "SELECT id FROM {0} WHERE at > {1} - interval '2 hours' OR k = 1",
    "SELECT x.id FROM {0} x, {0} y WHERE x.at > {1} - y.v * interval '1 hour'",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


def set_time(client: Client, time: datetime) -> None:
    """Makes now() of the session's next statements a given time."""
    client.session.reader.client = lambda: queries_client.Client(time=time)


def event(drawn: random.Random, number: int) -> str:
    at = EPOCH + drawn.uniform(-4, 40) * HOUR
    moment, day = at.replace(microsecond=0).isoformat(), at.date().isoformat()
    if drawn.random() < 0.15:
        return f"({number}, {drawn.randint(1, 4)}, NULL, NULL, NULL, NULL)"
    return f"({number}, {drawn.randint(1, 4)}, {drawn.randint(0, 9)}, '{moment}', '{moment[:19]}', '{day}')"


@pytest.mark.parametrize("seed", sample(range(6), (0,)))
def test_views_equal_their_queries_at_any_time(database: Database, seed: int) -> None:
    drawn, client = random.Random(seed), Client(database)
    client.run(TABLES)
    for place, query in enumerate(FOLLOWED):
        client.run(f"CREATE VIEW v{place} {OPTIONS} AS {query.format('s', 'now()')}")
    client.run("INSERT INTO names VALUES (1, 'one'), (2, 'two'), (3, 'two')")
    time, number = EPOCH, 0
    for _ in range(12):
        for _ in range(drawn.randint(0, 2)):
            number += 3
            rows = ", ".join(event(drawn, number + place) for place in range(3))
            client.run(f"INSERT INTO e VALUES {rows}; INSERT INTO s VALUES {rows}")
            client.run(f"UPDATE names SET name = name || 'x' WHERE k = {drawn.randint(1, 3)}")
        time += drawn.choice((-0.5, 0, 0.1, 1, 5)) * HOUR  # also of a transaction that began before the last reader's
        set_time(client, time)
        for place, query in enumerate(FOLLOWED):
            scratch = query.format("e", f"timestamptz '{time.isoformat()}'")
            assert bag(client.run(f"SELECT * FROM v{place}")) == bag(client.run(scratch)), query
    assert kept(database) == {f"v{place}" for place in range(len(FOLLOWED))}


def test_time_alone_moves_rows(database: Database) -> None:
    client = Client(database)
    client.run(TABLES)
    client.run(f"CREATE VIEW v {OPTIONS} AS {FOLLOWED[0].format('s', 'now()')}")
    client.run(
        f"INSERT INTO s SELECT i, i % 3, 0, timestamptz '{EPOCH.isoformat()}' + i * interval '1 min'"
        " FROM generate_series(1, 300) i"
    )
    for hours, count in ((1, 300), (3, 240), (2, 300), (4, 180), (8, 0), (2, 300)):
        set_time(client, EPOCH + hours * HOUR)
        assert len(client.run("SELECT * FROM v")) == count
        assert client.run("SELECT k FROM v WHERE id = 300") == ([(0,)] if count else [])
    assert kept(database) == {"v"}


@pytest.mark.parametrize("query", NOT_FOLLOWED)
def test_what_depends_on_time_otherwise_is_computed_at_each_read(database: Database, query: str) -> None:
    client = Client(database)
    client.run(TABLES)
    with pytest.raises(SqlError, match="depend on when they are read") as caught:
        client.run(f"CREATE VIEW v {OPTIONS} AS {query.format('s', 'now()')}")
    assert caught.value.sqlstate == "0A000"


def test_rows_that_states_have_lost_are_given_up(database: Database) -> None:
    client = Client(database)
    client.run(TABLES)
    client.run(f"CREATE VIEW v {OPTIONS} AS {FOLLOWED[0].format('s', 'now()')}")
    client.run(f"INSERT INTO s (id, at) VALUES (1, '{EPOCH.isoformat()}')")
    set_time(client, EPOCH)
    assert len(client.run("SELECT * FROM v")) == 1
    assert kept(database) == {"v"}
    set_time(client, EPOCH + 27 * HOUR)
    assert client.run("SELECT * FROM v") == []
    assert kept(database) == set()
