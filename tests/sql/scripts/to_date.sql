-- to_date() and to_timestamp() of texts that follow their patterns to the letter, and the errors of those that do not exist.
CREATE TABLE r (id int PRIMARY KEY, a text, b text, c text);
INSERT INTO r VALUES (1, '2020-02-29', '2020-02-29 13:14:15', '20200229131415'), (2, '1999-1-5', '1999-12-31 00:00:00', '19991231000000'), (3, NULL, NULL, NULL);

SELECT to_date(a, 'YYYY-MM-DD'), to_timestamp(b, 'YYYY-MM-DD HH24:MI:SS'), to_timestamp(c, 'YYYYMMDDHH24MISS') FROM r ORDER BY id;
SELECT to_date('29/02/2020', 'DD/MM/YYYY'), to_date('20200229', 'yyyymmdd'), to_date('05 Dec 2000', 'DD Mon YYYY'), to_date('2020.01', 'YYYY.MM'), to_date('Jul-04-1999', 'MON-DD-YYYY'), to_date(NULL, 'YYYY'), to_date('2020-01-01', NULL);
SELECT to_timestamp('2020-02-29 01:14 PM', 'YYYY-MM-DD HH:MI AM'), to_timestamp('2020-02-29 12:00 am', 'YYYY-MM-DD HH12:MI pm'), to_timestamp('2020-02-29 13:14:15.123456', 'YYYY-MM-DD HH24:MI:SS.US'), to_timestamp('2020-02-29 13:14:15.123', 'YYYY-MM-DD HH24:MI:SS.MS');
SELECT to_date('2021-02-29', 'YYYY-MM-DD');
SELECT to_date('2021-13-01', 'YYYY-MM-DD');
SELECT to_timestamp('2021-01-01 25:00', 'YYYY-MM-DD HH24:MI');
SELECT to_timestamp('2021-01-01 13:00 PM', 'YYYY-MM-DD HH12:MI PM');
SELECT to_date(5, 'YYYY');

SET TimeZone = 'Europe/Berlin';
SELECT to_timestamp(b, 'YYYY-MM-DD HH24:MI:SS'), to_timestamp('2020-07-01', 'YYYY-MM-DD') FROM r ORDER BY id;
RESET TimeZone;

DROP TABLE r;
