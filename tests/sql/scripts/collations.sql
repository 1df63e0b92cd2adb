-- COLLATE: of columns, in expressions, and what the catalog says of it.
CREATE TABLE words (id int, w text COLLATE "C", p varchar(9) COLLATE "POSIX", d text COLLATE "default", plain text, list text[] COLLATE "C");
SELECT attname, attcollation, collname FROM pg_attribute LEFT JOIN pg_collation AS c ON c.oid = attcollation WHERE attrelid = 'words'::regclass AND attnum > 0 ORDER BY attnum;
INSERT INTO words VALUES (1, 'b', 'b', 'b', 'b', '{b}'), (2, 'B', 'B', 'B', 'B', '{B}'), (3, 'ä', 'ä', 'ä', 'ä', NULL), (4, 'a', 'a', 'a', 'a', '{a,b}');
SELECT id FROM words ORDER BY w;
SELECT id FROM words ORDER BY plain COLLATE "C" DESC;
SELECT id FROM words ORDER BY p COLLATE pg_catalog."default";
SELECT max(w COLLATE "C"), min(plain COLLATE "POSIX") FROM words;
SELECT 'a' COLLATE "C" < 'B' COLLATE "C", w COLLATE "C" || 'x' FROM words ORDER BY 2;
SELECT id COLLATE "C" FROM words;
SELECT 1 + 1 COLLATE "C";
CREATE TABLE numbers (n int COLLATE "C");
ALTER TABLE words ADD COLUMN e text COLLATE "C";
SELECT attname, attcollation FROM pg_attribute WHERE attrelid = 'words'::regclass AND attname = 'e';
CREATE DOMAIN word AS text COLLATE "C";
SELECT column_name, collation_name FROM information_schema.columns WHERE table_name = 'words' AND table_schema = current_schema ORDER BY ordinal_position;
DROP TABLE words;
