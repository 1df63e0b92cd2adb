SELECT (-2147483648)::int4 % (-1)::int4, (-32768)::int2 % (-1)::int2, (-9223372036854775808)::int8 % (-1)::int8, 7 %
    -2, 5 % 0;
CREATE TABLE type_edges (i int4, b int8, s int2, t text, n numeric, f float8);
INSERT INTO type_edges VALUES (-2147483648, -9223372036854775808, -32768, 'NaN', 1.5, 'NaN'), (7, 8, -1, 'infinity',
    2, 0), (NULL,NULL,NULL,NULL,NULL,NULL);
SELECT i % -1, b % (-1)::int8, s % (-1)::int2, i % s, mod(i, s) FROM type_edges ORDER BY i;
SELECT mod(-9223372036854775808, -1), mod(7.5, -1);
SELECT b::oid FROM type_edges;
SELECT i::oid FROM type_edges ORDER BY i;
SELECT 4294967296::int8::oid;
SELECT (-1)::oid, (-1)::int4::oid, 4294967295::oid;
SELECT justify_hours(interval '2147483647 days 24 hrs');
SELECT justify_days(interval '2147483647 months 30 days');
SELECT justify_interval(interval '2147483647 months 30 days');
SELECT make_interval(years := 2147483647);
SELECT extract(epoch from interval '1000000000 days'), date_part('epoch', interval '1000000000 days'), extract(epoch
    from interval '178956970 years -1.5 sec');
SELECT extract(epoch from timestamp '2020-01-01 00:00:00.123456'), extract(epoch from interval '1.5 sec');
SELECT date_part('msec', timestamp '2020-01-01 00:00:01.5'), date_part('usec', timestamp '2020-01-01 00:00:01.5'),
    extract(mils from timestamp '2020-01-01'), extract(cent from date '2020-01-01'), extract(dec from date
    '2020-01-01'), extract(qtr from date '2020-05-01'), extract(y from date '2020-01-01'), extract(mon from date
    '2020-03-01'), extract(m from timestamp '2020-01-01 00:07:01.5'), extract(h from time '05:06'), extract(s from
    time '05:06:07'), extract(j from date '2020-01-01'), extract(jd from date '2020-01-01'), extract(c from date
    '2020-01-01');
SELECT date_trunc('mon', timestamp '2020-05-06 07:08:09.123456'), date_trunc('qtr', timestamp '2020-05-06'),
    date_trunc('cent', timestamp '2020-05-06'), date_trunc('mil', timestamp '2020-05-06'), date_trunc('dec',
    timestamp '2020-05-06'), date_trunc('w', timestamp '2020-05-06'), date_trunc('hr', timestamp '2020-05-06
    07:08:09.123456'), date_trunc('min', timestamp '2020-05-06 07:08:09.123456'), date_trunc('sec', timestamp
    '2020-05-06 07:08:09.123456'), date_trunc('ms', timestamp '2020-05-06 07:08:09.123456'), date_trunc('us',
    timestamp '2020-05-06 07:08:09.123456');
SELECT date_trunc('year', interval '3 years 2 mons'), date_trunc('millennia', interval '3000 years 2 mons'),
    date_trunc('qtr', interval '8 mons');
SELECT extract(timezone_m from date '2020-01-01');
SELECT extract(timezone_h from timestamptz '2020-01-01');
SELECT extract(ago from date '2020-01-01');
SELECT extract(foo from date '2020-01-01');
SELECT date_trunc('ago', timestamp '2020-01-01');
SELECT date_trunc('dow', timestamp '2020-01-01');
SELECT date_trunc('timezone', timestamp '2020-01-01');
SELECT extract('millenniumx' from date '2020-01-01');
SELECT date_bin('200000000 days'::interval, '2024-02-01'::timestamp, '2024-01-01'::timestamp);
SELECT date_bin('20000 days'::interval, '2024-02-01'::timestamp, '2024-01-01'::timestamp);
SELECT make_date(0, 3, 15);
SELECT make_date(2020, 3, 15), make_date(NULL, 3, 1);
SELECT make_date(2020, 13, 15);
SELECT regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, -1, 'i');
SELECT regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 0, 1, 'i');
SELECT regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 0, 'i'), regexp_replace('A PostgreSQL function',
    'a|e|i|o|u', 'X', 3), regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 'g');
