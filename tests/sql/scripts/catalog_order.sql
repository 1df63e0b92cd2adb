-- Rows of system relations come by insertion where nothing else says so, also through joins, subqueries and lists.
CREATE TABLE cro (a int, b text, c numeric(5,2), d date, e boolean, f timestamptz, g jsonb, h char(3));
CREATE TABLE cro2 (z int PRIMARY KEY, y text, x serial, w date UNIQUE, CHECK (z > 1));
SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = 'cro'::regclass AND attnum > 0;
SELECT string_agg(a.attname, ' ') FROM pg_attribute a, pg_class c, pg_namespace n WHERE c.oid = a.attrelid AND n.oid = c.relnamespace AND c.relname = 'cro' AND a.attnum > 0;
SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid=a.attrelid WHERE c.relname='cro';
SELECT DISTINCT relkind FROM pg_class c JOIN pg_attribute a ON a.attrelid=c.oid WHERE relname='cro';
