"""Recursions over a graph that changes, for tests of views: queries that both databases answer alike."""

from __future__ import annotations

import random
from typing import Final

TABLES: Final = """CREATE TABLE edges (a int, b int, w numeric(6,2));
CREATE TABLE nodes (k int PRIMARY KEY, g int, t text)"""
#: Edges lead to these nodes, and to some that are not there.
NODES: Final = "INSERT INTO nodes SELECT i, i % 3, 't' || i % 4 FROM generate_series(0, 7) i"
QUERIES: Final = {
    "closure": "WITH RECURSIVE r AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges e ON e.a = r.b)"
    " SELECT a, b FROM r",
    "closure from the other end": "WITH RECURSIVE r AS (SELECT a, b FROM edges"
    " UNION SELECT e.a, r.b FROM edges e, r WHERE e.b = r.a AND e.w < 5) SELECT b, count(*) AS n FROM r GROUP BY b",
    "reached": "WITH RECURSIVE r AS (SELECT k FROM nodes WHERE g = 1"
    " UNION SELECT e.b FROM r JOIN edges e ON e.a = r.k) SELECT k FROM r",
    "rounds": "WITH RECURSIVE r AS (SELECT k, 0 AS n FROM nodes WHERE g = 1 UNION ALL"
    " SELECT e.b, n + 1 FROM r JOIN (SELECT DISTINCT a, b FROM edges) e ON e.a = r.k WHERE n < 4)"
    " SELECT DISTINCT k FROM r",
    "copies": "WITH RECURSIVE r AS (SELECT a, b, 1 AS n FROM edges WHERE a < 4 UNION ALL"
    " SELECT r.a, e.b, r.n + 1 FROM r JOIN edges e ON e.a = r.b WHERE r.n < 3) SELECT a, b, n FROM r",
    "paths": "WITH RECURSIVE r AS (SELECT k, ARRAY[k] AS p FROM nodes WHERE g = 0 UNION ALL"
    " SELECT b, p || b FROM r JOIN edges ON a = k WHERE b <> ALL (p) AND cardinality(p) < 4) SELECT k, p FROM r",
    "distinct paths": "WITH RECURSIVE r AS (SELECT k, ARRAY[k] AS p FROM nodes WHERE g = 0 UNION"
    " SELECT b, p || b FROM r JOIN edges ON a = k WHERE b <> ALL (p) AND cardinality(p) < 4) SELECT k, p FROM r",
    "joined": "WITH RECURSIVE r AS (SELECT k FROM nodes WHERE g = 2 UNION SELECT e.b FROM r JOIN edges e ON e.a = r.k)"
    " SELECT n.t, count(*) AS c, sum(m.g) AS s FROM r JOIN nodes n USING (k)"
    " LEFT JOIN nodes m ON m.k = r.k + 1 GROUP BY n.t",
    "missing": "SELECT k, t FROM nodes WHERE NOT EXISTS (WITH RECURSIVE r AS"
    " (SELECT 1 AS k UNION SELECT e.b FROM r JOIN edges e ON e.a = r.k) SELECT 1 FROM r WHERE r.k = nodes.k)",
    "twice": "WITH RECURSIVE r AS (SELECT a, b FROM edges WHERE w > 1"
    " UNION SELECT r.a, e.b FROM r, edges e WHERE e.a = r.b) SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a + 1",
    "outer step": "WITH RECURSIVE r AS (SELECT a FROM edges UNION SELECT e.b FROM r LEFT JOIN edges e ON e.a = r.a + 1)"
    " SELECT a FROM r",
    "within EXISTS": "WITH RECURSIVE r AS (SELECT k FROM nodes WHERE g = 1"
    " UNION SELECT e.b FROM r JOIN edges e ON e.a = r.k WHERE"
    " EXISTS (SELECT 1 FROM nodes n WHERE n.k = e.b AND n.t <> 't0')) SELECT k FROM r",
    "of groups": "WITH RECURSIVE r AS (SELECT min(a) AS k FROM edges UNION SELECT m FROM r"
    " JOIN (SELECT a, max(b) AS m FROM edges GROUP BY a) e ON e.a = r.k) SELECT k FROM r",
    "of a recursion": "WITH RECURSIVE q AS (SELECT k FROM nodes WHERE g = 1 UNION SELECT b FROM q JOIN edges ON a = k),"
    " r AS (SELECT k, 0 AS n FROM q WHERE k > 2 UNION ALL SELECT r.k - 1, n + 1 FROM r JOIN q ON q.k = r.k - 1)"
    " SELECT k, n FROM r",
    "numbers": "WITH RECURSIVE r AS (SELECT a, w FROM edges WHERE b < 3 UNION"
    " SELECT b, (r.w + e.w)::numeric(6,2) FROM r JOIN edges e USING (a) WHERE r.w + e.w < 9) SELECT a, w FROM r",
    "signs": "WITH RECURSIVE r AS (SELECT w::float8 * 0 AS f, a FROM edges"
    " UNION SELECT -f, e.b FROM r JOIN edges e USING (a)) SELECT abs(f) AS f, a FROM r",
    "series": "WITH RECURSIVE r AS (SELECT a, b FROM edges WHERE b IS NOT NULL UNION"
    " SELECT a, s FROM r, generate_series(b - 2, b) s WHERE s > 0) SELECT a, b FROM r",
}


def change(drawn: random.Random) -> str:
    """A statement that changes the graph: edges that are there twice, lead to themselves, or to and from NULL."""
    chance = drawn.random()
    if chance < 0.45:
        rows = ", ".join(
            f"({_node(drawn)}, {_node(drawn)}, {drawn.randint(0, 6)})" for _ in range(drawn.choice((1, 1, 4)))
        )
        return f"INSERT INTO edges VALUES {rows}"
    if chance < 0.65:
        return f"DELETE FROM edges WHERE a = {drawn.randint(0, 7)} AND b < {drawn.randint(1, 9)}"
    if chance < 0.8:
        return f"UPDATE edges SET b = {_node(drawn)}, w = w + 1 WHERE a = {drawn.randint(0, 7)} AND w < 3"
    if chance < 0.88:
        return f"UPDATE nodes SET g = {drawn.randint(0, 2)} WHERE k = {drawn.randint(0, 7)}"
    if chance < 0.93:
        return f"DELETE FROM edges WHERE w = {drawn.randint(0, 6)}"
    return f"DELETE FROM nodes WHERE k = {drawn.randint(5, 7)}"


def _node(drawn: random.Random) -> str:
    return drawn.choice(("NULL", *map(str, range(8))))
