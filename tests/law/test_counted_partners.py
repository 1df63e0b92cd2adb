"""The law for joins that count partners: left joins in chains and below others, EXISTS and NOT EXISTS that compare more
than equalities, over tables of which any row may change.

Keys have NULLs and values without a partner, rows are there several times, and a key's first and last partners come and
go. Conditions are about either side, and about both.
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

_TABLES = {
    "makers": {
        "id": ("integer", (1, 2, 3, 4, 5, 6, None)),
        "c": ("integer", (1, 2, 3, None)),
        "x": ("integer", (0, 1, 2, 3, None)),
        "t": ("text", ("a", "b", None)),
        "n": ("numeric(6, 2)", ("-1.50", "0.00", "2.00", None)),
    },
    "parts": {
        "a": ("integer", (1, 1, 1, 2, 3, 4, 9, None)),
        "v": ("integer", (0, 1, 2, 3, None)),
        "s": ("text", ("a", "b", "c", None)),
        "m": ("numeric(6, 2)", ("-1.50", "1.00", "2.25", None)),
        "k": ("bigint", (1, 2, 3, None)),
    },
    "lands": {"id": ("integer", (1, 2, 3, None)), "name": ("text", ("x", "y", None)), "v": ("integer", (0, 1, None))},
}
_LEFT = (
    "p.a = o.id",
    "p.a = o.id AND p.v > 0",
    "p.a = o.id AND o.x > 1",
    "p.a = o.id + 1 AND p.s = o.t",
    "p.a IS NOT DISTINCT FROM o.id",
    "p.a + 1 = o.id AND o.t IS NOT NULL AND p.m < 2",
)
_SHOWN = "o.id, o.x, p.v, p.s"
_ASKED = (
    "p.a = o.id AND p.v > o.x",
    "p.a = o.id AND p.m <= o.n AND p.v <> o.x",
    "p.a = o.id AND p.s IS DISTINCT FROM o.t",
    "p.a = o.id AND o.x < p.k AND p.v > 0",
    "p.a IS NOT DISTINCT FROM o.id AND o.x + 1 >= p.v",
    "p.a = o.id AND o.x > 0",
)
#: A join is for {0}, a condition about partners {1}.
_QUERIES = (
    f"SELECT {_SHOWN} FROM makers o LEFT JOIN parts p ON {{0}}",
    f"SELECT {_SHOWN}, l.name FROM makers o LEFT JOIN parts p ON {{0}} JOIN lands l ON l.id = o.c",
    f"SELECT {_SHOWN}, l.name FROM makers o LEFT JOIN parts p ON {{0}} LEFT JOIN lands l ON l.id = o.c AND l.v = 1",
    f"SELECT {_SHOWN}, l.name FROM makers o LEFT JOIN parts p ON {{0}} LEFT JOIN lands l ON l.id = p.k",
    f"SELECT {_SHOWN}, l.name FROM makers o LEFT JOIN parts p ON {{0}} JOIN lands l ON l.id = coalesce(p.v, o.x)",
    f"SELECT {_SHOWN}, q.m FROM makers o LEFT JOIN parts p ON {{0}} LEFT JOIN parts q ON q.a = o.c",
    f"SELECT {_SHOWN} FROM lands l JOIN makers o ON o.c = l.id LEFT JOIN parts p ON {{0}} WHERE p.v IS NULL OR l.v = 1",
    "SELECT o.c, count(*) AS n, count(p.a) AS a, sum(p.v) AS s, sum(o.x) AS x FROM makers o LEFT JOIN parts p ON {0}"
    " JOIN lands l ON l.id = o.c GROUP BY o.c",
    "SELECT l.name, o.id FROM lands l LEFT JOIN (makers o LEFT JOIN parts p ON {0}) ON l.id = o.c AND p.v > 0",
    "SELECT o.id, o.x, o.t FROM makers o WHERE EXISTS (SELECT FROM parts p WHERE {1})",
    "SELECT o.id, o.n FROM makers o WHERE NOT EXISTS (SELECT FROM parts p WHERE {1})",
    "SELECT o.id, l.name FROM makers o JOIN lands l ON l.id = o.c WHERE NOT EXISTS (SELECT FROM parts p WHERE {1}"
    " AND p.v IS DISTINCT FROM l.v)",
    "SELECT o.id, q.v FROM makers o LEFT JOIN parts q ON q.a = o.id WHERE EXISTS (SELECT FROM parts p WHERE {1})",
    "SELECT o.c, count(*) AS n FROM makers o WHERE NOT EXISTS (SELECT FROM parts p WHERE {1}) GROUP BY o.c",
)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{value}'"


class _Changes:
    """Random statements; that of many parts makes keys lose all partners, or get their first ones."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def insert(self, table: str, rows: int) -> str:
        columns = _TABLES[table].values()
        drawn = (", ".join(_literal(self._source.choice(values)) for _, values in columns) for _ in range(rows))
        return f"INSERT INTO {table} VALUES {', '.join(f'({row})' for row in drawn)}"

    def any(self) -> str:
        source = self._source
        table = source.choice(("makers", "makers", "parts", "parts", "parts", "lands"))
        columns = _TABLES[table]
        name, other, changed = (source.choice(list(columns)) for _ in range(3))
        where = f"{name} IS NOT DISTINCT FROM {_literal(source.choice(columns[name][1]))}"
        if source.random() < 0.6:
            where += f" AND {other} IS NOT DISTINCT FROM {_literal(source.choice(columns[other][1]))}"
        match source.randint(0, 5):
            case 0 | 1:
                return self.insert(table, source.choice((1, 1, 2, 5)))
            case 2 | 3:
                return f"DELETE FROM {table} WHERE {where}"
            case _:
                return f"UPDATE {table} SET {changed} = {_literal(source.choice(columns[changed][1]))} WHERE {where}"


@pytest.fixture(scope="module")
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    with Millstream(settings={"spark_enabled": False}) as server, mirrored(server, postgres) as pair:
        for table, columns in _TABLES.items():
            pair.table(table, ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items()))
        yield pair


@pytest.mark.parametrize("seed", sample(range(8), (0,)))
def test_joins_that_count_partners(mirror: Mirror, seed: int, whole: bool) -> None:
    source = random.Random(seed)
    changes = _Changes(source)
    mirror.views.clear()
    for table, rows in (("makers", 12), ("parts", 40), ("lands", 4)):
        mirror.both(f"TRUNCATE {table}")
        mirror.both(changes.insert(table, rows))
    names = []
    for place, query in enumerate(_QUERIES):
        names.append(f"partners{seed}_{place}")
        text = query.format(source.choice(_LEFT), source.choice(_ASKED))
        method = source.choice(("higher_order", "higher_order", "incremental"))
        mirror.view(names[-1], text, options=f"WITH (maintained, method = '{method}', refresh_policy = 'incremental')")
    for _ in range(50 if whole else 12):
        for _ in range(source.choice((1, 1, 2, 4))):
            mirror.both(changes.any())
        mirror.check()
    kept = "SELECT DISTINCT view FROM millstream.paths WHERE rows IS NOT NULL"
    assert {name for (name,) in mirror.client.execute(kept).fetchall()} == set(names)
    for name in reversed(names):
        mirror.both(f"DROP VIEW IF EXISTS {name}")
