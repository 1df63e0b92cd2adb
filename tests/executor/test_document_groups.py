"""Groups of documents, which are those of their texts, although 1 and 1.0 are equal as jsonb: views that are made of
several groupings have each group once.

The judge is the same query, computed from scratch; over a stream it is the query of a table with equal rows.
"""

from __future__ import annotations

import random
from typing import Final

import pytest

from tests.executor.client import Client
from tests.executor.view_queries import bag

_QUERIES: Final = {
    "sums beside extremes": "SELECT j, count(*) AS n, sum(k) AS s, max(k) AS m FROM {t} GROUP BY j",
    "several distinct aggregates": "SELECT j, count(DISTINCT k) AS n, count(DISTINCT i) AS m, count(*) AS r FROM {t}"
    " GROUP BY j",
    "a list beside": "SELECT j, count(DISTINCT k) AS n, array_agg(i ORDER BY i) AS a FROM {t} GROUP BY j",
    "a sum of doubles": "SELECT j, sum(k::float8 * 1e30) AS s, count(*) AS n FROM {t} GROUP BY j",
    "groups of two columns": "SELECT i, j, min(k) AS m, count(*) AS n FROM {t} GROUP BY i, j",
    "GROUPING SETS": "SELECT i, j, max(k) AS m, count(*) AS n FROM {t} GROUP BY CUBE (i, j)",
    "EXCEPT ALL": "SELECT j, k FROM {t} EXCEPT ALL SELECT j, i FROM {t}",
    "INTERSECT ALL": "SELECT j, k FROM {t} INTERSECT ALL SELECT j, i FROM {t}",
    "LIMIT for each row": "SELECT x.i, l.k FROM {t} x LEFT JOIN LATERAL"
    " (SELECT y.k FROM {t} y WHERE y.j = x.j ORDER BY y.k LIMIT 1) l ON true",
    "distinct rows for each row": "SELECT x.i, l.k FROM {t} x CROSS JOIN LATERAL"
    " (SELECT DISTINCT y.k FROM {t} y WHERE y.j = x.j AND y.k <> x.k) l",
    "IN": "SELECT i FROM {t} WHERE j IN (SELECT j FROM {t} WHERE k = 1)",
    "NOT IN": "SELECT i FROM {t} WHERE j NOT IN (SELECT j FROM {t} WHERE k = 1 AND j IS NOT NULL)",
}
_DOCUMENTS: Final = ("1", "1.0", "1.00", '{"a": 1}', '{"a": 1.0}', "[2]", "[2.0]", "null")


def _row(drawn: random.Random) -> str:
    document = drawn.choice((*(f"'{item}'" for item in _DOCUMENTS), "NULL"))
    return f"({drawn.randint(0, 2)}, {document}, {drawn.randint(0, 2)})"


@pytest.mark.parametrize("name", _QUERIES)
def test_a_view_of_a_table_equals_its_query(client: Client, name: str) -> None:
    drawn, query = random.Random(name), _QUERIES[name].format(t="t")
    client.run("CREATE TABLE t (i integer, j jsonb, k integer)")
    for method in ("incremental", "higher_order"):
        client.run(f"CREATE MATERIALIZED VIEW {method} WITH (method = '{method}') AS {query}")
    for _ in range(8):
        client.run(f"INSERT INTO t VALUES {', '.join(_row(drawn) for _ in range(4))}")
        client.run(f"DELETE FROM t WHERE i = {drawn.randint(0, 2)} AND k = {drawn.randint(0, 2)}")
        for method in ("incremental", "higher_order"):
            assert bag(client.run(f"SELECT * FROM {method}")) == bag(client.run(query))


@pytest.mark.parametrize("name", _QUERIES)
def test_a_view_of_a_stream_equals_its_query(client: Client, name: str) -> None:
    drawn = random.Random(name)
    client.run("CREATE TABLE t (i integer, j jsonb, k integer)")
    client.run("CREATE FOREIGN TABLE s (i integer, j jsonb, k integer) SERVER stream")
    client.run(f"CREATE VIEW v AS {_QUERIES[name].format(t='s')}")
    for _ in range(4):
        rows = ", ".join(_row(drawn) for _ in range(4))
        client.run(f"INSERT INTO t VALUES {rows}; INSERT INTO s VALUES {rows}")
        assert bag(client.run("SELECT * FROM v")) == bag(client.run(_QUERIES[name].format(t="t")))
