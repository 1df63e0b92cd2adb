CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE t (id int PRIMARY KEY, a text, n numeric, m numeric(10, 2), at timestamptz, j jsonb, r int[], f float8, b bytea, u uuid, o mood, c char(3), i interval);
INSERT INTO t VALUES (1, 'x', 1.50, 2, '2020-01-01 UTC', '{"a": 1}', '{1, 2}', 1.5, '\x00', '12345678-1234-5678-1234-567812345678', 'sad', 'ab', '1 mon'), (2);
CREATE TABLE k (a int, b text);
INSERT INTO k VALUES (1, 'a'), (1, 'a'), (1, 'a'), (2, 'b'), (NULL, NULL), (NULL, NULL);
SELECT bool_and(xmin IS NOT NULL), bool_and(xmax = 0), bool_and(cmin = 0), bool_and(cmax = '0'), bool_and(tableoid = 't'::regclass) FROM t;
SELECT xmin = xmin AS same, t.ctid = ctid AS here, pg_typeof(xmin), pg_typeof(xmax), pg_typeof(ctid), pg_typeof(cmin) FROM t WHERE id = 1;
-- no two rows share a place, be they equal
SELECT count(DISTINCT ctid), count(*), min(ctid) < max(ctid) AS ordered FROM k;
DELETE FROM k x USING k y WHERE x.ctid < y.ctid AND x.a = y.a AND x.b = y.b;
SELECT a, b FROM k ORDER BY 1, 2;
DELETE FROM k WHERE ctid = (SELECT ctid FROM k WHERE a IS NULL LIMIT 1) RETURNING b;
SELECT a, b FROM k ORDER BY 1, 2;
INSERT INTO k VALUES (1, 'a'), (1, 'a'), (2, 'b');
DELETE FROM k WHERE ctid NOT IN (SELECT min(ctid) FROM k GROUP BY a, b);
SELECT a, b FROM k ORDER BY 1, 2;
UPDATE k SET b = 'one' FROM (SELECT ctid AS place FROM k WHERE a = 1) AS found WHERE k.ctid = found.place;
SELECT a, b FROM k ORDER BY 1, 2;
-- an optimistic lock finds a row as it was read only
CREATE TABLE seen AS SELECT id, xmin AS version FROM t;
UPDATE t SET a = 'first' WHERE id = 1 AND xmin = (SELECT version FROM seen WHERE seen.id = 1) RETURNING a, xmin = (SELECT version FROM seen WHERE seen.id = 1) AS unchanged, xmax;
UPDATE t SET a = 'lost' WHERE id = 1 AND xmin = (SELECT version FROM seen WHERE seen.id = 1);
UPDATE t SET a = 'lost' WHERE id = 1 AND xmin::text = '1';
SELECT id, a FROM t ORDER BY id;
UPDATE t SET a = 'second' WHERE ctid = (SELECT ctid FROM t WHERE id = 2) RETURNING id, tableoid = 't'::regclass AS own;
UPDATE t SET o = 'happy' WHERE id = 1 RETURNING xmin = (SELECT version FROM seen WHERE seen.id = 1) AS unchanged;
SELECT count(*) FROM t JOIN seen USING (id) WHERE t.xmin = version;
MERGE INTO t USING k ON t.id = k.a AND t.ctid IS NOT NULL WHEN MATCHED THEN UPDATE SET a = k.b;
SELECT id, a FROM t ORDER BY id;
-- which row an upsert has updated
INSERT INTO t (id, a) VALUES (3, 'q') RETURNING xmax, cmax, xmin IS NOT NULL;
INSERT INTO t (id, a) VALUES (3, 'again'), (4, 'r') ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING id, xmax = 0 AS inserted;
INSERT INTO t (id, a) SELECT 3, 'more' ON CONFLICT (id) DO UPDATE SET a = excluded.a WHERE t.xmin = t.xmin RETURNING id, xmax <> 0 AS updated;
INSERT INTO t (id, a) VALUES (3, 'q'), (5, 'r') ON CONFLICT (id) DO NOTHING RETURNING id, xmax = 0 AS inserted;
WITH x AS (INSERT INTO t AS s (id, a) VALUES (4, 'q'), (9, 'r') ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING s.id, s.xmax = 0 AS fresh) SELECT * FROM x ORDER BY id;
-- through joins, subqueries and views
SELECT k.a, t.xmin IS NULL AS without, t.ctid IS NULL AS nowhere FROM k LEFT JOIN t ON k.a = t.id AND t.id = 1 ORDER BY k.a;
CREATE VIEW placed AS SELECT ctid AS place, xmin AS version, id FROM t;
SELECT count(DISTINCT place), count(version) FROM placed;
SELECT id FROM t WHERE ctid IN (SELECT place FROM placed WHERE id < 3) ORDER BY id;
SELECT ctid FROM (SELECT * FROM t) AS s;
SELECT xmin FROM placed;
SELECT ctid FROM generate_series(1, 2);
SELECT id FROM t WHERE ctid = '(4294967295,0)';
SELECT xmin, xmax, cmin FROM pg_type WHERE oid = 0;
SELECT attname, attnum, atttypid::regtype, attlen, attnotnull, attbyval, attalign, attstattarget FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum < 0 ORDER BY attnum;
