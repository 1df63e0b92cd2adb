-- Foreign keys: MATCH FULL, SET DEFAULT, SET NULL of some columns, RESTRICT, and the checks of rows that follow.
CREATE TABLE p (id int PRIMARY KEY, n int);
CREATE TABLE c (a int REFERENCES p ON UPDATE CASCADE ON DELETE SET NULL CHECK (a < 10), CONSTRAINT nn CHECK (a IS NOT NULL));
INSERT INTO p VALUES (1), (2);
INSERT INTO c VALUES (1);
UPDATE p SET id = 20 WHERE id = 1;
DELETE FROM p WHERE id = 1;
UPDATE p SET id = 9 WHERE id = 1;
SELECT * FROM c;
CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE DOMAIN given AS int NOT NULL;
CREATE TABLE cd (a small REFERENCES p ON UPDATE CASCADE);
CREATE TABLE ce (a given REFERENCES p ON DELETE SET NULL);
INSERT INTO cd VALUES (2);
UPDATE p SET id = 200 WHERE id = 2;
UPDATE p SET id = 3 WHERE id = 2;
SELECT * FROM cd;
INSERT INTO p VALUES (50);
INSERT INTO ce VALUES (50);
DELETE FROM p WHERE id = 50;

-- MATCH FULL.
CREATE TABLE pk (a int, b int, t text, PRIMARY KEY (a, b));
INSERT INTO pk VALUES (1, 1, 'x'), (1, 2, 'y'), (2, 2, 'z');
CREATE TABLE ff (a int, b int, k int, CONSTRAINT whole FOREIGN KEY (a, b) REFERENCES pk MATCH FULL ON DELETE SET NULL ON UPDATE CASCADE);
INSERT INTO ff VALUES (1, 1, 1), (NULL, NULL, 2), (1, 2, 3);
INSERT INTO ff VALUES (NULL, 1, 1);
INSERT INTO ff VALUES (1, NULL, 1);
INSERT INTO ff VALUES (3, 3, 1);
UPDATE ff SET a = NULL WHERE k = 1;
UPDATE ff SET a = NULL, b = NULL WHERE k = 1;
DELETE FROM pk WHERE b = 2 AND a = 1;
UPDATE pk SET a = 7 WHERE a = 1;
SELECT * FROM ff ORDER BY k;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'whole';
SELECT confmatchtype, confdelsetcols FROM pg_constraint WHERE conname = 'whole';
SELECT match_option, update_rule, delete_rule FROM information_schema.referential_constraints WHERE constraint_name = 'whole';
CREATE TABLE later (a int, b int);
INSERT INTO later VALUES (7, NULL);
ALTER TABLE later ADD CONSTRAINT l FOREIGN KEY (a, b) REFERENCES pk MATCH FULL;
ALTER TABLE later ADD CONSTRAINT l FOREIGN KEY (a, b) REFERENCES pk MATCH FULL NOT VALID;
ALTER TABLE later VALIDATE CONSTRAINT l;
UPDATE later SET b = 1;
ALTER TABLE later VALIDATE CONSTRAINT l;
CREATE TABLE one_full (a int REFERENCES p MATCH FULL);
INSERT INTO one_full VALUES (NULL);
CREATE TABLE partly (a int REFERENCES p MATCH PARTIAL);
CREATE TABLE simply (a int REFERENCES p MATCH SIMPLE);

