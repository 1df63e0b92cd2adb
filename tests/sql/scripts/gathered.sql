-- Aggregates over all values of a group: lists, ordered sets, statistics of pairs, documents.
CREATE TABLE ag (id int, g int, s smallint, i int, l bigint, r real, x float8, y float8, n numeric(10,2), u numeric, b bool, t text, c varchar(5), d date, ts timestamp, z timestamptz, by bytea, uu uuid, a int[]);
INSERT INTO ag VALUES
 (1, 1, 5, 10, 100, 1.5, 1.5, 2.5, 10.25, 1.5, true, 'b', 'x', '2024-01-01', '2024-01-01 10:00', '2024-01-01 10:00+00', '\x01ff', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{1,2}'),
 (2, 1, 5, 20, 100, 2.25, 2.5, 3.5, 10.25, 2.5, false, 'a', 'y', '2024-01-02', '2024-01-02 10:00', '2024-01-02 10:00+00', '\x01', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{1,NULL}'),
 (3, 1, 7, NULL, -5, NULL, 'NaN', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (4, 2, 7, 7, 9223372036854775807, 3.125, 0.1, 0.2, -3.50, 0.001, true, 'ä', 'z', '1999-12-31', '1999-12-31', '1999-12-31 00:00+00', '\x', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{}'),
 (5, 2, 7, 7, 5, 3.125, 0.3, 0.4, 4.50, 0.001, true, 'ä', 'z', '1999-12-31', '1999-12-31', '1999-12-31 00:00+00', '\x00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{3}'),
 (6, 2, NULL, 9, 6, -1, 0.7, NULL, 4.50, 0.002, NULL, 'B', 'Z', '2000-12-31', '2000-12-31', '2000-12-31 00:00+00', '\x05', NULL, '{3}'),
 (7, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT g, sum(r), avg(r), sum(DISTINCT r), avg(DISTINCT r) FROM ag GROUP BY g ORDER BY g;
SELECT sum(r), avg(r) FROM ag WHERE false;
SELECT g, min(b::int), bool_and(DISTINCT b), bool_or(DISTINCT b), bit_and(DISTINCT i), bit_or(DISTINCT s), bit_xor(DISTINCT s), bit_xor(s), every(DISTINCT b) FROM ag GROUP BY g ORDER BY g;
SELECT g, corr(y, x), covar_pop(y, x), covar_samp(y, x), regr_count(y, x), regr_avgx(y, x), regr_avgy(y, x) FROM ag WHERE id <> 3 GROUP BY g ORDER BY g;
SELECT g, regr_sxx(y, x), regr_syy(y, x), regr_sxy(y, x), regr_slope(y, x), regr_intercept(y, x), regr_r2(y, x) FROM ag WHERE id <> 3 GROUP BY g ORDER BY g;
SELECT corr(y, x), regr_r2(y, x) FROM ag;
SELECT corr(y, x), regr_r2(y, x), covar_samp(y, x), regr_sxx(y, x), regr_avgx(y, x) FROM ag WHERE id = 1;
SELECT corr(y, x), regr_r2(y, x), covar_samp(y, x), regr_sxx(y, x), regr_avgx(y, x) FROM ag WHERE id = 7;
SELECT corr(y, x) FILTER (WHERE id < 3), regr_slope(y, x) FILTER (WHERE id > 3) FROM ag;
SELECT g, string_agg(t, c ORDER BY id), string_agg(t, NULL ORDER BY id DESC), string_agg(t, g::text ORDER BY t) FROM ag GROUP BY g ORDER BY g;
SELECT g, string_agg(by, '\xff' ORDER BY id), string_agg(by, NULL ORDER BY id DESC), string_agg(by, by ORDER BY by) FROM ag GROUP BY g ORDER BY g;
SELECT string_agg(t, c), string_agg(by, by) FROM ag WHERE id = 7;
SELECT string_agg(t, c ORDER BY id) FILTER (WHERE id > 3) FROM ag;
SELECT g, array_agg(DISTINCT i), array_agg(DISTINCT b), array_agg(DISTINCT t), array_agg(DISTINCT n), array_agg(DISTINCT d), array_agg(DISTINCT x) FROM ag GROUP BY g ORDER BY g;
SELECT g, array_agg(DISTINCT i ORDER BY i DESC), array_agg(DISTINCT t ORDER BY t NULLS FIRST), array_agg(DISTINCT i) FILTER (WHERE id > 4) FROM ag GROUP BY g ORDER BY g;
SELECT array_agg(DISTINCT i), array_agg(DISTINCT i ORDER BY i DESC NULLS LAST), count(DISTINCT i), sum(DISTINCT i) FROM ag;
SELECT array_agg(DISTINCT i) FROM ag WHERE false;
SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY t), percentile_disc(0.25) WITHIN GROUP (ORDER BY n DESC), percentile_disc(0) WITHIN GROUP (ORDER BY d), percentile_disc(1) WITHIN GROUP (ORDER BY ts), percentile_disc(0.7) WITHIN GROUP (ORDER BY l), percentile_disc(0.3) WITHIN GROUP (ORDER BY b), percentile_disc(0.5) WITHIN GROUP (ORDER BY z), percentile_disc(0.5) WITHIN GROUP (ORDER BY by), percentile_disc(0.5) WITHIN GROUP (ORDER BY uu) FROM ag GROUP BY g ORDER BY g;
SELECT percentile_disc(NULL) WITHIN GROUP (ORDER BY x), percentile_cont(NULL) WITHIN GROUP (ORDER BY x) FROM ag;
SELECT percentile_disc(1.5) WITHIN GROUP (ORDER BY t) FROM ag;
SELECT percentile_cont(-0.1) WITHIN GROUP (ORDER BY x) FROM ag;
SELECT g, mode() WITHIN GROUP (ORDER BY i), mode() WITHIN GROUP (ORDER BY t), mode() WITHIN GROUP (ORDER BY t DESC), mode() WITHIN GROUP (ORDER BY n), mode() WITHIN GROUP (ORDER BY b), mode() WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY z), mode() WITHIN GROUP (ORDER BY uu), mode() WITHIN GROUP (ORDER BY c) FROM ag GROUP BY g ORDER BY g;
SELECT mode() WITHIN GROUP (ORDER BY t), percentile_disc(0.5) WITHIN GROUP (ORDER BY t) FROM ag WHERE false;
SELECT mode() WITHIN GROUP (ORDER BY t) FILTER (WHERE id > 3), percentile_disc(0.5) WITHIN GROUP (ORDER BY t DESC) FILTER (WHERE id < 3) FROM ag;
SELECT g, rank(6) WITHIN GROUP (ORDER BY s), dense_rank(6) WITHIN GROUP (ORDER BY s DESC), percent_rank(6) WITHIN GROUP (ORDER BY s), cume_dist('a', 5) WITHIN GROUP (ORDER BY t, s) FROM ag GROUP BY g ORDER BY g;
SELECT stddev(x), stddev(DISTINCT y), var_pop(y), variance(r) FROM ag WHERE id <> 3;
SELECT sum(CASE WHEN id < 3 THEN '3e38'::real END) FROM ag;
CREATE TABLE intervals (id int, g int, v interval, m time, j jsonb, t json);
INSERT INTO intervals VALUES (1, 1, '1 day', '10:00', '{"a": 1}', '[1, 2]'), (2, 1, '1 mon -2 days 03:00', '09:30', '[1,2]', '{"b":1}'), (3, 2, '-1 day', '23:00', '"x"', 'null'), (4, 2, NULL, NULL, NULL, NULL), (5, 3, NULL, NULL, NULL, NULL), (6, 2, '36:00:00', '00:00', '1.0', '1');
SELECT g, sum(v), avg(v), min(m), max(m), count(v) FROM intervals GROUP BY g ORDER BY g;
SELECT sum(v), avg(v) FILTER (WHERE id < 3) FROM intervals;
SELECT sum(v), avg(v) FROM intervals WHERE false;
SELECT id, sum(v) OVER (ORDER BY id), avg(v) OVER (ORDER BY id) FROM intervals ORDER BY id;
SELECT array_agg(v ORDER BY id), array_agg(m ORDER BY m), array_agg(v ORDER BY v, id) FROM intervals;
SELECT g, json_agg(id ORDER BY id)::text, jsonb_agg(j ORDER BY id)::text, json_agg(t ORDER BY id DESC)::text, json_agg(id) FILTER (WHERE id > 9) FROM intervals GROUP BY g ORDER BY g;
SELECT json_agg(q ORDER BY id)::text FROM (SELECT id, j, v::text FROM intervals) q;
SELECT json_agg(id)::text, jsonb_agg(id)::text FROM intervals WHERE false;
SELECT id, j FROM intervals ORDER BY j, id;
SELECT id, rank() OVER (ORDER BY j DESC) FROM intervals ORDER BY id;
SELECT mode() WITHIN GROUP (ORDER BY m) FROM intervals;
SELECT j, count(*) FROM intervals GROUP BY j ORDER BY j;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY m) FROM intervals;
SELECT string_agg(id::text, ',' ORDER BY j) FROM intervals WHERE j IS NOT NULL;
SELECT g, json_agg(DISTINCT i)::text, jsonb_agg(DISTINCT t)::text, json_agg(DISTINCT n ORDER BY n DESC)::text, jsonb_agg(DISTINCT d ORDER BY d NULLS FIRST)::text, json_agg(DISTINCT c) FILTER (WHERE id > 4) FROM ag GROUP BY g ORDER BY g;
SELECT json_agg(DISTINCT b)::text, jsonb_agg(DISTINCT ts)::text, json_agg(DISTINCT z)::text, json_agg(DISTINCT s * 2 ORDER BY s * 2)::text, jsonb_agg(DISTINCT r)::text, json_agg(DISTINCT uu)::text, json_agg(DISTINCT x)::text FROM ag;
SELECT json_agg(DISTINCT i), jsonb_agg(DISTINCT i) FROM ag WHERE false;
SELECT json_agg(DISTINCT i ORDER BY t) FROM ag;
SELECT pg_typeof(json_agg(DISTINCT i)), pg_typeof(jsonb_agg(DISTINCT i)) FROM ag;
SELECT g, percentile_cont(ARRAY[0, 0.25, 0.5, 1]) WITHIN GROUP (ORDER BY i), percentile_disc(ARRAY[0.5, NULL, 0.9]) WITHIN GROUP (ORDER BY t), percentile_disc('{0.1,0.7}'::float8[]) WITHIN GROUP (ORDER BY n DESC), percentile_cont(ARRAY[]::float8[]) WITHIN GROUP (ORDER BY i), percentile_cont(NULL::float8[]) WITHIN GROUP (ORDER BY i) FROM ag GROUP BY g ORDER BY g;
SELECT percentile_cont(ARRAY[0.5]) WITHIN GROUP (ORDER BY i) FROM ag WHERE false;
SELECT percentile_cont(ARRAY[0.5]) WITHIN GROUP (ORDER BY i) FILTER (WHERE id > 3), (percentile_disc(ARRAY[0.5, 0.1]) WITHIN GROUP (ORDER BY d))[2] FROM ag;
SELECT percentile_cont(ARRAY[0.5, 1.5]) WITHIN GROUP (ORDER BY i) FROM ag;
SELECT dense_rank(3, 'b') WITHIN GROUP (ORDER BY i, t DESC), dense_rank(2, 1.5) WITHIN GROUP (ORDER BY i DESC, n), dense_rank(NULL, 'b') WITHIN GROUP (ORDER BY i, t), dense_rank(99, 'z') WITHIN GROUP (ORDER BY i NULLS FIRST, t) FROM ag;
SELECT g, dense_rank(2, 'a', 5) WITHIN GROUP (ORDER BY i, t, id), dense_rank(2, 'a') WITHIN GROUP (ORDER BY i, t) FILTER (WHERE id < 9) FROM ag GROUP BY g ORDER BY g;
SELECT dense_rank(1, 'a') WITHIN GROUP (ORDER BY i, t) FROM ag WHERE false;
DROP TABLE ag;
DROP TABLE intervals;
