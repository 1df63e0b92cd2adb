"""The law for the first rows of partitions, whose rows come, change and go: by every function that numbers rows, with
ties, NULLs and orders of every type in both directions.

One partition has most rows, and others few; rows at the front go more often than others. What a query shows is
determined: it orders by a key, or shows nothing but what rows that tie have in common.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

#: Columns beside the key with their possible values.
_COLUMNS = {
    "g": ("integer", (1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 5, None)),
    "v": ("integer", (-2, -1, 0, 1, 2, 3, 4, 5, None)),
    "n": ("numeric(6, 2)", ("-1.50", "0.00", "2.00", "7.25", None)),
    "w": ("text", ("", "a", "B", "é", "ab", None)),
    "f": ("double precision", (-1.5, -0.0, 0.0, float("inf"), float("nan"), None)),
    "d": ("timestamp", ("1999-12-31 23:59:59.5", "2000-01-01 00:00:00", "2024-02-29 12:00:00", None)),
    "a": ("integer[]", ([], [1, 2], [None], None)),
}
_ORDERED = ("v", "n", "w", "f", "d")
_WAYS = [" ".join(words) for words in product(("ASC", "DESC"), ("NULLS FIRST", "NULLS LAST"))]
#: A view, and the first rows of what it shows.
_GROUPS = "SELECT g, w, count(*) AS c FROM t GROUP BY g, w"
_OF_GROUPS = (
    "SELECT g, w, c, r FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY c DESC, w NULLS FIRST) AS r"
    " FROM {}) q WHERE r < 3"
)
_OF_STREAMS = "WITH (method = 'incremental', refresh_policy = 'incremental')"
_OF_TABLES = f"WITH (maintained, {_OF_STREAMS.removeprefix('WITH (')}"


def _order(source: random.Random, columns: int) -> str:
    chosen = source.sample(_ORDERED, columns)
    return ", ".join(f"{name} {source.choice(_WAYS)}" for name in chosen)


def _queries(source: random.Random) -> list[str]:
    """Queries of every kind, with random orders and numbers of rows."""

    def numbered(function: str, partition: str, order: str) -> str:
        return f"SELECT *, {function}() OVER ({partition} ORDER BY {order}) AS r FROM t"

    def order() -> str:
        return f"{_order(source, source.randint(1, 3))}, k {source.choice(('', 'DESC'))}"

    few = source.randint(2, 4)
    tie = source.choice([name for name in _ORDERED if name != "f"])  # zeros of both signs tie
    by_tie = f"{tie} {source.choice(_WAYS)}"
    whole = numbered("row_number", "", order())
    return [
        f"SELECT k, g, v, n, w, f, d, a FROM ({numbered('row_number', 'PARTITION BY g', order())}) q WHERE r = 1",
        f"SELECT k, r FROM ({numbered('row_number', 'PARTITION BY g, w', order())}) q WHERE r <= {few}",
        f"SELECT k, g, r FROM ({numbered('row_number', 'PARTITION BY g', order())}) q WHERE r BETWEEN 2 AND {few}"
        " AND v > 0",
        f"SELECT k FROM ({numbered('row_number', 'PARTITION BY g % 2, n > 0', order())}) q WHERE {few} > r",
        f"SELECT g, {tie}, r FROM ({numbered('row_number', 'PARTITION BY g', by_tie)}) q WHERE r IN (1, {few})",
        f"SELECT k, g, r FROM ({numbered('rank', 'PARTITION BY g', by_tie)}) q WHERE r <= {few}",
        f"SELECT k, g, r FROM ({numbered('dense_rank', 'PARTITION BY g', by_tie)}) q WHERE r <= 2 AND k % 2 = 0",
        f"SELECT k, r FROM ({whole}) q WHERE r <= {few}",
        f"SELECT k, w FROM t ORDER BY {by_tie} FETCH FIRST {few} ROWS WITH TIES",
        f"SELECT DISTINCT ON (g) g, k, v FROM t ORDER BY g, {order()}",
        f"SELECT DISTINCT ON (w) w, k FROM (SELECT w, max(k) AS k, sum(v) AS s FROM t GROUP BY w, g) q"
        f" ORDER BY w, s {source.choice(_WAYS)}, k",
        f"SELECT u.g, x.k, x.f FROM u LEFT JOIN LATERAL (SELECT k, f FROM t WHERE t.g = u.g ORDER BY {order()}"
        f" LIMIT {few} OFFSET {source.randint(0, 2)}) x ON true",
        f"SELECT u.m, (SELECT t.w FROM t WHERE t.g = u.g ORDER BY {order()} LIMIT 1) AS w FROM u",
        f"SELECT w, count(*) AS c, sum(v) AS s, max(k) AS k FROM"
        f" ({numbered('row_number', 'PARTITION BY g', order())}) q WHERE r <= {few} GROUP BY w HAVING count(*) > 1",
        f"SELECT q.k, u.m FROM ({numbered('row_number', 'PARTITION BY g', order())}) q JOIN u USING (g)"
        f" WHERE r <= {few} AND (q.v < u.m OR q.v IS NULL)",
        f"SELECT g, at, c, r FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY c DESC, at"
        f" {source.choice(_WAYS)}) AS r FROM (SELECT g, at, count(*) AS c FROM s GROUP BY g, at) x) q WHERE r <= {few}",
    ]


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return (
        str(value)
        if isinstance(value, int)
        else f"'{value}'".replace("[", "{").replace("]", "}").replace("None", "NULL")
    )


def _row(source: random.Random, key: int) -> str:
    values = [source.choice(values) for _, values in _COLUMNS.values()]
    return f"({', '.join(map(_literal, (key, *values)))})"


class _Changes:
    """Random statements; keys count upwards."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._key = 0

    def insert(self, rows: int) -> str:
        first, self._key = self._key + 1, self._key + rows
        return f"INSERT INTO t VALUES {', '.join(_row(self._source, key) for key in range(first, self._key + 1))}"

    def any(self) -> str:
        source = self._source
        front = f"SELECT k FROM t ORDER BY {_order(source, 2)}, k LIMIT {source.choice((1, 3, 12))}"
        name = source.choice(_ORDERED)
        value = _literal(source.choice(_COLUMNS[name][1]))
        match source.randint(0, 9):
            case 0 | 1 | 2:
                return self.insert(source.choice((1, 1, 2, 9)))
            case 3 | 4:
                return f"DELETE FROM t WHERE k IN ({front})"
            case 5:
                return f"DELETE FROM t WHERE k % {source.randint(5, 30)} = {source.randint(0, 4)}"
            case 6 | 7:
                return f"UPDATE t SET {name} = {value} WHERE k IN ({front})"
            case 8:
                return f"UPDATE t SET g = {source.choice((1, 2, 3, 'NULL'))} WHERE k IN ({front})"
            case _ if source.random() < 0.5:
                return f"UPDATE u SET m = m + 1, g = {source.randint(1, 5)} WHERE m % 3 = {source.randint(0, 2)}"
            case _:
                return f"INSERT INTO s VALUES ({source.randint(1, 3)}, {source.randint(1, 9)})"


