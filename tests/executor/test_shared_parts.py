"""Joins that several views have in common are kept once for them (iShare), and the views equal their queries.

The judge is the same query, which reads the tables as they are. With ``view_sharing`` on, parts are shared whether it
pays or not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from tests.executor.client import Client, open_database
from tests.executor.random_paces import go_on
from tests.executor.view_queries import bag
from tests.rig.process import wait_until
from tests.rig.sampling import sample

TABLES = """
    CREATE TABLE shops (id int PRIMARY KEY, region int, name text);
    CREATE TABLE orders (id int PRIMARY KEY, shop int, day int, total numeric(12, 2));
    CREATE TABLE lines (orderid int, place int, item int, price numeric(12, 2));
    CREATE TABLE items (id int, kind text, weight float8)
"""
JOINS = (
    "shops s JOIN orders o ON o.shop = s.id",
    "orders o JOIN shops s ON s.id = o.shop AND o.total > 3",
    "shops s JOIN orders o ON s.id = o.shop JOIN lines l ON l.orderid = o.id",
    "lines l JOIN orders o ON o.id = l.orderid JOIN shops s ON s.id = o.shop",
    "orders o JOIN lines l ON o.id = l.orderid",
    "shops s JOIN orders o ON s.id = o.shop JOIN lines l ON l.orderid = o.id JOIN items i ON i.id = l.item",
    "shops s JOIN orders o ON s.id = o.shop LEFT JOIN (lines l JOIN items i ON i.id = l.item) ON l.orderid = o.id",
    "shops s JOIN orders o ON s.id = o.shop FULL JOIN items i ON i.id = o.day",
    "shops s JOIN orders o ON s.id = o.shop JOIN (SELECT orderid, max(price) AS price FROM lines GROUP BY 1) l"
    " ON l.orderid = o.id",
)
KEYS = {"s": ("s.region", "s.name"), "o": ("o.day", "o.id % 3"), "l": ("l.price",), "i": ("i.kind",)}
WHERE = {
    "s": ("s.region < 3", "s.name IS NOT NULL"),
    "o": ("o.day BETWEEN 1 AND 6", "o.total <> 4 OR s.region = 1"),
    "l": ("l.price > 2", "l.price / nullif(o.total, 0) < 5"),
    "i": ("i.weight < 4",),
}
VALUES = {"s": "count(s.id)", "o": "sum(o.total)", "l": "max(l.price)", "i": "count(DISTINCT i.kind)"}


def view_of(drawn: random.Random) -> str:
    """A query over some of the tables."""
    joins = drawn.choice(JOINS)
    there = [name for name in "soli" if f" {name} " in f"{joins} " and not (name == "o" and " s " not in f"{joins} ")]
    there = there or ["l"]
    conditions = [drawn.choice(WHERE[name]) for name in there if drawn.random() < 0.4]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    keys = ", ".join(f"{key} AS k{number}" for number, key in enumerate(drawn.choice(KEYS[name]) for name in there[:2]))
    kind = drawn.random()
    if kind < 0.05:
        return f"SELECT count(*) AS n, 'x' AS t FROM {joins}{where}"
    if kind < 0.2:
        return f"SELECT {keys} FROM {joins}{where}"
    values = ", ".join(f"{VALUES[name]} AS v{number}" for number, name in enumerate(there) if drawn.random() < 0.7)
    names = ", ".join(f"k{number}" for number in range(len(there[:2])))
    having = " HAVING count(*) > 1" if kind > 0.9 else ""
    return f"SELECT {keys}, count(*) AS n{', ' if values else ''}{values} FROM {joins}{where} GROUP BY {names}{having}"


def change_of(drawn: random.Random) -> str:
    """A change of some rows of a table."""
    number, other, table = drawn.randint(0, 9), drawn.randint(0, 5), drawn.choice(("shops", "orders", "lines", "items"))
    key = "orderid" if table == "lines" else "id"
    rows = {
        "shops": f"({number}, {other}, 'n{other % 3}') ON CONFLICT (id) DO UPDATE SET region = excluded.region",
        "orders": f"({number}, {other}, {drawn.randint(0, 8)}, {other}) ON CONFLICT DO NOTHING",
        "lines": f"({number}, 1, {other}, {other}), ({other}, 2, {number}, 3.5)",
        "items": f"({other}, 'k{number % 4}', {number / 2})",
    }
    sets = {
        "shops": "region = region + 1",
        "orders": "day = day + 1",
        "lines": "price = price + 1",
        "items": "kind = 'x'",
    }
    draw = drawn.random()
    if draw < 0.55:
        return f"INSERT INTO {table} VALUES {rows[table]}"
    if draw < 0.8:
        return f"UPDATE {table} SET {sets[table]} WHERE {key} % 4 = {number % 4}"
    return f"DELETE FROM {table} WHERE {key} = {number}" if draw < 0.97 else f"TRUNCATE {table}"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path, view_sharing="on")) as found:
        yield found


def create(client: Client, name: str, query: str, options: str = "method = 'incremental'") -> None:
    client.run(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}")


def readers(database: Database) -> dict[str, set[str]]:
    """The views that read each part, by the columns that it has."""
    maintained = database.read_services.maintained
    found: dict[str, set[str]] = {}
    for known in maintained._known.values():
        for oid in known.expanded.sources if known.kept is not None else ():
            if oid in maintained._sharing.parts:
                columns = ", ".join(source for _, source in maintained._sharing.parts._parts[oid].part.shown)
                found.setdefault(columns, set()).add(known.runtime.view.name)
    return found


def require_equal(client: Client, queries: dict[str, str]) -> None:
    for name, query in queries.items():
        assert bag(client.run(f"SELECT * FROM {name}")) == bag(client.run(query)), (name, query)


def settle(database: Database, client: Client, queries: dict[str, str], expected: int) -> None:
    """Reads the views until so many of them read parts: they begin to in the background."""

    def is_shared() -> bool:
        client.run("INSERT INTO lines VALUES (0, 0, 0, 0)")
        require_equal(client, queries)
        return len(set().union(*readers(database).values())) >= expected

    wait_until(is_shared, 60, "shared part")


@pytest.mark.parametrize("seed", sample(range(60), range(0, 60, 10)))
def test_views_equal_their_queries(database: Database, seed: int) -> None:
    """While views come and go, nodes wait, and views begin to read parts in the background."""
    drawn, client, queries = random.Random(seed), Client(database), dict[str, str]()
    client.run(TABLES)
    for step in range(40):
        if step < 6 or drawn.random() < 0.1:
            queries[f"v{step}"] = view_of(drawn)
            create(
                client, f"v{step}", queries[f"v{step}"], drawn.choice(("method = 'incremental'", "method = 'delta'"))
            )
        if drawn.random() < 0.05:
            name = drawn.choice(sorted(queries))
            client.run(f"DROP MATERIALIZED VIEW {name}")
            del queries[name]
        for _ in range(drawn.randint(0, 3)):
            client.run(change_of(drawn))
        go_on(database.read_services.maintained, drawn)
        require_equal(client, {name: query for name, query in queries.items() if drawn.random() < 0.7})
    require_equal(client, queries)


STAR = "FROM shops s JOIN orders o ON o.shop = s.id JOIN lines l ON l.orderid = o.id"

KEYS_OF_STAR = ("region", "day", "place")


def filled(client: Client, number: int = 200) -> None:
    client.run(TABLES)
    client.run(f"INSERT INTO shops SELECT i, i % 5, 'n' || i FROM generate_series(1, {number // 10}) i")
    client.run(
        f"INSERT INTO orders SELECT i, 1 + i % {number // 10}, i % 30, i FROM generate_series(1, {number}) i;"
        f"INSERT INTO lines SELECT 1 + i % {number}, i % 7, i % 9, i FROM generate_series(1, {4 * number}) i"
    )


def test_views_read_one_part_with_the_columns_of_all(database: Database) -> None:
    client = Client(database)
    filled(client)
    queries = {
        "a": f"SELECT region, sum(price) AS p {STAR} GROUP BY region",
        "b": f"SELECT day, count(*) AS n {STAR} WHERE region < 3 GROUP BY day",
        "c": f"SELECT place, min(total) AS t {STAR} GROUP BY place",
    }
    for name, query in queries.items():
        create(client, name, query)
        require_equal(client, {name: query})
    settle(database, client, queries, 3)
    assert readers(database) == {"region, day, total, place, price": {"a", "b", "c"}}
    lines = [line for (line,) in client.run("EXPLAIN SELECT * FROM b")]
    assert any("changes of the shared join of shops, orders, lines" in line for line in lines), lines
    assert any("Shared With: a, c" in line for line in lines), lines
    chosen = client.run("SELECT view, chosen FROM millstream.decisions WHERE chosen ~ 'shared'")
    assert ("c", "by changes over the shared join of shops, orders, lines") in chosen


def test_parts_go_with_the_last_view(database: Database) -> None:
    client = Client(database)
    filled(client)
    queries = {name: f"SELECT {name}, count(*) AS n {STAR} GROUP BY {name}" for name in ("region", "day", "place")}
    for name, query in queries.items():
        create(client, f"by_{name}", query)
    settle(database, client, {f"by_{name}": query for name, query in queries.items()}, 3)
    maintained = database.read_services.maintained
    for name in queries:
        assert maintained._sharing.parts._parts
        client.run(f"DROP MATERIALIZED VIEW by_{name}")
    assert not maintained._sharing.parts._parts and not database.core.parts
    assert not database.core._table_changes, "changes of tables are remembered for nobody"


def test_a_row_that_fails_in_one_view_fails_no_other(database: Database) -> None:
    client = Client(database)
    filled(client)
    good, bad = f"SELECT region, sum(price) AS p {STAR} GROUP BY region", f"SELECT sum(price / (price - 5)) AS p {STAR}"
    create(client, "good", good)
    client.run("DELETE FROM lines WHERE price = 5")
    create(client, "bad", bad)
    settle(database, client, {"good": good, "bad": bad}, 2)
    client.run("INSERT INTO lines VALUES (7, 1, 1, 5)")
    with pytest.raises(SqlError, match="division by zero"):
        client.run("SELECT * FROM bad")
    require_equal(client, {"good": good})
    assert readers(database) == {"region, price": {"good"}}
    client.run("DELETE FROM lines WHERE price = 5")
    require_equal(client, {"good": good, "bad": bad})


def test_an_older_snapshot_reads_beside_a_part_that_has_gone_on(database: Database) -> None:
    client, other = Client(database), Client(database)
    filled(client)
    queries = {name: f"SELECT {name}, count(*) AS n {STAR} GROUP BY {name}" for name in ("region", "day")}
    for name, query in queries.items():
        create(client, f"by_{name}", query)
    views = {f"by_{name}": query for name, query in queries.items()}
    settle(database, client, views, 2)
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    before = {name: bag(other.run(query)) for name, query in views.items()}
    client.run("DELETE FROM lines WHERE place = 3")
    require_equal(client, {"by_region": views["by_region"]})
    for name in views:
        assert bag(other.run(f"SELECT * FROM {name}")) == before[name]
    other.run("COMMIT")
    require_equal(client, views)
    require_equal(other, views)


@pytest.mark.parametrize(
    ("view_sharing", "number", "are_shared"), [("off", 8, False), ("auto", 8, True), ("auto", 1, False)]
)
def test_parts_are_shared_where_that_pays(tmp_path: Path, view_sharing: str, number: int, are_shared: bool) -> None:
    """Eight views keep one join instead of eight; a lone view keeps its own rows."""
    with closing(open_database(tmp_path, view_sharing=view_sharing)) as database:
        client = Client(database)
        filled(client, 1_000)
        keys = ("region", "day", "place", "name", "item", "shop", "day, place", "region, place")[:number]
        queries = {f"v{place}": f"SELECT {key}, count(*) AS n {STAR} GROUP BY {key}" for place, key in enumerate(keys)}
        for name, query in queries.items():
            create(client, name, query)
        require_equal(client, queries)
        if are_shared:
            settle(database, client, queries, number)
        else:
            for _ in range(3):
                client.run("INSERT INTO lines VALUES (0, 0, 0, 0)")
                require_equal(client, queries)
                time.sleep(0.05)
        assert bool(readers(database)) == are_shared


def test_views_of_other_time_zones_keep_their_own(database: Database) -> None:
    client = Client(database)
    filled(client)
    queries: dict[str, Any] = {}
    for zone in ("UTC", "Europe/Berlin"):
        client.session.time_zone = zone
        name = f"v{len(queries)}"
        queries[name] = f"SELECT region, count(*) AS n {STAR} GROUP BY region"
        create(client, name, queries[name])
        require_equal(client, queries)
    client.run("INSERT INTO lines VALUES (0, 0, 0, 0)")
    require_equal(client, queries)
    assert not readers(database)


def test_readers_of_one_part_do_not_disturb_each_other(database: Database) -> None:
    """Three sessions read different views while a fourth one writes, and views come and go."""
    client = Client(database)
    filled(client)
    views = {
        f"v{place}": f"SELECT {key}, count(*) AS n, sum(price) AS p {STAR} GROUP BY {key}"
        for place, key in enumerate(KEYS_OF_STAR)
    }
    for name, query in views.items():
        create(client, name, query)
    settle(database, client, views, len(views))

    def read(name: str) -> None:
        reader = Client(database)
        for number in range(25):
            level = " ISOLATION LEVEL REPEATABLE READ" if number % 2 else ""
            reader.run(f"BEGIN{level}")
            found = bag(reader.run(f"SELECT * FROM {name}"))
            if level:
                assert found == bag(reader.run(views[name])), name
            reader.run("COMMIT")

    def write() -> None:
        writer, drawn = Client(database), random.Random(1)
        for number in range(40):
            writer.run(change_of(drawn).replace("TRUNCATE", "DELETE FROM"))
            if number % 10 == 5:
                create(writer, f"w{number}", views["v0"])
                writer.run(f"SELECT * FROM w{number}; DROP MATERIALIZED VIEW w{number}")

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(write), *(threads.submit(read, name) for name in views)]:
            future.result(timeout=120)
    require_equal(client, views)
    assert readers(database)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE lines DROP COLUMN place",
        "ALTER TABLE lines ALTER COLUMN place TYPE bigint",
        "ALTER TABLE lines RENAME COLUMN place TO line",
        "ALTER TABLE lines RENAME COLUMN price TO cost",
        "ALTER TABLE lines ADD COLUMN more int DEFAULT 7",
        "ALTER TABLE lines RENAME TO rows",
    ],
)
def test_tables_of_a_part_are_altered(database: Database, change: str) -> None:
    """Also by columns that only a view has read which is gone."""
    client = Client(database)
    filled(client)
    queries = {name: f"SELECT {name}, sum(price) AS p {STAR} GROUP BY {name}" for name in ("region", "day", "place")}
    for name, query in queries.items():
        create(client, f"by_{name}", query)
    settle(database, client, {f"by_{name}": query for name, query in queries.items()}, 3)
    client.run("DROP MATERIALIZED VIEW by_place")
    client.run(change)
    table = "rows" if "TO rows" in change else "lines"
    del queries["place"]
    renamed = {"price": "cost"} if "cost" in change else {}

    def are_shared() -> bool:
        client.run(f"INSERT INTO {table} (orderid) VALUES (1)")
        for name, query in queries.items():
            for old, new in {**renamed, "JOIN lines l": f"JOIN {table} l"}.items():
                query = query.replace(old, new)
            assert bag(client.run(f"SELECT * FROM by_{name}")) == bag(client.run(query)), change
        return {name for part in readers(database).values() for name in part} == {"by_region", "by_day"}

    wait_until(are_shared, 60, "shared part")
    assert len(database.core.parts) == 1
