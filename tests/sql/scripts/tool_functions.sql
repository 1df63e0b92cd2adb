-- Functions that tools call: pg_activity, py-postgresql, pgAdmin.
SELECT regprocedurein('lower(text)')::text, regclassin('pg_class')::text, regtypein('INT4')::text, regprocin('now')::text;
SELECT regclassin('nonesuch');
SELECT count(*) >= 0 FROM pg_available_extensions();
SELECT count(*) >= 0 FROM pg_available_extension_versions();
SELECT name, default_version, comment FROM pg_available_extensions() WHERE name = 'nonesuch';
SELECT pg_is_wal_replay_paused();
SELECT pg_wal_replay_pause();
SELECT pg_stat_reset_single_table_counters('pg_class'::regclass);
SELECT pg_stat_reset(), pg_stat_clear_snapshot(), pg_stat_reset_shared('bgwriter');
SELECT CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END;
