"""The law for higher-order views: groupings of joins with small relations, of which any row may change.

Keys have NULLs and values without a partner, rows are there several times, groups are empty, and sums are over nothing
but NULLs. Conditions and factors are of either side; small relations are joined by inner and left joins, in chains, and
twice. Some views read others, or stand on streams.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

_SALES = {
    "shop": ("integer", (1, 1, 1, 2, 2, 3, 9, None)),
    "buyer": ("integer", (1, 2, 3, 9, None)),
    "item": ("integer", (1, 2, 3, 4, 5, 9, None)),
    "v": ("integer", (-2, 0, 1, 3, None)),
    "n": ("numeric(8, 2)", ("-1.50", "0.00", "2.25", None)),
    "b": ("bigint", (-3, 5, 2_000_000_000, None)),
    "u": ("numeric", ("1.5", "2", None)),
    "f": ("double precision", (-0.0, 0.0, 1.5, None)),
    "w": ("text", ("", "a", "B", None)),
    "c": ("boolean", ("true", "false", None)),
    "d": ("date", ("2024-02-29", "2024-12-31", "2025-01-01", None)),
}
_SMALL = {
    "places": {
        "id": ("integer", (1, 2, 3, 4, None)),
        "name": ("text", ("x", "y", None)),
        "region": ("integer", (1, 2, 3, None)),
        "rate": ("integer", (0, 1, 3, None)),
        "m": ("numeric(5, 3)", ("0.125", "-2.500", None)),
        "ok": ("boolean", ("true", "false", None)),
    },
    "regions": {"id": ("integer", (1, 2, 3, None)), "title": ("text", ("north", "south", None))},
    "items": {
        "id": ("integer", (1, 2, 3, 4, 5, None)),
        "kind": ("text", ("p", "q", None)),
        "z": ("numeric(4, 1)", ("1.5", "-1.0", None)),
    },
}
_JOINS = (
    "sales JOIN places p ON shop = p.id",
    "sales JOIN places p ON shop = p.id JOIN regions r ON p.region = r.id",
    "regions r JOIN places p ON p.region = r.id JOIN sales ON shop = p.id",
    "sales LEFT JOIN places p ON shop = p.id AND p.ok",
    "sales JOIN places p ON shop = p.id JOIN places q ON buyer = q.id",
    "sales JOIN places p ON shop = p.id LEFT JOIN items i ON item = i.id",
    "items i JOIN (sales JOIN places p ON shop = p.id) ON item = i.id AND i.z < sales.v + 2",
    "sales JOIN places p ON shop IS NOT DISTINCT FROM p.id",
    "(SELECT *, v + 1 AS more FROM sales WHERE v IS NOT NULL) sales JOIN places p ON p.id = shop AND p.rate <= more",
    "(SELECT * FROM sales WHERE EXISTS (SELECT 1 FROM items WHERE items.id = item)) sales JOIN places p ON p.id = shop",
    "sales JOIN places p ON p.id = shop AND NOT EXISTS (SELECT 1 FROM items i WHERE i.id = item AND i.kind = 'p')",
    "sales CROSS JOIN places p",
)
_KEYS = (
    ("p.name",),
    ("p.name", "w"),
    ("p.region", "extract(year FROM d)"),
    ("lower(w)", "p.ok"),
    ("f::text", "p.name"),
    ("sales.c AND p.ok",),
    ("date_trunc('month', d::timestamp)", "p.rate"),
    (),
)
_AGGREGATES = (
    "count(*)",
    "count(v)",
    "count(p.m)",
    "sum(v)",
    "sum(n)",
    "sum(b)",
    "avg(n)",
    "avg(v)",
    "sum(p.rate)",
    "sum(p.m)",
    "sum(v * p.rate)",
    "sum(n * p.m)",
    "sum(p.m * (n + 1))",
    "sum(n * p.m * p.rate)",
    "sum(b * p.rate)",
    "sum(CASE WHEN p.name = 'x' THEN n ELSE 0 END)",
    "sum(CASE WHEN p.ok THEN v END)",
    "sum(CASE WHEN p.ok THEN v WHEN sales.c THEN p.rate ELSE 2 END)",
    "sum(v) FILTER (WHERE p.ok)",
    "sum(n) FILTER (WHERE sales.c AND p.rate > 0)",
    "sum(v * p.rate) FILTER (WHERE sales.c OR p.ok)",
    "count(*) FILTER (WHERE sales.c)",
    "sum(v + p.rate)",
    "avg(v * p.rate)",
    "var_pop(v)",
    "sum(u)",
    "max(n)",
    "count(DISTINCT v)",
)
_FILTERS = ("", "", "", "WHERE v > -2", "WHERE p.name = 'x' OR sales.c", "WHERE p.rate IS NOT NULL AND n < 2")
_OPTIONS = "WITH (maintained, method = 'higher_order', refresh_policy = 'incremental')"
#: By what EXPLAIN calls such a view.
_VIEW = "higher-order view%"


def _query(source: random.Random, joins: str, aggregates: list[str]) -> str:
    keys = source.choice(_KEYS)
    shown = [f"{key} AS k{place}" for place, key in enumerate(keys)]
    shown += [f"{call} AS a{place}" for place, call in enumerate(aggregates)]
    grouped = f"GROUP BY {', '.join(keys)}" if keys else ""
    counted = source.choice(("", "", "HAVING count(*) > 1"))
    return f"SELECT {', '.join(shown)} FROM {joins} {source.choice(_FILTERS)} {grouped} {counted}"


def _queries(source: random.Random) -> list[str]:
    calls = source.sample(_AGGREGATES[:-2], len(_AGGREGATES) - 2)
    found = [_query(source, joins, [calls.pop() for _ in range(2)]) for joins in _JOINS]
    found.append(f"SELECT DISTINCT p.name, w FROM {source.choice(_JOINS[:3])}")
    found.append(_query(source, source.choice(_JOINS), [*_AGGREGATES[-2:], "count(*)"]))
    inner = "SELECT p.region, w, sum(v) AS s, count(*) AS c FROM sales JOIN places p ON shop = p.id GROUP BY 1, 2"
    found.append(f"SELECT title, sum(s) AS s, sum(c) AS c FROM ({inner}) x JOIN regions r ON region = r.id GROUP BY 1")
    return found


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{value}'"


class _Changes:
    """Random statements; small relations change as often as the large one."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def insert(self, table: str, rows: int) -> str:
        columns = {"sales": _SALES, **_SMALL}[table]
        drawn = (
            ", ".join(_literal(self._source.choice(values)) for _, values in columns.values()) for _ in range(rows)
        )
        return f"INSERT INTO {table} VALUES {', '.join(f'({row})' for row in drawn)}"

    def any(self) -> str:
        source = self._source
        table = source.choice(("sales", "sales", "places", "places", "regions", "items"))
        columns = {"sales": _SALES, **_SMALL}[table]
        name, changed = source.choice(list(columns)), source.choice(list(columns))
        where = f"{name} IS NOT DISTINCT FROM {_literal(source.choice(columns[name][1]))}"
        if table == "sales":
            where += f" AND v IS NOT DISTINCT FROM {_literal(source.choice(_SALES['v'][1]))}"
        match source.randint(0, 4):
            case 0 | 1:
                return self.insert(table, source.choice((1, 1, 3)))
            case 2:
                return f"DELETE FROM {table} WHERE {where}"
            case _:
                return f"UPDATE {table} SET {changed} = {_literal(source.choice(columns[changed][1]))} WHERE {where}"


