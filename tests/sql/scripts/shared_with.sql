-- WITH queries that are read more than once: computed once, and the same rows as if they were not.
CREATE TABLE sold (shop int, day int, amount numeric(9,2), label text);
INSERT INTO sold SELECT i % 5, i % 17, i * 1.25, 'l' || i % 3 FROM generate_series(1, 200) AS g(i);
INSERT INTO sold VALUES (NULL, NULL, NULL, NULL), (9, 1, 5, 'l1');
-- Twice in one FROM, with other names and filters.
WITH by_shop AS (SELECT shop, sum(amount) AS total, count(*) AS n FROM sold GROUP BY shop)
SELECT a.shop, b.shop, a.total, b.n FROM by_shop a JOIN by_shop b ON a.shop = b.shop + 1 WHERE b.n > 1 ORDER BY 1;
-- In FROM and in subqueries, correlated and not.
WITH by_shop AS (SELECT shop, sum(amount) AS total FROM sold GROUP BY shop)
SELECT shop, total, (SELECT max(total) FROM by_shop), (SELECT count(*) FROM by_shop x WHERE x.total < y.total)
FROM by_shop y WHERE total > (SELECT avg(total) FROM by_shop) ORDER BY shop;
-- One reads another, which is read twice itself.
WITH a AS (SELECT shop, day, sum(amount) AS s FROM sold GROUP BY shop, day),
     b (shop, top) AS (SELECT shop, max(s) FROM a GROUP BY shop)
SELECT a.shop, a.day, a.s FROM a JOIN b ON a.shop = b.shop AND a.s = b.top
WHERE a.shop IN (SELECT shop FROM b WHERE top > 100) ORDER BY 1, 2;
-- Outer joins make its columns nullable, set operations take both sides of it.
WITH a AS (SELECT shop, count(*) AS n FROM sold WHERE amount > 100 GROUP BY shop)
SELECT x.shop, y.n FROM a x LEFT JOIN a y ON y.shop = x.shop + 3 ORDER BY 1 NULLS LAST;
WITH a AS (SELECT DISTINCT label FROM sold) SELECT label FROM a EXCEPT SELECT label FROM a WHERE label <> 'l1' ORDER BY 1;
WITH a AS (SELECT shop, amount FROM sold ORDER BY amount DESC LIMIT 3) SELECT count(*), max(x.amount) FROM a x, a y;
-- Names within names: the nearest one counts.
WITH a AS (SELECT count(*) AS n FROM sold)
SELECT (WITH a AS (SELECT max(day) AS n FROM sold) SELECT x.n + y.n FROM a x, a y), x.n, y.n FROM a x, a y;
SELECT shop, (WITH own AS (SELECT max(amount) AS m FROM sold i WHERE i.shop = o.shop) SELECT x.m + y.m FROM own x, own y)
FROM sold o WHERE day = 3 AND amount < 100 ORDER BY 1;
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5)
SELECT a.n, b.n FROM r a JOIN r b ON a.n = b.n * 2 ORDER BY 1;
-- As the user says.
WITH a AS MATERIALIZED (SELECT shop, day FROM sold WHERE day < 3) SELECT count(*) FROM a WHERE shop = 2;
WITH a AS NOT MATERIALIZED (SELECT shop, max(day) AS d FROM sold GROUP BY shop)
SELECT count(*) FROM a x JOIN a y USING (d) WHERE x.shop = 2;
WITH a AS MATERIALIZED (SELECT 1 / (shop - shop) AS e FROM sold) SELECT count(*) FROM sold;
-- Where statements hold queries.
CREATE TABLE best AS WITH a AS (SELECT shop, sum(amount) AS s FROM sold GROUP BY shop) SELECT x.shop, x.s FROM a x, a y WHERE x.s > y.s AND y.shop = 1;
INSERT INTO best WITH a AS (SELECT shop, sum(amount) AS s FROM sold GROUP BY shop) SELECT x.shop, y.s FROM a x JOIN a y USING (shop) WHERE shop = 9;
SELECT * FROM best ORDER BY shop, s;
CREATE VIEW twice AS WITH a AS (SELECT shop, sum(amount) AS s FROM sold GROUP BY shop) SELECT x.shop, y.s FROM a x JOIN a y USING (shop);
SELECT v.shop, w.s FROM twice v JOIN twice w USING (shop) ORDER BY 1;
PREPARE q (int) AS WITH a AS (SELECT shop, sum(amount) AS s FROM sold WHERE day > $1 GROUP BY shop) SELECT x.shop, x.s - y.s FROM a x JOIN a y USING (shop) WHERE shop < $1 ORDER BY 1;
EXECUTE q (3);
EXECUTE q (2);
