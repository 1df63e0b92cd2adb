-- One statement a line: each must fail here and on PostgreSQL with the same SQLSTATE, message and position.
INSERT INTO readings VALUES ('one', 2, '2024-01-01', 1)
INSERT INTO readings VALUES (1, 40000, '2024-01-01', 1)
INSERT INTO readings VALUES (1, 2, '2024-02-30', 1)
INSERT INTO readings VALUES (1, 2, '2024-01-01', 12345)
INSERT INTO readings VALUES (1, 2, true, 1)
INSERT INTO readings VALUES (1, 2, '2024-01-01', 1, 5)
INSERT INTO readings (sensor, height) VALUES (1, 2)
INSERT INTO nowhere VALUES (1)
SELECT colour FROM plants
SELECT * FROM nowhere
SELECT nofunction(1)
SELECT 1 + true
SELECT * FORM plants
SELECT 1/0
SELECT 2147483647 + 1
INSERT INTO plants VALUES (1, NULL)
INSERT INTO plants VALUES (1, 'a'), (1, 'b')
CREATE TABLE plants (id integer)
COPY readings (sensor, colour) FROM STDIN
INSERT INTO readings (sensor, value) VALUES (1)
INSERT INTO readings (sensor) VALUES (1, 2)
INSERT INTO readings (sensor, sensor) VALUES (1, 2)
INSERT INTO readings VALUES (1,2,'2024-01-01',1),(1,2)
INSERT INTO readings VALUES (9999999999, 2, '2024-01-01', 1)
INSERT INTO readings VALUES (1, '40000', '2024-01-01', 1)
INSERT INTO readings VALUES (1.5, 2, '2024-01-01', '12345')
INSERT INTO readings VALUES (1, 2, '20x4', 1)
INSERT INTO readings SELECT 1, 40000, date '2024-01-01', 1
INSERT INTO readings SELECT 1, 2, 'x', 1
INSERT INTO readings SELECT id, name, now(), 3 FROM plants
INSERT INTO plants VALUES (5, 'a', 12345)
INSERT INTO plants VALUES ('x', 'a', 1)
UPDATE plants SET id = 'x'
UPDATE plants SET colour = 1
DELETE FROM plants WHERE colour = 1
SELECT id, count(*) FROM plants
SELECT sum(name) FROM plants
SELECT * FROM plants WHERE id
SELECT * FROM plants WHERE id = 'x'
SELECT plants.colour FROM plants
SELECT x.id FROM plants
SELECT id FROM plants, plants p
SELECT id FROM plants p1, plants p2
SELECT 'x'::integer
SELECT '1'::nosuch
SELECT count(*) FROM plants GROUP BY 3
SELECT * FROM plants ORDER BY 9
SELECT * FROM plants LIMIT -1
SELECT * FROM plants LIMIT 'x'
SELECT (SELECT id, name FROM plants)
SELECT 1 UNION SELECT 'x'
SELECT 1 UNION SELECT 1, 2
SELECT sum(count(*)) FROM plants
SELECT * FROM plants WHERE count(*) > 1
SELECT
SELECT 1 FROM
CREATE TABLE t (a nosuch)
CREATE TABLE t (a integer PRIMARY KEY, b integer PRIMARY KEY)
CREATE TABLE t (a integer DEFAULT 'x')
CREATE TABLE t (a integer CHECK (b > 1))
DROP TABLE nowhere
DROP VIEW plants
DROP TABLE counts
DROP VIEW nowhere
CREATE VIEW plants AS SELECT 1
CREATE VIEW w AS SELECT 1 AS a, 2 AS a
CREATE VIEW w (a,b) AS SELECT 1
CREATE VIEW w AS SELECT nope FROM plants
EXECUTE nope
DEALLOCATE nope
PREPARE p AS SELECT nope
SET nope = 1
SET statement_timeout = 'x'
SHOW nope
SAVEPOINT x
ROLLBACK TO x
COPY plants FROM STDIN (FORMAT nope)
COPY plants FROM STDIN (DELIMITER 'ab')
COPY plants FROM STDIN (nope)
COPY plants FROM STDIN (FORMAT csv, QUOTE 'ab')
COPY plants FROM STDIN (FORMAT csv, FORMAT csv)
COPY plants TO STDOUT (FORMAT nope)
COPY plants FROM '/nonexistent/x.csv'
COPY readings FROM '/nonexistent/x.csv' CSV
COPY readings FROM '/tmp' CSV
COPY plants FROM '/tmp'
COPY plants FROM 'relative.csv'
SELECT * FROM plants WHERE name = 1
SELECT -'x'
SELECT 10::smallint * 20000::smallint
SELECT 'x'::date
SELECT '2024-13-01'::date
SELECT '25:00'::time
SELECT 'nope'::boolean
SELECT 'zz'::uuid
SELECT '\xzz'::bytea
SELECT ''::integer
SELECT 300000::smallint
SELECT 9999999999::integer
SELECT sqrt(-1)
SELECT ln(0)
SELECT 1 % 0
SELECT 1.5 / 0
SELECT 1e0::float8 / 0
SELECT substring('abc' from 1 for -1)
SELECT upper(1)
SELECT concat()
SELECT greatest(1, 'x')
SELECT CASE WHEN 1 THEN 2 END
SELECT CASE WHEN true THEN 1 ELSE 'x' END
SELECT 1 IN ('x')
SELECT 1 WHERE 'x'
SELECT NULL::integer + 'x'
INSERT INTO plants (id) VALUES (1)
INSERT INTO plants VALUES (1, 'a', 'x')
SELECT interval 'x'
SELECT timestamp '2024-01-01 25:00'
SELECT 'a' < 1
SELECT p.* FROM plants
SELECT * FROM nosuch.plants
SELECT id FROM plants GROUP BY id HAVING name = 'a'
WITH a AS (SELECT 1) SELECT * FROM a, b
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1
SELECT 'abc
SELECT "abc
SELECT 1;;SELECT 2 FORM x
SELECT $1
SELECT count(DISTINCT *) FROM plants
SELECT lower(id) FROM plants
SELECT avg(true)
SELECT bool_and(1)
SELECT array_agg()
SELECT string_agg('a')
SELECT count(1,2)
SELECT max(name, 1) FROM plants
SELECT 12::numeric(5000,5)
SELECT 'abcdef'::varchar(0)
SELECT 1::boolean::date
SELECT date '2024-01-01' + date '2024-01-01'
TRUNCATE counts
INSERT INTO plants VALUES (2,'a') RETURNING nope
SELECT 'a' ~ '((a{1,200}){1,200}){1,200}b'
