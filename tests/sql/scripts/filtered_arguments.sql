-- FILTER decides which rows an aggregate's arguments are computed of
CREATE TABLE of_zero (k int, x int);
INSERT INTO of_zero SELECT i % 2, i FROM generate_series(0, 5) i;
SELECT sum(6 / x) FILTER (WHERE x > 0) FROM of_zero;
SELECT k, sum(6 / x) FILTER (WHERE x > 0), count(*) FROM of_zero GROUP BY k;
SELECT x, sum(6 / x) FILTER (WHERE x > 0) OVER (ORDER BY x) FROM of_zero;
SELECT array_agg(DISTINCT 6 / x ORDER BY 6 / x) FILTER (WHERE x > 0) FROM of_zero;
SELECT string_agg((6 / x)::text, ',' ORDER BY x) FILTER (WHERE x > 0) FROM of_zero;
SELECT string_agg(x::text, ',' ORDER BY 6 / x, x) FILTER (WHERE x > 0) FROM of_zero;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY 6 / x) FILTER (WHERE x > 0) FROM of_zero;
SELECT count(6 / x) FILTER (WHERE x > 0), avg(6.0 / x) FILTER (WHERE x > 1), max(6 / x) FILTER (WHERE false) FROM of_zero;
SELECT sum(6 / x) FILTER (WHERE x >= 0) FROM of_zero;
SELECT max(t::int) FILTER (WHERE t ~ '^[0-9]+$') FROM (VALUES ('7'), ('no'), ('12')) v (t);
SELECT sum(x) FILTER (WHERE x > 0 AND 6 / x > 1), count(*) FILTER (WHERE x <> 0 AND 6 / x > 1 AND 1 / (x - 6) < 1) FROM of_zero;
SELECT json_object_agg(nullif(x, 0), x) FILTER (WHERE x > 0), jsonb_object_agg(nullif(x, 0), x) FILTER (WHERE x > 3) FROM of_zero;
SELECT json_object_agg(nullif(x, 0), x) FILTER (WHERE x >= 0) FROM of_zero;
SELECT json_object_agg(nullif(x, 0), x) FILTER (WHERE x > 0) OVER (ORDER BY x) FROM of_zero;
SELECT sum(6 / x) FILTER (WHERE EXISTS (SELECT FROM of_zero o WHERE o.x = of_zero.x AND o.x > 0)) FROM of_zero;
SELECT sum(6 / x) FILTER (WHERE x IN (SELECT o.x FROM of_zero o WHERE o.x > 2) AND 6 / x > 1) FROM of_zero;
SELECT k, json_object_agg(CASE WHEN x > 0 THEN 'a' END, x) FILTER (WHERE x > 0) FROM of_zero GROUP BY k ORDER BY k;
-- HAVING alone is of one row, of which WHERE says nothing
SELECT 1 FROM of_zero WHERE 1 / x = 1 HAVING 1 < 2;
SELECT 1 FROM of_zero WHERE false HAVING 1 < 2;
SELECT 1 FROM of_zero HAVING 1 > 2;
SELECT count(*) FROM of_zero WHERE x > 1 HAVING 1 < 2;
