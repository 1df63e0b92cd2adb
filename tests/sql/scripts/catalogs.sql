-- pg_catalog: PostgreSQL's own rows, ours, and the functions about them.
CREATE TABLE people (id integer PRIMARY KEY, name varchar(80) NOT NULL, email text UNIQUE, born date DEFAULT '2000-01-01', balance numeric(12, 2) CHECK (balance > 0));
CREATE TABLE orders (id bigint PRIMARY KEY, person integer NOT NULL REFERENCES people (id) ON DELETE CASCADE, tags text[], twice integer GENERATED ALWAYS AS (person * 2) STORED, UNIQUE (person, id));
CREATE INDEX orders_person ON orders (person);
CREATE VIEW grown AS SELECT id, name FROM people WHERE born < '2005-01-01';
CREATE SEQUENCE numbers START 5 INCREMENT 2;
COMMENT ON TABLE people IS 'who there is';
COMMENT ON COLUMN people.name IS 'as written';

SELECT relname, relkind, relnatts, relhasindex, relchecks, relpersistence FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) ORDER BY relname;
SELECT attname, atttypid::regtype, atttypmod, attnotnull, atthasdef, attidentity, attgenerated, attlen, attndims FROM pg_attribute WHERE attrelid = 'people'::regclass AND attnum > 0 ORDER BY attnum;
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = 'orders'::regclass AND a.attnum > 0 ORDER BY a.attnum;
SELECT conname, contype, conrelid::regclass, confrelid::regclass, conkey, confkey, confdeltype, confupdtype, condeferrable FROM pg_constraint WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) ORDER BY conname;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid IN ('people'::regclass, 'orders'::regclass) AND contype IN ('p', 'u', 'f') ORDER BY conname;
SELECT indexrelid::regclass, indrelid::regclass, indisunique, indisprimary, indkey, indkey[0], indclass, indnatts FROM pg_index WHERE indrelid = 'orders'::regclass ORDER BY 1::text;
SELECT replace(pg_get_indexdef(indexrelid), current_schema() || '.', '') FROM pg_index WHERE indrelid = 'orders'::regclass ORDER BY 1;
SELECT tablename, tableowner = current_user, hasindexes FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1;
SELECT indexname, replace(indexdef, current_schema() || '.', '') FROM pg_indexes WHERE tablename = 'people' ORDER BY 1;
SELECT viewname FROM pg_views WHERE schemaname = current_schema();
SELECT sequencename, data_type, start_value, increment_by, last_value FROM pg_sequences WHERE schemaname = current_schema();
SELECT obj_description('people'::regclass, 'pg_class'), col_description('people'::regclass, 2), col_description('people'::regclass, 1);
SELECT pg_get_expr(adbin, adrelid) IS NOT NULL, adnum FROM pg_attrdef WHERE adrelid = 'people'::regclass;
SELECT pg_table_is_visible('people'::regclass), pg_type_is_visible('text'::regtype), pg_function_is_visible('now'::regproc);

-- Names of oids.
SELECT 'people'::regclass, 'information_schema.tables'::regclass, '1259'::regclass, '0'::regclass, '-'::regclass;
SELECT 'people'::regclass::text || '!', 1259::regclass::text, 'int4'::regtype, 'integer'::regtype::oid, 'character varying'::regtype, 'int4[]'::regtype, 'now'::regproc, 'pg_catalog'::regnamespace;
SELECT 'nothing'::regclass;
SELECT 'nothing'::regtype;
SELECT 'nothing'::regproc;
SELECT 'lower'::regproc;
SELECT to_regclass('people'), to_regclass('nothing') IS NULL, to_regtype('text'), to_regtype('nothing');
SELECT c.oid::regclass FROM pg_class c WHERE c.oid = 'orders'::regclass;
SELECT c.relname::regclass::text FROM pg_class c WHERE c.relname = 'orders';
SELECT 'people'::regclass = 'people'::regclass::oid, 'people'::regclass IN ('orders'::regclass, 'people'::regclass);
SELECT tableoid::regclass, id FROM people;
SELECT p.tableoid::regclass FROM people p RIGHT JOIN orders o ON o.person = p.id;

