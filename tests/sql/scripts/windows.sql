-- Window functions: the functions, what OVER says, frames, WINDOW, windows over groups, and the errors.
CREATE TABLE w (id int PRIMARY KEY, g text, v numeric(10,2), d date, f float8, i int, b bool, ts timestamp);
INSERT INTO w VALUES
    (1, 'a', 1.50, '2020-01-01', 1.5, 3, true, '2020-01-01 10:00'),
    (2, 'a', 2.50, '2020-01-03', 2.25, 3, false, '2020-01-01 10:30'),
    (3, 'b', NULL, '2020-01-04', NULL, 1, NULL, '2020-01-01 12:00'),
    (4, 'b', 4.00, '2020-01-09', 0, NULL, true, NULL),
    (5, NULL, 5.25, NULL, 7, 9, true, '2020-01-02 09:00'),
    (6, 'b', 4.00, '2020-01-09', -1.5, 2, false, '2020-01-01 11:59:59.999999'),
    (7, NULL, -3.10, '2019-12-31', 1e10, -9, false, '2020-01-03 00:00');

SELECT id, row_number() OVER (ORDER BY id), rank() OVER (ORDER BY v), dense_rank() OVER (ORDER BY v) FROM w ORDER BY id;
SELECT id, rank() OVER (PARTITION BY g ORDER BY v DESC), rank() OVER (PARTITION BY g ORDER BY v DESC NULLS LAST) FROM w ORDER BY id;
SELECT id, percent_rank() OVER (ORDER BY g), cume_dist() OVER (ORDER BY g), ntile(3) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, ntile(NULL) OVER (ORDER BY id), ntile(100) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, lag(v) OVER (ORDER BY id), lead(v) OVER (ORDER BY id), lag(v, 2) OVER (ORDER BY id), lead(v, 2, 0.00) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, lag(i, -1) OVER (ORDER BY id), lag(i, 0) OVER (ORDER BY id), lead(g, 1, 'none') OVER (ORDER BY id), lag(i, i) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, lag('x'::text) OVER (ORDER BY id), lag(i, 1, 2.5) OVER (ORDER BY id), lag('x', 1, 'y') OVER (ORDER BY id) FROM w ORDER BY id;
SELECT lag('x') OVER (ORDER BY id) FROM w;
SELECT first_value(NULL) OVER (ORDER BY id) FROM w;
SELECT id, first_value(g) OVER (ORDER BY id DESC), last_value(g) OVER (ORDER BY id), nth_value(v, 2) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, last_value(v) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM w ORDER BY id;
SELECT id, count(*) OVER (), count(v) OVER (), sum(i) OVER (), sum(v) OVER (), sum(f) OVER (), avg(i) OVER (), avg(v) OVER (), avg(f) OVER () FROM w ORDER BY id;
SELECT id, min(v) OVER (ORDER BY id), max(g) OVER (ORDER BY id), bool_and(b) OVER (ORDER BY id), bool_or(b) OVER (PARTITION BY g) FROM w ORDER BY id;
SELECT id, sum(v) OVER (ORDER BY g), count(*) OVER (ORDER BY g), avg(i) OVER (PARTITION BY g ORDER BY id) FROM w ORDER BY id;
SELECT id, array_agg(id) OVER (ORDER BY id ROWS 1 PRECEDING), string_agg(g, ',') OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, stddev(i) OVER (ORDER BY id), var_pop(v) OVER (PARTITION BY g), variance(f) OVER (ORDER BY id ROWS 3 PRECEDING) FROM w WHERE id < 6 ORDER BY id;
SELECT id, count(*) FILTER (WHERE i > 1) OVER (ORDER BY id), sum(v) FILTER (WHERE b) OVER (PARTITION BY g) FROM w ORDER BY id;

SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w ORDER BY id;
SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING), sum(i) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM w ORDER BY id;
SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), sum(i) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM w ORDER BY id;
SELECT id, sum(i) OVER (ORDER BY v ROWS BETWEEN 0 PRECEDING AND 0 FOLLOWING) FROM w ORDER BY id;
SELECT id, count(*) OVER (ORDER BY v RANGE BETWEEN 1.5 PRECEDING AND 1 FOLLOWING) FROM w ORDER BY id;
SELECT id, count(*) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW), count(*) OVER (ORDER BY i DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM w ORDER BY id;
SELECT id, count(*) OVER (ORDER BY f RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w ORDER BY id;
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '2 days' PRECEDING AND CURRENT ROW) FROM w ORDER BY id;
SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND INTERVAL '30 minutes' FOLLOWING) FROM w ORDER BY id;
SELECT id, count(*) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW), sum(id) OVER (ORDER BY g GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM w ORDER BY id;
SELECT id, sum(id) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM w ORDER BY id;
SELECT id, sum(id) OVER (ORDER BY g RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP), sum(id) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM w ORDER BY id;
SELECT id, sum(id) OVER (ORDER BY g, id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE NO OTHERS) FROM w ORDER BY id;

SELECT id, sum(i) OVER a, count(*) OVER (a ROWS 1 PRECEDING), max(i) OVER (p ORDER BY id) FROM w WINDOW a AS (ORDER BY id), p AS (PARTITION BY g) ORDER BY id;
SELECT id, sum(i) OVER b FROM w WINDOW a AS (PARTITION BY g), b AS (a ORDER BY id) ORDER BY id;

SELECT g, sum(v), rank() OVER (ORDER BY sum(v) DESC), sum(sum(v)) OVER (), sum(count(*)) OVER (ORDER BY g) FROM w GROUP BY g ORDER BY g;
SELECT g, sum(v) / sum(sum(v)) OVER () > 0.2 AS large FROM w GROUP BY g HAVING count(*) > 1 ORDER BY g;
SELECT DISTINCT g, count(*) OVER (PARTITION BY g) FROM w ORDER BY g;
SELECT id FROM w ORDER BY row_number() OVER (ORDER BY v DESC, id) LIMIT 3;
SELECT id, row_number() OVER (ORDER BY id) AS n FROM w ORDER BY n DESC LIMIT 2;
SELECT * FROM (SELECT id, g, rank() OVER (PARTITION BY g ORDER BY id) AS place FROM w) q WHERE place = 1 AND g >= 'a' ORDER BY id;
SELECT * FROM (SELECT id, g, count(*) OVER () AS n, count(*) OVER (PARTITION BY g) AS m FROM w) q WHERE g = 'b' ORDER BY id;
SELECT q.id, w.id FROM (SELECT id, row_number() OVER (ORDER BY v, id) AS n FROM w) q JOIN w ON w.id = q.n ORDER BY 1;
SELECT id, (SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY o.id) AS n FROM w o WHERE o.id <= w.id) s) FROM w ORDER BY id;
SELECT id, CASE WHEN row_number() OVER (ORDER BY id) > 2 THEN 'later' ELSE 'first' END FROM w ORDER BY id;
SELECT id, sum(i + 1) OVER (ORDER BY id) * 2, -rank() OVER (ORDER BY id) FROM w ORDER BY id;
SELECT row_number() OVER (), 1 AS one FROM w WHERE false;
SELECT 1 AS a, count(*) OVER () UNION ALL SELECT 2, 7 ORDER BY 1;
WITH r AS (SELECT id, rank() OVER (ORDER BY v) AS place FROM w) SELECT a.id, b.id FROM r a JOIN r b ON a.place = b.place AND a.id < b.id;
CREATE VIEW ranked AS SELECT id, rank() OVER (PARTITION BY g ORDER BY v) AS place FROM w;
SELECT * FROM ranked ORDER BY id;

