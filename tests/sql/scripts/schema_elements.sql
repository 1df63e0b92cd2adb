-- CREATE SCHEMA with what is to be in it: one statement, whose elements see the schema first.
CREATE TABLE t (k text);
INSERT INTO t VALUES ('public');
CREATE SCHEMA s1 CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x;y') CREATE VIEW v AS SELECT a, b FROM t WHERE a > 1;
INSERT INTO s1.t (a) VALUES (1), (2);
SELECT * FROM s1.v;
SELECT * FROM t;
SHOW search_path;
SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = 's1' ORDER BY 2;
SELECT pg_get_viewdef('s1.v'::regclass);

-- In the order of what may need what, whatever the text's.
CREATE SCHEMA s2
  GRANT SELECT, INSERT ON t TO PUBLIC WITH GRANT OPTION
  CREATE VIEW v AS SELECT u.n, t.a FROM t JOIN u USING (a)
  CREATE UNIQUE INDEX named ON u (n)
  CREATE TABLE u (a int REFERENCES t, n int DEFAULT nextval('q'))
  CREATE SEQUENCE q START 7;
CREATE SCHEMA s2
  CREATE VIEW v AS SELECT u.n, t.a FROM t JOIN u USING (a)
  CREATE UNIQUE INDEX named ON u (n)
  CREATE TABLE t (a int PRIMARY KEY)
  CREATE TABLE u (a int REFERENCES t, n int DEFAULT nextval('q')) /* CREATE nothing */
  CREATE SEQUENCE q START 7 -- GRANT nothing
;
INSERT INTO s2.t VALUES (1), (2);
INSERT INTO s2.u VALUES (2), (1), (2);
SELECT * FROM s2.v ORDER BY n;
SELECT tablename, indexname FROM pg_indexes WHERE schemaname = 's2' ORDER BY 2;

-- All or nothing.
CREATE SCHEMA s3 CREATE TABLE a (x int) CREATE TABLE a (y int);
SELECT count(*) FROM pg_namespace WHERE nspname = 's3';
CREATE SCHEMA s3 CREATE TABLE a (x int) CREATE VIEW v AS SELECT missing FROM a;
CREATE SCHEMA s1 CREATE TABLE another (x int);
CREATE SCHEMA s3 CREATE TABLE s3.a (x int) CREATE VIEW s3.v AS TABLE a;
SELECT count(*) FROM s3.v;
CREATE SCHEMA s4 CREATE TABLE s3.a (x int);
CREATE SCHEMA s4 CREATE VIEW public.v AS SELECT 1 AS one;
CREATE SCHEMA s4 CREATE TEMP TABLE a (x int);
CREATE SCHEMA IF NOT EXISTS s4 CREATE TABLE a (x int);
CREATE SCHEMA s4 CREATE TABLE a (x int CHECK (x > 0)) GRANT SELECT ON a TO PUBLIC GRANT USAGE, CREATE ON SCHEMA s4 TO PUBLIC;
SELECT has_schema_privilege('public', 's4', 'CREATE'), has_table_privilege('public', 's4.a', 'SELECT');
INSERT INTO s4.a VALUES (0);

-- In a transaction.
BEGIN;
SET LOCAL search_path = s1;
CREATE SCHEMA s5 CREATE TABLE w (x int) CREATE VIEW both_of AS SELECT w.x, t.a FROM w, t;
SHOW search_path;
INSERT INTO s5.w VALUES (1);
SELECT * FROM s5.both_of ORDER BY a;
CREATE TABLE here (x int);
SELECT schemaname FROM pg_tables WHERE tablename = 'here';
ROLLBACK;
SELECT count(*) FROM pg_namespace WHERE nspname = 's5';

-- Of another role.
CREATE ROLE schema_owner;
CREATE SCHEMA AUTHORIZATION schema_owner CREATE TABLE mine (x int) CREATE VIEW seen AS SELECT * FROM mine CREATE SEQUENCE q;
SELECT relname, pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'schema_owner'::regnamespace ORDER BY 1;
SELECT nspname FROM pg_namespace WHERE pg_get_userbyid(nspowner) = 'schema_owner';
CREATE SCHEMA s6 AUTHORIZATION schema_owner CREATE VIEW stolen AS SELECT * FROM s1.t;
SELECT current_user = session_user;
DROP SCHEMA schema_owner CASCADE;
DROP ROLE schema_owner;
