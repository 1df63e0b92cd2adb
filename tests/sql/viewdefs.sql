-- Views whose definitions Millstream and PostgreSQL show in the same words. First what they are over.
CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(10, 2), d date, e timestamptz, f bool, v varchar(10), i bigint, x float8, arr int[], ts timestamp, ch char(3));
CREATE TABLE u (a int, t_a int, name text, n smallint, v varchar(5));
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE m (id int, mood mood, "Odd Name" text, "select" int);
CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql IMMUTABLE RETURN n * 2;
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE w (p positive, q positive);
-- views
SELECT * FROM t
SELECT a, b AS label FROM t
SELECT 1 AS one, 'x' AS word, NULL AS nothing, 1.5 AS half, true AS yes
SELECT 1 + 1
SELECT a + 1 AS p, a * 2 + 3 AS q, (a - 1) * 2 AS r, -a AS s, a / 2 % 3 AS u, a - (i - 1) AS v, + a AS w, |/ x AS z FROM t
SELECT a FROM t WHERE b = 'x' AND (c > 1 OR NOT f)
SELECT a FROM t WHERE v = 'x' AND v LIKE 'a%' AND b NOT LIKE '%z' AND b ILIKE 'Q_'
SELECT a FROM t WHERE a IN (1, 2, 3) AND b IN ('x', 'y') AND v NOT IN ('p', 'q')
SELECT a FROM t WHERE a IN (1) OR a NOT IN (2, i) OR c IN (1, 2.5)
SELECT a FROM t WHERE a BETWEEN 1 AND 5 AND d NOT BETWEEN '2020-01-01' AND '2020-12-31' AND a BETWEEN SYMMETRIC 3 AND 1
SELECT a::text, b::varchar(3), c::int AS ci, d::timestamp, '5'::int AS five, 'x'::varchar(2) AS short, v::varchar, c::numeric(5, 1) FROM t
SELECT date '2020-1-5' AS d, timestamp '2020-01-01 5:00' AS ts, timestamptz '2020-01-01 00:00+02' AS tz, interval '1 day 2 hours' AS i, interval '90 minutes' AS j, interval '3' day AS k, time '1:2:3' AS ti, interval '-1 mon 2 days' AS n
SELECT CASE WHEN a > 1 THEN 'many' WHEN a = 1 THEN 'one' END AS count, CASE b WHEN 'x' THEN 1 ELSE 2 END AS n FROM t
SELECT a, CASE WHEN f THEN CASE WHEN a > 0 THEN c ELSE 0 END END + 1 AS nested FROM t WHERE CASE WHEN f THEN true ELSE a > 1 END
SELECT coalesce(b, 'none') AS b, nullif(a, 0) AS a, greatest(a, i, 3) AS g, least(c, 1) AS l, coalesce(c, 0) AS c FROM t
SELECT a FROM t WHERE b IS NULL OR c IS NOT NULL AND f IS TRUE AND f IS NOT FALSE AND f IS UNKNOWN
SELECT a FROM t WHERE b IS DISTINCT FROM 'x' AND a IS NOT DISTINCT FROM 1 AND a IS DISTINCT FROM NULL
SELECT count(*) AS n, sum(a) AS s, avg(c) AS m, min(b), max(v), count(DISTINCT b) AS d FROM t
SELECT b, count(*) FILTER (WHERE a > 1) AS n, array_agg(a ORDER BY a DESC, c) AS list, string_agg(b, ',' ORDER BY a) AS s FROM t GROUP BY b HAVING count(*) > 1 AND sum(a) < 10 ORDER BY b
SELECT b AS k, date_trunc('day', e) AS day, sum(c) AS s FROM t GROUP BY 1, 2 ORDER BY 2 DESC, 1 NULLS FIRST
SELECT lower(b) AS l, count(*) FROM t GROUP BY lower(b), a + 1, f
SELECT b, f, sum(a), grouping(b, f) AS g FROM t GROUP BY GROUPING SETS ((b, f), b, ())
SELECT b, f, v, sum(a) FROM t GROUP BY ROLLUP (b, f), CUBE (v, (b, f))
SELECT b, f, sum(a) FROM t GROUP BY DISTINCT b, ROLLUP (f, b)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS p, mode() WITHIN GROUP (ORDER BY b DESC) AS m, percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY a) AS q FROM t
SELECT a, row_number() OVER (ORDER BY a) AS r, rank() OVER (PARTITION BY b ORDER BY c DESC NULLS LAST) AS k, sum(a) OVER w AS s, lag(a, 1) OVER (w ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS g FROM t WINDOW w AS (PARTITION BY f ORDER BY a)
SELECT a, sum(c) OVER (ORDER BY a ROWS 2 PRECEDING) AS s, avg(c) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND '2 days' FOLLOWING) AS m, count(*) OVER () AS n, first_value(b) OVER (ORDER BY a GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE TIES) AS v, ntile(4) OVER (PARTITION BY b, f) AS q FROM t
SELECT t.a, u.name FROM t JOIN u ON t.a = u.t_a
SELECT x.a, y.name FROM t x LEFT JOIN u y ON x.a = y.t_a AND y.n > 3 WHERE y.name IS NULL
SELECT t.a, one.name, two.name AS other FROM t JOIN u one ON t.a = one.t_a LEFT JOIN u two ON two.a = one.a WHERE t.f
SELECT t.a FROM t CROSS JOIN u, m WHERE t.a = m.id
SELECT t.b, u.name FROM t, u WHERE t.a = u.t_a AND u.n = 2
SELECT * FROM t JOIN u USING (a, v)
SELECT a, u.name FROM t LEFT JOIN u USING (a, v)
SELECT a, m.mood FROM (t RIGHT JOIN u USING (a)) JOIN m ON m.id = a
SELECT a, name FROM t FULL JOIN u USING (a)
SELECT b, name FROM t NATURAL JOIN (SELECT a, name FROM u) AS s
SELECT t.a, s.n FROM t JOIN (SELECT t_a, count(*) AS n FROM u GROUP BY t_a) s ON s.t_a = t.a
SELECT s.k, s.z FROM (SELECT a, b FROM t WHERE a > 1) AS s (k, z)
SELECT t.a, s.name FROM t, LATERAL (SELECT name FROM u WHERE u.t_a = t.a ORDER BY n LIMIT 1) s
SELECT t.a, s.name FROM t LEFT JOIN LATERAL (SELECT u.name FROM u WHERE u.t_a = t.a) s ON true
SELECT a FROM t WHERE a IN (SELECT t_a FROM u WHERE n > 1)
SELECT a FROM t WHERE a NOT IN (SELECT t_a FROM u) AND EXISTS (SELECT 1 FROM u WHERE u.t_a = t.a) AND NOT EXISTS (SELECT * FROM u AS z WHERE z.a = t.a)
SELECT a, (SELECT max(name) FROM u WHERE t_a = t.a) AS top, ARRAY(SELECT n FROM u ORDER BY n) AS ns FROM t WHERE a > ALL (SELECT n FROM u) OR a = ANY (ARRAY[1, 2]) OR (a, b) IN (SELECT t_a, name FROM u)
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t AS inner_t WHERE inner_t.a = t.a + 1) AND a = (SELECT max(a) FROM t)
WITH big AS (SELECT a, b FROM t WHERE a > 10) SELECT big.a, big.b FROM big
WITH one AS MATERIALIZED (SELECT 1 AS x), two (y) AS (SELECT x + 1 FROM one) SELECT one.x, two.y FROM one, two ORDER BY 1
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n
WITH RECURSIVE p AS (SELECT q.n FROM u JOIN q ON u.a = q.n), u AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM u WHERE a < 3), q (n) AS (SELECT a FROM u) SELECT n FROM p
WITH t AS (SELECT a FROM t), x AS (WITH u AS (SELECT a FROM t) SELECT a FROM u) SELECT x.a, u.name FROM x JOIN u ON x.a = u.a
SELECT a, b FROM t UNION SELECT a, name FROM u
SELECT a FROM t UNION ALL SELECT t_a FROM u UNION ALL SELECT id FROM m ORDER BY 1 DESC LIMIT 3
(SELECT a FROM t EXCEPT SELECT t_a FROM u) UNION SELECT id FROM m INTERSECT SELECT 4
SELECT 'x' AS kind, a FROM t UNION ALL SELECT 'y', t_a FROM u
(SELECT a FROM t ORDER BY c LIMIT 1) UNION ALL (SELECT a FROM u ORDER BY n LIMIT 1)
SELECT DISTINCT b, f FROM t
SELECT DISTINCT ON (b) b, a, c FROM t ORDER BY b, a DESC
SELECT a FROM t ORDER BY c DESC, lower(b), a + 1 OFFSET 5 LIMIT 10
SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES
VALUES (1, 'x'), (2, 'y')
SELECT v.k, v.w FROM (VALUES (1, 'a'), (2, 'b')) AS v (k, w)
SELECT g.n, g.n * 2 AS twice FROM generate_series(1, 5) AS g (n)
SELECT n FROM generate_series(1, 3) AS n
SELECT t.a, e.e, e.ordinality FROM t, unnest(arr) WITH ORDINALITY AS e
SELECT extract(year FROM d) AS y, e AT TIME ZONE 'UTC' AS z, substring(b FROM 2 FOR 3) AS s, position('x' IN b) AS p, trim(b) AS m, trim(LEADING 'x' FROM b) AS l, overlay(b PLACING 'q' FROM 1) AS o FROM t
SELECT current_date AS d, current_timestamp AS n, now() AS w, current_user AS u, localtimestamp(2) AS l
SELECT length(b) AS l, upper(b) || '!' AS u, left(b, 2) AS x, round(c, 1) AS r, abs(a) AS s, concat(b, '-', a) AS k, replace(b, 'a', 'b') AS p, to_char(e, 'YYYY') AS y, date_part('hour', e) AS h, md5(b) AS m FROM t
SELECT arr[1] AS f, arr[1:2] AS s, ARRAY[1, 2, 3] AS l, ARRAY['x', b] AS tt, arr || 4 AS more, array_length(arr, 1) AS n, (string_to_array(b, ','))[1] AS p, '{1,2}'::int[] AS c FROM t
SELECT mood, "Odd Name", "select" FROM m WHERE mood = 'sad' AND mood IN ('sad', 'ok') AND "select" > 1
SELECT twice(a) AS two, twice(3) + a AS more FROM t WHERE twice(a) > 4
SELECT b COLLATE "C" AS c FROM t ORDER BY b COLLATE "C"
SELECT e + interval '1 day' AS e, d - 1 AS d, d + 7 AS w, e - '1 hour'::interval AS h, ts > e AS q, d = '2020-01-01' AS z FROM t
SELECT a, i + a AS s, c * a AS p, x + c AS f, a::float8 / 3 AS d, i = a AS q, c > 1 AS g, x > 1 AS h, a = 1.5 AS o FROM t
SELECT 'it''s' AS q, 'back\slash' AS b, E'tab\t' AS t, '' AS e, -5 AS n, 12345678901 AS big, 1e3 AS sci, 123456789012345678901234567890 AS huge
SELECT a FROM t WHERE (a, i) = (1, 2) AND (a, b) <> (3, 'x') AND (a, i) < (5, 6)
SELECT a FROM t WHERE b ~ '^x' AND b !~* 'y' AND b SIMILAR TO 'a%' AND b LIKE 'x!_' ESCAPE '!'
SELECT ch, ch = 'abc' AS q, ch::text AS t, b::char(2) AS two, ch || 'x' AS w FROM t
SELECT p + 1 AS n, p = q AS same, p AS p, abs(q) AS s, coalesce(p, 1) AS c, 3::positive AS three FROM w WHERE p > 2 AND q IN (1, 2)
SELECT bool_and(f) AND bool_or(a > 1) AS b, NOT bool_or(f) AS n, sum(a) > 5 AS s FROM t
SELECT x.a FROM t x JOIN (u y JOIN m z ON y.a = z.id) ON x.a = y.a
SELECT jsonb_build_object('a', a, 'b', b) -> 'a' AS j, ('{"k": 1}'::jsonb) ->> 'k' AS k, to_jsonb(a) AS t, '[1]'::json AS l FROM t
SELECT a, b, c FROM t WHERE NOT (a = 1 OR b = 'x') AND NOT f AND (f OR f AND a = 2 OR c = 1)
SELECT sum(a)::text AS s, (a + 1)::bigint AS i, (b || 'x')::varchar(5) AS v, (NOT f)::text AS n FROM t GROUP BY a, b, f
SELECT a FROM t WHERE f GROUP BY a HAVING max(c) > (SELECT avg(c) FROM t) ORDER BY count(*) DESC
SELECT t.* FROM t JOIN u ON true WHERE u.a = t.a OR u.name = t.b
SELECT regexp_replace(b, 'a', 'b', 'g') AS r, split_part(b, '-', 1) AS s, lpad(b, 5) AS l, random() AS q, int4(c) AS i, text(v) AS t, format('%s-%s', a, b) AS f FROM t
SELECT (SELECT 1) AS one, EXISTS (SELECT 1 FROM u) AS any, (SELECT count(*) FROM u WHERE u.a = t.a) > 1 AS many FROM t
SELECT o.a FROM (SELECT i.a FROM (SELECT t.a, t.b FROM t WHERE t.f) i WHERE i.b = 'z') o
SELECT a AS "Upper", b AS "order", c AS "with space" FROM t
SELECT a, a AS again, s.a AS third FROM (SELECT a FROM t) s
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t WHERE b = 'x')
SELECT s.a, s.a_1 FROM (SELECT t.a, u.a FROM t, u) AS s (a, a_1)
SELECT column1, column2 FROM (VALUES (1, NULL), (2, 'b')) AS v
SELECT s.* FROM (VALUES (1, 2)) AS s
(VALUES (1), (2)) UNION ALL SELECT a FROM t ORDER BY 1
WITH x AS (SELECT a FROM t), t AS (SELECT a FROM x) SELECT t.a FROM t JOIN u ON u.a = t.a
WITH x AS (WITH y AS (SELECT 1 AS n) SELECT n FROM y) SELECT n FROM x UNION SELECT n + 1 FROM x
SELECT s.n, s.k FROM (SELECT count(*) AS n, b AS k FROM t GROUP BY b UNION ALL SELECT 0, 'none') s WHERE s.n > 1
SELECT B'101' AS b, '\x0aff'::bytea AS y, 'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u, '{"a": 1}'::jsonb AS j, '[1,5)'::int4range AS r, '10.0.0.1'::inet AS i, '$1.50'::money AS m, 'on'::bool AS t, '08:00'::time(2) AS c, '1.50'::numeric AS n, '2e5'::float8 AS f
SELECT a FROM t WHERE d > current_date - 7 AND e < now() - interval '1 month 3 days 04:05:06.7' AND ts BETWEEN '2020-01-01' AND '2020-01-02 03:04'
SELECT a, sum(sum(c)) OVER (PARTITION BY b ORDER BY a) AS running FROM t GROUP BY a, b
SELECT CASE WHEN sum(a) > 0 THEN avg(c) / sum(a) ELSE NULL END AS ratio, count(*) * 100.0 / sum(count(*)) OVER () AS share FROM t GROUP BY b ORDER BY CASE WHEN b = 'x' THEN 1 ELSE 2 END, b
SELECT x.a FROM t x, t y, (SELECT 1 AS one) z WHERE x.a = y.a AND y.a = z.one
SELECT a, (SELECT b FROM t AS z WHERE z.a = (SELECT max(y.a) FROM t AS y WHERE y.b = t.b)) AS deep FROM t
SELECT public.t.a, public.u.name FROM public.t, public.u WHERE public.t.a = u.a
SELECT array_agg(DISTINCT b ORDER BY b) FILTER (WHERE b IS NOT NULL) AS l, json_agg(a) AS j, count(DISTINCT (a)) AS c, bool_or(b LIKE 'x%') AS o, every(f) AS e FROM t
SELECT a::smallint::text AS s, (a::text)::varchar(5)::char(2) AS c, d::timestamptz::date AS d, '7'::text::int AS n, 1::bigint AS b, 2.0::float8 AS f, '3'::numeric(5, 2) AS q FROM t
SELECT make_interval(days => 3) AS i
SELECT to_timestamp(0) AS t, age(ts) AS a, ts::date AS d, extract(epoch FROM ts - '2020-01-01') AS s, date_trunc('month', ts)::date AS m FROM t
SELECT t.a FROM t LEFT JOIN (u JOIN m ON u.a = m.id) ON t.a = u.a AND (m.mood = 'ok' OR m.id IS NULL)
SELECT t.a FROM t LEFT JOIN u ON t.a = u.a RIGHT JOIN m ON m.id = u.n WHERE t.a = ANY (t.arr) AND 3 <> ALL (ARRAY[t.a, 1])
SELECT 1 AS a WHERE true
SELECT a AS b, b AS a FROM t ORDER BY a, b
SELECT b AS a, count(*) AS n FROM t GROUP BY t.b, t.v ORDER BY n, t.v
SELECT a IS NULL AS n, NOT a IS NULL AS k, (a = 1) IS TRUE AS t, (a > 1) = f AS e, a > 1 AND f AS z, (a > 1)::int AS c FROM t
SELECT v || b AS x, v || 'y' AS y, lower(v) AS l, v > b AS g, v = ch AS e, length(ch) AS n, max(v) OVER () AS m FROM t
SELECT sum(n) AS s, max(n) AS m, n + 1 AS p, n = 2 AS e, n * 1.5 AS f, coalesce(n, 0) AS c, n::int AS i FROM u GROUP BY n
SELECT upper(substr(b, 1, 1)) AS u, concat_ws(',', b, v) AS c, format('%s', b) AS f, array_to_string(arr, ',') AS a, cardinality(arr) AS n, 2 = ANY (arr) AS h, arr @> ARRAY[1] AS w FROM t
SELECT row_number() OVER (PARTITION BY date_trunc('day', e) ORDER BY e DESC) AS n, lead(a, 2, 0) OVER (ORDER BY a) AS l, cume_dist() OVER (ORDER BY a, b DESC) AS c FROM t
SELECT CAST(a AS numeric) / 3 AS q, CAST(NULL AS date) AS d, CAST('now' AS text) AS n, NULL::int AS i FROM t
SELECT -2147483648 AS a, -9223372036854775808 AS b, 2147483648 AS c, 9223372036854775808 AS d, a / -2147483648 AS e FROM t
SELECT timestamp '2020-01-01 00:00:00.100' AS a, timestamptz '2020-01-01 00:00:00.120+05:30' AS b, time '10:00:00.50' AS c
VALUES (1, NULL), (2, 'x') ORDER BY 2, "*VALUES*".column1
SELECT * FROM (t JOIN u USING (a, v)) AS j
SELECT j.p, j.q FROM (u CROSS JOIN w) AS j (z, y) WHERE j.z > 1
SELECT x.a, name FROM t JOIN u USING (a) AS x
SELECT j.b, j.name, m.id FROM (t x LEFT JOIN u USING (a)) AS j JOIN m ON m.id = j.a
SELECT t.b, s.name AS other, s.a FROM t FULL JOIN u USING (a), u AS s
SELECT i, n FROM t JOIN (SELECT n, n AS i FROM u) s USING (i)