SELECT 'a_c'::bytea LIKE 'a$__'::bytea ESCAPE '$'::bytea, 'a_c'::bytea NOT LIKE 'a$__'::bytea ESCAPE '$'::bytea,
    'a\\c'::bytea LIKE 'a$_%'::bytea ESCAPE '$'::bytea;
SELECT 'abc' LIKE 'a$_c' ESCAPE '$', 'a_c' LIKE 'a$_c' ESCAPE '$';
SELECT 'Wed Jul 11 10:51:14 GMT-4 2001'::timestamptz, 'Wed Jul 11 10:51:14 GMT+4 2001'::timestamptz, 'Wed Jul 11
    10:51:14 PST-03:00 2001'::timestamptz, 'Wed Jul 11 10:51:14 PST+03:00 2001'::timestamptz;
SELECT '2000-03-15 03:14:04 PST+8'::timestamp, '2000-03-15 02:14:05 MST+7:00'::timestamptz, '2000-03-15 02:14:05
    UTC+7:00'::timestamptz, '2000-03-15 02:14:05 UTC'::timestamptz;
SELECT '2000-03-15 02:14:05-08'::timestamptz, '2000-03-15T02:14:05-08'::timestamptz,
    '2000-03-15T02:14:05Z'::timestamptz, '10-Jan-2020'::date, 'Jan 10 2020'::date;
SELECT '15:36:39 America/New_York'::time;
SELECT '15:36:39 PST'::time, '15:36:39-08'::time, '15:36:39 UTC'::time, '2020-01-01 15:36:39 America/New_York'::time;
SELECT '\101'::"char", '\000'::"char" = '', 'abc'::"char", ''::"char", '\'::"char", 'a'::"char"::text,
    '\101'::text::"char";
SELECT t::"char" FROM type_edges ORDER BY 1;
SELECT booleq(true, false), boolne(true, false), int4pl(1, 2), int4mi(5, 3), int8mul(2, 3), texteq('a', 'a'),
    textcat('a','b'), float8(7::int8), float8(7), int4um(3), numeric_add(1.5, 2), int4eq(i, 7), text_lt('a','b'),
    float8pl(1, 2), int48eq(1,1), int4(3.7::float8), int8(5), "numeric"(7), text(bpchar 'ab ') FROM type_edges ORDER
    BY i;
