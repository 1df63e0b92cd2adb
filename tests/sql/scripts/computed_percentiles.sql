-- Percentiles of shares that are computed when the query runs.
CREATE TABLE p (g int, x int, f float8, t text);
INSERT INTO p VALUES (1, 1, 1.5, 'a'), (1, 5, 2.5, 'b'), (1, 9, -1, 'c'), (2, 4, 0, 'd'), (2, NULL, NULL, NULL), (3, NULL, NULL, NULL);
SELECT g, percentile_cont(1.0 / 4) WITHIN GROUP (ORDER BY x), percentile_disc(sqrt(0.25)) WITHIN GROUP (ORDER BY x DESC) FROM p GROUP BY g ORDER BY g;
SELECT percentile_cont((SELECT 0.5)) WITHIN GROUP (ORDER BY f), percentile_disc((SELECT 0.9)) WITHIN GROUP (ORDER BY t) FROM p;
SELECT percentile_cont(ARRAY[0.25, (SELECT 0.5), 1.0 / 3]) WITHIN GROUP (ORDER BY x), percentile_disc(ARRAY[0.25, 0.5 + 0.1]) WITHIN GROUP (ORDER BY t) FROM p;
SELECT percentile_cont((SELECT 0.5)) WITHIN GROUP (ORDER BY x) FILTER (WHERE g < 2), percentile_disc((SELECT 0.5)) WITHIN GROUP (ORDER BY x) FILTER (WHERE g > 3) FROM p;
SELECT percentile_cont((SELECT NULL::float8)) WITHIN GROUP (ORDER BY x), percentile_disc((SELECT 0.0)) WITHIN GROUP (ORDER BY x) FROM p;
SELECT percentile_cont((SELECT 1.5)) WITHIN GROUP (ORDER BY x) FROM p;
SELECT percentile_disc((SELECT -0.25)) WITHIN GROUP (ORDER BY x) FROM p;
PREPARE q(float8) AS SELECT g, percentile_cont($1) WITHIN GROUP (ORDER BY x), percentile_disc($1) WITHIN GROUP (ORDER BY t) FROM p GROUP BY g ORDER BY g;
EXECUTE q(0.5);
EXECUTE q(1);
EXECUTE q(2);
EXECUTE q(NULL);
DEALLOCATE q;
DROP TABLE p;
-- A text in quotes has no type that a result could have.
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY 'b') FROM generate_series(1, 3);
SELECT percentile_disc(ARRAY[0.5, 1]) WITHIN GROUP (ORDER BY NULL) FROM generate_series(1, 3);
SELECT mode() WITHIN GROUP (ORDER BY 'b') FROM generate_series(1, 3);
SELECT mode() WITHIN GROUP (ORDER BY NULL::text) FROM generate_series(1, 3);
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY '2.5') FROM generate_series(1, 3);
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY 'b') FROM generate_series(1, 3);

-- Values that are sorted by keys: the result is a value, and values that compare as equal count together.
CREATE TABLE keyed_percentiles (g integer, j jsonb, v interval, m macaddr, p inet);
INSERT INTO keyed_percentiles VALUES
    (1, '{"a": [2]}', '1 day', '08:00:2b:01:02:03', '10.0.0.1'), (1, '"x"', '1 month', '08:00:2b:01:02:04', NULL),
    (1, '"x"', '1 mon', '08:00:2b:01:02:04', NULL), (2, 'null', NULL, NULL, NULL), (2, '[1, 2]', '2 days', NULL, NULL),
    (3, NULL, NULL, NULL, NULL);
SELECT g, mode() WITHIN GROUP (ORDER BY j), mode() WITHIN GROUP (ORDER BY v), mode() WITHIN GROUP (ORDER BY m)
FROM keyed_percentiles GROUP BY g ORDER BY g;
SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY j), percentile_disc(ARRAY[0, 1]) WITHIN GROUP (ORDER BY j DESC),
    percentile_disc(0.9) WITHIN GROUP (ORDER BY v), percentile_disc(0.1) WITHIN GROUP (ORDER BY m)
FROM keyed_percentiles GROUP BY g ORDER BY g;
SELECT mode() WITHIN GROUP (ORDER BY v) = '1 month' FROM (VALUES (interval '30 days'), ('1 day'), ('1 month')) t(v);
DROP TABLE keyed_percentiles;
