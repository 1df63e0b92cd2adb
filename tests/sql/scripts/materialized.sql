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
