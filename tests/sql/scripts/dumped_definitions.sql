-- What pg_dump reads of definitions: texts of functions and constraints, access control lists, comments on attributes.
CREATE SCHEMA dd;
CREATE TYPE dd.color AS ENUM ('red', 'blue');
CREATE TYPE dd_mood AS ENUM ('ok');
CREATE TABLE dd.known (a int);
CREATE FUNCTION dd.f(a dd.color DEFAULT 'red', b dd_mood[] DEFAULT '{ok}', c int DEFAULT 1) RETURNS dd.color LANGUAGE sql IMMUTABLE AS 'SELECT a';
CREATE FUNCTION dd.g() RETURNS SETOF dd.known LANGUAGE sql STABLE AS 'SELECT * FROM dd.known';
CREATE FUNCTION dd.h() RETURNS TABLE (x dd.color, y int) LANGUAGE sql STABLE AS 'SELECT NULL::dd.color, 1';
CREATE FUNCTION dd.i() RETURNS int LANGUAGE sql STABLE AS 'SELECT 1';

SELECT proname, pg_get_function_arguments(p.oid), pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'dd' ORDER BY 1;
SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'dd' ORDER BY proname;
SET search_path = '';
SELECT proname, pg_catalog.pg_get_function_arguments(p.oid), pg_catalog.pg_get_function_result(p.oid) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = pronamespace WHERE nspname = 'dd' ORDER BY 1;
SET search_path = dd;
SELECT proname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'dd' ORDER BY 1;
RESET search_path;
SELECT pg_get_function_arguments(0), pg_get_function_result(0);
SELECT p.proname, t.typname, d.deptype FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid JOIN pg_type t ON t.oid = d.refobjid WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_type'::regclass AND p.proname IN ('g', 'h') AND p.oid >= 16384 ORDER BY 1, 2;
SELECT t.typname, c.relname, d.deptype FROM pg_depend d JOIN pg_type t ON t.oid = d.objid JOIN pg_class c ON c.oid = d.refobjid WHERE d.classid = 'pg_type'::regclass AND d.refclassid = 'pg_class'::regclass AND c.relname = 'known';

-- Keys that wait.
CREATE TABLE dd.keys (a int, b int PRIMARY KEY DEFERRABLE, c int UNIQUE, UNIQUE (a, b) DEFERRABLE INITIALLY DEFERRED);
SELECT conname, condeferrable, condeferred, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'dd.keys'::regclass ORDER BY 1;
SELECT indexrelid::regclass::text, indimmediate FROM pg_index WHERE indrelid = 'dd.keys'::regclass ORDER BY 1;
BEGIN;
INSERT INTO dd.keys VALUES (1, 1, 1), (1, 2, 2);
UPDATE dd.keys SET b = b + 1;
COMMIT;
SELECT * FROM dd.keys ORDER BY b;

-- Roles whose names are quoted.
CREATE ROLE "dd role, 2";
CREATE ROLE "dd=a/b";
CREATE ROLE "dd""q";
CREATE ROLE "DdUpper";
GRANT SELECT, INSERT ON dd.keys TO "dd role, 2", "dd=a/b", "dd""q", "DdUpper", PUBLIC;
GRANT UPDATE ON dd.keys TO "dd=a/b" WITH GRANT OPTION;
SELECT split_part(item::text, '/p', 1) LIKE '%=a%' AS shown, regexp_replace(item::text, '/[a-z]+$', '') FROM (SELECT unnest(relacl) AS item FROM pg_class WHERE oid = 'dd.keys'::regclass) x WHERE item::text LIKE '%dd%' OR item::text LIKE 'Dd%' ORDER BY 2;
SELECT coalesce(r.rolname, 'all') AS role, privilege_type, is_grantable FROM pg_class c, aclexplode(relacl) LEFT JOIN pg_roles r ON r.oid = grantee WHERE c.oid = 'dd.keys'::regclass AND grantee <> relowner ORDER BY 1, 2;
SELECT k, rolname, acldefault(k::"char", oid) FROM unnest('{r,c,s,d,f,l,L,n,p,t,F,S,T}'::text[]) k, pg_roles WHERE rolname LIKE 'dd%' OR rolname = 'DdUpper' ORDER BY 2, 1;
REVOKE ALL ON dd.keys FROM "dd role, 2", "dd=a/b", "dd""q", "DdUpper";
DROP ROLE "dd role, 2", "dd=a/b", "dd""q", "DdUpper";

-- Comments on attributes go on with them.
CREATE TYPE dd.pair AS (a int, b text, c int);
CREATE TABLE dd.pairs (x dd.pair, y int);
INSERT INTO dd.pairs VALUES (ROW(1, 'a', 2), 2);
COMMENT ON COLUMN dd.pair.b IS 'bee';
COMMENT ON COLUMN dd.pair.a IS 'ay';
COMMENT ON COLUMN dd.pair.c IS 'sea';
COMMENT ON COLUMN dd.pair.c IS NULL;
COMMENT ON COLUMN dd.pair.zz IS 'no';
COMMENT ON COLUMN dd.pairs.y IS 'why';
SELECT attname, col_description(attrelid, attnum) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relname IN ('pair', 'pairs') AND attnum > 0 ORDER BY 1;
ALTER TYPE dd.pair RENAME ATTRIBUTE b TO d;
ALTER TYPE dd.pair DROP ATTRIBUTE a;
SELECT attname, col_description(attrelid, attnum) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relname = 'pair' AND attnum > 0 AND NOT attisdropped ORDER BY 1;
SELECT x FROM dd.pairs;

DROP SCHEMA dd CASCADE;
DROP TYPE dd_mood;
