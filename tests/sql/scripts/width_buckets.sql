-- width_bucket() between the elements of a sorted array.
SELECT width_bucket(x, ARRAY[1, 5, 10]) FROM (VALUES (0), (1), (4), (5), (9), (10), (11), (NULL)) v(x);
SELECT width_bucket(x, ARRAY[1.5, 5, 10.25]) FROM (VALUES (0.1), (1.5), (10.25), (11)) v(x);
SELECT width_bucket('NaN'::float8, ARRAY[1, 2, 'NaN'::float8]), width_bucket(3, ARRAY[]::int[]), width_bucket(5::int8, ARRAY[1.5, 7]), width_bucket(2.5::float8, ARRAY[1, 2, 3]);
SELECT width_bucket('b'::text, ARRAY['a', 'b', 'c']), width_bucket(date '2020-05-05', ARRAY[date '2020-01-01', '2020-06-01']), width_bucket(now(), ARRAY['yesterday', 'today', 'tomorrow']::timestamptz[]);
SELECT width_bucket(1, ARRAY[1, NULL]);
SELECT width_bucket(1, NULL::int[]), width_bucket(NULL::int, ARRAY[1]);
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(5, 0, 10, 4);
SELECT width_bucket(1, 'a');
SELECT width_bucket(row(1), ARRAY[row(1)]);
SELECT b, count(*) FROM (SELECT width_bucket(n, ARRAY[10, 20, 50]) AS b FROM generate_series(1, 100) AS g(n)) AS x GROUP BY b ORDER BY b;
SELECT id, width_bucket(n, bounds) FROM (VALUES (1, 5, ARRAY[1, 2]), (2, 0, ARRAY[1]), (3, 7, NULL)) AS v(id, n, bounds) ORDER BY id;