SELECT rank() FROM w;
SELECT sum(rank() OVER ()) FROM w;
SELECT rank() OVER (ORDER BY rank() OVER ()) FROM w;
SELECT id FROM w WHERE rank() OVER () = 1;
SELECT count(*) FROM w HAVING rank() OVER () = 1;
SELECT count(*) FROM w GROUP BY rank() OVER ();
SELECT rank() OVER () FROM w GROUP BY 1;
SELECT w.id FROM w JOIN w o ON rank() OVER () = 1;
SELECT count(DISTINCT i) OVER () FROM w;
SELECT array_agg(i ORDER BY i) OVER () FROM w;
SELECT rank() FILTER (WHERE true) OVER () FROM w;
SELECT lower('a') OVER () FROM w;
SELECT sum(i) OVER missing FROM w;
SELECT sum(i) OVER a FROM w WINDOW a AS (), a AS ();
SELECT sum(i) OVER (a PARTITION BY g) FROM w WINDOW a AS (PARTITION BY g);
SELECT sum(i) OVER (a ORDER BY id) FROM w WINDOW a AS (ORDER BY id);
SELECT sum(i) OVER (a) FROM w WINDOW a AS (ORDER BY id ROWS 1 PRECEDING);
SELECT sum(i) OVER (ORDER BY id ROWS -1 PRECEDING) FROM w;
SELECT sum(i) OVER (ORDER BY id ROWS NULL PRECEDING) FROM w;
SELECT sum(i) OVER (ORDER BY id ROWS i PRECEDING) FROM w;
SELECT sum(i) OVER (RANGE 1 PRECEDING) FROM w;
SELECT sum(i) OVER (ORDER BY i, id RANGE 1 PRECEDING) FROM w;
SELECT sum(i) OVER (ORDER BY g RANGE 1 PRECEDING) FROM w;
SELECT sum(i) OVER (ORDER BY i RANGE -1 PRECEDING) FROM w;
SELECT sum(i) OVER (GROUPS 1 PRECEDING) FROM w;
SELECT ntile(0) OVER () FROM w;
SELECT nth_value(i, 0) OVER () FROM w;
SELECT ntile('x') OVER () FROM w;
SELECT lag() OVER () FROM w;
SELECT lag(i, 1, 'x') OVER () FROM w;
SELECT sum(g) OVER () FROM w;
SELECT id, sum(i) OVER () FROM w GROUP BY g;
UPDATE w SET i = rank() OVER ();
INSERT INTO w (id) VALUES (rank() OVER ());
DROP VIEW ranked;
DROP TABLE w;
CREATE TABLE t (id int, d date, ts timestamp, f float8);
INSERT INTO t VALUES (1, '2020-01-01', '2020-01-01 10:00', 1e308), (2, '2020-01-15', '2020-02-01', 1e308), (3,'2020-03-01','2020-03-01', 1);
SELECT id, count(*) OVER (ORDER BY d + id) FROM t WHERE id > 0;
SELECT id, count(*) OVER (ORDER BY d + id RANGE '1 mon' PRECEDING) FROM t WHERE id > 0;
SELECT id, count(*) OVER (ORDER BY d + id) FROM t;
SELECT id, count(*) OVER (ORDER BY d + (id + 2147483000)) FROM t;
SELECT id, count(*) OVER (PARTITION BY d + id ORDER BY d - id RANGE UNBOUNDED PRECEDING) FROM t WHERE id > 0;
SELECT id, sum(id) OVER (ORDER BY (f/1e300)::int RANGE 1 PRECEDING) FROM t;
SELECT id, sum(id) OVER w, avg(id) OVER w, rank() OVER (w ORDER BY f::numeric / 2 DESC) FROM t WHERE id = 3 WINDOW w AS (PARTITION BY (f/1e300)::int);
SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY random()) AS n FROM t) AS s WHERE n > 2;
SELECT id, row_number() OVER (PARTITION BY EXISTS (SELECT 1 FROM t b WHERE b.d + 1 = t.d + 14) ORDER BY id) FROM t WHERE id > 0;
