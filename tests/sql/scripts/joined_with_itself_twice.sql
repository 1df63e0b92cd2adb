-- A table's join with itself, at two places of one statement, which do not read the same of its columns.
CREATE TABLE t (id int, k int, s int);
INSERT INTO t SELECT g, CASE WHEN g % 17 = 0 THEN NULL ELSE g % 23 END, g % 4 FROM generate_series(1, 180) g;
SELECT b.k, max(a.s) FROM t a JOIN t b ON a.k = b.id GROUP BY b.k UNION ALL SELECT NULL, max(a.s) FROM t a JOIN t b ON a.k = b.id ORDER BY 1, 2;
SELECT b.k, max(a.s) FROM t a JOIN t b ON a.k = b.id GROUP BY b.k UNION SELECT a.s, max(a.s) FROM t a JOIN t b ON a.k = b.id GROUP BY a.s ORDER BY 1, 2;
SELECT b.k, count(*), max(a.s) FROM t a JOIN t b ON a.k = b.id GROUP BY GROUPING SETS ((b.k), ()) ORDER BY 1, 2;
SELECT g.k, g.n FROM (SELECT b.k, count(*) AS n, sum(a.s) AS s FROM t a JOIN t b ON a.k = b.id GROUP BY b.k) g WHERE g.s > (SELECT avg(a.s) FROM t a JOIN t b ON a.k = b.id) ORDER BY 1;
