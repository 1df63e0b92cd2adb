-- Windows whose frames are distances and groups, and aggregates over them; variances.
CREATE TABLE framed (id int, g text, i int, v numeric(8,2), u numeric, f float8, r real, l bigint, s smallint, d date, ts timestamp, z timestamptz, by bytea);
INSERT INTO framed VALUES
(1,'a',1,1.5,1.1,1.5,1.5,9223372036854775807,1,'2024-01-01','2024-01-01 00:00','2024-01-01 00:00+00','\x01'),
(2,'a',2,2.5,1.2,'NaN',2.5,9223372036854775806,2,'2024-01-02','2024-01-01 01:00','2024-01-01 01:00+00','\x02'),
(3,'b',2,2.5,1.3,'Infinity',2.5,1,32767,'2024-01-02','2024-01-01 01:30','2024-01-01 01:30+00',NULL),
(4,'b',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'\x'),
(5,'c',5,4.0,2.0,2.0,2.0,-9223372036854775808,-32768,'2024-01-05','2024-01-02 00:00','2024-01-02 00:00+00','\x03'),
(6,'c',7,9.25,3.3,'-Infinity',3,5,7,'2024-02-05','2024-01-09 00:00','2024-01-09 00:00+00','\x04'),
(7,NULL,7,9.25,3.3,3.0,3,5,7,'2024-03-05','2024-01-09 00:00','2024-01-09 00:00+00','\x04');
SELECT id, count(*) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW), sum(i) OVER (ORDER BY i DESC RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING), count(*) OVER (ORDER BY i NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING), count(*) OVER (ORDER BY i RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) FROM framed ORDER BY id;
SELECT id, count(*) OVER (ORDER BY v RANGE BETWEEN 1.5 PRECEDING AND 1 FOLLOWING), avg(v) OVER (ORDER BY v RANGE BETWEEN 1.555 PRECEDING AND 1 PRECEDING), count(*) OVER (PARTITION BY g ORDER BY v DESC RANGE 100 PRECEDING) FROM framed ORDER BY id;
SELECT id, count(*) OVER (ORDER BY f RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY f RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY f DESC RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) FROM framed ORDER BY id;
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '2 days' PRECEDING AND CURRENT ROW), count(*) OVER (ORDER BY d RANGE BETWEEN '25 hours' PRECEDING AND '24 hours' FOLLOWING) FROM framed ORDER BY id;
SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND INTERVAL '30 minutes' FOLLOWING), count(*) OVER (ORDER BY z DESC RANGE BETWEEN INTERVAL '1 day' PRECEDING AND INTERVAL '0' FOLLOWING) FROM framed ORDER BY id;
SELECT id, count(*) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW), sum(id) OVER (ORDER BY g GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING), max(v) OVER (PARTITION BY i > 3 ORDER BY g DESC GROUPS 1 PRECEDING), count(*) OVER (ORDER BY i, g GROUPS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING), count(*) OVER (GROUPS CURRENT ROW) FROM framed ORDER BY id;
SELECT id, array_agg(i) OVER (ORDER BY id ROWS 1 PRECEDING), string_agg(g, ',') OVER (ORDER BY id), string_agg(g, i::text) OVER (ORDER BY id), array_agg(g) OVER (PARTITION BY i ORDER BY id), string_agg(by, by) OVER (ORDER BY id) FROM framed ORDER BY id;
SELECT id, array_agg(i) FILTER (WHERE i > 100) OVER (ORDER BY id), string_agg(g, '-') FILTER (WHERE i > 100) OVER (ORDER BY id) FROM framed ORDER BY id;
SELECT id, variance(r) OVER (ORDER BY id ROWS 3 PRECEDING), corr(i, id) OVER (ORDER BY id), bit_xor(i) OVER (ORDER BY id), max(i > 2) OVER () FROM framed ORDER BY id;
SELECT id, corr(i, id) OVER (ORDER BY id), regr_slope(i, id) OVER (PARTITION BY g), bit_xor(i) OVER (ORDER BY id), bool_or(i > 2) OVER (ORDER BY id) FROM framed ORDER BY id;
SELECT ntile(0) OVER () FROM framed;
SELECT nth_value(i, 0) OVER () FROM framed;
SELECT id, sum(i) OVER (ORDER BY i RANGE BETWEEN -1 PRECEDING AND CURRENT ROW) FROM framed;
SELECT id, var_pop(i) OVER (ORDER BY id), stddev(v) OVER (ORDER BY id), var_samp(i) OVER (ORDER BY g GROUPS 1 PRECEDING) FROM framed ORDER BY id;
SELECT var_pop(i), stddev(v), stddev_pop(s), variance(u), var_samp(DISTINCT i), stddev(DISTINCT v), stddev(i) FILTER (WHERE id > 2) FROM framed;
SELECT g, var_pop(i), stddev(v), stddev_pop(s), count(*), sum(v), avg(i), variance(u) FROM framed GROUP BY g ORDER BY g;
SELECT g, var_pop(i) + 1, count(*) FROM framed GROUP BY ROLLUP (g) HAVING count(*) > 1 ORDER BY 1, 3;
SELECT var_pop(i), stddev(v) FROM framed WHERE false;
SELECT id, lag(i, NULL) OVER (ORDER BY id), ntile(NULL) OVER (ORDER BY id), nth_value(i, NULL) OVER (ORDER BY id) FROM framed ORDER BY id;
DROP TABLE framed;
-- distances that leave the type's range
SELECT x, last_value(x) OVER (ORDER BY x RANGE BETWEEN CURRENT ROW AND 4 FOLLOWING) FROM generate_series(2147483644, 2147483646) x ORDER BY x;
SELECT x, last_value(x) OVER (ORDER BY x::smallint RANGE BETWEEN CURRENT ROW AND 2147450884 FOLLOWING) FROM generate_series(32764, 32766) x ORDER BY x;
SELECT x, last_value(x) OVER (ORDER BY x DESC RANGE BETWEEN CURRENT ROW AND 5 FOLLOWING) FROM generate_series(-9223372036854775806, -9223372036854775804) x ORDER BY x;
SELECT x, first_value(x) OVER (ORDER BY x RANGE 9223372036854775807 PRECEDING) FROM (VALUES (1), (-2), (NULL)) v (x) ORDER BY x;
SELECT var_pop('inf'::float8), var_samp('inf'::float8), stddev_pop('nan'::float4), var_pop(3.0::float8), var_pop(NULL::float8);
SELECT x, var_pop(x) OVER (ORDER BY x ROWS CURRENT ROW) FROM (VALUES (1::float8), ('inf'), (2)) v (x) ORDER BY x;
-- Numbers of rows that are no integers, and what a window that is copied must not have.
CREATE TABLE f (id int, g int);
INSERT INTO f SELECT k, k % 3 FROM generate_series(1, 5) k;
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1.5 PRECEDING AND 0.4 FOLLOWING) FROM f ORDER BY id;
SELECT sum(id) OVER (w) FROM f WINDOW w AS (ORDER BY g ROWS 1 PRECEDING);
DROP TABLE f;
