-- Checks, defaults and generated columns of every kind of expression: as PostgreSQL shows them, and as they act.
CREATE TABLE kept (id integer, b text, v varchar(10), d date, ts timestamp, f boolean, c numeric(10, 2), arr integer[],
  CHECK (substring(b FROM 1 FOR 2) <> 'zz'),
  CHECK (position('q' IN b) = 0),
  CHECK (trim(BOTH 'x' FROM b) <> ''),
  CHECK (b LIKE 'a!_%' ESCAPE '!' OR b NOT LIKE '%!%' ESCAPE '!'),
  CHECK (b SIMILAR TO '(a|b)%' OR id > 0),
  CHECK (extract(year FROM d) > 1999),
  CHECK (CASE id WHEN 1 THEN f WHEN 2 THEN true ELSE id > 0 END),
  CHECK (id BETWEEN SYMMETRIC 100 AND 0),
  CHECK (v IN ('x', 'y') OR v = b OR v IS NULL),
  CHECK (id IN (1, 2, id) AND id NOT IN (0, 50)),
  CHECK ((id, b) <> (7, 'seven') AND (id, c) < (90, 1)),
  CHECK (coalesce(c, 0) >= 0 AND greatest(id, 3) > 2 AND nullif(id, 0) IS NOT NULL),
  CHECK (arr[1] > 0 OR arr IS NULL OR cardinality(arr) = 0),
  CHECK (ts AT TIME ZONE 'UTC' < '2100-01-01 00:00+00'),
  CHECK (ts < '2100-1-1 5:00' AND ts - interval '90 minutes' > '1900-01-01'),
  CHECK (d IS DISTINCT FROM '2020-02-02' AND d IS NOT DISTINCT FROM d AND f IS NOT FALSE),
  CHECK (length(overlay(b PLACING 'q' FROM 1)) > 0 AND b COLLATE "C" < 'zzz'),
  CHECK (2 <> ALL (arr) OR id = ANY ('{1,2,3}'))
);
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'kept'::regclass ORDER BY conname COLLATE "C";
INSERT INTO kept VALUES (1, 'abc', 'x', '2020-01-01', '2020-01-01 10:00', true, 1.5, '{1,2}');
INSERT INTO kept (id, b, d) VALUES (2, 'bbb', '2001-01-01');
INSERT INTO kept (id, b) VALUES (1, 'zza');
INSERT INTO kept (id, b) VALUES (1, 'aq');
INSERT INTO kept (id, b) VALUES (1, 'xx');
INSERT INTO kept (id, b) VALUES (1, 'b!c');
INSERT INTO kept (id, b, d) VALUES (1, 'a', '1999-12-31');
INSERT INTO kept (id, b, f) VALUES (1, 'a', false);
INSERT INTO kept (id, b, v) VALUES (1, 'a', 'z');
INSERT INTO kept (id, b) VALUES (50, 'a');
INSERT INTO kept (id, b, arr) VALUES (2, 'a', '{0}');
INSERT INTO kept (id, b, ts) VALUES (2, 'a', '2100-01-01 05:00');
INSERT INTO kept (id, b, d) VALUES (2, 'a', '2020-02-02');
SELECT * FROM kept ORDER BY id;
CREATE TABLE made (id integer DEFAULT 3 + 4, w text DEFAULT upper('x' || 'y'), t text DEFAULT substring('hello' FROM 2), i interval DEFAULT '1 day 90 minutes', g text GENERATED ALWAYS AS (CASE id WHEN 7 THEN 'seven' ELSE overlay('other' PLACING 'O' FROM 1 FOR 1) END) STORED);
SELECT attnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE adrelid = 'made'::regclass ORDER BY attnum;
INSERT INTO made DEFAULT VALUES;
INSERT INTO made (id) VALUES (8);
SELECT * FROM made ORDER BY id;
DROP TABLE kept, made;
