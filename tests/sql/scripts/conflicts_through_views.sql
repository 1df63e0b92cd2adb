-- INSERT ... ON CONFLICT into views whose rows are a table's.
CREATE TABLE kept (id int PRIMARY KEY, name text UNIQUE, amount int DEFAULT 7, hidden text DEFAULT 'h', UNIQUE (amount, hidden));
CREATE VIEW shown AS SELECT name AS title, id AS number, amount * 2 AS twice, amount FROM kept WHERE id > 0;
CREATE VIEW above AS SELECT number AS n, title AS t, twice FROM shown WHERE number < 100;
INSERT INTO shown (number, title) VALUES (1, 'a'), (2, 'b') ON CONFLICT DO NOTHING;
INSERT INTO shown (number, title) VALUES (1, 'c'), (3, 'd') ON CONFLICT (number) DO NOTHING RETURNING *;
INSERT INTO shown (number, title) VALUES (1, 'c'), (4, 'e') ON CONFLICT (number) DO UPDATE SET title = excluded.title || '!' RETURNING title, number, twice;
INSERT INTO shown AS s (number, title) VALUES (2, 'x'), (5, 'y') ON CONFLICT (number) DO UPDATE SET title = s.title || excluded.title, amount = s.twice + excluded.number WHERE s.number = 2 RETURNING *;
INSERT INTO shown (title, number) VALUES ('d', 9) ON CONFLICT (title) DO UPDATE SET number = excluded.number, amount = excluded.twice RETURNING *;
TABLE kept ORDER BY id;
INSERT INTO above (n, t) VALUES (1, 'z'), (6, 'w') ON CONFLICT (n) DO UPDATE SET t = excluded.t || above.t RETURNING *;
INSERT INTO above (n, t) VALUES (1, 'z') ON CONFLICT (t) DO UPDATE SET n = 50 RETURNING *;
INSERT INTO above (n, t) SELECT id, 'again' || id FROM kept WHERE id > 1 ON CONFLICT (n) DO UPDATE SET t = excluded.t WHERE above.n <> 2;
TABLE kept ORDER BY id;
-- A row that the view does not show is in the way all the same
INSERT INTO kept VALUES (-1, 'below', 1);
INSERT INTO shown (number, title) VALUES (-1, 'n') ON CONFLICT (number) DO UPDATE SET title = 'changed' RETURNING number, title;
INSERT INTO shown (number, title) VALUES (2, 'n') ON CONFLICT (number) DO UPDATE SET amount = DEFAULT RETURNING *;
INSERT INTO shown (number, title) VALUES (2, 'n') ON CONFLICT (number) DO UPDATE SET (title, amount) = ROW ('p', 3) RETURNING *;
-- What is not there, and what is no column
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT (id) DO NOTHING;
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT (amount) DO NOTHING;
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT (twice) DO NOTHING;
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT ON CONSTRAINT kept_pkey DO NOTHING;
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT (number) DO UPDATE SET twice = 1;
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT (number) DO UPDATE SET name = 'x';
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT (number) DO UPDATE SET title = excluded.name;
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT (number) DO UPDATE SET title = kept.name;
INSERT INTO shown (number, title) VALUES (1, 'c') ON CONFLICT DO UPDATE SET title = 'x';
INSERT INTO shown (number, title) VALUES (20, 'p') ON CONFLICT (number) DO NOTHING;
WITH made AS (INSERT INTO shown (number, title) VALUES (2, 'q') ON CONFLICT (number) DO UPDATE SET title = excluded.title RETURNING title, number) SELECT * FROM made;
TABLE kept ORDER BY id;
DROP TABLE kept CASCADE;
