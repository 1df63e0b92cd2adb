-- Aggregates of arrays and of bit strings: the least and greatest array, and all bits together.
CREATE TABLE a (id integer PRIMARY KEY, g integer, i integer[], t text[], v varchar(3)[], b bit(3), w bit varying);
INSERT INTO a VALUES (1, 1, '{1,2}', '{a,b}', '{a}', '101', '1'), (2, 1, '{1,NULL}', '{a}', '{b}', '110', '1'), (3, 1, '{1}', '{}', NULL, NULL, NULL), (4, 2, '{}', '{B}', '{c,a}', '011', '1'), (5, 2, NULL, '{ä}', '{c}', '011', '11');
SELECT g, min(i), max(i), min(t), max(t), min(v), max(v) FROM a GROUP BY g ORDER BY g;
SELECT min(i), max(t), count(*) FROM a WHERE false;
SELECT max(ARRAY[[id, g], [g, id]]), min(ARRAY[1.5::float8, 'NaN']), max(DISTINCT i) FILTER (WHERE g = 1), max(ARRAY[true, id > 3]), min(ARRAY[date '2024-01-01' + id]) FROM a;
SELECT id, max(t) OVER (ORDER BY id ROWS 1 PRECEDING) FROM a ORDER BY id;
SELECT g, bit_and(b), bit_or(b), bit_xor(b), bit_xor(DISTINCT b) FROM a GROUP BY g ORDER BY g;
SELECT bit_and(b), bit_or(b), bit_and(B''), bit_or(w) FILTER (WHERE id < 4), bit_xor(id::bit(4)) FROM a;
SELECT id, bit_or(b) OVER (ORDER BY id) FROM a ORDER BY id;
SELECT bit_or(b) FROM a WHERE false;
SELECT bit_and(w) FROM a;
SELECT bit_or(w) FROM a;
SELECT bit_xor(w) FROM a;
DROP TABLE a;
