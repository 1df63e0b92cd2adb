-- to_char() of times, intervals and numbers by everyday patterns, and the errors.
CREATE TABLE f (id int PRIMARY KEY, ts timestamp, tz timestamptz, d date, i interval, n numeric(12,3), x float8, k int, l int8);
INSERT INTO f VALUES (1, '2020-03-05 14:03:02.5', '2020-07-01 22:30:00+00', '2020-12-31', '3 days 04:05:06.789', 1234.567, 1234.567, 12, 1234567890123), (2, '1999-12-31 00:00:00', '1999-12-31 23:59:59.999999+00', '2021-01-01', '-5 days -50:00:01', -0.5, -0.5, -7, -1), (3, '2024-02-29 12:59:59.000001', '2024-02-29 12:00+00', '2023-01-02', '00:00', 0, 0, 0, 0), (4, '0987-06-11 11:11:11', '2021-03-28 01:00+00', '2022-08-23', '100:00:00', 999999.999, 1e6, 2147483647, 99), (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

SELECT to_char(ts, 'YYYY-MM-DD HH24:MI:SS'), to_char(tz, 'YYYY-MM-DD HH24:MI:SS.US'), to_char(d, 'YYYYMMDD'), to_char(ts, 'DD Mon YYYY'), to_char(ts, 'HH12:MI AM'), to_char(ts, 'hh:mi:ss pm') FROM f ORDER BY id;
SELECT to_char(ts, 'Month'), to_char(ts, 'MONTH|month|FMMonth'), to_char(ts, 'Day, DAY, day, FMDay'), to_char(ts, 'DY Dy dy MON mon'), to_char(ts, 'FMDD/FMMM/YY Y YYY'), to_char(ts, 'Y,YYY') FROM f ORDER BY id;
SELECT to_char(ts, 'DDD D ID IW WW W Q CC J'), to_char(d, 'IYYY-"W"IW-ID IYY IY I'), to_char(ts, 'SSSS MS US FF1 FF3 FF6'), to_char(ts, 'FMHH24:FMMI:FMSS.FMMS') FROM f ORDER BY id;
SELECT to_char(ts, 'DDth FMDDTH DDDth YYYYth HH24TH'), to_char(ts, '"quoted YYYY" YYYY \"MM\" x-?'), to_char(ts, 'A.M. p.m. a.m. P.M.'), to_char(tz, 'OF TZH TZM'), to_char(ts, 'OF') FROM f ORDER BY id;
SELECT to_char(i, 'HH24:MI:SS'), to_char(i, 'DD HH24:MI:SS.MS'), to_char(i, 'FMHH24 FMMI US') FROM f ORDER BY id;
SELECT to_char(ts, ''), to_char(ts, NULL), to_char(NULL::timestamp, 'YYYY'), to_char(timestamp '2020-01-01', 'literal') FROM f ORDER BY id;
SELECT to_char(k, '999'), to_char(k, '000'), to_char(k, '9,999'), to_char(k, 'FM999'), to_char(k, 'FM000'), to_char(k, '9'), to_char(k, 'S999'), to_char(k, '999S'), to_char(k, '999MI'), to_char(k, 'FM999MI') FROM f ORDER BY id;
SELECT to_char(n, '999,999.99'), to_char(n, 'FM999,999.99'), to_char(n, 'FM999990.00'), to_char(n, '9.9'), to_char(n, '0.0'), to_char(n, '999999'), to_char(n, 'FM9999.999'), to_char(n, '.99'), to_char(n, '000,000.000') FROM f ORDER BY id;
SELECT to_char(x, '9999999.99'), to_char(x, 'FM9999990.099'), to_char(x, '9G999G999D9'), to_char(x, 'S9999999.9'), to_char(x, '9999999.9MI'), to_char(x, 'FM9999999'), to_char(l, '9,999,999,999,999'), to_char(l, 'FM9999999999999') FROM f ORDER BY id;
SELECT to_char(k, '$999'), to_char(n, '$999,999.99'), to_char(12, '99'), to_char(-12, '99'), to_char(0.1, '9.99'), to_char(-0.001, '9.99'), to_char(0, '9'), to_char(0, 'FM9.99'), to_char(0, 'FM9'), to_char(5.5, 'FM0.0'), to_char(-5, '0999'), to_char(148.5, 'FM999.990'), to_char(2.5, '9'), to_char(3.5::float8, '9') FROM f ORDER BY id;
SELECT to_char(1, true);
SELECT to_char('x', 'YYYY');

SET TimeZone = 'America/New_York';
SELECT to_char(tz, 'YYYY-MM-DD HH24:MI:SS OF TZH:TZM'), to_char(d, 'YYYY-MM-DD HH24') FROM f WHERE id < 5 ORDER BY id;
RESET TimeZone;

-- L (no currency in C), V (decimals without a point), TH.
SELECT to_char(485, 'L999'), to_char(12, '99V999'), to_char(485,'999th'), to_char(482, '999TH'), to_char(12.4, '99V999'), to_char(12.45, '99V9'), to_char(1, 'L9.99'), to_char(-1, 'L9.99'), to_char(-485, 'L999'), to_char(-485,'999th'), to_char(0,'9th'), to_char(11,'99th'), to_char(111,'999TH'), to_char(1000,'999th');
SELECT to_char(x, '99V99'), to_char(x, 'S99V9'), to_char(x, 'FM99V9'), to_char(x,'99V9MI'), to_char(x,'09V9'), to_char(x, '99V9PR'), to_char(x,'SG99V9') FROM (values (1.25),(-1.25),(0.04),(0.05),(-0.05),(99.99),(100),(-12)) v(x);
SELECT to_char(x, '99V99'), to_char(x,'99th'), to_char(x,'FM99TH'), to_char(x,'999L'), to_char(x,'L99'), to_char(x,'99.9th'), to_char(x,'L99.9'), to_char(x,'99"th"') FROM (values (1),(2),(3),(4),(11),(-1),(-21),(0),(23),(100)) v(x);
SELECT to_char(x,'9,999TH'), to_char(x,'S999th'), to_char(x,'L9,999'), to_char(x, 'SG999TH'), to_char(x,'MI999th') FROM (values (1),(22),(-33),(1003),(0)) v(x);
SELECT to_char(x,'999th') FROM (values (1.2),(2.5),(22.7),(-0.4)) v(x);
DROP TABLE f;
