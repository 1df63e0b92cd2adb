-- Types of users belong to schemas: found by search_path, dropped, renamed and moved with them.
CREATE SCHEMA ta;
CREATE SCHEMA tb;
CREATE TYPE ta.mood AS ENUM ('sad', 'ok');
CREATE TYPE tb.mood AS ENUM ('low', 'high');
CREATE TYPE ta.mood AS ENUM ('a');
CREATE TYPE missing.mood AS ENUM ('a');
SELECT 'ok'::mood;
SELECT 'ok'::ta.mood;
SELECT 'ok'::tb.mood;
SELECT 'ok'::missing.mood;
SELECT '1'::ta.nothing;
SELECT '1'::ta.int4;
SET search_path = ta, tb;
SELECT 'ok'::mood;
SELECT 'high'::mood;
CREATE TABLE t (
    id int,
    m mood DEFAULT 'ok'::mood,
    g boolean GENERATED ALWAYS AS (m > 'sad'::mood) STORED,
    CHECK (m = ANY (ARRAY['sad', 'ok']::mood[]))
);
CREATE VIEW v AS SELECT 'ok'::mood AS x, 'low'::tb.mood AS y;
CREATE VIEW tb.w AS SELECT id, m FROM t WHERE m >= 'ok'::mood;
SET search_path = tb, ta;
SELECT 'high'::mood;
INSERT INTO t (id) VALUES (1) RETURNING id, m, g;
INSERT INTO t VALUES (2, 'sad') RETURNING id, m, g;
INSERT INTO t VALUES (3, 'high');
UPDATE t SET m = DEFAULT WHERE id = 2 RETURNING id, m, g;
SELECT x, y FROM v;
SELECT id, m FROM w ORDER BY id;
SET search_path = public;
INSERT INTO ta.t (id) VALUES (4) RETURNING id, m, g;
SELECT x, y FROM ta.v;

-- Renaming a schema.
ALTER SCHEMA ta RENAME TO tc;
SELECT 'ok'::ta.mood;
SELECT 'ok'::tc.mood;
SELECT x, y FROM tc.v;
SELECT id, m FROM tb.w ORDER BY id;
INSERT INTO tc.t (id) VALUES (5) RETURNING id, m, g;
CREATE SCHEMA ta;
CREATE TYPE ta.mood AS ENUM ('other');
SELECT x, y FROM tc.v;
INSERT INTO tc.t (id, m) VALUES (6, 'sad') RETURNING id, m, g;
ALTER TYPE tc.mood ADD VALUE 'glad';
SELECT 'glad'::tc.mood;

CREATE DOMAIN tb.grade AS int CHECK (VALUE > 0);
CREATE TABLE tb.graded (g tb.grade, n int DEFAULT '3'::tb.grade);
INSERT INTO tb.graded VALUES (0);
INSERT INTO tb.graded VALUES (1) RETURNING g, n;
ALTER DOMAIN tb.grade RENAME TO mark;
INSERT INTO tb.graded VALUES (0);
INSERT INTO tb.graded VALUES (2) RETURNING g, n;
ALTER SCHEMA tb RENAME TO td;
INSERT INTO td.graded VALUES (3) RETURNING g, n;
INSERT INTO td.graded VALUES (0);
ALTER SCHEMA td RENAME TO tb;
DROP TABLE tb.graded;
DROP DOMAIN tb.mark;

-- Dropping.
DROP TYPE missing.mood;
DROP TYPE IF EXISTS missing.mood, ta.nothing;
ALTER TYPE missing.mood ADD VALUE 'x';
ALTER TYPE ta.nothing ADD VALUE 'x';
ALTER TYPE tc.mood RENAME TO temper;
INSERT INTO tc.t (id) VALUES (7) RETURNING id, m, g;
SELECT x, y FROM tc.v;
SELECT 'ok'::tc.temper;
ALTER TYPE tc.temper RENAME TO mood;
DROP TYPE ta.nothing;
DROP TYPE tc.mood;
DROP SCHEMA ta;
DROP SCHEMA ta CASCADE;
SELECT 'other'::ta.mood;
DROP SCHEMA tc;
DROP VIEW tb.w;
DROP VIEW tc.v;
DROP SCHEMA tc CASCADE;
SELECT 'ok'::tc.mood;
DROP TYPE tb.mood;
DROP SCHEMA tb;
