-- What only superusers and members of pg_read_all_settings see, and what is its owner's alone.
CREATE ROLE hs_one;
CREATE ROLE hs_two;
GRANT pg_read_all_settings TO hs_two;
SELECT has_tablespace_privilege('hs_one', 'pg_default', 'create'), has_parameter_privilege('hs_one', 'work_mem', 'set');
SELECT has_tablespace_privilege(rolname, 'pg_default', 'create'), has_language_privilege(rolname, 'sql', 'usage')
FROM pg_roles WHERE rolname = 'hs_one';
SET ROLE hs_one;
SHOW data_directory;
SHOW hba_file;
SELECT current_setting('config_file');
SELECT count(*) FROM pg_settings WHERE name IN ('data_directory', 'work_mem');
SET ROLE hs_two;
SELECT count(*) FROM pg_settings WHERE name IN ('data_directory', 'work_mem');
SELECT current_setting('data_directory') <> '';
RESET ROLE;
CREATE TABLE c (a text COLLATE "C", b varchar, d name, e int, UNIQUE (a, b));
CREATE INDEX c_of_all ON c (a, b, d, e);
SELECT indcollation FROM pg_index WHERE indrelid = 'c'::regclass ORDER BY indnatts;
DROP ROLE hs_one, hs_two;
