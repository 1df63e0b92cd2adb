-- Variances of doubles far from zero, as milliseconds since 1970 are: of a whole number of rows and of windows.
CREATE TABLE far (o float8, x float8);
INSERT INTO far SELECT w.o, w.o + i FROM (VALUES (0::float8), (-1.7e9), (1.7e9), (1.7e12), (1e13)) w(o), generate_series(1, 700) i WHERE w.o < 1e13 OR i <= 10;
INSERT INTO far VALUES (5, NULL), (6, 'NaN'), (6, 1e12), (7, 'Infinity'), (8, 1e300), (8, 1e300), (9, 2e9), (9, NULL), (10, 1e12), (10, -1e12), (10, 5);
SELECT o, var_samp(x), var_pop(x), stddev(x), stddev_pop(x) FROM far WHERE o < 5 OR o > 10 GROUP BY o ORDER BY o;
SELECT o, var_samp(x), var_pop(x), stddev(x), stddev_pop(x) FROM far WHERE o BETWEEN 5 AND 10 GROUP BY o ORDER BY o;
SELECT var_samp(x) FROM far WHERE o = 1.7e12;
SELECT stddev(x) FILTER (WHERE x > 1.7e12 + 3) FROM far WHERE o = 1.7e12;
SELECT DISTINCT o, var_pop(x) OVER (PARTITION BY o) FROM far WHERE o < 5 OR o > 10 ORDER BY o;
SELECT var_samp(x) FROM far WHERE o = 99;
