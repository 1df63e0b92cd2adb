-- The type that several expressions agree on: UNION, VALUES, CASE, COALESCE, GREATEST, NULLIF, IN, and the errors.
CREATE TABLE c (id int PRIMARY KEY, s int2, i int4, l int8, f float4, d float8, n numeric(10,2), t text, v varchar(5), b char(3), da date, ts timestamp, tz timestamptz, x bool);
INSERT INTO c VALUES (1, 1, 2, 3, 1.5, 2.5, 3.25, 'a', 'b', 'c', '2020-01-01', '2020-01-02 10:00', '2020-01-03 10:00+00', true), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

SELECT 1 UNION SELECT 2.5 ORDER BY 1;
SELECT 1 UNION ALL SELECT '2';
SELECT NULL UNION SELECT 1;
SELECT NULL UNION SELECT NULL UNION SELECT 1;
SELECT 'a' UNION SELECT 1;
SELECT 1 UNION SELECT 'a'::text;
SELECT 1, 2 UNION SELECT 1, true;
SELECT s FROM c UNION SELECT l FROM c;
SELECT i FROM c INTERSECT SELECT f FROM c;
SELECT i FROM c EXCEPT SELECT t FROM c;
SELECT f FROM c UNION SELECT d FROM c;
SELECT v FROM c UNION SELECT b FROM c;
SELECT rtrim(b) FROM c UNION SELECT t FROM c;
SELECT da FROM c UNION SELECT ts FROM c;
SELECT ts FROM c UNION SELECT da FROM c;
SELECT da FROM c UNION SELECT tz FROM c;
SELECT da FROM c UNION SELECT time '10:00';
SELECT da FROM c UNION SELECT interval '1 day';
SELECT 1::oid UNION SELECT 1.5::float8;
SELECT 1::oid UNION SELECT 2;
SELECT '2020-01-01' UNION SELECT da FROM c;
SELECT da FROM c UNION SELECT 'x';
SELECT (SELECT 1) UNION SELECT 'x';
SELECT 1 UNION (SELECT 2 UNION SELECT 3.5) ORDER BY 1;

VALUES (1), (2.5), (NULL);
VALUES (1), ('2');
VALUES (1), ('x');
VALUES (NULL), (NULL);
VALUES (1, 'a'), (2, 3);
VALUES (1), (true);
VALUES ('a'), (1), (2);
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(a, b) ORDER BY a;

SELECT CASE WHEN x THEN 1 ELSE 2.5 END FROM c ORDER BY id;
SELECT CASE WHEN x THEN '1' ELSE i END FROM c ORDER BY id;
SELECT CASE WHEN x THEN i ELSE 'x' END FROM c;
SELECT CASE WHEN x THEN i ELSE t END FROM c;
SELECT CASE WHEN x THEN i WHEN NOT x THEN x END FROM c;
SELECT CASE WHEN x THEN 'a' END FROM c ORDER BY id;
SELECT CASE WHEN x THEN da ELSE ts END FROM c ORDER BY id;
SELECT CASE WHEN x THEN da ELSE time '10:00' END FROM c;
SELECT CASE i WHEN 2 THEN s WHEN 2.0 THEN l END FROM c ORDER BY id;
SELECT CASE i WHEN '2' THEN 'yes' ELSE 'no' END FROM c ORDER BY id;
SELECT CASE i WHEN 'x' THEN 1 END FROM c;
SELECT CASE 1 WHEN true THEN 1 END;
SELECT CASE WHEN 1 THEN 1 END;

SELECT coalesce(i, 'x') FROM c;
SELECT coalesce(i, '7') FROM c ORDER BY id;
SELECT coalesce(s, l), coalesce(s, n), coalesce(n, d), coalesce(f, i) FROM c ORDER BY id;
SELECT coalesce(NULL, NULL), coalesce(NULL, 'a'), coalesce(v, b) , coalesce(b, NULL) FROM c ORDER BY id;
SELECT coalesce(t, 1) FROM c;
SELECT coalesce(1, t) FROM c;
SELECT coalesce(da, tz) FROM c ORDER BY id;
SELECT coalesce(x, 1) FROM c;
SELECT greatest(i, l, n), least(s, d), greatest(1, 2.5, 2), least('b', 'a'), greatest(t, 'z') FROM c ORDER BY id;
SELECT greatest(i, 'x') FROM c;
SELECT greatest(i, x) FROM c;
SELECT least(da, ts) FROM c ORDER BY id;
SELECT greatest(NULL, NULL, 3), least(NULL, NULL);

SELECT nullif(s, i), nullif(i, l), nullif(i, n), nullif(f, d), nullif(da, ts) FROM c ORDER BY id;
SELECT nullif(1, 1), nullif('a', 'b'), nullif(NULL, 1), nullif(1, NULL), nullif(i, '2') FROM c ORDER BY id;
SELECT b = 'c', b LIKE 'c', b LIKE 'c  ', length(b), octet_length(b), concat(b, 1), max(b) FROM c GROUP BY b ORDER BY 1;
SELECT nullif(t, v), nullif(v, t), nullif(b, 'c'), nullif('a', t) FROM c ORDER BY id;
SELECT nullif(1, 'x');
SELECT nullif(1, true);
SELECT nullif(i, t) FROM c;

SELECT i IN (1, 2.5, 2), l IN (3, '3'), t IN ('a', NULL), da IN ('2020-01-01', ts), s IN (1, l) FROM c ORDER BY id;
SELECT '1' IN (1, '1.5');
SELECT 1 IN (2, '1'), '1' IN ('2', '1'), 1 IN (NULL, 2), 1 NOT IN (2, 3), 2.5 IN (1, 2, 5 / 2.0);
SELECT 1 IN (2, 'x');
SELECT 1 IN (2, true);
SELECT i IN ('a') FROM c;
SELECT i IN (t) FROM c;
SELECT da IN ('2020-01-01', timestamp '2020-01-01 00:00') FROM c ORDER BY id;
SELECT b IN ('c', 'd'), v IN ('b', b), t IN (v, b) FROM c ORDER BY id;
SELECT x IN (true, 'false'), i IN (1, 2, 3::int8), d IN (2.5, 3) FROM c ORDER BY id;
SELECT i IN (1, '2020-01-01'::date) FROM c;

DROP TABLE c;

-- What a declared length becomes: kept where all branches agree on it, else unknown to clients; a char's blanks stay.
SELECT n, coalesce(n, n), coalesce(n, 0), CASE WHEN x THEN n ELSE n END, CASE WHEN x THEN n END, n + n FROM c ORDER BY id;
SELECT greatest(n, n), n::numeric(5,1), coalesce(n, 1::numeric(10,2)), coalesce(n, 1::numeric(5,1)) FROM c ORDER BY id;
SELECT sum(n), min(n), avg(n), sum(i) FROM c;
SELECT b, n FROM c UNION ALL SELECT NULL, NULL ORDER BY 1, 2;
SELECT NULL, NULL UNION ALL SELECT b, n FROM c ORDER BY 1, 2;
SELECT u.b || '|' FROM (SELECT b FROM c UNION ALL SELECT NULL) u ORDER BY 1;
SELECT concat(coalesce(b, ''), '|'), concat(CASE WHEN x THEN b ELSE 'no' END, '|') FROM c ORDER BY id;
SELECT id FROM c WHERE coalesce(b, '') = 'c' OR CASE WHEN x THEN b ELSE 'no' END = 'no' ORDER BY id;