-- PostgreSQL's own.
SELECT oid, typname, typlen, typtype, typcategory, typelem, typarray, typinput, typrelid FROM pg_type WHERE typname IN ('int4', '_int4', 'text', 'oidvector', 'name', 'char', 'anyarray') ORDER BY oid;
SELECT proname, proargtypes, prorettype::regtype, provolatile, proretset FROM pg_proc WHERE proname IN ('lower', 'now', 'generate_series') ORDER BY oid;
SELECT oprname, oprleft::regtype, oprright::regtype, oprresult::regtype, oprcode FROM pg_operator WHERE oprname = '||' ORDER BY oid;
SELECT count(*) FROM pg_cast;
SELECT castsource::regtype, casttarget::regtype, castcontext FROM pg_cast WHERE castsource = 'int8'::regtype ORDER BY 2;
SELECT opcname, opcintype::regtype, opcdefault FROM pg_opclass WHERE opcmethod = 403 ORDER BY opcname LIMIT 10;
SELECT amname, amtype FROM pg_am ORDER BY oid;
SELECT rngtypid::regtype, rngsubtype::regtype FROM pg_range ORDER BY rngtypid;
SELECT cfgname FROM pg_ts_config ORDER BY 1 LIMIT 3;
SELECT format_type(1043, 14), format_type(1042, -1), format_type(1042, NULL), format_type(1700, 786438), format_type(1184, 3), format_type(23, -1), format_type(1007, NULL), format_type(0, 0), format_type(99999, NULL), format_type(NULL, 1), format_type(18, NULL), format_type(705, -1);
SELECT pg_get_function_arguments('split_part'::regproc), pg_get_function_result('split_part'::regproc), pg_get_function_identity_arguments('split_part'::regproc);
SELECT description FROM pg_description WHERE objoid = 'now'::regproc AND classoid = 'pg_proc'::regclass;
SELECT attname, atttypid::regtype, attnum FROM pg_attribute WHERE attrelid = 'pg_am'::regclass AND attnum > 0 ORDER BY attnum;
SELECT word, catcode FROM pg_get_keywords() WHERE word IN ('select', 'between') ORDER BY word;

-- Types that only catalogs have.
SELECT 'abc'::"char", ''::"char" = '', 'r'::"char" IN ('r', 'v'), 'a'::"char"::text || 'b', 'x'::"char" < 'y'::"char";
SELECT '1 2 3'::int2vector, ('1 2 3'::int2vector)[0], '10 20'::oidvector, 20 = ANY ('10 20'::oidvector), array_length('1 2'::int2vector, 1), '1 2'::oidvector::text;
SELECT ('name'::name)[0];
SELECT pg_typeof(1), pg_typeof('a'::text), pg_typeof(ARRAY[1.5]), pg_typeof(NULL);
SELECT current_schemas(true) = ARRAY['pg_catalog', current_schema()], current_schemas(false) = ARRAY[current_schema()];
SELECT pg_encoding_to_char(6), pg_char_to_encoding('UTF8'), pg_is_in_recovery(), pg_get_userbyid(10) IS NOT NULL, pg_get_userbyid(99);
SELECT has_table_privilege('people', 'select'), has_schema_privilege(current_schema(), 'usage'), has_column_privilege('people', 'name', 'insert'), has_any_column_privilege('people', 'select');
SELECT pg_size_pretty(10::bigint), pg_size_pretty(123456::bigint), pg_size_pretty(1234567890::bigint), pg_size_pretty(-5000000::bigint), pg_size_pretty(5e12::numeric);
SELECT (x.keys).n, a.attname FROM (SELECT i.indrelid, information_schema._pg_expandarray(i.indkey) AS keys FROM pg_index i WHERE i.indrelid = 'orders'::regclass AND i.indnatts = 2) x JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = (x.keys).x ORDER BY 1;

-- information_schema.
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name;
SELECT column_name, ordinal_position, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, udt_name, is_generated FROM information_schema.columns WHERE table_name = 'people' ORDER BY ordinal_position;
SELECT constraint_name, table_name, constraint_type, is_deferrable FROM information_schema.table_constraints WHERE table_schema = current_schema() AND constraint_type <> 'CHECK' ORDER BY constraint_name;
SELECT constraint_name, column_name, ordinal_position, position_in_unique_constraint FROM information_schema.key_column_usage WHERE table_schema = current_schema() ORDER BY 1, 3;
SELECT constraint_name, unique_constraint_name, update_rule, delete_rule FROM information_schema.referential_constraints WHERE constraint_schema = current_schema();
SELECT sequence_name, data_type, start_value, increment FROM information_schema.sequences WHERE sequence_schema = current_schema();
SELECT schema_name FROM information_schema.schemata WHERE schema_name IN ('public', 'pg_catalog', 'information_schema') ORDER BY 1;
SELECT table_name FROM information_schema.views WHERE table_schema = current_schema();

-- Nobody changes them.
DROP TABLE orders;
SELECT count(*) FROM pg_class WHERE relname LIKE 'orders%';
DROP VIEW grown;
DROP TABLE people;
