-- WITH queries in WITH queries, and read more than once.
WITH a AS (WITH b AS (WITH c AS (SELECT 1 AS x) SELECT c.x + d.x AS x FROM c, c d) SELECT b.x + 1 AS x FROM b) SELECT * FROM a;
WITH a AS (SELECT 1 AS x), b AS (SELECT p.x + q.x AS x FROM a p, a q), c AS (SELECT p.x + q.x AS x FROM b p JOIN b q ON p.x = q.x), d AS (SELECT sum(p.x + q.x) AS x FROM c p, c q) SELECT * FROM d, d e;
WITH a AS (SELECT 'x' AS t, NULL AS n, 1.50 AS d) , b AS (SELECT t || 'y' AS t, n, d * 2 AS d FROM a) SELECT t, n, d, pg_typeof(t), pg_typeof(n) FROM b;
WITH a AS (SELECT 1 AS x), b AS (SELECT nope FROM a) SELECT 1;
WITH a AS (SELECT 1 AS x), b AS (SELECT a.x + 'y'::text FROM a) SELECT 1;
WITH a(p, q) AS (SELECT 1, 2), b AS (SELECT q, count(*) FROM a GROUP BY p) SELECT 1;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (WITH x AS (SELECT n + 1 AS m FROM r) SELECT m FROM x WHERE m < 5)) SELECT * FROM r;
WITH RECURSIVE r(n) AS (WITH RECURSIVE q(m) AS (SELECT 1 UNION ALL SELECT m + 1 FROM q WHERE m < 3) SELECT m FROM q UNION ALL SELECT n + 10 FROM r WHERE n < 20) SELECT * FROM r ORDER BY 1;
SELECT l.x, m.y, m.y * l.x FROM (VALUES (1), (2)) v(a), LATERAL (SELECT a + 1 AS x) l, LATERAL (SELECT l.x * 2 AS y) m ORDER BY 1;
SELECT a, l.x FROM (VALUES (1), (0)) v(a), LATERAL (SELECT 10 / a AS x) l WHERE a <> 0;
SELECT a, l.x FROM (VALUES (1), (2)) v(a) JOIN LATERAL (SELECT a * 2 AS x) l ON l.x > 2;
SELECT a, l.x FROM (VALUES (1), (2)) v(a) LEFT JOIN LATERAL (SELECT a * 2 AS x) l ON l.x > 2 ORDER BY 1;
