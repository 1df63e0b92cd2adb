-- Aggregates: bits, statistics of pairs, ordered sets, hypothetical rows, over empty groups, NULLs and with FILTER; the errors.
CREATE TABLE a (id int PRIMARY KEY, g text, s int2, i int4, l int8, x float8, y float8, n numeric(10,2), t text, d date, ts timestamp, b bool);
INSERT INTO a VALUES (1, 'a', 12, 10, 7, 1, 2, 1.50, 'x', '2020-01-01', '2020-01-01 10:00', true), (2, 'a', 6, 6, 3, 2, 4.5, 2.50, 'y', '2020-01-02', '2020-01-01 11:00', false), (3, 'a', NULL, 6, NULL, 3, NULL, NULL, 'y', '2020-01-02', NULL, NULL), (4, 'b', -1, -1, -1, 0.1, 0.3, 10, 'z', NULL, '2021-01-01', true), (5, 'b', 5, 1000, 9223372036854775807, 0.2, 0.1, -4, NULL, '2019-01-01', '2020-06-01', true), (6, NULL, 0, 0, 0, NULL, 5, 0, '', '2020-03-03', '2020-01-01', false), (7, 'a', 3, 6, 1, 3.5, 7.25, 2.50, 'x', '2020-01-02', '2020-01-01 10:30', true), (8, 'c', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

SELECT g, bit_and(s), bit_or(i), bit_xor(l), bit_xor(DISTINCT i), bit_and(i) FILTER (WHERE i > 5) FROM a GROUP BY g ORDER BY g;
SELECT bit_and(i), bit_or(s), bit_xor(l) FROM a WHERE false;
SELECT bit_and(n) FROM a;
SELECT bit_or(g) FROM a;
SELECT g, corr(y, x), covar_pop(y, x), covar_samp(y, x), regr_count(y, x), regr_avgx(y, x), regr_avgy(y, x) FROM a GROUP BY g ORDER BY g;
SELECT g, regr_sxx(y, x), regr_syy(y, x), regr_sxy(y, x), regr_slope(y, x), regr_intercept(y, x), regr_r2(y, x) FROM a GROUP BY g ORDER BY g;
SELECT corr(n, i), regr_slope(i, l), regr_count(s, n), covar_pop(1, x) FROM a WHERE id < 5;
SELECT corr(y, x), regr_count(y, x), covar_samp(y, x) FROM a WHERE false;
SELECT corr(x, 1), regr_r2(1, x), regr_slope(1, x), regr_intercept(x, 2) FROM a WHERE id IN (1, 2, 7);
SELECT corr(t, x) FROM a;

SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_cont(0.25) WITHIN GROUP (ORDER BY i), percentile_cont(0.9) WITHIN GROUP (ORDER BY n DESC), percentile_cont(0) WITHIN GROUP (ORDER BY y), percentile_cont(1) WITHIN GROUP (ORDER BY y) FROM a GROUP BY g ORDER BY g;
SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.25) WITHIN GROUP (ORDER BY t), percentile_disc(0.9) WITHIN GROUP (ORDER BY n DESC), percentile_disc(0) WITHIN GROUP (ORDER BY d), percentile_disc(1) WITHIN GROUP (ORDER BY ts DESC) FROM a GROUP BY g ORDER BY g;
SELECT g, mode() WITHIN GROUP (ORDER BY i), mode() WITHIN GROUP (ORDER BY t), mode() WITHIN GROUP (ORDER BY t DESC), mode() WITHIN GROUP (ORDER BY n), mode() WITHIN GROUP (ORDER BY b) FROM a GROUP BY g ORDER BY g;
WITH RECURSIVE g(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM g WHERE v < 100) SELECT percentile_disc(0.07) WITHIN GROUP (ORDER BY v), percentile_disc(0.29) WITHIN GROUP (ORDER BY v), percentile_cont(0.333) WITHIN GROUP (ORDER BY v) FROM g;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE b), mode() WITHIN GROUP (ORDER BY i) FILTER (WHERE id > 1), percentile_disc(NULL) WITHIN GROUP (ORDER BY x) FROM a;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY t) FROM a WHERE false;
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY x) FROM a;
SELECT percentile_disc(-0.5) WITHIN GROUP (ORDER BY x) FROM a;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) FROM a;
SELECT percentile_cont(0.5, x) FROM a;
SELECT mode(x) FROM a;
SELECT sum(x) WITHIN GROUP (ORDER BY y) FROM a;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY sum(x)) FROM a;
SELECT id FROM a WHERE percentile_cont(0.5) WITHIN GROUP (ORDER BY x) > 1;
SELECT mode() WITHIN GROUP (ORDER BY x) OVER () FROM a;
SELECT g FROM a GROUP BY g HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY x) > 1 ORDER BY g;

