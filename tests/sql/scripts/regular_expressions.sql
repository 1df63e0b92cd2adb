-- Functions of regular expressions with constant patterns: flags, groups, replacements, and the errors.
CREATE TABLE x (id int PRIMARY KEY, a text);
INSERT INTO x VALUES (1, 'foo123bar45'), (2, '  Größe 12.5 kg  '), (3, 'https://www.example.com/path/page?q=1'), (4, ''), (5, NULL), (6, 'a-b--c'), (7, 'line one
line two'), (8, '2020-01-02 / 1999-12-31'), (9, '<b>bold</b> <i>x</i>');

SELECT id, regexp_replace(a, '[0-9]+', '#'), regexp_replace(a, '[0-9]+', '#', 'g'), regexp_replace(a, '\d', '', 'g'), regexp_replace(a, '[^a-zA-Z]', '', 'g'), regexp_replace(a, '\s+', ' ', 'g') FROM x ORDER BY id;
SELECT id, regexp_replace(a, '^https?://([^/]+)/.*$', '\1'), regexp_replace(a, '(\d+)-(\d+)-(\d+)', '\3.\2.\1', 'g'), regexp_replace(a, '<.*?>', '', 'g'), regexp_replace(a, '<[^>]*>', '[\&]', 'g'), regexp_replace(a, 'O', '0', 'gi') FROM x ORDER BY id;
SELECT id, regexp_replace(a, '-+', '\\', 'g'), regexp_replace(a, 'o', '\x', 'g'), regexp_replace(a, 'o', '\2'), regexp_replace(a, '^\s*', ''), regexp_replace(a, '\s*$', ''), regexp_replace(a, '\w+', 'W', 'g'), regexp_replace(a, '\W', '_', 'g') FROM x ORDER BY id;
SELECT id, regexp_replace(a, '.*/', ''), regexp_replace(a, '[.]', ',', 'g'), regexp_replace(a, 'e.l', '!'), regexp_replace(a, '[\d.]+ ?kg', 'M'), regexp_replace(a, 'o{2,}', 'u'), regexp_replace(a, NULL, 'x'), regexp_replace(a, 'x', NULL) FROM x ORDER BY id;
SELECT id, substring(a from '[0-9]+'), substring(a from '([a-z]+)\d'), substring(a, '//([^/]*)'), regexp_substr(a, '[a-z]+'), regexp_count(a, '[aeiou]'), regexp_like(a, '^[fl]'), regexp_like(a, 'GRÖSSE|B', 'i'), regexp_match(a, '(\d+)-(\d+)'), regexp_match(a, '[a-z]+') FROM x ORDER BY id;
SELECT regexp_replace('abc', 'b', 'x', 'z');
SELECT regexp_match('abc', 'b', 'g');
SELECT regexp_like('abc', 'b', 'g');
SELECT regexp_replace('aXbxc', 'x', '-', 'gi'), regexp_replace('aXbxc', 'x', '-', 'gic'), regexp_replace('tel: 030/123-45', '[^\d]', '', 'g'), regexp_replace('John Smith', '(\w+)\s(\w+)', '\2, \1'), substring('foobar' from 'o(.)b'), substring('foobar' from 'z');

DROP TABLE x;

SELECT 'abc' SIMILAR TO 'abc', 'abc' SIMILAR TO 'a', 'abc' SIMILAR TO '%(b|d)%', 'abc' SIMILAR TO '(b|c)%', 'abc' NOT SIMILAR TO '_b_', 'a.c' SIMILAR TO 'a.c', 'abc' SIMILAR TO 'a.c', 'aab' SIMILAR TO 'a{2}b', 'a%' SIMILAR TO 'a\%', 'a%' SIMILAR TO 'a#%' ESCAPE '#', 'abc' SIMILAR TO '[a-c]+', 'a^b$' SIMILAR TO 'a^b$', NULL SIMILAR TO 'a', 'a' SIMILAR TO NULL, 'aXb' SIMILAR TO '(a|b)X(a|b)', E'a\nb' SIMILAR TO 'a_b', 'x' SIMILAR TO '', '' SIMILAR TO '%';
SELECT 'a' SIMILAR TO 'a' ESCAPE 'xx';
SELECT 1 SIMILAR TO '1';
SELECT 'a' LIKE 'a' ESCAPE 'xx';
SELECT 'abab' ~ '^(ab)\1$', 'abba' ~ '(b)\1', 'abc' ~ '(.)\1', 'aA' ~ '(a)\1', 'aA' ~* '(a)\1', NULL ~ '(a)\1', 'aa' !~ '(a)\1';
SELECT regexp_replace('the the cat sat sat', '\y(\w+) \1\y', '<\1>', 'g'), regexp_match('x=1;x=1', '(\w=\d);\1'), regexp_matches('aabbcd', '(.)\1', 'g'), substring('hello' from '(.)\1'), regexp_split_to_array('a,,b;;c,;d', '([,;])\1'), regexp_count('aabbcddd', '(.)\1');
SELECT v, v ~ '^(.)(.).?\2\1$', regexp_replace(v, '(.)\1+', '\1', 'g'), regexp_match(v, '(a*)(b?)\1\2') FROM (VALUES ('abcba'), ('aabbaa'), (''), (NULL), ('xyzzyx')) v (v);
SELECT regexp_match('aaaa', '(a+)\1{1,3}'), regexp_match('aaaaaa', '(a+?)\1{2,}?'), regexp_match('abcabcabd', '((a.)c)\1(?=ab)\2'), regexp_match('ab', '(a)|(b)\1');
SELECT 'a' ~ '\1';
SELECT 'a' ~ '(a\1)';
SELECT 'a' ~ '(a)\2';
SELECT 'aa' ~ '(?=(a))\1';
SELECT 'aaaaaaaaaaaa' ~ '(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)\10', 'aaaaaaaaaa' ~ '(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)\10', E'a\n' ~ '(a)\12';
