-- Rows of system relations come by insertion where nothing else says so, also through joins, subqueries and lists.
CREATE TABLE cro (a int, b text, c numeric(5,2), d date, e boolean, f timestamptz, g jsonb, h char(3));
CREATE TABLE cro2 (z int PRIMARY KEY, y text, x serial, w date UNIQUE, CHECK (z > 1));
SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = 'cro'::regclass AND attnum > 0;
SELECT string_agg(a.attname, ' ') FROM pg_attribute a, pg_class c, pg_namespace n WHERE c.oid = a.attrelid AND n.oid = c.relnamespace AND c.relname = 'cro' AND a.attnum > 0;
SELECT a.attname, format_type(a.atttypid, a.atttypmod), col_description(a.attrelid, a.attnum), pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid=a.attrelid AND d.adnum=a.attnum JOIN pg_class c ON c.oid=a.attrelid WHERE c.relname LIKE 'cro%' AND attnum>0 AND relkind='r';
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid=c.oid JOIN pg_type t ON t.oid=a.atttypid WHERE c.relname IN ('cro','cro2') AND attnum>0;
SELECT ARRAY(SELECT attname FROM pg_attribute a JOIN pg_type t ON t.oid=a.atttypid WHERE attrelid='cro'::regclass AND attnum>0);
SELECT c.relname, (SELECT string_agg(attname,',') FROM pg_attribute a JOIN pg_type t ON t.oid=a.atttypid WHERE attrelid=c.oid AND attnum>0) FROM pg_class c WHERE relname LIKE 'cro%' AND relkind='r';
SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid=c.relnamespace WHERE relname LIKE 'cro%' AND relkind='r';
WITH x AS (SELECT a.attname FROM pg_attribute a JOIN pg_type t ON t.oid=a.atttypid WHERE attrelid='cro2'::regclass AND attnum>0) SELECT * FROM x;
SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid=a.attrelid WHERE c.relname='cro';
SELECT json_agg(x) FROM (SELECT attname, typname FROM pg_attribute a JOIN pg_type t ON t.oid=a.atttypid WHERE attrelid='cro'::regclass AND attnum>0) x;
SELECT DISTINCT relkind FROM pg_class c JOIN pg_attribute a ON a.attrelid=c.oid WHERE relname='cro';
