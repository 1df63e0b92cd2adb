-- Functions of dates, times and intervals, with NULLs, the edges of their domains, and their errors.
CREATE TABLE d (id int PRIMARY KEY, d date, t time, ts timestamp, tz timestamptz, i interval);
INSERT INTO d VALUES (1, '2020-02-29', '10:20:30.5', '2020-02-29 10:20:30.123456', '2020-07-01 22:30:00+00', '1 year 2 mons 3 days 04:05:06.7'), (2, '1999-12-31', '00:00', '1999-12-31 23:59:59.999999', '1999-12-31 23:00:00+00', '-1 mons 40 days -30:00:00'), (3, '2021-03-28', '23:59:59.999999', '2021-03-28 02:30:00', '2021-03-28 01:30:00+00', '100 days 50:00:00'), (4, NULL, NULL, NULL, NULL, NULL), (5, '1900-01-01', '12:00', '1900-01-01', '1900-01-01 00:00+00', '00:00:00');

SELECT ts AT TIME ZONE 'Europe/Berlin', tz AT TIME ZONE 'Europe/Berlin', tz AT TIME ZONE 'america/new_york', timezone('UTC', ts), tz AT TIME ZONE 'UTC' FROM d WHERE id < 5 ORDER BY id;
SELECT ts AT TIME ZONE interval '2 hours', tz AT TIME ZONE interval '-05:30', d AT TIME ZONE 'Asia/Tokyo' FROM d WHERE id < 5 ORDER BY id;
SELECT ts AT TIME ZONE 'Mars/Phobos' FROM d;
SELECT ts AT TIME ZONE interval '1 month' FROM d;
SELECT ts AT TIME ZONE NULL FROM d;
SELECT date_trunc('day', tz, 'Australia/Sydney'), date_trunc('hour', tz, 'Asia/Kolkata'), date_trunc('month', tz, 'America/New_York'), date_trunc('year', tz) FROM d WHERE id < 5 ORDER BY id;
SELECT date_trunc('week', ts), date_trunc('quarter', ts), date_trunc('decade', ts), date_trunc('century', d), date_trunc('minute', i), date_trunc('milliseconds', ts) FROM d ORDER BY id;
SELECT age(ts, '2001-04-10'), age('2001-04-10', ts), age(d, '2019-03-31'), age(tz, '2020-01-31 12:00+00'), age(ts, d) FROM d ORDER BY id;
SELECT age(timestamp '2020-03-31', timestamp '2020-02-29 12:00'), age('2020-02-29 12:00', timestamp '2020-03-31'), age(timestamp '2020-03-01', timestamp '2020-01-31'), age(timestamp '2020-01-31', timestamp '2020-03-01');
SELECT age(date_trunc('day', now())) < interval '1 day', age(NULL::timestamp);
SELECT make_date(2020, 2, 29), make_time(8, 15, 23.5), make_time(23, 59, 59.999999), make_timestamp(2020, 2, 29, 8, 15, 23.5), make_timestamptz(2020, 2, 29, 8, 15, 23.5), make_timestamptz(2020, 7, 1, 8, 15, 23.5, 'Europe/Berlin'), make_time(NULL, 1, 2);
SELECT make_timestamp(2020, 2, 29, 8, 15, 59.9999999), make_time(22, 59, 60);
SELECT make_date(2021, 2, 29);
SELECT make_time(25, 0, 0);
SELECT make_timestamp(2020, 13, 1, 0, 0, 0);
SELECT make_timestamp(2020, 1, 1, 0, 60, 0);
SELECT make_timestamptz(2020, 1, 1, 0, 0, 0, 'Nowhere/Land');
SELECT make_interval(days => 10), make_interval(1, 2, 3, 4, 5, 6, 7.8), make_interval(), make_interval(hours => 25, mins => -90), make_interval(secs => 0.0000005), make_interval(years => id, days => -id) FROM d ORDER BY id;
SELECT make_interval(nope => 1);
SELECT make_interval('x');
SELECT make_interval(days => true);
SELECT justify_hours(i), justify_days(i), justify_interval(i) FROM d ORDER BY id;
SELECT justify_interval(interval '1 mon -1 hour'), justify_hours(interval '27 hours'), justify_days(interval '35 days'), justify_days(interval '-35 days 1 mon'), justify_interval(interval '-1 mon 29 days 25 hours'), justify_hours(interval '1 day -25 hours'), justify_interval(interval '2 mons -61 days 1 hour');
SELECT isfinite(d), isfinite(ts), isfinite(tz), isfinite(i) FROM d ORDER BY id;
SELECT (date '2001-02-16', date '2001-12-21') OVERLAPS (date '2001-10-30', date '2002-10-30'), (timestamp '2001-02-16', interval '100 days') OVERLAPS (timestamp '2001-10-30', timestamp '2002-10-30');
SELECT (timestamp '2020-01-01', timestamp '2020-01-02') OVERLAPS (timestamp '2020-01-02', timestamp '2020-01-03'), (timestamp '2020-01-01', timestamp '2020-01-01') OVERLAPS (timestamp '2020-01-01', timestamp '2020-01-01'), (timestamp '2020-01-02', timestamp '2020-01-01') OVERLAPS (NULL, timestamp '2020-01-01 12:00'), (timestamp '2020-01-01', NULL) OVERLAPS (timestamp '2019-01-01', timestamp '2021-01-01');
SELECT (time '10:00', time '11:00') OVERLAPS (time '10:30', interval '1 hour'), (ts, interval '1 day') OVERLAPS (ts, NULL::timestamp), (ts, ts) OVERLAPS (d, tz) FROM d ORDER BY id;
SELECT extract(timezone from tz), extract(timezone_hour from tz), extract(timezone_minute from tz), extract(julian from d), extract(epoch from tz), extract(epoch from d), extract(epoch from i), extract(epoch from t) FROM d ORDER BY id;
SELECT date_part('year', ts), date_part('epoch', i), date_part('dow', d), date_part('second', t), date_part('milliseconds', ts), extract(century from ts), extract(millennium from ts), extract(isoyear from d), extract(week from d) FROM d ORDER BY id;
SELECT extract(timezone from ts) FROM d;
SELECT extract(hour from d) FROM d;
SELECT extract(nope from d) FROM d;
SELECT extract(year from t) FROM d;
SELECT to_timestamp(0), to_timestamp(1584352323.456789), to_timestamp(-1.5), to_timestamp(NULL), to_timestamp(id * 1e8) FROM d ORDER BY id;
SELECT to_timestamp('nan');
SELECT date_bin('15 minutes', ts, timestamp '2001-01-01') FROM d ORDER BY id;
SELECT ts - d, d - 1, d + 30, d - date '2020-01-01', ts + i, tz - i, t + interval '1 hour', i * 2, i / 2, -i FROM d ORDER BY id;

SET TimeZone = 'Europe/Berlin';
SELECT extract(timezone from tz), extract(timezone_hour from tz), extract(timezone_minute from tz) FROM d WHERE id < 4 ORDER BY id;
SELECT date_trunc('day', tz), date_trunc('day', tz, 'UTC'), age(tz, '2020-01-31 12:00+00'), make_timestamptz(2020, 7, 1, 8, 15, 0), tz AT TIME ZONE 'UTC' FROM d WHERE id < 4 ORDER BY id;
RESET TimeZone;

DROP TABLE d;
