-- Intervals of some fields, and of some digits of a second.
SELECT interval '1-2' year to month, interval '1' year, interval '14' month, interval '1' day, interval '1' hour, interval '1' minute, interval '1' second;
SELECT '1'::interval hour, '1'::interval minute, '1'::interval day, '1'::interval month, '1'::interval year, '1'::interval second;
SELECT '1 2:03:04.5678'::interval day to hour, '1 2:03:04.5678'::interval day to minute, '1 2:03:04.5678'::interval day to second, '1 2:03:04.5678'::interval day to second(2);
SELECT '2:03'::interval hour to minute, '2:03:04'::interval hour to second, '2:03'::interval minute to second, interval '2:03.25' minute to second(1);
SELECT '1 year 2 months 3 days 04:05:06.789'::interval year, '1 year 2 months 3 days 04:05:06.789'::interval month, '1 year 2 months 3 days 04:05:06.789'::interval year to month;
SELECT '1 year 2 months 3 days 04:05:06.789'::interval day, '1 year 2 months 3 days 04:05:06.789'::interval hour, '1 year 2 months 3 days 04:05:06.789'::interval minute, '1 year 2 months 3 days 04:05:06.789'::interval second;
SELECT '-1 year -2 months -3 days -04:05:06.789'::interval year, '-1 year -14 months'::interval year, '-04:05:06.789'::interval hour, '-04:05:06.789'::interval minute;
SELECT '04:05:06.789'::interval(0), '04:05:06.789'::interval(1), '-04:05:06.755'::interval(2), '04:05:06.789'::interval(6), interval(2) '04:05:06.789';
SELECT '04:05:06.789'::interval second(0), '23:59:59.99'::interval second(1), '-23:59:59.5'::interval(0), '0.5 s'::interval(0), '-0.5 s'::interval(0);
SELECT x::interval year, x::interval month, x::interval day, x::interval hour, x::interval minute, x::interval second, x::interval(0) FROM (VALUES (interval '1 year 14 months -3 days 04:05:06.789'), (interval '-3 years 2 months 25:59:59.5'), (NULL)) v (x);
SELECT x::interval year to month, x::interval day to hour, x::interval day to second(1), x::interval hour to minute FROM (VALUES (interval '1 year 14 months -3 days 04:05:06.789'), (interval '-3 years 2 months 25:59:59.55'), (NULL)) v (x);
SELECT x::interval hour, x::interval(1), x::interval day to minute FROM (VALUES ('1'), ('1 day 2:03:04.56'), ('-2:59'), (NULL)) v (x);
SELECT t::interval hour FROM (VALUES (time '12:34:56')) v (t);
SELECT 'P1Y2M3DT4H5M6S'::interval year to month, '5 days 6 hours'::interval(2), '@ 1 hour ago'::interval hour;
SELECT '1 2'::interval day to hour, '1 02:03'::interval day to minute, '1-2'::interval month;
SELECT 'x'::interval hour;
SELECT '1:2:3:4'::interval hour to minute;
SELECT '1'::interval(-1);
SELECT '1.23456789'::interval(8);
SELECT '1'::interval(1, 2);
SELECT '1.126 s'::interval(2) + '0.001 s', '90 minutes'::interval hour * 2, '25 hours'::interval hour = '25:00', '1 day'::interval day > '1 hour';
SELECT pg_typeof('1'::interval hour), ('1'::interval hour)::text;
SELECT timestamp '2024-01-31' + '1'::interval month, timestamp '2024-01-31' + interval '1' day;
SELECT ARRAY['1 day 2:03'::interval]::interval hour[], '{1,"2 hours"}'::interval hour[];
SELECT format_type(1186, (interval_mask << 16) | digits) FROM (VALUES (4, 65535), (2, 65535), (6, 65535), (8, 65535), (1024, 65535), (2048, 65535), (4096, 65535), (4096, 3), (1032, 65535), (3080, 65535), (7176, 65535), (7176, 0), (3072, 65535), (7168, 65535), (6144, 65535), (6144, 2), (32767, 3)) v (interval_mask, digits);
-- Columns.
CREATE TABLE interval_fields (id int PRIMARY KEY, ym interval year to month, h interval hour, ds interval day to second(1), digits interval(2), s interval second, plain interval);
INSERT INTO interval_fields VALUES (1, '1-2', '3', '1 2:03:04.56', '1.126 s', '7', '1 2:03:04.567');
INSERT INTO interval_fields (id, ym, h, ds, digits) VALUES (2, interval '1 year 14 months 5 days', interval '90 minutes', interval '-1 day -2:03:04.55', interval '-1.125 s'), (3, NULL, '-90 minutes', NULL, '00:00:00.005');
INSERT INTO interval_fields (id, ym, h, ds, digits) SELECT id + 10, plain, plain, plain, plain FROM interval_fields WHERE id = 1;
SELECT * FROM interval_fields ORDER BY id;
UPDATE interval_fields SET h = plain, digits = plain WHERE id = 1 RETURNING h, digits;
UPDATE interval_fields SET h = '5' WHERE id = 2 RETURNING h;
INSERT INTO interval_fields (id, h) VALUES (4, 'x');
SELECT attname, format_type(atttypid, atttypmod), atttypmod FROM pg_attribute WHERE attrelid = 'interval_fields'::regclass AND attnum > 0 ORDER BY attnum;
SELECT column_name, data_type, datetime_precision, interval_type FROM information_schema.columns WHERE table_name = 'interval_fields' ORDER BY ordinal_position;
SELECT sum(h), max(ds), h + digits FROM interval_fields GROUP BY h + digits ORDER BY 1, 2, 3;
CREATE TABLE interval_fields_copy AS SELECT h, digits, plain::interval hour to minute AS hm, h + digits AS sum FROM interval_fields;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'interval_fields_copy'::regclass AND attnum > 0 ORDER BY attnum;
CREATE DOMAIN interval_fields_hours AS interval hour;
SELECT '3'::interval_fields_hours, '90 minutes'::interval::interval_fields_hours;
ALTER TABLE interval_fields ALTER COLUMN plain TYPE interval hour, ADD COLUMN added interval minute DEFAULT '5';
SELECT id, plain, added FROM interval_fields ORDER BY id;
PREPARE interval_fields_p AS INSERT INTO interval_fields (id, h, digits) VALUES ($1, $2, $3) RETURNING h, digits;
EXECUTE interval_fields_p (30, '3', '1.126');
EXECUTE interval_fields_p (31, '90 minutes', interval '1.125 s');
DROP TABLE interval_fields, interval_fields_copy;
DROP DOMAIN interval_fields_hours;

-- Values that come as parameters.
PREPARE fields (interval) AS
    SELECT $1::interval year, $1::interval month, $1::interval day, $1::interval hour to minute, $1::interval second(1);
EXECUTE fields ('1 year 2 months 3 days 04:05:06.789');
EXECUTE fields ('-3 days -04:05:06.789');
DEALLOCATE fields;
