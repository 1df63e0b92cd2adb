-- GRANT and REVOKE on columns, and what statements need of them.
CREATE ROLE c_some;
CREATE ROLE c_other;
CREATE TABLE people (id int PRIMARY KEY, name text, secret text DEFAULT 's', n numeric);
INSERT INTO people VALUES (1, 'a', 'x', 1.50), (2, 'b', 'y', 2);
CREATE VIEW shown AS SELECT id, name FROM people;
GRANT USAGE ON SCHEMA script_column_privileges TO c_some, c_other;
GRANT SELECT (id, name), INSERT (id, name), UPDATE (name) ON people TO c_some;
GRANT SELECT (name) ON shown TO c_some;
SELECT attname, regexp_replace(attacl::text, '(millstream|postgres)', 'boss', 'g') FROM pg_attribute
WHERE attrelid = 'people'::regclass AND attnum > 0 ORDER BY attnum;
SELECT relacl FROM pg_class WHERE oid = 'people'::regclass;
SELECT column_name, privilege_type, is_grantable FROM information_schema.column_privileges
WHERE table_name = 'people' AND grantee = 'c_some' ORDER BY 1, 2;
SELECT has_column_privilege('c_some', 'people', 'id', 'SELECT'), has_column_privilege('c_some', 'people', 'secret', 'SELECT'),
       has_column_privilege('c_some', 'people', 2::int2, 'UPDATE'), has_any_column_privilege('c_some', 'people', 'UPDATE'),
       has_any_column_privilege('c_some', 'people', 'REFERENCES'), has_table_privilege('c_some', 'people', 'SELECT');
SET ROLE c_some;
SELECT id, name FROM people ORDER BY id;
SELECT count(*) FROM people;
SELECT * FROM people;
SELECT id FROM people WHERE secret = 'x';
SELECT id FROM people ORDER BY n;
SELECT p.name FROM people p JOIN people q ON q.id = p.id AND q.name = p.name ORDER BY 1;
SELECT (SELECT max(secret) FROM people);
WITH w AS (SELECT secret FROM people) SELECT count(secret) FROM w;
SELECT p FROM people p;
SELECT name FROM shown ORDER BY 1;
SELECT id FROM shown;
INSERT INTO people (id, name) VALUES (3, 'c');
INSERT INTO people VALUES (4, 'd', 'e');
INSERT INTO people (id, name) SELECT id + 10, name FROM people WHERE id = 1;
INSERT INTO people (id, name) VALUES (5, 'e') RETURNING id;
INSERT INTO people (id, name) VALUES (6, 'f') RETURNING secret;
INSERT INTO people (id, name) VALUES (5, 'e') ON CONFLICT DO NOTHING;
UPDATE people SET name = 'z' WHERE id = 3;
UPDATE people SET name = name || '!' WHERE id = 3 RETURNING name;
UPDATE people SET name = secret WHERE id = 3;
UPDATE people SET secret = 'q';
UPDATE people SET name = 'q' WHERE n = 1;
UPDATE people SET name = 'q', id = 9 WHERE id = 3;
DELETE FROM people WHERE id = 3;
SELECT id FROM people WHERE id = 3 FOR UPDATE;
CREATE TABLE script_column_privileges.mine (id int);
GRANT SELECT (id) ON people TO c_other;
RESET ROLE;
SELECT id, name, secret FROM people ORDER BY id;
-- Giving on, and taking back
GRANT SELECT (id) ON people TO c_some WITH GRANT OPTION;
SET ROLE c_some;
GRANT SELECT (id) ON people TO c_other;
RESET ROLE;
SELECT has_column_privilege('c_other', 'people', 'id', 'SELECT');
REVOKE SELECT (id) ON people FROM c_some;
REVOKE SELECT (id) ON people FROM c_some CASCADE;
SELECT has_column_privilege('c_other', 'people', 'id', 'SELECT');
GRANT ALL (secret) ON people TO c_other;
SELECT has_column_privilege('c_other', 'people', 'secret', 'REFERENCES');
REVOKE ALL ON people FROM c_other;
SELECT attname FROM pg_attribute WHERE attrelid = 'people'::regclass AND attacl IS NOT NULL ORDER BY 1;
-- Renamed, dropped, copied
ALTER TABLE people RENAME name TO called;
SELECT has_column_privilege('c_some', 'people', 'called', 'SELECT');
CREATE TABLE copied (LIKE people);
SELECT count(attacl) FROM pg_attribute WHERE attrelid = 'copied'::regclass;
CREATE OR REPLACE VIEW shown AS SELECT id, called AS name, n FROM people;
SELECT has_column_privilege('c_some', 'shown', 'name', 'SELECT');
-- Errors
GRANT DELETE (id) ON people TO c_some;
GRANT SELECT (nothing) ON people TO c_some;
GRANT NONSENSE (id) ON people TO c_some;
GRANT SELECT (id), DELETE ON people TO c_some;
SELECT has_table_privilege('c_some', 'people', 'DELETE'), has_column_privilege('c_some', 'people', 'id', 'SELECT');
SELECT has_column_privilege('c_some', 'people', 'nothing', 'SELECT');
-- Columns' grants go along with a new owner, who may take them back
ALTER TABLE people OWNER TO c_other;
SET ROLE c_other;
REVOKE SELECT (id) ON people FROM c_some;
RESET ROLE;
SELECT has_column_privilege('c_some', 'people', 'id', 'SELECT');
DROP ROLE c_some;
DROP TABLE copied, people CASCADE;
REVOKE ALL ON SCHEMA script_column_privileges FROM c_some, c_other;
DROP ROLE c_some, c_other;
