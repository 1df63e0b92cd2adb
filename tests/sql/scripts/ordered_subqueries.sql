-- What aggregates and windows over a subquery with ORDER BY see: its rows in that order, as PostgreSQL hands them on.
CREATE TABLE o (id int PRIMARY KEY, a int, b text);
INSERT INTO o SELECT i, i % 5, 'b' || i % 3 FROM generate_series(1, 20) i;
SELECT json_agg(q)::text FROM (SELECT id, a FROM o WHERE id < 8 ORDER BY a DESC, id) q;
SELECT jsonb_agg(q.id) FROM (SELECT id, a FROM o WHERE id < 8 ORDER BY a DESC, id) q WHERE a > 1;
SELECT json_object_agg(b, id)::text, jsonb_object_agg(b, id) FROM (SELECT b, id FROM o ORDER BY id DESC LIMIT 3) q;
SELECT a, json_agg(id)::text, array_agg(id), string_agg(b, ',') FROM (SELECT * FROM o ORDER BY id DESC) q GROUP BY a ORDER BY a;
SELECT o.id, (SELECT json_agg(q)::text FROM (SELECT x.id, o.b FROM o x WHERE x.a = o.a UNION SELECT 0, o.b ORDER BY 1 DESC) q) FROM o WHERE id < 4 ORDER BY 1;
SELECT json_agg(q.id)::text FROM (SELECT id FROM o ORDER BY b, id DESC OFFSET 15) q;
WITH q AS (SELECT id FROM o WHERE id < 6 ORDER BY id DESC) SELECT json_agg(q)::text FROM q;
SELECT json_agg(id ORDER BY id)::text, json_agg(DISTINCT a)::text FROM (SELECT id, a FROM o WHERE id < 8 ORDER BY a DESC, id) q;
SELECT row_number() OVER (), id FROM (SELECT id FROM o WHERE id < 5 ORDER BY id DESC) q;
SELECT id, first_value(id) OVER (), last_value(id) OVER (), lag(id) OVER () FROM (SELECT id FROM o WHERE id < 5 ORDER BY id DESC) q;
SELECT n, id FROM (SELECT row_number() OVER () AS n, id FROM (SELECT id, a FROM o ORDER BY a DESC, id) q) w WHERE n <= 3;
DROP TABLE o;
