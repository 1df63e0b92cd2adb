-- ALTER COLUMN TYPE binds anew what depends on the column: checks that were looked at or not, indexes, defaults.
CREATE TABLE ct (a int, b int);
ALTER TABLE ct ADD CONSTRAINT c CHECK (a > 0) NOT VALID;
ALTER TABLE ct ALTER COLUMN a TYPE text;
INSERT INTO ct VALUES (1, 2);
ALTER TABLE ct ALTER COLUMN a TYPE bigint;
INSERT INTO ct VALUES (0, 2);
ALTER TABLE ct ALTER COLUMN a TYPE text, DROP CONSTRAINT c;
INSERT INTO ct VALUES ('x', 2);
DROP TABLE ct;

CREATE TABLE ct (a int, b int);
CREATE INDEX ct_more ON ct ((a + 1));
CREATE INDEX ct_part ON ct (b) WHERE a > 3;
ALTER TABLE ct ALTER COLUMN a TYPE bigint;
SELECT indexdef FROM pg_indexes WHERE tablename = 'ct' ORDER BY 1;
INSERT INTO ct VALUES (5, 2);
DROP TABLE ct;

CREATE TABLE ct (a int, b int);
CREATE UNIQUE INDEX ON ct (b) WHERE a > 2;
ALTER TABLE ct ALTER COLUMN a TYPE numeric;
INSERT INTO ct VALUES (3, 2);
INSERT INTO ct VALUES (3, 2);
INSERT INTO ct VALUES (2, 2);
DROP TABLE ct;

CREATE TYPE ct_mood AS ENUM ('sad', 'ok');
CREATE TABLE ct (a ct_mood, b text);
ALTER TABLE ct ADD CONSTRAINT c CHECK (a = 'ok') NOT VALID;
ALTER TABLE ct ALTER COLUMN a TYPE text;
INSERT INTO ct VALUES ('ok', 'x');
INSERT INTO ct VALUES ('sad', 'x');
DROP TYPE ct_mood;
ALTER TABLE ct ALTER COLUMN a TYPE text, DROP CONSTRAINT c;
DROP TYPE ct_mood;
INSERT INTO ct VALUES ('ok', 'y');
DROP TABLE ct;

CREATE TABLE ct (a int, b int, CHECK (a > b));
ALTER TABLE ct ALTER COLUMN a TYPE text;
ALTER TABLE ct ALTER COLUMN a TYPE text, ALTER COLUMN b TYPE text;
INSERT INTO ct VALUES ('b', 'a');
INSERT INTO ct VALUES ('a', 'b');
DROP TABLE ct;

CREATE TABLE ct (a varchar(3), b text);
ALTER TABLE ct ADD CONSTRAINT c CHECK (length(a) = 3) NOT VALID;
ALTER TABLE ct ALTER COLUMN a TYPE int USING length(a);
ALTER TABLE ct ALTER COLUMN a TYPE text;
INSERT INTO ct VALUES ('abcd', 'x');
ALTER TABLE ct VALIDATE CONSTRAINT c;
DROP TABLE ct;

-- A text that a type's end leaves without meaning is named as what it belongs to.
CREATE DOMAIN ct_small AS int;
CREATE TABLE ct (a int, CONSTRAINT ct_check CHECK (a::ct_small < 10));
DROP DOMAIN ct_small;
DROP DOMAIN ct_small CASCADE;
INSERT INTO ct VALUES (20);
DROP TABLE ct;

-- A unique index names its columns' own types, wherever the search path leads.
CREATE SCHEMA ct_types;
CREATE TYPE ct_types.state AS ENUM ('queued', 'picked');
SET search_path = ct_types, public;
CREATE TABLE ct (entry text, status state, key text);
CREATE UNIQUE INDEX ON ct (key) WHERE status = 'queued'::state AND key IS NOT NULL;
INSERT INTO ct VALUES ('a', 'queued', 'k');
INSERT INTO ct VALUES ('b', 'picked', 'k');
INSERT INTO ct VALUES ('c', 'queued', 'k');
INSERT INTO ct VALUES ('c', 'queued', 'k') ON CONFLICT DO NOTHING;
INSERT INTO ct VALUES ('d', 'queued', 'k') ON CONFLICT (key) WHERE status = 'queued'::state AND key IS NOT NULL
    DO UPDATE SET entry = excluded.entry;
SELECT * FROM ct ORDER BY 1;
SET search_path = '';
INSERT INTO ct_types.ct VALUES ('e', 'queued', 'k');
SET search_path = ct_types, public;
UPDATE ct SET status = 'queued';
SELECT indexdef FROM pg_indexes WHERE schemaname = 'ct_types';
DROP TYPE state;
RESET search_path;
DROP SCHEMA ct_types CASCADE;
