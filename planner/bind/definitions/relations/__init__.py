"""CREATE TABLE, CREATE FOREIGN TABLE and CREATE INDEX: columns, constraints and indexes."""