SELECT booleq(1, true);
SELECT int4pl(i, 1) FROM type_edges WHERE booleq(i > 0, true);
SELECT int4xor(5, 1), int4not(3), int4abs(-3), date_eq(date '2020-01-01', date '2020-01-01'),
    timestamp_pl_interval(timestamp '2020-01-01', '1 day'), numeric_gt(2,1), textlike('abc', 'a%'), interval_eq('1
    day', '24 hours'), bpcharlt('a','b'), varchar('abc', 2, true);
SELECT 3.14159265358979323846264338::numeric;
SELECT 3.14159265358979323846264338;
SELECT format('%*0$s', 'Hello');
SELECT format('%s, %s', variadic array['Hello','World']), format('%s, %s', variadic array[1, 2]), format('%s, %s',
    variadic array[true, false]), format('%2$s, %1$s', variadic array['first', 'second']);
SELECT format('%s, %s', variadic array[true, false]::text[]);
SELECT format('Hello', variadic NULL::int[]), format('a', variadic '{}'::text[]);
SELECT format('%s %s', variadic '{1,2}'::int[]);
SELECT format('%s', variadic NULL::int[]);
SELECT format('%s %s', variadic array['a']);
SELECT format('%s', variadic 'a');
SELECT format('>>%2$*1$L<<', 10, 'Hello'), format('>>%2$*1$L<<', 10, NULL), format('>>%2$*1$L<<', -10, NULL),
    format('>>%*s<<', 10, 'Hello'), format('>>%2$*1$L<<', NULL, 'Hello'), format('>>%2$*1$L<<', 0, 'Hello'),
    format('>>%-*s<<', 6, 'Hello'), format('>>%*s<<', -8, 'Hello');
SELECT format('>>%*1$s<<', 10, 'Hello');
SELECT format('>>%10s<<', 'Hello'), format('>>%-10s<<', 'Hello'), format('>>%1$10s %1$s %s<<', 'a', 'b'),
    format('%%%s', 1), format('%5I|%-5L|', 'a', 'b');
SELECT format('%*s|', g, 'ab') FROM (VALUES (5), (-5), (NULL), (0)) v(g);
SELECT format('%*s|', '5', 'ab');
SELECT format('%*', 5);
SELECT format('%1$', 5);
SELECT format('%5*s', 5, 'a');
SELECT format('%d', 5);
SELECT format('%s %*s', 1, 2);
SELECT date 'Jan-08-99', date 'Jan-08-1999', date '1999 01 08', date '08 01 99', date '08 01 1999', date '01 08 99',
    date '1999 08 01', date '08 Jan 99', date 'Jan 08 1999', date '1999 Jan 08', date '1999 08 Jan', date 'January
    8, 1999', date '08-Jan-1999';
SELECT date '99 01 08';
SELECT date '99 08 01';
SELECT timestamp 'Feb-10-1997 17:32:01', timestamptz 'Feb-10-1997 17:32:01 PST', timestamp 'Feb/10/1997 17:32',
    timestamp '1997 02 10 17:32:01';
SELECT timestamp 'Mon Feb 10 17:32:01 1997 PST', timestamp '19970210 173201', timestamp '1997.041 17:32', timestamp
    '20011227T040506', timestamp 'Feb 10 17:32:01.5 1997';
SELECT date '08 01';
SELECT date '1999 01';
SELECT date 'Foo-08-1999';
SELECT date '13 13 1999';
SELECT time '05 06';
SELECT timestamptz '2000-01-01 00:00 GMT+3', timestamptz '2000-01-01 00:00 Europe/Paris', timetz '05:06:07 PST-8';
SELECT interval '1 hour';
SELECT justify_interval(interval '-9223372036854775808 microseconds');
CREATE TABLE tg (b int8, n numeric(10,3), f float8);
INSERT INTO tg VALUES (123, -4.2, 1.5), (-4567890123456789, 0, -0.001), (0, 12345.678, 1234567), (NULL, NULL, NULL);
SELECT to_char(b, '9999999999999999PR'), to_char(b, 'FM9999999999999999PR'), to_char(b, 'MI9999999999999999'),
    to_char(b, 'SG9999999999999999'), to_char(b, '9999999999999999SG'), to_char(b, 'FMMI9999999999999999'),
    to_char(b, 'FM9999999999999999%'), to_char(b, '9999999999999999"kg"') FROM tg ORDER BY b;
SELECT to_char(n, '99999.99PR'), to_char(n, 'MI99999.99'), to_char(n, 'SG9,999.99'), to_char(n, '99.9%'), to_char(n,
    'FM99990.00%'), to_char(n, 'FM9,990.0"€"'), to_char(n, '0000.0SG'), to_char(n, '9PR') FROM tg ORDER BY b;
SELECT to_char(f, '99999.99PR'), to_char(f, 'MI9999999.99'), to_char(f, 'FMSG9,999,990.99'), to_char(f, '99.9%'),
    to_char(f, 'FM9999999.999PR') FROM tg ORDER BY b;
SELECT to_char(-0.1, '9PR'), to_char(-0.1, 'MI9');
SELECT to_char(12, '$99'), to_char(-12, '99MI'), to_char(12, '99S'), to_char(-12, 'S99'), to_char(12.5, '99D9');
create table digits (n numeric, m numeric(30,20), i int);
insert into digits values (2, 2, 2), (1.5, 1.5, 3), (123456789.123456789, 5.5, 4), (-1.000000000000000001, -7.00000000000000000001, -5);
select round(n * 3.14159265358979323846264338, 18), round(m * 3.14159265358979323846264338, 18), i * 3.14159265358979323846264338 from digits;
select round(n * 0.00000000000000000000000000000000000123, 18), round(n * m, 18), round(m * m, 18) from digits;
drop table digits;