@pytest.fixture(scope="module")
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    settings = {"spark_enabled": False, "maintenance_rows": 5}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        pair.table("t", f"k integer, {', '.join(f'{name} {kind}' for name, (kind, _) in _COLUMNS.items())}")
        pair.table("u", "g integer, m integer")
        pair.stream("s", "g integer, at integer")
        yield pair


@pytest.mark.parametrize("seed", sample(range(6), (0,)))
def test_the_first_rows_of_partitions(mirror: Mirror, seed: int, whole: bool) -> None:
    source = random.Random(seed)
    changes = _Changes(source)
    mirror.views.clear()
    for statement in ("TRUNCATE t", "TRUNCATE u", "INSERT INTO u VALUES (1, 1), (1, 4), (2, 2), (3, 3), (NULL, 5)"):
        mirror.both(statement)
    mirror.judge.execute("TRUNCATE s")  # a view has the rows that come after its creation
    mirror.both(changes.insert(90))
    names = [f"first{seed}_{place}" for place in range(len(_queries(random.Random(0))))]
    for name, query in zip(names, _queries(source), strict=True):
        mirror.view(name, query, options=_OF_STREAMS if "FROM s GROUP BY" in query else _OF_TABLES)
    groups, above = f"groups{seed}", f"above{seed}"
    mirror.view(groups, _GROUPS, options=_OF_TABLES)
    mirror.view(above, _OF_GROUPS.format(groups), _OF_GROUPS.format(f"({_GROUPS}) x"), _OF_TABLES)
    for _ in range(40 if whole else 12):
        for _ in range(source.choice((1, 1, 2, 4))):
            mirror.both(changes.any())
        mirror.check()
    kept = "SELECT DISTINCT view FROM millstream.paths WHERE rows IS NOT NULL AND method LIKE '%with some to spare'"
    assert {name for (name,) in mirror.client.execute(kept).fetchall()} == {*names, above}
    for name in (*names, above, groups):
        mirror.both(f"DROP VIEW IF EXISTS {name}")
