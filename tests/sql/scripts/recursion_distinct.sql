-- WITH RECURSIVE ... UNION, which drops rows that were there before.
CREATE TABLE edge (a int, b int, w numeric(8,2), f float8);
INSERT INTO edge VALUES (1, 2, 1.5, 'NaN'), (2, 3, 2.5, 1), (3, 4, 1, -0.0), (4, 2, 1, 0.0), (5, 6, 1, 'NaN'), (NULL, 1, NULL, NULL);
WITH RECURSIVE r AS (SELECT 1 AS node UNION SELECT edge.b FROM edge JOIN r ON edge.a = r.node) SELECT node FROM r ORDER BY node;
WITH RECURSIVE r AS (SELECT a, b FROM edge UNION SELECT r.a, edge.b FROM edge JOIN r ON edge.a = r.b) SELECT * FROM r ORDER BY a, b;
WITH RECURSIVE r AS (SELECT NULL::int AS node, NULL::float8 AS f UNION SELECT edge.b, edge.f FROM edge JOIN r ON edge.a IS NOT DISTINCT FROM r.node) SELECT node, count(*), max(f) FROM r WHERE f > 100 OR node > 0 GROUP BY node ORDER BY node;
WITH RECURSIVE r AS (SELECT a AS n FROM edge UNION SELECT n + 1 FROM r WHERE n < 9), s AS (SELECT n FROM r WHERE n > 7 UNION SELECT n * 2 FROM s WHERE n < 50) SELECT r.n, s.n FROM r, s WHERE r.n < 3 ORDER BY 1, 2;
WITH RECURSIVE r AS (SELECT a AS n FROM edge WHERE a < 0 UNION SELECT n + 1 FROM r) SELECT count(*) FROM r;
WITH RECURSIVE r AS (SELECT a AS n FROM edge UNION SELECT 10 / n FROM r) SELECT n FROM r ORDER BY n;
WITH RECURSIVE r AS (SELECT a AS n FROM edge UNION SELECT n - 1 FROM r WHERE n > -3) SELECT n, (SELECT count(*) FROM r q WHERE q.n <= r.n) FROM r ORDER BY n;
SELECT a, (WITH RECURSIVE r AS (SELECT edge.a AS n UNION SELECT n - 1 FROM r WHERE n > 0) SELECT sum(n) FROM r) FROM edge ORDER BY a;
SELECT a FROM edge WHERE a IN (WITH RECURSIVE r AS (SELECT 1 AS n FROM edge UNION SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r) ORDER BY a;
WITH RECURSIVE t AS (SELECT NULL::int AS n FROM edge UNION SELECT n FROM t) SELECT n FROM t;
DROP TABLE edge;
