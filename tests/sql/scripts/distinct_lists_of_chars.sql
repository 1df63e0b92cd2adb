-- ORDER BY of an aggregate with DISTINCT names an argument before the aggregate has made a text of it.
CREATE TABLE lists_of_chars (id int, c char(4), v varchar(4), t text);
INSERT INTO lists_of_chars VALUES (1, 'b', 'b ', 'b'), (2, 'a', 'b', 'a'), (3, 'b', NULL, 'B'), (4, NULL, 'a', 'a');
SELECT string_agg(DISTINCT c, ',' ORDER BY c), string_agg(DISTINCT c, ',' ORDER BY c DESC) FROM lists_of_chars;
SELECT string_agg(DISTINCT v, ',' ORDER BY v), string_agg(DISTINCT v, ',' ORDER BY v DESC) FROM lists_of_chars;
SELECT string_agg(DISTINCT t, ',' ORDER BY t), string_agg(DISTINCT c, ',' ORDER BY c NULLS FIRST) FROM lists_of_chars;
SELECT string_agg(DISTINCT c::text, ',' ORDER BY c) FROM lists_of_chars;
SELECT string_agg(DISTINCT c, ',' ORDER BY upper(c)) FROM lists_of_chars;
SELECT string_agg(DISTINCT c, ',' ORDER BY v) FROM lists_of_chars;
DROP TABLE lists_of_chars;
