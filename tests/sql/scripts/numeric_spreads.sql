-- Variances and deviations of numerics that are zero show no decimals, as others show those of a quotient; their texts.
CREATE TABLE s (g int, i int, n numeric(8, 2), x numeric);
INSERT INTO s VALUES (1, 4, 1.50, 1.50), (1, 4, 1.50, 1.5), (2, 3, 2.25, 7), (2, 4, -3.00, 9), (3, 1, 0, NULL), (4, NULL, NULL, 2.10);
SELECT variance(i), stddev(n), var_pop(i), stddev_pop(n) FROM s WHERE g = 1;
SELECT g, variance(i), stddev(i), var_pop(i), stddev_pop(i) FROM s GROUP BY g ORDER BY g;
SELECT g, variance(n), stddev(n), var_pop(n), stddev_pop(n) FROM s GROUP BY g ORDER BY g;
SELECT g, variance(x), var_pop(x) FROM s GROUP BY g ORDER BY g;
SELECT g, variance(i) OVER (PARTITION BY g), stddev_pop(n) OVER (ORDER BY g) FROM s ORDER BY g, i;
SELECT g, variance(DISTINCT i), stddev_pop(DISTINCT n) FROM s GROUP BY g ORDER BY g;
SELECT g, var_pop(i)::text, stddev(n) || '', to_json(var_pop(n)), concat(var_pop(i), '|', avg(i)) FROM s GROUP BY g ORDER BY g;
SELECT coalesce(variance(i), 0), greatest(variance(i), 0), CASE WHEN count(*) > 1 THEN variance(i) END, abs(stddev(i)), round(stddev(n), 4) FROM s WHERE g = 1;
SELECT variance(i) FROM s WHERE g = 1 UNION ALL SELECT var_pop(n) FROM s WHERE g = 3;
SELECT max(v), min(v), count(*) FROM (SELECT var_pop(i) AS v FROM s GROUP BY g) q;
SELECT avg(i)::text, (avg(n))::varchar, json_agg(i) FROM s WHERE g = 2;
SELECT (10.0 / 4)::text, (i / 4.0)::text, (-i / 8.0)::text, concat(i / 3.0), to_json(i * 2500.0 / 1) FROM s ORDER BY i, n;
SELECT scale(avg(i)), min_scale(avg(i)), trim_scale(avg(i)), format('%s', avg(i)) FROM s WHERE g = 1;
DROP TABLE s;
