-- Ranks within a group of what the group has in common.
CREATE TABLE scores (id int PRIMARY KEY, g int, i int, o bool);
INSERT INTO scores SELECT k, k % 3, CASE WHEN k % 5 > 0 THEN k * 2 % 7 END, k % 2 = 0 FROM generate_series(1, 12) k;
SELECT g, rank(g) WITHIN GROUP (ORDER BY id) FROM scores GROUP BY g ORDER BY 1;
SELECT g, rank(g + 4) WITHIN GROUP (ORDER BY id), dense_rank(g, 1) WITHIN GROUP (ORDER BY i, id) FROM scores GROUP BY g ORDER BY 1;
SELECT g, percent_rank(g * 2) WITHIN GROUP (ORDER BY i NULLS FIRST), cume_dist(g) WITHIN GROUP (ORDER BY i DESC) FROM scores GROUP BY g ORDER BY 1;
SELECT i, rank(i) WITHIN GROUP (ORDER BY g), dense_rank(i) WITHIN GROUP (ORDER BY g) FROM scores GROUP BY i ORDER BY 1;
SELECT rank(g) WITHIN GROUP (ORDER BY id) FROM scores;
SELECT rank(g + 1) WITHIN GROUP (ORDER BY id) FROM scores GROUP BY g + 1 ORDER BY 1;
SELECT rank(g + 2) WITHIN GROUP (ORDER BY id) FROM scores GROUP BY g + 1 ORDER BY 1;
SELECT x.id, (SELECT rank(x.id) WITHIN GROUP (ORDER BY y.i) FROM scores y) FROM scores x ORDER BY 1;
SELECT x.id, (SELECT rank(y.g) WITHIN GROUP (ORDER BY y.id) FROM scores y GROUP BY y.g ORDER BY 1 LIMIT 1) FROM scores x ORDER BY 1;
SELECT g, o, rank(g) WITHIN GROUP (ORDER BY id) FROM scores GROUP BY g, ROLLUP (o) ORDER BY 1, 2;
SELECT id, rank(i) WITHIN GROUP (ORDER BY g) FROM scores GROUP BY id ORDER BY 1;
SELECT rank(3, 4) WITHIN GROUP (ORDER BY id) FROM scores;
DROP TABLE scores;
-- Percentiles of intervals.
CREATE TABLE lengths (id int, g int, l interval);
INSERT INTO lengths SELECT k, k % 3, k * interval '1 day 3 hours' FROM generate_series(1, 11) k;
INSERT INTO lengths VALUES (12, 0, NULL), (13, 3, NULL), (14, 1, '2 mons -3 days');
SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY l) FROM lengths GROUP BY g ORDER BY 1;
SELECT percentile_cont(ARRAY[0.1, NULL, 0.9]) WITHIN GROUP (ORDER BY l), percentile_cont(0.3) WITHIN GROUP (ORDER BY l DESC) FILTER (WHERE id <> 3) FROM lengths;
SELECT percentile_cont(0) WITHIN GROUP (ORDER BY l), percentile_cont(1) WITHIN GROUP (ORDER BY l), percentile_cont(NULL) WITHIN GROUP (ORDER BY l) FROM lengths;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY l) FROM lengths WHERE false;
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY l) FROM lengths;
DROP TABLE lengths;
