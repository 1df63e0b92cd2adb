-- Abbreviations of zones in texts, also such as have not always meant the same; names that are both an abbreviation and a zone
-- with summers; hours east of Greenwich; make_timestamptz()'s signs.
SET TimeZone = 'CET';
SELECT '2020-07-01 00:00+00'::timestamptz, '2020-01-01 00:00+00'::timestamptz, '2020-07-01 00:00'::timestamptz;
SELECT '2020-07-01 00:00 CET'::timestamptz, '2020-07-01 00:00 CEST'::timestamptz;
SET TimeZone = 'EET';
SELECT '2020-07-01 00:00'::timestamptz, date_trunc('day', '2020-07-01 12:00+00'::timestamptz), '2020-07-01 00:00'::timestamptz::timestamp;
SET TimeZone = 'MET';
SELECT '2020-07-01 00:00'::timestamptz, timestamp '2020-07-01 00:00' AT TIME ZONE 'MET', timestamp '2020-07-01 00:00' AT TIME ZONE 'met';
SET TimeZone = 'WET';
SELECT '2020-07-01 00:00'::timestamptz, '2020-07-01 00:00 WET'::timestamptz, '2020-07-01 00:00 WETDST'::timestamptz;
SET TimeZone = 'UTC';
SELECT '2011-03-27 00:00:00 MSK'::timestamptz, '2011-03-27 01:59:59 MSK'::timestamptz, '2011-03-27 02:00:00 MSK'::timestamptz,
  '2011-03-27 03:00:00 MSK'::timestamptz, '2011-03-27 04:00:00 MSK'::timestamptz;
SELECT '2014-10-26 00:00:00 MSK'::timestamptz, '2014-10-26 00:59:59 MSK'::timestamptz, '2014-10-26 01:00:00 MSK'::timestamptz,
  '2014-10-26 02:00:00 MSK'::timestamptz, '1990-07-01 12:00 MSK'::timestamptz, '1900-07-01 12:00 MSK'::timestamptz, '2030-07-01 12:00 MSK'::timestamptz, '2011-07-01 12:00 MSD'::timestamptz, '1985-07-01 12:00 msd'::timestamptz;
SELECT '2020-07-01 00:00 ART'::timestamptz, '2020-07-01 00:00 VET'::timestamptz, '2010-07-01 00:00 VET'::timestamptz, '2020-07-01 00:00 SGT'::timestamptz, '1975-07-01 00:00 SGT'::timestamptz;
SELECT '2020-07-01 00:00 NZST'::timestamptz, '2020-07-01 00:00 NPT'::timestamptz, '2020-07-01 00:00 CHADT'::timestamptz, '2020-07-01 00:00 IST'::timestamptz, '2020-07-01 00:00 WETDST'::timestamptz;
SELECT '2020-07-01 00:00 NONE'::timestamptz;
SELECT timestamp '2020-07-01 00:00' AT TIME ZONE 'NZST', timestamptz '2020-07-01 00:00+00' AT TIME ZONE 'ACST', timestamptz '2020-07-01 00:00+00' AT TIME ZONE 'Bst';
SELECT date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'NZDT'), date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'America/Caracas');
SELECT make_timestamptz(1973, 07, 15, 08, 15, 55.33, '+2'), make_timestamptz(1973, 07, 15, 08, 15, 55.33, '-2'), make_timestamptz(1973, 07, 15, 08, 15, 55.33, '+0530'),
  make_timestamptz(1973, 07, 15, 08, 15, 55.33, '-05:30:15'), make_timestamptz(1973, 07, 15, 08, 15, 55.33, '-15:59');
SELECT make_timestamptz(1973, 07, 15, 08, 15, 55.33, '2');
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, '+16');
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, '-16');
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, '+5:60');
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, 'Nowhere');
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, 'PST8PDT'), make_timestamptz(2014, 7, 10, 10, 10, 10, 'PST8PDT'), make_timestamptz(2014, 7, 10, 10, 10, 10, 'CET'), make_timestamptz(2014, 7, 10, 10, 10, 10, 'cest');
SELECT make_timestamptz(1973, 07, 15, 08, 15, 55.33, z) FROM (VALUES ('+2'), ('-03:30'), ('EST'), (NULL), ('Europe/Berlin')) AS v(z);
SELECT '2020-01-01 00:00:00+053015'::timestamptz;
SELECT '2020-01-01 00:00:00+05:30:15'::timestamptz, '2020-01-01 00:00:00-530'::timestamptz, '2020-01-01 00:00+5'::timestamptz;
SELECT '10:00 MSK'::timetz, '10:00 EEST'::timetz, '2011-07-01 10:00 MSK'::timetz, '1990-01-01 10:00 MSK'::timetz;
SELECT count(*), count(DISTINCT abbrev) FROM pg_timezone_abbrevs;
SELECT '2020-01-01 00:00:00+12345'::timestamptz;
SELECT '2020-01-01 00:00:00+1545'::timestamptz, '2020-01-01 00:00:00 -845'::timestamptz, '2020-01-01 00:00:00+8:5'::timestamptz;
SELECT '2020-01-01 00:00:00+1660'::timestamptz;
SELECT '2020-530'::date;
SELECT '2020-01-01-530'::timestamptz;
SELECT '12:00-530'::timetz, '12:00+0530'::timetz, '12:00-5:30:10'::timetz;
SELECT 'Wed Jul 11 10:51:14 2001 -0430'::timestamptz, 'Wed Jul 11 10:51:14 NZST 2001'::timestamptz, '20010711T105114-430'::timestamptz;
SELECT make_timestamptz(2020,13,2,3,4,5.5,'UTC');
SELECT make_timestamptz(2020,13,2,3,4,5.5,'');
SELECT make_timestamptz(2020,1,2,3,4,5.5,'');
SELECT make_timestamptz(2020,1,2,3,4,5.5,' ');
SELECT make_timestamptz(2020,1,2,3,4,5.5,'a');
SELECT make_timestamptz(2020,1,2,3,4,5.5,'Europe/Berlin');
SELECT make_timestamptz(2020,13,2,3,4,5.5,'nowhere');
SELECT make_timestamptz(2020,13,2,3,4,5.5,'1');
SELECT make_timestamptz(NULL,13,2,3,4,5.5,'1');
SELECT make_timestamptz(NULL,1,2,3,4,5.5,'nowhere');
SELECT make_timestamptz(y,1,2,3,4,5.5,'nowhere') FROM (SELECT 1 AS y WHERE false) t;
