-- Less used forms: ORDER BY ... USING, texts as octets, intervals of some fields.
SELECT id FROM (VALUES (1), (3), (2)) t (id) ORDER BY id USING >;
SELECT id FROM (VALUES (1), (3), (NULL)) t (id) ORDER BY id USING < NULLS FIRST;
SELECT id FROM (VALUES (1), (3), (NULL)) t (id) ORDER BY id USING OPERATOR(pg_catalog.>);
SELECT array_agg(id ORDER BY id USING >) FROM (VALUES (1), (3), (2)) t (id);
SELECT id FROM (VALUES (1), (3), (2)) t (id) ORDER BY id USING =;
SELECT convert_from('abc', 'UTF8'), convert_to('é', 'utf-8'), convert_from('\xc3a9', 'UTF8'), encode(sha256(convert_to('é', 'UTF8')), 'hex'), convert_from(NULL, 'UTF8');
SELECT convert_from('\xff', 'UTF8');
SELECT convert_from(b, 'UTF8') FROM (VALUES ('\x6162'::bytea), ('')) v (b) ORDER BY 1;
SELECT interval '5' day, '1 year 2 days'::interval year, interval '1:30' minute to second, interval '3 days 5 hours' day, CAST('2 days 3 hours' AS interval day);
EXPLAIN (FORMAT nope) SELECT 1;
