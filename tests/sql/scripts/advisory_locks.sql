-- Advisory locks of one session: counted, shared or not, of the session or its transaction, as pg_locks shows them.
SELECT pg_advisory_lock(901), pg_try_advisory_lock(902), pg_advisory_unlock(901), pg_advisory_unlock(901);
SELECT mode, granted, classid, objid, objsubid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT pg_advisory_lock(-901), pg_advisory_lock(-1, 903), pg_advisory_lock_shared(904);
SELECT mode, classid, objid, objsubid FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid() ORDER BY classid, objid;
SELECT pg_try_advisory_lock_shared(904), pg_advisory_unlock_shared(904), pg_advisory_unlock_shared(904);
SELECT pg_advisory_unlock_shared(904), pg_advisory_unlock(-1, 903), pg_advisory_unlock(-901), pg_advisory_unlock(902);
-- Of a transaction, and its savepoints
BEGIN;
SELECT pg_advisory_xact_lock(905), pg_try_advisory_xact_lock(905, 1);
SAVEPOINT here;
SELECT pg_advisory_xact_lock_shared(906), pg_try_advisory_xact_lock_shared(906, 1), pg_advisory_lock(907);
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
ROLLBACK TO here;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() ORDER BY objid, objsubid;
SELECT pg_advisory_unlock(905);
ROLLBACK;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
-- For each row, NULL, and what is no number
SELECT g, pg_try_advisory_lock(g) FROM generate_series(908, 910) AS g;
SELECT pg_try_advisory_lock(911) WHERE false;
SELECT pg_advisory_lock(NULL), pg_try_advisory_lock(NULL, 1);
SELECT pg_advisory_lock('x');
SELECT pg_advisory_lock(1::bigint, 2::bigint);
SELECT pg_advisory_lock(1.5);
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT pg_advisory_unlock_all();
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT pg_client_encoding(), pg_blocking_pids(pg_backend_pid());
