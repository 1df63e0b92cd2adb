-- Windows parted and ordered by subqueries that have windows themselves.
CREATE TABLE windows_within (id int, g int);
INSERT INTO windows_within VALUES (1, 1), (2, 1), (3, 2), (4, NULL);
SELECT id, count(*) OVER (PARTITION BY (SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY u.id) FROM windows_within u) q)) AS c FROM windows_within ORDER BY id;
SELECT id, rank() OVER (ORDER BY (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY u.id) AS r FROM windows_within u WHERE u.g = t.g) q)) AS c FROM windows_within t ORDER BY id;
SELECT id, sum(id) OVER (PARTITION BY (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY u.g) AS r FROM windows_within u WHERE u.id <= t.id) q) ORDER BY (SELECT count(*) FROM windows_within u WHERE u.id > t.id)) AS c FROM windows_within t ORDER BY id;
SELECT DISTINCT ON ((SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY u.id) AS r FROM windows_within u WHERE u.g = t.g) q)) g FROM windows_within t ORDER BY (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY u.id) AS r FROM windows_within u WHERE u.g = t.g) q), id;
SELECT id FROM windows_within t ORDER BY (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY u.id) AS r FROM windows_within u WHERE u.g = t.g) q) NULLS FIRST FETCH FIRST 2 ROWS WITH TIES;
SELECT g, rank() OVER (ORDER BY (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY u.id) AS r FROM windows_within u WHERE u.id <= count(*)) q)) AS c FROM windows_within GROUP BY g ORDER BY g;
DROP TABLE windows_within;
