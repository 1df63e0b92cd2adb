CREATE TABLE t (a int, b int, c text);
CREATE SEQUENCE s;
LOCK TABLE t IN ACCESS SHARE MODE;
BEGIN;
LOCK TABLE t IN ACCESS SHARE MODE;
LOCK t IN ROW EXCLUSIVE MODE NOWAIT;
COMMIT;
BEGIN;
LOCK TABLE nope IN ACCESS SHARE MODE;
ROLLBACK;
BEGIN;
LOCK TABLE s IN ACCESS SHARE MODE;
ROLLBACK;
BEGIN;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SHOW transaction_isolation;
INSERT INTO t VALUES (1, 2, 'x');
ROLLBACK;
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY, ISOLATION LEVEL REPEATABLE READ;
SHOW default_transaction_isolation;
SHOW default_transaction_read_only;
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE, ISOLATION LEVEL READ COMMITTED;
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name = 'synchronize_seqscans';
SHOW synchronize_seqscans;
INSERT INTO t VALUES (1, 2, 'x'), (3, 4, 'y');
SELECT pg_sleep(0.001);
SELECT a, pg_sleep(0.001 * a) FROM t ORDER BY a;
SELECT pg_sleep(NULL);
SELECT pg_sleep(-1) IS NULL;
SELECT pg_sleep('x');
SELECT pg_sleep(1, 2);
CREATE INDEX descending ON t (a DESC, b NULLS FIRST, c DESC NULLS LAST);
CREATE INDEX including ON t (b) INCLUDE (a);
CREATE INDEX partly ON t (b) WHERE a > 1;
SELECT replace(pg_get_indexdef(indexrelid), quote_ident(n.nspname) || '.', ''), indnkeyatts, indoption
FROM pg_index JOIN pg_class c ON c.oid = indrelid JOIN pg_namespace n ON n.oid = relnamespace
WHERE indrelid = 't'::regclass ORDER BY 1;
ALTER TABLE t RENAME COLUMN a TO aa;
SELECT replace(pg_get_indexdef(indexrelid), quote_ident(n.nspname) || '.', '')
FROM pg_index JOIN pg_class c ON c.oid = indrelid JOIN pg_namespace n ON n.oid = relnamespace
WHERE indrelid = 't'::regclass ORDER BY 1;
SELECT acldefault('s', 10) IS NULL, cardinality(acldefault('d', 10)), acldefault('c', 10);
CREATE TYPE mood AS ENUM ('a', 'b');
ALTER TYPE mood RENAME TO moods;
SELECT count(*) > 1000 FROM pg_proc WHERE proargtypes IS NOT NULL;
