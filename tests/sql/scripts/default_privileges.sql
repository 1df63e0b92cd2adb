-- ALTER DEFAULT PRIVILEGES: what new objects grant.
CREATE ROLE d_reader;
CREATE ROLE d_maker;
CREATE SCHEMA d_area;
ALTER DEFAULT PRIVILEGES IN SCHEMA d_area GRANT SELECT, INSERT ON TABLES TO d_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA d_area GRANT USAGE ON SEQUENCES TO d_reader WITH GRANT OPTION;
SELECT defaclobjtype, regexp_replace(defaclacl::text, '/\w+', '', 'g') FROM pg_default_acl
WHERE defaclnamespace = 'd_area'::regnamespace ORDER BY 1;
CREATE TABLE d_area.one (id serial, n int);
CREATE VIEW d_area.shown AS SELECT n FROM d_area.one;
SELECT has_table_privilege('d_reader', 'd_area.one', 'SELECT'), has_table_privilege('d_reader', 'd_area.one', 'UPDATE'),
       has_table_privilege('d_reader', 'd_area.shown', 'INSERT'),
       has_sequence_privilege('d_reader', 'd_area.one_id_seq', 'USAGE WITH GRANT OPTION');
SELECT relname, regexp_replace(relacl::text, '(millstream|postgres)', 'boss', 'g') FROM pg_class
WHERE relnamespace = 'd_area'::regnamespace AND relkind IN ('r', 'v', 'S') ORDER BY relname;
ALTER DEFAULT PRIVILEGES IN SCHEMA d_area REVOKE INSERT ON TABLES FROM d_reader;
CREATE TABLE d_area.two (n int);
SELECT has_table_privilege('d_reader', 'd_area.two', 'SELECT'), has_table_privilege('d_reader', 'd_area.two', 'INSERT');
-- Everywhere, of another role's objects, and of functions, which everybody may call otherwise
GRANT ALL ON SCHEMA d_area TO d_maker;
ALTER DEFAULT PRIVILEGES FOR ROLE d_maker REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE d_maker GRANT SELECT ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE d_maker REVOKE TRUNCATE ON TABLES FROM d_maker;
SELECT defaclobjtype, defaclnamespace, defaclacl FROM pg_default_acl WHERE defaclrole = 'd_maker'::regrole ORDER BY 1;
SET ROLE d_maker;
CREATE TABLE d_area.made (n int);
CREATE FUNCTION d_area.made() RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER DEFAULT PRIVILEGES FOR ROLE d_reader GRANT SELECT ON TABLES TO d_maker;
RESET ROLE;
SELECT relacl FROM pg_class WHERE oid = 'd_area.made'::regclass;
SELECT proacl FROM pg_proc WHERE proname = 'made';
DROP ROLE d_maker;
ALTER DEFAULT PRIVILEGES FOR ROLE d_maker GRANT EXECUTE ON FUNCTIONS TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE d_maker REVOKE SELECT ON TABLES FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE d_maker GRANT TRUNCATE ON TABLES TO d_maker;
SELECT count(*) FROM pg_default_acl WHERE defaclrole = 'd_maker'::regrole;
-- Errors
ALTER DEFAULT PRIVILEGES IN SCHEMA d_nothing GRANT SELECT ON TABLES TO d_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA d_area GRANT USAGE ON SCHEMAS TO d_reader;
ALTER DEFAULT PRIVILEGES GRANT USAGE ON TABLES TO d_reader;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO d_nobody;
ALTER DEFAULT PRIVILEGES FOR ROLE d_nobody GRANT SELECT ON TABLES TO d_reader;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO d_reader;
CREATE SCHEMA d_more;
SELECT has_schema_privilege('d_reader', 'd_more', 'CREATE');
ALTER DEFAULT PRIVILEGES GRANT SELECT (a) ON TABLES TO d_reader;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM d_reader;
DROP ROLE d_reader;
DROP SCHEMA d_more, d_area CASCADE;
SELECT count(*) FROM pg_default_acl;
DROP ROLE d_reader, d_maker;
