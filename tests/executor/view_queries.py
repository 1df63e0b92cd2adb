"""Queries over three tables for tests of views, random rows for these, and how answers are compared."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from planner.statements.statement import Query
from tests.executor.client import Client

TABLES = """
CREATE TABLE a (k int PRIMARY KEY, g int, v int, t text, n numeric(10,2));
CREATE TABLE b (k int, g int, w bigint, t text, f float8, m numeric);
CREATE TABLE c (k int, x int[], d date, t text);
"""
#: Queries of which every operator follows changes.
MAINTAINED = (
    "SELECT g, count(*), sum(v), avg(v), count(t), sum(n) FROM a GROUP BY g",
    "SELECT count(*), sum(v), count(n), avg(n) FROM a",
    "SELECT g, min(v), max(t), count(DISTINCT v), sum(n) FROM a GROUP BY g",
    "SELECT min(v), max(n), count(DISTINCT g), sum(v) FROM a",
    "SELECT g, avg(m), sum(m), sum(w) FROM b GROUP BY g",
    "SELECT g, sum(f), string_agg(t, ',' ORDER BY k, w, t) FROM b GROUP BY g",
    "SELECT x, count(*), sum(k) FROM c GROUP BY x",
    "SELECT stddev(v), var_pop(n), g FROM a GROUP BY g",
    "SELECT g, array_agg(v ORDER BY k) FILTER (WHERE v > 0), count(*) FILTER (WHERE v > 0) FROM a GROUP BY g",
    "SELECT a.k, a.t, b.w FROM a JOIN b ON a.k = b.k WHERE a.v > -3",
    "SELECT a.g, b.t, c.d, count(*) FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.k GROUP BY a.g, b.t, c.d",
    "SELECT a.k, b.w FROM a JOIN b ON a.k = b.k + 1",
    "SELECT a.k, b.w FROM a JOIN b ON a.k > b.k",
    "SELECT count(*) FROM a, b",
    "SELECT x.k, y.k FROM a x JOIN a y ON x.g = y.g AND x.k < y.k",
    "SELECT a.k, b.w, b.t FROM a LEFT JOIN b ON a.k = b.k AND b.w > 2",
    "SELECT a.k, b.w FROM a RIGHT JOIN b ON a.k = b.k AND a.v > 0",
    "SELECT a.k, b.w FROM a FULL JOIN b ON a.k = b.k AND b.w > a.v",
    "SELECT a.k, b.w, c.t FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON c.k = b.g",
    "SELECT a.k, b.w, c.t FROM a LEFT JOIN (b JOIN c ON b.k = c.k) ON a.k = b.k",
    "SELECT a.k, b.w, y.t FROM a LEFT JOIN (SELECT k, count(*) n FROM c WHERE k > 3 GROUP BY k) x ON x.k = a.v"
    " JOIN b ON b.k = coalesce(x.n, 0) JOIN a y ON y.k = a.g",
    "SELECT a.k, b.w, y.t FROM a LEFT JOIN (SELECT k, min(t) t FROM c GROUP BY k) x ON x.k = a.v"
    " JOIN b ON b.t IS NOT DISTINCT FROM x.t JOIN a y ON y.k = a.g",
    "SELECT a.k, b.w, z.g FROM a LEFT JOIN c ON c.k = a.v LEFT JOIN b ON b.k = coalesce(c.k, 1) AND b.g = a.g"
    " JOIN a z ON z.k = a.g",
    "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w > a.v)",
    "SELECT * FROM a WHERE k NOT IN (SELECT k FROM b WHERE w > 1)",
    "SELECT * FROM a WHERE v > (SELECT avg(w) FROM b WHERE b.k = a.k)",
    "SELECT * FROM a WHERE v > (SELECT avg(w) FROM b)",
    "SELECT a.k, (SELECT count(*) FROM b WHERE b.k = a.k), (SELECT max(t) FROM c WHERE c.k = a.k) FROM a",
    "SELECT DISTINCT g, t FROM a",
    "SELECT g, t FROM a UNION SELECT g, t FROM b",
    "SELECT g, t FROM a UNION ALL SELECT g, t FROM b",
    "SELECT g, t FROM a INTERSECT ALL SELECT g, t FROM b",
    "SELECT g, t FROM a EXCEPT SELECT g, t FROM b",
    "SELECT k, g, row_number() OVER (PARTITION BY g ORDER BY v, k), sum(v) OVER (PARTITION BY g) FROM a",
    "SELECT * FROM (SELECT k, g, row_number() OVER (PARTITION BY g ORDER BY v, k) r FROM a) x WHERE r <= 2",
    "SELECT k, g, v FROM (SELECT *, row_number() OVER (PARTITION BY t, g ORDER BY v DESC NULLS LAST, k) r FROM a) x"
    " WHERE r BETWEEN 2 AND 3 AND v > 0",
    "SELECT k, r FROM (SELECT k, row_number() OVER (ORDER BY n NULLS FIRST, k DESC) r FROM a) x WHERE r IN (1, 3)",
    "SELECT k, m, r, d FROM (SELECT *, rank() OVER (PARTITION BY g ORDER BY m DESC) r,"
    " dense_rank() OVER (PARTITION BY g ORDER BY m DESC) d FROM b) x WHERE d < 3",
    "SELECT k, t FROM b ORDER BY t, w FETCH FIRST 2 ROWS WITH TIES",
    "SELECT g, w, t FROM (SELECT *, row_number() OVER (PARTITION BY lower(t) ORDER BY w, k, g, f, m) r FROM b) x"
    " WHERE r = 1",
    "SELECT x.k, b.w FROM (SELECT k, g, rank() OVER (PARTITION BY g ORDER BY v) r FROM a) x JOIN b ON b.g = x.g"
    " WHERE r = 1",
    "SELECT t, count(*), sum(v) FROM (SELECT t, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, k) r FROM a) x"
    " WHERE r <= 2 GROUP BY t",
    "SELECT k, n FROM (SELECT k, count(*) OVER (PARTITION BY lower(t)) n FROM a) x WHERE n < 4",
    "SELECT g, n, count(*) FROM (SELECT g, count(*) n FROM a GROUP BY g, t) x GROUP BY g, n",
    "SELECT x.g, x.s, y.s FROM (SELECT g, sum(v) s FROM a GROUP BY g) x"
    " LEFT JOIN (SELECT g, sum(w) s FROM b GROUP BY g) y ON x.g = y.g",
    "SELECT g, sum(v) FROM a GROUP BY g HAVING count(*) > 2",
    "SELECT g, t, count(*) FROM a GROUP BY ROLLUP (g, t)",
    "SELECT e, count(*) FROM c, unnest(x) e GROUP BY e",
    "WITH r AS (SELECT g, sum(v) s FROM a GROUP BY g) SELECT r1.g, r2.s FROM r r1 JOIN r r2 ON r1.s = r2.g",
    "SELECT a.k, v.n FROM a JOIN (VALUES (1, 'one'), (2, 'two')) v(g, n) ON v.g = a.g",
    "SELECT 5 AS five FROM a GROUP BY CUBE (g)",
    "SELECT g, sum(v) s FROM a GROUP BY g ORDER BY s DESC, g LIMIT 2",
    "SELECT k, v, t FROM a ORDER BY v NULLS FIRST, k OFFSET 1 LIMIT 3",
    "SELECT x.k, b.k bk FROM (SELECT k, g FROM a ORDER BY v, k LIMIT 3) x JOIN b ON b.g = x.g",
    "SELECT sum(v), min(t) FROM (SELECT v, t FROM a ORDER BY v DESC, k LIMIT 4) x",
    "SELECT max(v) AS x, min(v), max(n) FILTER (WHERE g > 1) AS y, min(t) FROM a",
    "SELECT count(*) FROM (SELECT k, row_number() OVER (PARTITION BY g ORDER BY v, k) n FROM a) x WHERE n % 2 = 1",
    "SELECT DISTINCT ON (g) g, k, v FROM a ORDER BY g, v, k",
    "SELECT g, s FROM (SELECT g, sum(v) s FROM a GROUP BY g) x WHERE s > ALL (SELECT k FROM c)",
    "SELECT x.g, y.k FROM (SELECT g, sum(v) s FROM a GROUP BY g) x,"
    " LATERAL (SELECT k FROM c WHERE c.k < x.s ORDER BY k LIMIT 1) y",
    "SELECT a.k, y.w FROM a LEFT JOIN LATERAL"
    " (SELECT w FROM b WHERE b.k = a.g ORDER BY w DESC, m, f, t LIMIT 2) y ON true",
    "SELECT a.k, (SELECT b.w FROM b WHERE b.k = a.k ORDER BY b.w LIMIT 1) FROM a",
    "SELECT g, sum(v) s FROM a GROUP BY g LIMIT 100",
    "WITH r AS (SELECT k, g, row_number() OVER (PARTITION BY g ORDER BY v) n FROM a) SELECT x.n, count(y.k)"
    " FROM r x JOIN r y ON x.g = y.g AND x.n <= y.n GROUP BY x.n",
    "WITH r AS (SELECT k, g, v FROM a ORDER BY v, k LIMIT 3) SELECT x.v, count(y.k) FROM r x, r y WHERE x.k < y.v + y.k"
    " GROUP BY x.v",
    "SELECT count(*) FROM (SELECT k FROM a LIMIT 3) x",
    "SELECT k, v > (SELECT DISTINCT k FROM c WHERE k = 2) FROM a",
    "SELECT k, (SELECT DISTINCT d FROM c WHERE c.k = a.k GROUP BY d HAVING count(*) > 99) FROM a",
    "SELECT k FROM a WHERE v NOT IN (SELECT n FROM (SELECT count(*) n, min(w) m FROM b) x WHERE x.m = a.g)",
    "SELECT k, v IN (SELECT count(*) FROM c WHERE c.k = a.g HAVING count(d) > 1) IS NULL FROM a",
    "SELECT max(s), max(2.25) FROM (SELECT g, sum(v) s FROM a GROUP BY g) x HAVING max(1) < 3",
    "SELECT sum(s), count(*), avg(s) FROM (SELECT g, sum(f) s FROM b GROUP BY g) x",
    "SELECT g, sum(f), avg(f), min(f), sum(f / 3) FILTER (WHERE w > 2), avg(f::float4) FROM b GROUP BY g",
    "SELECT g, stddev(f), sum(f) FROM b GROUP BY g HAVING sum(f) > 1",
    "SELECT g, s, rank() OVER (ORDER BY s, g) FROM (SELECT g, sum(v) s FROM a GROUP BY g) x",
    "SELECT g, s, s::numeric / sum(s) OVER () share FROM (SELECT g, sum(v + 9) s FROM a GROUP BY g) x WHERE s > 0",
    "SELECT k, w, rank() OVER (ORDER BY w, k) FROM (SELECT a.k, b.w FROM a JOIN b ON a.k = b.k) x",
    "SELECT k, lag(v) OVER (ORDER BY v, k) l, sum(v) OVER (ORDER BY v) s FROM a",
    "SELECT a.k, x.r FROM a JOIN (SELECT g, count(*) OVER (ORDER BY g) r FROM b GROUP BY g) x ON x.g = a.g",
    "WITH RECURSIVE r(k) AS (SELECT k FROM a WHERE k < 3 UNION SELECT b.g FROM b JOIN r ON r.k = b.k) SELECT * FROM r",
    "WITH RECURSIVE r(k, p) AS (SELECT k, ARRAY[k] FROM a WHERE v > 1 UNION ALL SELECT b.g, p || b.g FROM b"
    " JOIN r ON r.k = b.k AND b.g <> ALL (p)) SELECT r.k, p, c.d FROM r LEFT JOIN c USING (k)",
)
#: Queries with an operator that is computed at each read, over others that are not.
PARTLY = (
    "SELECT k, w, ntile(3) OVER (ORDER BY w, k) FROM (SELECT a.k, b.w FROM a JOIN b ON a.k = b.k) x",
    "SELECT array_agg(s ORDER BY s), count(*) FROM (SELECT g, sum(v) s FROM a GROUP BY g) x",
)
#: Queries of which nothing is kept: what they read is as quick to compute.
NOT_MAINTAINED = (
    "SELECT k, g FROM a WHERE v > 0",
    "SELECT k, ntile(3) OVER (ORDER BY v, k) FROM a",
)


def names(client: Client, query: str) -> str:
    """A list of names for the columns of a query of which some are called alike."""
    statement = client.bind(query)
    assert isinstance(statement, Query)
    given = [output.name for output in statement.outputs]
    alike = len(set(given)) < len(given) or "?column?" in given
    return f" ({', '.join(f'c{place}' for place in range(len(given)))})" if alike else ""


def bag(rows: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(_value, row)) for row in rows)


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    return repr(value) if isinstance(value, list | dict) else value


def row(drawn: random.Random, table: str) -> str:
    text, group = drawn.choice(("'x'", "'y'", "'zz'", "NULL", "''")), drawn.choice(("1", "2", "3", "NULL"))
    match table:
        case "a":
            number = drawn.choice(("1.50", "2", "NULL", "-3.25"))
            return f"({drawn.randint(1, 40)}, {group}, {drawn.randint(-5, 5)}, {text}, {number})"
        case "b":
            key, double = drawn.choice(("NULL", *map(str, range(12)))), drawn.choice(("0.1", "2.5", "NULL"))
            number = drawn.choice(("1", "1.0", "2.500", "NULL"))
            return f"({key}, {group}, {drawn.randint(-3, 9)}, {text}, {double}, {number})"
        case _:
            array = drawn.choice(("ARRAY[1, 2]", "ARRAY[]::int[]", "NULL", "ARRAY[3, NULL]"))
            date = drawn.choice(("NULL", "DATE '2020-01-01'"))
            return f"({drawn.randint(0, 12)}, {array}, {date}, {text})"
