-- Functions of LANGUAGE sql that return a set, in FROM
CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(8,2), parent int);
INSERT INTO items VALUES (1, 'a', 1.50, NULL), (2, 'b', 2, 1), (3, 'c', 3, 1), (4, 'd', 4, 2);
CREATE FUNCTION upto(n int) RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, n)';
SELECT * FROM upto(3);
SELECT * FROM upto(3) AS u WHERE u > 1;
SELECT u.u + 1 FROM upto(2) u;
SELECT x.x FROM upto(2) AS x;
CREATE FUNCTION cheap(most numeric, OUT_of int DEFAULT 100) RETURNS TABLE (id int, title text, price numeric)
LANGUAGE sql STABLE AS $$ SELECT i.id, i.name, i.price FROM items i WHERE i.price <= most AND i.id < out_of ORDER BY i.id $$;
SELECT * FROM cheap(3);
SELECT title, price * 2 FROM cheap(3, 2) AS c;
SELECT c.a, c.b FROM cheap(2) AS c(a, b, d) ORDER BY a DESC;
SELECT count(*), max(title) FROM cheap(3) WHERE id > 1;
SELECT i.name, c.title FROM items i, LATERAL cheap(i.price, 3) c ORDER BY 1, 2;
SELECT i.name, (SELECT count(*) FROM cheap(i.price)) FROM items i ORDER BY 1;
SELECT i.name, c.title FROM items i LEFT JOIN cheap(2) c ON c.id = i.id ORDER BY 1;
SELECT * FROM cheap('2.5');
SELECT * FROM cheap();
SELECT * FROM cheap(1, 2, 3);
CREATE FUNCTION below(top int) RETURNS TABLE (id int, depth int) LANGUAGE sql AS $$
WITH RECURSIVE r(id, depth) AS (SELECT top, 0 UNION ALL SELECT i.id, r.depth + 1 FROM items i JOIN r ON i.parent = r.id)
SELECT r.id, r.depth FROM r $$;
SELECT * FROM below(1) ORDER BY id;
CREATE FUNCTION only(n int) RETURNS TABLE (n2 bigint) LANGUAGE sql STRICT AS 'SELECT n * 2';
SELECT * FROM only(4);
SELECT * FROM only(NULL);
SELECT proretset, prorettype::regtype, array_length(proallargtypes, 1), proargmodes, proargnames FROM pg_proc
WHERE proname IN ('upto', 'cheap', 'only') AND pronamespace = 'script_functions_of_rows'::regnamespace ORDER BY proname;
SELECT pg_get_function_result(oid), pg_get_function_arguments(oid) FROM pg_proc
WHERE proname IN ('upto', 'cheap', 'only') AND pronamespace = 'script_functions_of_rows'::regnamespace ORDER BY 1;
CREATE VIEW uses AS SELECT id, title FROM cheap(2);
SELECT * FROM uses ORDER BY id;
DROP FUNCTION cheap;
DROP VIEW uses;
CREATE OR REPLACE FUNCTION upto(n int) RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, n) * 10';
SELECT * FROM upto(2);
CREATE OR REPLACE FUNCTION upto(n int) RETURNS int LANGUAGE sql AS 'SELECT n';
CREATE OR REPLACE FUNCTION upto(n int) RETURNS SETOF text LANGUAGE sql AS 'SELECT n::text';
-- Errors
CREATE FUNCTION bad() RETURNS TABLE (a int, b text) LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION bad() RETURNS TABLE (a int, b text) LANGUAGE sql AS 'SELECT 1, 2, 3';
CREATE FUNCTION bad() RETURNS TABLE (a int, b date) LANGUAGE sql AS 'SELECT 1, 2';
CREATE FUNCTION bad() RETURNS SETOF date LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION bad(a int) RETURNS TABLE (a int) LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION bad() RETURNS TABLE (a int, a int) LANGUAGE sql AS 'SELECT 1, 2';
DROP FUNCTION upto, below, only, cheap;
-- Bodies that pg_dump writes before the tables that they read
SET check_function_bodies = off;
CREATE FUNCTION early() RETURNS TABLE (id int) LANGUAGE sql AS 'SELECT l.id FROM later l';
CREATE FUNCTION early(n int) RETURNS int LANGUAGE sql AS 'SELECT max(l.id) FROM later l WHERE l.id < n';
RESET check_function_bodies;
CREATE TABLE later (id int);
INSERT INTO later VALUES (1), (5);
SELECT * FROM early();
SELECT early(4);
DROP FUNCTION early(), early(int);
CREATE FUNCTION between_them(low int, high int) RETURNS TABLE (id int) LANGUAGE sql
AS 'SELECT l.id FROM later l WHERE l.id BETWEEN low AND high';
SELECT * FROM between_them(high => 3, low => 0);
DROP FUNCTION between_them;
