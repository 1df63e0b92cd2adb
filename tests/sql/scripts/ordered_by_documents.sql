-- An order by a column that is a subquery of a type with an order of its own.
CREATE TABLE ones (id int PRIMARY KEY, a int, addr inet);
INSERT INTO ones VALUES (1, 2, '10.0.0.2'), (2, 3, '10.0.0.10');
SELECT id, (SELECT jsonb_agg(b.a ORDER BY b.a) FROM ones b WHERE b.a >= ones.a) AS list FROM ones ORDER BY 2, 1;
SELECT id, (SELECT max(b.addr) FROM ones b) AS last, (SELECT min(b.addr) FROM ones b WHERE b.id = ones.id) FROM ones
  ORDER BY 3 DESC LIMIT 1;
SELECT to_jsonb(a) AS a, count(*) FROM ones GROUP BY 1 ORDER BY 1;
DROP TABLE ones;
