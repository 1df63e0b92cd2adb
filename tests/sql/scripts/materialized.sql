-- Materialized views over tables: they are always as if refreshed just now.
CREATE TABLE sold (id int PRIMARY KEY, what text, price numeric(8,2));
INSERT INTO sold VALUES (1, 'a', 1.50), (2, 'a', 2.00), (3, 'b', 5.00);
BEGIN;
CREATE MATERIALIZED VIEW no_such AS SELECT * FROM not_there;
ROLLBACK;
CREATE VIEW plain AS SELECT id FROM sold;
REFRESH MATERIALIZED VIEW plain;
REFRESH MATERIALIZED VIEW nothing;
DROP MATERIALIZED VIEW plain;
DROP VIEW plain;
-- What ALTER does is named in full.
CREATE TABLE altered (a int PRIMARY KEY, b text);
INSERT INTO altered VALUES (1, 'x');
CREATE MATERIALIZED VIEW of_altered AS SELECT a, b FROM altered WITH NO DATA;
ALTER MATERIALIZED VIEW of_altered OWNER TO CURRENT_USER;
ALTER MATERIALIZED VIEW of_altered RENAME TO of_it;
ALTER MATERIALIZED VIEW of_it RENAME COLUMN b TO c;
ALTER MATERIALIZED VIEW IF EXISTS not_there RENAME TO x;
ALTER MATERIALIZED VIEW IF EXISTS not_there OWNER TO CURRENT_USER;
ALTER MATERIALIZED VIEW not_there OWNER TO CURRENT_USER;
REFRESH MATERIALIZED VIEW of_it;
SELECT * FROM of_it;
DROP TABLE altered CASCADE;

-- Not over what only one session sees, and refreshed by its owner alone.
CREATE TEMP TABLE mine (x int);
CREATE MATERIALIZED VIEW over_mine AS SELECT * FROM mine;
DROP TABLE mine;
