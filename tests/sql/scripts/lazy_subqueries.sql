-- CASE and coalesce evaluate a subquery for the rows that ask for it, and for no other.
CREATE TABLE t (a int, k int, name text);
CREATE TABLE s (x int, k int, name text);
INSERT INTO t VALUES (0, 1, 'one'), (2, 2, NULL), (0, 3, 'three'), (NULL, 4, NULL);
INSERT INTO s VALUES (10, 1, 'x'), (20, 2, 'y'), (30, 3, NULL), (31, 3, 'z'), (0, 5, NULL);
-- an expression that fails
SELECT k, CASE WHEN a <> 0 THEN (SELECT 10 / a) END FROM t ORDER BY k;
SELECT k, CASE WHEN a <> 0 THEN (SELECT x / a FROM s WHERE s.k = t.k) END FROM t ORDER BY k;
SELECT k, CASE WHEN a <> 0 THEN (SELECT sum(x / a) FROM s WHERE s.k = t.k) ELSE -1 END FROM t ORDER BY k;
SELECT k, CASE WHEN a = 0 THEN 1 ELSE (SELECT max(x / a) FROM s WHERE s.k = t.k) END FROM t ORDER BY k;
SELECT k, CASE WHEN a = 0 THEN 1 WHEN (SELECT x / a FROM s WHERE s.k = t.k) > 1 THEN 2 END FROM t ORDER BY k;
SELECT k, CASE WHEN a <> 0 THEN EXISTS (SELECT FROM s WHERE s.k = t.k AND x / a > 1) END FROM t ORDER BY k;
SELECT k, CASE WHEN a <> 0 THEN 10 IN (SELECT x / a FROM s WHERE s.k = t.k) END FROM t ORDER BY k;
SELECT k, CASE WHEN a <> 0 THEN (SELECT 1 + q.y FROM (SELECT x / t.a AS y, s.k FROM s) q WHERE q.k = t.k) END
    FROM t ORDER BY k;
SELECT k, CASE WHEN a <> 0 AND 10 / a > 1 THEN (SELECT x / a FROM s WHERE s.k = t.k) END FROM t ORDER BY k;
SELECT k, CASE WHEN t.name IS NOT NULL THEN (SELECT json_build_object(t.name, max(x)) FROM s WHERE s.k = t.k) END
    FROM t ORDER BY k;
SELECT k, CASE WHEN k = 1 THEN (SELECT json_build_object(s.name, t.name) FROM s WHERE s.k = t.k AND s.x < 31) END
    FROM t ORDER BY k;
SELECT k, coalesce(nullif(a, 0), (SELECT x / (t.k - 2) FROM s WHERE s.k = t.k AND s.x < 31)) FROM t ORDER BY k;
SELECT k, coalesce(t.name, (SELECT min(s.name) FROM s WHERE s.k = t.k), (SELECT x / t.a || '' FROM s WHERE s.k = t.k))
    FROM t WHERE k > 1 ORDER BY k;
-- more rows than one
SELECT k, CASE WHEN a <> 0 THEN (SELECT x FROM s WHERE s.k = t.k) END FROM t ORDER BY k;
SELECT k, CASE WHEN k < 3 THEN (SELECT x FROM s WHERE s.k = t.k) ELSE (SELECT count(*) FROM s WHERE s.k > t.k) END
    FROM t ORDER BY k;
SELECT k, CASE WHEN k < 4 THEN (SELECT x FROM s WHERE s.k = t.k) END FROM t ORDER BY k;
-- one within another, whose condition asks again
SELECT k, CASE WHEN (SELECT min(x) FROM s WHERE s.k = t.k) > 10 THEN
    CASE WHEN a <> 0 THEN (SELECT x / a FROM s WHERE s.k = t.k) ELSE (SELECT count(*) FROM s WHERE s.k = t.k) END END
    FROM t ORDER BY k;
SELECT k, (SELECT CASE WHEN t.a <> 0 THEN (SELECT max(u.x / t.a) FROM s u WHERE u.k = s.k) END FROM s WHERE s.k = t.k
    ORDER BY s.x LIMIT 1) FROM t ORDER BY k;
-- rows that do ask fail
SELECT CASE WHEN a IS NOT NULL THEN (SELECT x / a FROM s WHERE s.k = t.k) END FROM t ORDER BY k;
SELECT CASE WHEN k = 3 THEN (SELECT json_build_object(s.name, 1) FROM s WHERE s.k = t.k AND s.x < 31) END FROM t;
-- where the filter decides
SELECT k FROM t WHERE CASE WHEN a <> 0 THEN (SELECT x / a FROM s WHERE s.k = t.k) END = 10 ORDER BY k;
DROP TABLE t, s;