SELECT g, rank(6) WITHIN GROUP (ORDER BY i), dense_rank(6) WITHIN GROUP (ORDER BY i), percent_rank(6) WITHIN GROUP (ORDER BY i), cume_dist(6) WITHIN GROUP (ORDER BY i) FROM a GROUP BY g ORDER BY g;
SELECT rank(6) WITHIN GROUP (ORDER BY i DESC), dense_rank(6) WITHIN GROUP (ORDER BY i DESC), percent_rank(6.5) WITHIN GROUP (ORDER BY i DESC NULLS LAST), cume_dist('y') WITHIN GROUP (ORDER BY t NULLS FIRST) FROM a;
SELECT rank(NULL) WITHIN GROUP (ORDER BY i), dense_rank(NULL) WITHIN GROUP (ORDER BY i), rank(NULL) WITHIN GROUP (ORDER BY i NULLS FIRST), dense_rank(0) WITHIN GROUP (ORDER BY i NULLS FIRST), cume_dist(NULL) WITHIN GROUP (ORDER BY i) FROM a;
SELECT rank(6, 'x') WITHIN GROUP (ORDER BY i, t), cume_dist(6, 'x') WITHIN GROUP (ORDER BY i, t DESC), percent_rank(6, NULL) WITHIN GROUP (ORDER BY i, t) FROM a;
SELECT rank(1) WITHIN GROUP (ORDER BY x), dense_rank(1) WITHIN GROUP (ORDER BY x), percent_rank(1) WITHIN GROUP (ORDER BY x), cume_dist(1) WITHIN GROUP (ORDER BY x) FROM a WHERE false;
SELECT rank(5) WITHIN GROUP (ORDER BY i) FILTER (WHERE b) FROM a;
SELECT rank('x') WITHIN GROUP (ORDER BY i) FROM a;
SELECT rank(true) WITHIN GROUP (ORDER BY i) FROM a;
SELECT rank(1, 2) WITHIN GROUP (ORDER BY i) FROM a;

SELECT g, string_agg(t, ',' ORDER BY t DESC), string_agg(DISTINCT t, '-'), array_agg(i ORDER BY id), string_agg(t, NULL ORDER BY t), every(b), bool_or(b) FROM a GROUP BY g ORDER BY g;
SELECT stddev(i), stddev_pop(l::int4), variance(x), var_pop(n), stddev(s), var_samp(n) FROM a WHERE id <> 5;
SELECT count(*), count(x), count(DISTINCT t), sum(s), sum(l), avg(n), min(t), max(ts), min(d) FROM a;

DROP TABLE a;
-- Orders by constants, which order nothing.
CREATE TABLE o (id int, t text);
INSERT INTO o VALUES (1, 'a'), (2, NULL), (3, 'c');
SELECT array_agg(id ORDER BY 'x'::text, id DESC), string_agg(t, ',' ORDER BY NULL, id), json_agg(id ORDER BY 2, id) FROM o;
SELECT mode() WITHIN GROUP (ORDER BY 'x'::text), percentile_disc(0.5) WITHIN GROUP (ORDER BY 1.5), string_agg('x', ',' ORDER BY 'y') FROM o;
DROP TABLE o;
