-- Window functions by numbers that are computed: those of ntile and nth_value.
CREATE TABLE w (g text, i int, n int, x text);
INSERT INTO w VALUES ('a', 1, 2, 'p'), ('a', 2, 2, NULL), ('a', 3, 1, 'q'), ('a', 4, 3, 'r'), ('a', 5, NULL, 's'), ('b', 1, 4, 't'), ('b', 2, 4, 'u'), ('b', 3, 1, 'v'), ('c', 1, NULL, 'w'), (NULL, 1, 1, 'x');
SELECT g, i, nth_value(x, n) OVER (PARTITION BY g ORDER BY i) FROM w ORDER BY g, i;
SELECT g, i, nth_value(i, n + 1) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM w ORDER BY g, i;
SELECT g, i, nth_value(x, n) OVER (ORDER BY g, i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM w ORDER BY g, i;
SELECT g, i, nth_value(x, (SELECT 2)) OVER (PARTITION BY g ORDER BY i), ntile((SELECT 2)) OVER (PARTITION BY g ORDER BY i) FROM w ORDER BY g, i;
SELECT g, i, ntile(n) OVER (PARTITION BY g ORDER BY i) FROM w ORDER BY g, i;
SELECT g, i, ntile(n + 2) OVER (PARTITION BY g ORDER BY i) FROM w WHERE g <> 'c' ORDER BY g, i;
SELECT i, ntile(n) OVER (ORDER BY g, i DESC) FROM w WHERE n IS NOT NULL ORDER BY g, i;
SELECT i, ntile(n - 2) OVER (PARTITION BY g ORDER BY i) FROM w;
SELECT i, nth_value(x, n - 1) OVER (PARTITION BY g ORDER BY i) FROM w;
SELECT g, nth_value(x, n) OVER (PARTITION BY g ORDER BY i), ntile(3) OVER (PARTITION BY g ORDER BY i), count(*) OVER (PARTITION BY g) FROM w ORDER BY g, i;
DROP TABLE w;
