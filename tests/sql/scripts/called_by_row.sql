-- Functions of the session with an effect, called for each row.
SET application_name = 'q';
SELECT set_config('application_name', n, false) FROM (VALUES ('aa'),('bb')) v(n);
SHOW application_name;
SELECT set_config(n, 'x', false) FROM (VALUES ('application_name'),('my.own')) v(n);
SELECT set_config(name, setting, false) IS NOT NULL FROM pg_settings WHERE name IN ('application_name','work_mem') ORDER BY name;
SELECT set_config('application_name', NULL, false), set_config('search_path', current_setting('search_path')||', pg_catalog', false);
SHOW search_path;
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'no one';
SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'no one';
SELECT pg_terminate_backend(pid) FROM (VALUES (99999999)) v(pid);
SELECT pg_terminate_backend(pid, 100) FROM (VALUES (99999999),(NULL)) v(pid);
SELECT set_config('my.own', 'x' || n, true) FROM generate_series(1,3) n ORDER BY n DESC LIMIT 2;
WITH t AS (SELECT pg_terminate_backend(pid) AS done FROM pg_stat_activity WHERE application_name='zz') SELECT count(*) FROM t WHERE done;
SELECT set_config(n, 'x', NULL) FROM (VALUES (NULL)) v(n);
SELECT set_config('nonesuch', n, false) FROM (VALUES ('a')) v(n);