def _columns(columns: dict[str, tuple[str, tuple[object, ...]]]) -> str:
    return ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())


@pytest.fixture(scope="module")
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    with Millstream(settings={"spark_enabled": False}) as server, mirrored(server, postgres) as pair:
        pair.table("sales", _columns(_SALES))
        for name, columns in _SMALL.items():
            pair.table(name, _columns(columns))
        yield pair


@pytest.mark.parametrize("seed", sample(range(12), (0, 1)))
def test_higher_order_views(mirror: Mirror, seed: int, whole: bool) -> None:
    source = random.Random(seed)
    changes = _Changes(source)
    mirror.views.clear()
    for table in ("sales", *_SMALL):
        mirror.both(f"TRUNCATE {table}")
        mirror.both(changes.insert(table, 60 if table == "sales" else 4))
    names = []
    for place, query in enumerate(_queries(source)):
        names.append(f"higher{seed}_{place}")
        mirror.view(names[-1], query, options=_OPTIONS)
    below = "SELECT shop, w, p.region, sum(v) AS s FROM sales JOIN places p ON shop = p.id GROUP BY 1, 2, 3"
    above = "SELECT title, sum(s) AS s, count(*) AS c FROM {} x JOIN regions r ON region = r.id GROUP BY title"
    names += [f"below{seed}", f"above{seed}"]
    mirror.view(names[-2], below, options=_OPTIONS)
    mirror.view(names[-1], above.format(names[-2]), above.format(f"({below})"), _OPTIONS)
    for _ in range(40 if whole else 12):
        for _ in range(source.choice((1, 1, 2, 4))):
            mirror.both(changes.any())
        mirror.check()
    kept = "SELECT count(DISTINCT view) FROM millstream.paths WHERE rows IS NOT NULL AND method LIKE %s"
    (views,) = mirror.client.execute(kept, (_VIEW,)).fetchone() or (0,)
    assert views > len(names) / 2
    for name in reversed(names):
        mirror.both(f"DROP VIEW IF EXISTS {name}")


@pytest.mark.parametrize("seed", sample(range(4), (0,)))
def test_higher_order_views_of_streams(mirror: Mirror, seed: int) -> None:
    """Above a state, whose groups meet tables."""
    source = random.Random(seed)
    changes = _Changes(source)
    mirror.views.clear()
    stream, name = f"arriving{seed}", f"of_stream{seed}"
    mirror.stream(stream, _columns(_SALES))
    for table in _SMALL:
        mirror.both(f"TRUNCATE {table}")
        mirror.both(changes.insert(table, 4))
    options = _OPTIONS.replace("maintained, ", "")
    for place, joins in enumerate(_JOINS[:6]):
        query = _query(source, joins.replace("sales", f"{stream} sales"), source.sample(_AGGREGATES[:14], 2))
        mirror.view(f"{name}_{place}", query, options=options)
    for _ in range(8):
        mirror.both(changes.insert("sales", 5).replace("INTO sales", f"INTO {stream}"))
        mirror.both(changes.any())
        mirror.check()
