"""Continuous views over enums equal PostgreSQL's answers while labels are added and renamed and the server dies."""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import ENGINES
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

VIEWS = {
    "by_state": "SELECT state, count(*), min(k), sum(n) FROM orders GROUP BY state",
    "by_key": "SELECT k, min(state), max(state), count(DISTINCT state) AS c, count(state) FROM orders GROUP BY k",
    "late": "SELECT k, state, count(*) FROM orders WHERE state > 'paid' OR state IN ('new', 'paid') GROUP BY k, state",
    "kept": "SELECT k, array_agg(state ORDER BY state, n), mode() WITHIN GROUP (ORDER BY state) FROM orders GROUP BY k",
    "best": "SELECT coalesce(state, 'new') AS state, max(n) FROM orders GROUP BY 1 ORDER BY 1 DESC LIMIT 2",
    "above": "SELECT state || '!' AS t, n FROM (SELECT state::text, count(*) AS n FROM (SELECT DISTINCT state, k FROM "
    "orders) AS g GROUP BY state) AS h",
    "pointed": "SELECT k, concat(min(state)) AS t FROM orders GROUP BY k",
    "arrays": "SELECT k, array_to_string(array_agg(state ORDER BY state, n), ',') AS t FROM orders GROUP BY k",
    "joined": "SELECT word, count(*), max(o.state) FROM orders o JOIN words w ON o.state = w.state GROUP BY word",
}
#: Views that Spark maintains, too.
PLAIN = ("by_state", "by_key", "late", "best", "above", "joined")
#: Views with text of labels in their states.
TEXTS = {
    "texts": "SELECT state::text AS t, count(*) FROM orders GROUP BY 1",
    "listed": "SELECT k, string_agg(state::text, ',' ORDER BY n, state), max(concat(state, '!')) FROM orders"
    " GROUP BY k",
    "filtered": "SELECT k, count(*) FROM orders WHERE state::text LIKE '%d' GROUP BY k",
}


def both(mirror: Mirror, text: str) -> None:
    for connection in (mirror.client, mirror.judge):
        connection.execute(text.encode())


@pytest.fixture
def mirror(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Mirror]:
    engine = getattr(request, "param", "embedded")
    settings = {"maintenance_engine": engine, "spark_enabled": engine == "spark", "maintenance_rows": 50}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        both(pair, "CREATE TYPE state AS ENUM ('new', 'paid', 'sent')")
        pair.table("words", "state state PRIMARY KEY, word text")
        both(pair, "INSERT INTO words VALUES ('new', 'a'), ('paid', 'b'), ('sent', 'a')")
        pair.stream("orders", "k integer, state state DEFAULT 'new', n integer")
        for name, query in VIEWS.items():
            if engine == "embedded" or name in PLAIN:
                pair.view(name, query)
        yield pair


def rows(labels: list[str], count: int, source: random.Random) -> list[list[object]]:
    return [[source.randint(1, 4), source.choice([None, *labels]), source.randint(-9, 9)] for _ in range(count)]


@pytest.mark.parametrize("mirror", ENGINES, indirect=True)
def test_views_follow_a_changing_enum(mirror: Mirror) -> None:
    source = random.Random(1)
    labels = ["new", "paid", "sent"]
    for change, label in (
        ("ADD VALUE 'held' BEFORE 'paid'", "held"),
        ("ADD VALUE 'lost'", "lost"),
        ("ADD VALUE 'asked' BEFORE 'new'", "asked"),
        ("RENAME VALUE 'held' TO 'stuck'", "stuck"),
    ):
        mirror.insert("orders", rows(labels, 40, source), one_statement=True)
        lines = (",".join("" if item is None else str(item) for item in row) for row in rows(labels, 60, source))
        mirror.copy("orders", "".join(f"{line}\n" for line in lines).encode())
        mirror.check()
        both(mirror, f"ALTER TYPE state {change}")
        labels = [item for item in labels if item != "held" or not change.startswith("RENAME")] + [label]
        mirror.check()
        if "pointed" in mirror.views:  # by the key index
            ours = mirror.client.execute("SELECT t FROM pointed WHERE k = 2").fetchall()
            assert ours == mirror.judge.execute("SELECT min(state)::text FROM orders WHERE k = 2").fetchall()
        if label == "lost":
            mirror.restart(crash=True)
            mirror.check()
    engine = "spark" if len(mirror.views) == len(PLAIN) else "embedded"
    wait_until(lambda: mirror.jobs(engine) > 0, 120, f"a job of {engine}")
    mirror.insert("orders", rows(labels, 5, source), one_statement=False)
    mirror.check()
    mirror.restart(crash=False)
    mirror.check()


def test_texts_of_labels_in_states(mirror: Mirror) -> None:
    source = random.Random(2)
    labels = ["new", "paid", "sent"]
    for name, query in TEXTS.items():
        mirror.view(name, query)
    for label in ("held", "lost"):
        mirror.insert("orders", rows(labels, 70, source), one_statement=True)
        mirror.check(*TEXTS)
        mirror.insert("orders", rows(labels, 30, source), one_statement=True)
        both(mirror, f"ALTER TYPE state ADD VALUE '{label}' BEFORE 'paid'")
        labels.append(label)
        mirror.insert("orders", rows(labels, 60, source), one_statement=True)
        mirror.check(*TEXTS)
        mirror.restart(crash=label == "held")
        mirror.check(*TEXTS)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="renaming a label that view texts keeps"):
        mirror.client.execute("ALTER TYPE state RENAME VALUE 'lost' TO 'found'")


def test_what_would_depend_on_the_labels_is_refused(mirror: Mirror) -> None:
    for query in (
        "SELECT k, count(*) FROM orders WHERE state = enum_last(NULL::state) GROUP BY 1",
        "SELECT k, count(*) FROM orders WHERE state = concat('pa', 'id')::state GROUP BY 1",
    ):
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="enum in a continuous view"):
            mirror.client.execute(f"CREATE VIEW refused AS {query}".encode())
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="renaming a label that view late uses"):
        mirror.client.execute("ALTER TYPE state RENAME VALUE 'paid' TO 'settled'")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        mirror.client.execute("DROP TYPE state")
