-- Arrays of oids that are shown by name.
SELECT ARRAY['int4'::regtype, 'text'], ARRAY['pg_class'::regclass, NULL], '{int4,timestamp without time zone}'::regtype[], ARRAY[]::regtype[], NULL::regtype[];
SELECT proargtypes::regtype[], proname FROM pg_proc WHERE proname IN ('lower', 'make_date', 'now') AND pronargs <> 1 ORDER BY proname;
SELECT array_agg(t ORDER BY t) FROM (VALUES (23::regtype), (25), (NULL), (99999999)) v (t);
SELECT a, a::text, a::text[], array_to_string(a::text[], '+') FROM (VALUES (ARRAY['int4'::regtype, 'text']), (ARRAY['timestamp'::regtype, NULL]), (NULL), ('{}')) v (a);
SELECT (ARRAY['int4'::regtype, 'text'])[2], unnest(ARRAY['int4'::regtype, 'text']);
SELECT ARRAY['int4'::regtype]::oid[], ARRAY[23, 25]::oid[]::regtype[], 23 = ANY (ARRAY['int4'::regtype]);
SELECT ARRAY['nope'::regtype];
PREPARE named_arrays_p (regtype[], regclass) AS SELECT $1, $2, 'int4'::regtype = ANY ($1);
EXECUTE named_arrays_p ('{int4,"double precision",NULL}'::regtype[], 'pg_class'::regclass);
EXECUTE named_arrays_p (ARRAY['text'::regtype], NULL);
SELECT count(*) FROM pg_type WHERE oid = ANY ('{int4,text}'::regtype[]);
