-- Subqueries that use columns of queries further out, elsewhere than in an equality, or below any operator.
CREATE TABLE r (a int, b int, n numeric(6, 2), d date);
CREATE TABLE s (a int, b int, t text);
CREATE TABLE u (a int, b int, i interval);
INSERT INTO r VALUES (1, 1, 1.50, '2024-01-01'), (2, NULL, 2.25, '2024-02-01'), (2, 3, 0.75, NULL), (NULL, 2, 9, '2024-03-01'), (4, 0, NULL, '2024-04-01'), (1, 1, 1.50, '2024-01-01');
INSERT INTO s VALUES (0, 1, 'x'), (1, 2, 'y'), (1, NULL, 'z'), (2, 2, NULL), (3, 3, 'x'), (NULL, 1, 'w');
INSERT INTO u VALUES (0, 2, '1 mon'), (1, 1, '30 days'), (2, 3, '1 day'), (2, NULL, NULL), (5, 1, '24:00');
-- other comparisons than equality
SELECT a, b, (SELECT count(*) FROM s WHERE s.a < r.a) FROM r ORDER BY a, b;
SELECT a, b, (SELECT sum(s.b * r.b) FROM s WHERE s.a <= r.a) FROM r ORDER BY a, b;
SELECT a, b, (SELECT array_agg(s.t ORDER BY s.t) FROM s WHERE s.a BETWEEN r.a - 1 AND r.b) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM s WHERE r.b > 1) FROM r ORDER BY a, b;
SELECT a, b FROM r WHERE (SELECT count(*) FROM s WHERE s.a <> r.a) > 3 ORDER BY a, b;
SELECT a, b FROM r WHERE n > (SELECT avg(s.b) FROM s WHERE s.a < r.a) ORDER BY a, b;
SELECT a, b, EXISTS (SELECT FROM s WHERE s.a < r.b), NOT EXISTS (SELECT FROM s WHERE s.a > r.b AND s.b <> r.a) FROM r ORDER BY a, b;
SELECT a, b, r.b IN (SELECT s.b FROM s WHERE s.a <= r.a), r.b NOT IN (SELECT s.b FROM s WHERE s.a < r.a) FROM r ORDER BY a, b;
SELECT a, b FROM r WHERE b NOT IN (SELECT s.b FROM s WHERE s.a > r.a) ORDER BY a, b;
SELECT a, b, r.b > ALL (SELECT s.b FROM s WHERE s.a < r.a), r.b = ANY (SELECT s.a + r.a FROM s) FROM r ORDER BY a, b;
-- first rows, windows, groups, sets
SELECT a, b, (SELECT t FROM s WHERE s.a <= r.a ORDER BY s.a DESC, s.b DESC NULLS LAST LIMIT 1) FROM r ORDER BY a, b;
SELECT a, b, (SELECT t FROM s WHERE s.a <= r.a ORDER BY s.a, s.b OFFSET 1 LIMIT 1) FROM r ORDER BY a, b;
SELECT a, b, (SELECT s.b FROM s WHERE s.a > r.b ORDER BY s.t LIMIT (SELECT 1)) FROM r ORDER BY a, b;
SELECT a, b, r.a IN (SELECT s.a FROM s WHERE s.b <> r.a ORDER BY s.a, s.b LIMIT 2) FROM r ORDER BY a, b;
SELECT a, b, (SELECT max(w) FROM (SELECT rank() OVER (ORDER BY s.b) AS w FROM s WHERE s.a <= r.a) q) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM (SELECT s.b, count(*) FROM s WHERE s.a < r.a GROUP BY s.b HAVING count(*) < r.a) q) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM (SELECT DISTINCT s.b FROM s WHERE s.a < r.a) q) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM (SELECT s.b FROM s WHERE s.a < r.a UNION SELECT u.b FROM u WHERE u.a > r.b) q) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM (SELECT s.b FROM s WHERE s.a <> r.a EXCEPT ALL SELECT u.b FROM u WHERE u.a > r.b) q) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM (SELECT s.b FROM s WHERE s.a <> r.a INTERSECT SELECT u.b FROM u WHERE u.a > r.b) q) FROM r ORDER BY a, b;
SELECT a, b, (SELECT sum(v) FROM (VALUES (r.a), (r.b), (10)) q (v)) FROM r ORDER BY a, b;
SELECT a, b, (SELECT sum(g) FROM generate_series(1, r.a) g WHERE g <> r.b) FROM r ORDER BY a, b;
-- joins
SELECT a, b, (SELECT count(*) FROM s LEFT JOIN u ON u.a < s.a AND u.b <> r.b) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(u.a) FROM s RIGHT JOIN u ON u.a = s.a AND u.b <> r.b WHERE u.a <= r.a) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM (SELECT * FROM s WHERE s.a < r.a) s FULL JOIN (SELECT * FROM u WHERE u.a > r.b) u ON u.b = s.b) FROM r ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM s, u WHERE s.a < r.a AND u.b < r.b) FROM r ORDER BY a, b;
SELECT r.a, r.b, u.a, u.b FROM r LEFT JOIN u ON u.a = (SELECT max(s.a) FROM s WHERE s.b < r.b AND s.a <> u.b) ORDER BY 1, 2, 3, 4;
SELECT r.a, r.b, u.a, u.b FROM r LEFT JOIN u ON EXISTS (SELECT FROM s WHERE s.a < r.a AND s.b > u.b) ORDER BY 1, 2, 3, 4;
SELECT r.a, r.b, u.a, u.b FROM r RIGHT JOIN u ON EXISTS (SELECT FROM s WHERE s.a < r.a AND s.b > u.b) AND r.b > 0 ORDER BY 1, 2, 3, 4;
SELECT r.a, r.b, u.a, u.b FROM r FULL JOIN u ON r.a = u.a AND EXISTS (SELECT FROM s WHERE s.a < r.a) ORDER BY 1, 2, 3, 4;
SELECT r.a, r.b, u.a, u.b FROM r LEFT JOIN u ON r.a = u.a AND r.b NOT IN (SELECT s.b FROM s WHERE s.a < r.a) ORDER BY 1, 2, 3, 4;
-- two levels
SELECT a, b FROM r WHERE EXISTS (SELECT FROM s WHERE (SELECT count(*) FROM u WHERE u.a = r.a) = 1) ORDER BY a, b;
SELECT a, b, (SELECT count(*) FROM s WHERE s.a < (SELECT max(u.b) FROM u WHERE u.a <= r.a AND u.b >= s.b)) FROM r ORDER BY a, b;
SELECT a, b FROM r WHERE EXISTS (SELECT FROM s WHERE s.a = r.a AND NOT EXISTS (SELECT FROM u WHERE u.a = r.b AND u.b = s.b)) ORDER BY a, b;
SELECT a, b, r.a IN (SELECT s.a FROM s WHERE s.b NOT IN (SELECT u.b FROM u WHERE u.a <= r.a AND u.b >= s.b)) FROM r ORDER BY a, b;
SELECT a, b, (SELECT max((SELECT count(*) FROM u WHERE u.a < r.a + s.a)) FROM s WHERE s.b <> r.b) FROM r ORDER BY a, b;
SELECT a, b, (SELECT (SELECT u.b FROM u WHERE u.a < r.a ORDER BY u.a, u.b LIMIT 1) + min(s.b) FROM s) FROM r ORDER BY a, b;
SELECT a, b, (SELECT sum(q.x) FROM (SELECT (SELECT count(*) FROM u WHERE u.b < r.b AND u.a = s.a) AS x FROM s WHERE s.a <= r.a) q) FROM r ORDER BY a, b;
-- CASE
SELECT a, b, CASE WHEN EXISTS (SELECT FROM s WHERE s.a < r.a) THEN (SELECT max(s.b) FROM s WHERE s.a < r.a) ELSE r.b END FROM r ORDER BY a, b;
SELECT a, b, CASE WHEN a = 2 THEN (SELECT s.t FROM s WHERE s.a > r.a) ELSE t END FROM r, (VALUES ('other')) v (t) ORDER BY a, b;
SELECT a, b, CASE WHEN a > 1 THEN (SELECT sum(s.b / (r.a - 1)) FROM s WHERE s.a < r.a) END FROM r ORDER BY a, b;
SELECT sum(CASE WHEN r.b IN (SELECT s.b FROM s WHERE s.a <= r.a) THEN 1 ELSE 0 END) FROM r;
SELECT CASE WHEN EXISTS (SELECT FROM s WHERE s.a < r.a) THEN 'some' ELSE 'none' END AS k, count(*) FROM r GROUP BY 1 ORDER BY 1;
SELECT a, b FROM r ORDER BY (SELECT count(*) FROM s WHERE s.a < r.a), a, b;
-- more rows than one
SELECT a, (SELECT s.t FROM s WHERE s.a < r.a) FROM r;
SELECT a, (SELECT s.t FROM s WHERE s.a = r.a) FROM r WHERE a IN (2, 4) ORDER BY a;
-- LATERAL
SELECT r.a, r.b, q.* FROM r, LATERAL (SELECT s.t, s.b FROM s WHERE s.a < r.a ORDER BY s.b, s.t LIMIT 2) q ORDER BY 1, 2, 3, 4;
SELECT r.a, r.b, q.* FROM r LEFT JOIN LATERAL (SELECT s.t, s.b FROM s WHERE s.a <> r.b EXCEPT SELECT s.t, s.b FROM s WHERE s.a > r.a) q ON q.b > 1 ORDER BY 1, 2, 3, 4;
SELECT r.a, q.x, p.y FROM r, LATERAL (SELECT count(*) AS x FROM s WHERE s.a < r.a) q, LATERAL (SELECT max(u.b) AS y FROM u WHERE u.a < q.x) p ORDER BY 1, 2, 3;
-- values that are equal and yet others
SELECT i, (SELECT count(*) || i::text FROM s WHERE s.a < u.a) FROM u ORDER BY a, b;
SELECT d, (SELECT string_agg(s.t, ',' ORDER BY s.t) FROM s WHERE s.a < extract(month FROM r.d)) FROM r ORDER BY d, a, b;
SELECT (SELECT count(*) FROM s WHERE j ->> 'k' > s.t) FROM (VALUES ('{"k": "x"}'::json), ('{"k":"z"}')) v (j) ORDER BY 1;
DROP TABLE r, s, u;
-- outer values that are equal and show otherwise, each as itself
CREATE TABLE o (k int, i interval, d float8, f real, ai interval[], ad float8[]);
CREATE TABLE v (a int, i interval, d float8);
INSERT INTO o VALUES (1, '1 mon', 0, 0, '{1 mon}', '{0}'), (2, '30 days', '-0', '-0', '{30 days}', '{-0}'), (3, NULL, NULL, NULL, NULL, NULL), (4, '720:00', '-0', '-0', '{720:00}', '{-0}');
INSERT INTO v VALUES (1, '720:00', '-0'), (2, '1 mon', 0), (3, '2 mon', 1);
SELECT k, (SELECT i::text), (SELECT d::text), (SELECT f::text) FROM o ORDER BY k;
SELECT k, (SELECT count(*) || o.i::text FROM v WHERE v.a < 3), (SELECT count(*) || o.ai::text || o.ad::text FROM v) FROM o ORDER BY k;
SELECT k, (SELECT max(v.a) || o.d::text FROM v WHERE v.d = o.d), (SELECT max(v.a) || o.i::text FROM v WHERE v.i = o.i) FROM o ORDER BY k;
SELECT k, (SELECT max(v.a) FROM v WHERE v.i = o.i AND v.d = o.f) FROM o ORDER BY k;
SELECT k, EXISTS (SELECT FROM v WHERE v.a < 3 AND o.d::text = '-0'), i IN (SELECT v.i + (o.i - v.i) FROM v WHERE extract(day FROM o.i) = 30) FROM o ORDER BY k;
SELECT k, (SELECT max((SELECT o.i::text || v.i FROM v WHERE v.a = q.a)) FROM v q WHERE q.i = o.i) FROM o ORDER BY k;
SELECT k, q.* FROM o, LATERAL (SELECT v.a, o.i, o.d, v.i + o.i AS s FROM v WHERE v.i = o.i) q ORDER BY k, a;
SELECT k, q.* FROM o LEFT JOIN LATERAL (SELECT v.a, o.i, o.d FROM v WHERE v.i = o.i ORDER BY a LIMIT 1) q ON true ORDER BY k;
SELECT (SELECT count(*) || q::text FROM v) FROM (SELECT k, i, d FROM o) q ORDER BY k;
SELECT (SELECT count(*) || q.x::text FROM v) FROM (SELECT k, (i, d) AS x FROM o) q ORDER BY k;
SELECT o.k, v.a FROM o JOIN v ON (SELECT o.i::text || v.d::text) = '1 mon0' ORDER BY 1, 2;
-- and in the first rows of groups
SELECT DISTINCT ON (o.k) o.k, -o.d, o.i, v.a FROM o, v ORDER BY o.k, v.a;
SELECT * FROM (SELECT o.k, o.f, o.i, v.a, row_number() OVER (PARTITION BY o.k ORDER BY v.a) AS n FROM o, v) q WHERE n <= 1 ORDER BY k;
DROP TABLE o, v;
