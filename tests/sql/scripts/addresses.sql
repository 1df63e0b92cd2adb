-- Values that are kept as their texts: addresses, places in the log, places of rows.
SELECT '10.1.2.3'::inet, '10.1.2.3/32'::inet, '10.1.2.3/8'::inet, '::1'::inet, 'FE80:0::1/64'::inet, '::ffff:1.2.3.4'::inet;
SELECT ' 1.2.3.4 '::inet;
SELECT 'zz'::inet;
SELECT '1.2.3'::inet;
SELECT '1.2.3.4/33'::inet;
SELECT '1.2.3.4/'::inet;
SELECT '1.2.3.400'::inet;
SELECT '10.1.2.3'::inet::text, '10.1.2.3/8'::inet::text, '::1'::inet::varchar, host('10.1.2.3/8'::inet), family('::1'::inet), text('1.2.3.4'::inet);
SELECT '10.1.2.3/32'::inet = '10.1.2.3', '10.1.2.3/8'::inet <> '10.1.2.3'::inet;
SELECT '16/B374D848'::pg_lsn, '00/0a'::pg_lsn, '0/A'::pg_lsn = '0/a'::pg_lsn;
SELECT 'zz'::pg_lsn;
SELECT '0/123456789'::pg_lsn;
SELECT pg_wal_lsn_diff('1/10', '0/FFFFFFFF'), pg_wal_lsn_diff('0/8', '0/10'), pg_wal_lsn_diff('FFFFFFFF/FFFFFFFF', '0/0');
SELECT '(0,10)'::tid, ' (4294967295,65535) '::tid;
SELECT '(0,65536)'::tid;
CREATE TABLE hosts (id integer PRIMARY KEY, address inet, place pg_lsn);
INSERT INTO hosts VALUES (1, '10.0.0.1', '0/0A'), (2, '10.0.0.0/8', '1/0'), (3, NULL, NULL);
INSERT INTO hosts VALUES (4, 'nowhere', NULL);
SELECT * FROM hosts ORDER BY id;
SELECT id FROM hosts WHERE address = '10.0.0.1/32' OR place = '01/0' ORDER BY id;
SELECT address, count(*) FROM hosts WHERE address IS NOT NULL GROUP BY address ORDER BY address::text;
SELECT address::text FROM hosts ORDER BY id;
PREPARE of_address(inet) AS SELECT id FROM hosts WHERE address = $1;
EXECUTE of_address('10.0.0.1/32');
UPDATE hosts SET address = '::1/128' WHERE id = 3 RETURNING address;
DROP TABLE hosts;
-- Time zones and extensions.
SELECT abbrev, utc_offset, is_dst FROM pg_timezone_abbrevs WHERE abbrev IN ('CET', 'PST', 'UTC', 'CEST', 'EDT') ORDER BY 1;
SELECT name, abbrev, utc_offset, is_dst FROM pg_timezone_names WHERE name IN ('Asia/Tokyo', 'UTC', 'America/Caracas') ORDER BY 1;
SELECT name, default_version, installed_version, comment FROM pg_available_extensions WHERE name = 'plpgsql';
SELECT name, version, installed, schema FROM pg_available_extension_versions WHERE name = 'plpgsql';
SELECT pg_typeof(pg_current_wal_lsn()), pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') > 0, pg_current_wal_lsn() = pg_current_wal_lsn();
-- Sizes.
CREATE TABLE sized (a integer, b text);
SELECT pg_relation_size('sized');
INSERT INTO sized VALUES (1, 'x');
SELECT pg_relation_size('sized') > 0, pg_total_relation_size('sized') > 0, pg_database_size(current_database()) > 0;
INSERT INTO sized SELECT i, 'text' || i FROM generate_series(1, 100000) i;
SELECT pg_relation_size('sized') > 500000, pg_table_size('sized') <= pg_total_relation_size('sized');
DROP TABLE sized;
-- information_schema's functions of rows of catalogs.
SELECT a.attname, information_schema._pg_truetypid(a.*, t.*)::regtype, information_schema._pg_truetypmod(a, t) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = 'pg_am'::regclass AND a.attnum > 0 ORDER BY a.attnum;
-- Their order is not that of their texts: it is refused wherever it is asked for; groups of equal ones need none.
CREATE TABLE ordered (id integer PRIMARY KEY, address inet, place pg_lsn);
INSERT INTO ordered VALUES (1, '9.0.0.1', '0/9'), (2, '10.0.0.1', '0/10'), (3, '9.0.0.1/32', '0/9');
SELECT id, count(*) OVER (PARTITION BY address) FROM ordered ORDER BY id;
SELECT array_agg(place ORDER BY id), concat(min(id), '9.0.0.1/32'::inet), format('%s', '9.0.0.1/32'::inet) FROM ordered;
SELECT '::1.2.3.4'::inet, '::1'::inet, '::5'::inet, '::1:0'::inet, '::100'::inet, '::ffff:0:0'::inet;
DROP TABLE ordered;
