-- to_char() of numbers and to_number() in patterns of every word.
CREATE TABLE n (i int PRIMARY KEY, x numeric(12, 4), d float8, t text);
INSERT INTO n VALUES (1, 0, 0, '12,454.8-'), (2, -1234.5678, -1234.5678, '<564646.654564>'), (3, 99.5, 1e20, '.-01'), (4, NULL, 'NaN', NULL), (5, 4, 0.125, '$ 1,2.34');
SELECT i, to_char(x, 'FM999.'), to_char(x, '9999SG'), to_char(x, 'RN'), to_char(x, 'FMrn'), to_char(x, '9.99EEEE'), to_char(x, 'x999"text"9'), to_char(x, '9999PL'), to_char(x, 'FM9G999D099PR'), to_char(x, 'B9999'), to_char(x, '99V99') FROM n ORDER BY i;
SELECT i, to_char(d, '9999.99'), to_char(d, 'FM999999999999999999999.99'), to_char(d, '9.999EEEE'), to_char(d, '99V9') FROM n ORDER BY i;
SELECT to_number('.-01', 'S99.99'), to_number('12,454.8-', '99G999D9S'), to_number('<564646.654564>', '999999.999999PR'), to_number('1234.56', 'L9,999.99'), to_number('42nd', '99th'), to_number('12345', '999V99');
SELECT to_number('$ 1,234', 'L9,999'), to_number('1,234', 'FM9,999');
SELECT to_number('12', '9.9.9');
SELECT to_number('12', 'RN');
SELECT to_number('1234', '99');
SELECT to_char(1, '9EEEE9');
SELECT to_char(1, 'S9PR');
SELECT i FROM n WHERE to_char(x, '9.9EEEE') LIKE '%e+03%';
DROP TABLE n;
