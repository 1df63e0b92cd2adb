-- The decimals of arrays of numerics: cast from declared ones, gathered, and beside NULL.
CREATE TABLE n (i int PRIMARY KEY, a numeric(8, 3)[], b numeric[], c int[], d numeric(6, 1)[][]);
INSERT INTO n VALUES (1, '{1.5,2,NULL}', '{1.50,2}', '{1,2}', '{{1,2.5},{3,4}}'), (2, '{}', '{3.000}', NULL, NULL), (3, NULL, NULL, '{7}', '{{9}}');
SELECT i, a::numeric[], (a::numeric[])[1], c::numeric[], d::numeric[], (d::numeric[])[2][1] FROM n ORDER BY i;
SELECT i, a::numeric[] || b, b || a::numeric[], b || NULL::numeric[], NULL::numeric[] || b, ARRAY[1.5] || NULL::numeric[] FROM n ORDER BY i;
SELECT i, x FROM n, unnest(a::numeric[]) x ORDER BY i, x;
SELECT sum(x) FROM n, unnest(a::numeric[]) x;
SELECT array_agg(b ORDER BY i) FROM n WHERE i = 1;
SELECT (array_agg(b ORDER BY i))[1][2] FROM n WHERE i = 1;
SELECT array_agg(x ORDER BY x) FROM (VALUES (ARRAY[1.50, 2.0]), (ARRAY[3.0, 4.000])) v(x);
SELECT (array_agg(x ORDER BY x))[2][2] FROM (VALUES (ARRAY[1.50, 2.0]), (ARRAY[3.0, 4.000])) v(x);
SELECT i % 2, array_agg(a::numeric[]) FROM n WHERE i = 1 GROUP BY i % 2;
CREATE TABLE m AS SELECT i, a::numeric[] AS a FROM n;
SELECT i, a FROM m ORDER BY i;
DROP TABLE m, n;
