-- Dates and times whose numbers have labels, fractions of Julian days, and what is before all timestamps.
SELECT timestamptz 'Y2001M12D27H04M05S06.789+08', timestamptz 'Y2001M12D27H04MM05S06.789-08', timestamp 'y2001m02d04', date 'Y2001M12D27', timestamp 'd5 m6 y2020 h7';
SELECT timestamptz 'J2452271.5+08', timestamptz 'J2452271.5-08', timestamp 'J2452271.25', date 'J2451187', timestamp 'J2452271.';
SELECT timestamp 'y2001m13d04';
SELECT timestamp 'y2001m12';
SELECT timestamp 'y2001m12d04d05';
SELECT timestamp 'y2001.5m12d04';
SELECT timestamp '4714-11-23 23:59:59 BC';
SELECT timestamptz '4714-11-23 23:59:59+00 BC';
SELECT date '4714-11-23 BC';
SELECT x::timestamp, x::date FROM (VALUES ('y1999m1d2'), ('J2452271.5'), ('2020-01-01')) v(x) ORDER BY 1;
