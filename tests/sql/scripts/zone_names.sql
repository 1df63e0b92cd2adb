-- AT TIME ZONE by abbreviations, by hours to the west behind a name of one's own (POSIX), and by zones without a region.
SELECT timestamp '2020-06-01 12:00:00' AT TIME ZONE 'EST', timestamptz '2020-06-01 12:00:00+00' AT TIME ZONE 'CEST';
SELECT timestamptz '2020-06-01 00:00:00+00' AT TIME ZONE 'PST8PDT', timestamp '2020-12-01 00:00:00' AT TIME ZONE 'EST5EDT';
SELECT timestamptz '2020-06-01 00:00:00+00' AT TIME ZONE 'FOO+3', timestamptz '2020-06-01 00:00:00+00' AT TIME ZONE '<ABC>-2:30';
SELECT timestamp '2020-06-01 00:00:00' AT TIME ZONE 'UTC+3', timestamp '2020-06-01 00:00:00' AT TIME ZONE '+3', timestamp '2020-06-01 00:00:00' AT TIME ZONE '-03:30';
SELECT timestamp '2020-06-01 00:00:00' AT TIME ZONE 'Japan', timestamp '2020-06-01 00:00:00' AT TIME ZONE 'japan', timestamp '2020-06-01 00:00:00' AT TIME ZONE 'Etc/GMT+3';
SELECT timetz '12:00:00+01' AT TIME ZONE 'EST', timetz '12:00:00+01' AT TIME ZONE 'FOO+3', timetz '12:00:00+01' AT TIME ZONE 'Japan';
SELECT date_trunc('day', timestamptz '2020-06-01 03:00:00+00', 'EST'), date_trunc('day', timestamptz '2020-06-01 03:00:00+00', 'PST8PDT');
SELECT make_timestamptz(2020, 6, 1, 12, 0, 0, 'EST'), make_timestamptz(2020, 6, 1, 12, 0, 0, 'PST8PDT'), make_timestamptz(2020, 6, 1, 12, 0, 0, 'Japan');
SELECT timestamp '2020-06-01 00:00:00' AT TIME ZONE 'nowhere';
SELECT timestamp '2020-06-01 00:00:00' AT TIME ZONE 'Nowhere/Place';
SELECT t, t AT TIME ZONE 'EST', t AT TIME ZONE 'EST5EDT' FROM (VALUES (timestamptz '2020-01-01 00:00:00+00'), ('2020-07-01 00:00:00+00')) v(t) ORDER BY t;
SELECT timestamp '2020-06-01 00:00:00' AT TIME ZONE NULL, timestamp '2020-06-01 00:00:00' AT TIME ZONE 'z', timestamp '2020-06-01 00:00:00' AT TIME ZONE 'utc';
SELECT timestamp '2020-06-01 00:00:00' AT TIME ZONE interval '-5 hours', timestamp '2020-06-01 00:00:00' AT TIME ZONE interval '1 day';
