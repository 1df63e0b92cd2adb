-- Types that stay: of a foreign key's columns in both tables, of a view's columns. Columns that a key determines in every grouping set.
CREATE TABLE par (id text PRIMARY KEY, n int UNIQUE);
CREATE TABLE chi (id text REFERENCES par, n int REFERENCES par (n));
INSERT INTO par VALUES ('1', 1); INSERT INTO chi VALUES ('1', 1);
ALTER TABLE par ALTER COLUMN id TYPE int USING id::int;
ALTER TABLE chi ALTER COLUMN id TYPE int USING id::int;
ALTER TABLE par ALTER COLUMN id TYPE varchar(10);
ALTER TABLE chi ALTER COLUMN n TYPE bigint;
ALTER TABLE par ALTER COLUMN n TYPE bigint;
ALTER TABLE chi ALTER COLUMN n TYPE text USING n::text;
SELECT par.id, par.n, chi.id, chi.n FROM par JOIN chi ON par.id = chi.id;
DROP TABLE chi, par;
CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree);
ALTER TABLE tree ALTER COLUMN up TYPE text USING up::text;
ALTER TABLE tree ALTER COLUMN up TYPE bigint, ALTER COLUMN id TYPE bigint;
DROP TABLE tree;

CREATE TABLE g3 (a int PRIMARY KEY, b int, c int, d int);
INSERT INTO g3 VALUES (1, 1, 1, 1), (2, 2, 2, 2);
SELECT a, d, grouping(a, b, c) FROM g3 GROUP BY GROUPING SETS ((a, b), (a, c)) ORDER BY 3, 1;
SELECT a, d, b, count(*) FROM g3 GROUP BY a, ROLLUP (b, c) ORDER BY 1, 2, 3, 4;
SELECT a, d FROM g3 GROUP BY GROUPING SETS ((a, b), (c)) ORDER BY 1, 2;
SELECT a, d FROM g3 GROUP BY ROLLUP (a);
DROP TABLE g3;

-- What a view's columns may not become.
CREATE VIEW shown AS SELECT 1.5::numeric(10, 1) AS c, 'a'::varchar(5) AS d, 2 * 1.5 AS e, now()::timestamp(3) AS f;
CREATE OR REPLACE VIEW shown AS SELECT 1.5::numeric(10, 2) AS c, 'a'::varchar(5) AS d, 2 * 1.5 AS e, now()::timestamp(3) AS f;
CREATE OR REPLACE VIEW shown AS SELECT 1.5::numeric(10, 1) AS c, 'a'::varchar(6) AS d, 2 * 1.5 AS e, now()::timestamp(3) AS f;
CREATE OR REPLACE VIEW shown AS SELECT 1.5::numeric(10, 1) AS c, 'a'::varchar(5) AS d, 2.25 * 1.125 AS e, now()::timestamp(3) AS f;
CREATE OR REPLACE VIEW shown AS SELECT 1.5::numeric(10, 1) AS c, 'a'::varchar(5) AS d, 2 AS e, now()::timestamp(3) AS f;
CREATE OR REPLACE VIEW shown AS SELECT 1.5::numeric(10, 1) AS c, 'a'::varchar(5) AS d, 2 * 1.5 AS e, now()::timestamp(4) AS f;
CREATE OR REPLACE VIEW shown AS SELECT 1.5 AS c, 'a'::varchar(5) AS d, 2 * 1.5 AS e, now()::timestamp(3) AS f;
CREATE OR REPLACE VIEW shown AS SELECT 1.5::numeric(10, 1) AS c, 'a'::varchar(5) AS d, 2 * 1.5 AS e, now()::timestamp(3) AS f, 3 AS g;
DROP VIEW shown;
