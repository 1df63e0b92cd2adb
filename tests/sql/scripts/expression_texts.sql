-- Defaults, checks and generated columns as the catalogs show them: constants and casts with their types.

CREATE TABLE d (
  a text DEFAULT 'x', b varchar(10) DEFAULT 'y', c char(4) DEFAULT 'z', i int DEFAULT 5, j int DEFAULT -5, k bigint DEFAULT '7',
  l bigint DEFAULT -1, n numeric(10,2) DEFAULT 1.50, o numeric DEFAULT 3, p numeric DEFAULT '4', q float8 DEFAULT 1.5, r float8 DEFAULT '1.5',
  s boolean DEFAULT 't', t date DEFAULT '2020-01-01', u timestamptz DEFAULT now(), v timestamp DEFAULT CURRENT_TIMESTAMP, w jsonb DEFAULT '{}',
  x text[] DEFAULT '{}', y int[] DEFAULT ARRAY[1,2], z text[] DEFAULT ARRAY['a','b']::text[], ab uuid DEFAULT gen_random_uuid(),
  ac date DEFAULT now()::date, ad text DEFAULT lower('ABC'), ae text DEFAULT NULL, af int DEFAULT 1 + 2, ag varchar DEFAULT 'a' || 'b',
  ah timestamp DEFAULT (now() AT TIME ZONE 'utc'), ai text DEFAULT CURRENT_USER, aj text DEFAULT 5::text, ak text DEFAULT 'abc'::varchar(2),
  al int DEFAULT CASE WHEN 1 > 0 THEN 1 ELSE 2 END, am text DEFAULT coalesce(NULL, 'x'), an smallint DEFAULT 3, ao interval DEFAULT '1 day',
  ap bool DEFAULT false, ar int GENERATED ALWAYS AS (i * 2) STORED, "as" text GENERATED ALWAYS AS (upper(b) || 'q') STORED,
  at bool GENERATED ALWAYS AS (b = 'x' AND i > 3 OR NOT s) STORED, au int DEFAULT nullif(1, 2), av bytea DEFAULT '\x01', aw float4 DEFAULT 0,
  ax text GENERATED ALWAYS AS (CASE WHEN i > 3 THEN CASE WHEN j = 1 THEN 'a' ELSE b END ELSE 'y' END) STORED);
SELECT column_name, column_default, generation_expression FROM information_schema.columns WHERE table_schema = current_schema AND table_name = 'd' ORDER BY ordinal_position;
SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE adrelid = 'd'::regclass ORDER BY adnum;
CREATE TABLE c (a int CHECK (a > 0), b varchar(10) CHECK (b IN ('x', 'y')), n numeric, big bigint, t text, d date,
  CHECK (a BETWEEN 1 AND 5), CHECK (n > 0 AND big < 5), CHECK (t LIKE 'a%' OR t IS NULL), CHECK (length(b) > 2), CHECK (a IN (1, 2, 3)), CHECK (b <> 'q'),
  CHECK (d > '2020-01-01'), CHECK (a NOT IN (7, 8)), CHECK (t = ANY (ARRAY['a', 'b'])), CHECK (a IS DISTINCT FROM 9),
  CHECK (t ~ '^a' IS TRUE), CHECK (extract(year FROM d) > 2000), CHECK (a > 1.5), CHECK (t IN ('x')), CHECK (t COLLATE "C" > 'a'));
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'c'::regclass ORDER BY conname;
SELECT pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conrelid = 'c'::regclass AND conname = 'c_a_check';
CREATE DOMAIN pos AS int CHECK (VALUE > 0) DEFAULT '3';
CREATE DOMAIN tt AS varchar(5) CHECK (VALUE <> '') CHECK (length(value) > 1);
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid IN ('pos'::regtype, 'tt'::regtype) ORDER BY conname;
SELECT typname, typdefault FROM pg_type WHERE typname = 'pos';
INSERT INTO d DEFAULT VALUES RETURNING a, b, c, i, j, k, l, n, o, p, q, r, s, t, w, x, y, z, ad, ae, af, ag, aj, ak, al, am, an, ao, ap, ar, "as", at, au, av, aw, ax;
INSERT INTO c VALUES (2, 'yy', 1, 1, 'a', '2021-01-01');
ALTER TABLE d ALTER a SET DEFAULT 'other', ALTER b SET DEFAULT NULL, ALTER n SET DEFAULT '2';
SELECT adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'd'::regclass AND adnum IN (1, 2, 8) ORDER BY adnum;
ALTER TABLE d ADD CONSTRAINT named CHECK (i >= 0 OR k IS NOT NULL), ADD extra varchar(3) DEFAULT 'abc' CHECK (extra <> 'x');
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'd'::regclass ORDER BY conname;
ALTER TABLE c RENAME b TO renamed;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'c'::regclass AND conname = 'c_b_check';