-- SET DEFAULT.
CREATE SEQUENCE defaults START 1;
CREATE TABLE ps (id int PRIMARY KEY);
INSERT INTO ps SELECT generate_series(0, 9);
CREATE TABLE sd (k int, a int DEFAULT 0 REFERENCES ps ON DELETE SET DEFAULT ON UPDATE SET DEFAULT);
INSERT INTO sd VALUES (1, 5), (2, 6), (3, DEFAULT), (4, 5);
DELETE FROM ps WHERE id = 5;
SELECT * FROM sd ORDER BY k;
UPDATE ps SET id = 60 WHERE id = 6;
SELECT * FROM sd ORDER BY k;
DELETE FROM ps WHERE id = 0;
UPDATE ps SET id = 100 WHERE id = 0;
ALTER TABLE sd ALTER a SET DEFAULT 77;
UPDATE ps SET id = 100 WHERE id = 0;
ALTER TABLE sd ALTER a DROP DEFAULT;
UPDATE ps SET id = 100 WHERE id = 0;
SELECT * FROM sd ORDER BY k;
CREATE TABLE sq (k int, a int DEFAULT nextval('defaults') REFERENCES ps ON DELETE SET DEFAULT);
INSERT INTO sq VALUES (1, 7), (2, 7);
DELETE FROM ps WHERE id = 7;
SELECT a FROM sq ORDER BY a;
CREATE TABLE texts (t text PRIMARY KEY);
INSERT INTO texts VALUES ('none'), ('one'), ('two');
CREATE TABLE named (k int, t text DEFAULT 'no' || 'ne' REFERENCES texts ON DELETE SET DEFAULT CHECK (t <> 'bad'), d date DEFAULT CURRENT_DATE);
INSERT INTO named VALUES (1, 'one'), (2, 'two');
DELETE FROM texts WHERE t = 'one';
ALTER TABLE named ALTER t SET DEFAULT 'bad';
DELETE FROM texts WHERE t = 'two';
SELECT k, t FROM named ORDER BY k;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'sd'::regclass;

-- SET NULL and SET DEFAULT of some columns.
CREATE TABLE tenants (tenant int, id int, PRIMARY KEY (tenant, id));
INSERT INTO tenants VALUES (1, 0), (1, 1), (1, 2), (2, 1);
CREATE TABLE posts (tenant int, author int, editor int DEFAULT 0, k int,
  FOREIGN KEY (tenant, author) REFERENCES tenants ON DELETE SET NULL (author),
  FOREIGN KEY (tenant, editor) REFERENCES tenants ON DELETE SET DEFAULT (editor) ON UPDATE CASCADE);
INSERT INTO posts VALUES (1, 1, 2, 1), (1, 2, 1, 2), (2, 1, NULL, 3);
DELETE FROM tenants WHERE tenant = 1 AND id = 1;
SELECT * FROM posts ORDER BY k;
SELECT pg_get_constraintdef(oid), confdelsetcols FROM pg_constraint WHERE conrelid = 'posts'::regclass ORDER BY conname;
ALTER TABLE posts RENAME author TO writer;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'posts'::regclass ORDER BY conname;
CREATE TABLE wrong (a int, b int, c int, FOREIGN KEY (a, b) REFERENCES tenants ON DELETE SET NULL (c));
CREATE TABLE wrong (a int, b int, c int, FOREIGN KEY (a, b) REFERENCES tenants ON DELETE SET NULL (d));
CREATE TABLE wrong (a int, b int, c int, FOREIGN KEY (a, b) REFERENCES tenants ON UPDATE SET NULL (a));
CREATE TABLE wrong (a int, b int, c int, FOREIGN KEY (a, b) REFERENCES tenants ON DELETE CASCADE (a));

-- RESTRICT does not look whether the key is there again; NO ACTION does.
CREATE TABLE r (id int PRIMARY KEY, b int);
CREATE TABLE restricted (a int REFERENCES r ON UPDATE RESTRICT ON DELETE RESTRICT);
CREATE TABLE patient (a int REFERENCES r);
INSERT INTO r VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO restricted VALUES (2);
INSERT INTO patient VALUES (1);
UPDATE r SET id = id WHERE id = 2;
UPDATE r SET b = 7 WHERE id = 2;
UPDATE r SET id = 20 WHERE id = 2;
DELETE FROM r WHERE id = 2;
WITH d AS (DELETE FROM r WHERE id = 2 RETURNING *) INSERT INTO r SELECT id, 8 FROM d;
UPDATE r SET id = 10 - id WHERE id = 3;
SELECT * FROM r ORDER BY id;
-- Within one table.
CREATE TABLE tree (id int PRIMARY KEY, up int DEFAULT 1 REFERENCES tree ON DELETE SET DEFAULT ON UPDATE RESTRICT);
INSERT INTO tree VALUES (1, 1), (2, 1), (3, 2), (4, 3);
DELETE FROM tree WHERE id = 2;
SELECT * FROM tree ORDER BY id;
DELETE FROM tree WHERE id IN (3, 4);
DELETE FROM tree;
SELECT * FROM tree;
