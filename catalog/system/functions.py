"""PostgreSQL's functions about its catalogs, as SQL over the catalogs.

Owns: ``SCALARS`` and ``TABLES``: bodies by signature, with ``$n`` for the arguments, like PostgreSQL's functions of
language SQL. The binder replaces a call with the body, so that an engine joins with a relation instead of calling a
function row by row. Names in a body are those of pg_catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from catalog.values.interval_fields import FIELD_RANGES, FULL_RANGE, fields_text

#: The schema of the relations that functions such as pg_get_viewdef() look up; clients do not see it.
LOOKUPS: Final = "pg_lookups"


def _view(column: str) -> str:
    """A view's definition."""
    return f"(SELECT {column} FROM pg_lookups.view_definitions WHERE oid = $1)"


def _view_as_asked() -> str:
    """A view's definition, pretty-printed if the second argument says so."""
    return f"CASE WHEN $2 THEN {_view('pretty')} ELSE {_view('plain')} END"


#: 4 for UPDATE, 8 for INSERT, 16 for DELETE; rows can be deleted through a view without updatable columns, too.
_UPDATES: Final = """(SELECT CASE relkind WHEN 'r' THEN 28 WHEN 'v' THEN (SELECT CASE WHEN max(place) > 0 THEN 28
    WHEN max(place) = 0 THEN 16 ELSE 0 END FROM pg_lookups.view_updates WHERE oid = $1)
    ELSE 0 END FROM pg_class WHERE oid = $1)"""


def _visible(relation: str, prefix: str) -> str:
    """Whether an object is found by its unqualified name: no schema before its own in the path has an object of that
    name."""
    return (
        f"(SELECT n.nspname = ANY (current_schemas(true)) FROM {relation} x "
        f"JOIN pg_namespace n ON n.oid = x.{prefix}namespace WHERE x.oid = $1)"
    )


#: The text after an interval's name for the fields of its modifier.
_INTERVAL_FIELDS: Final = (
    "CASE $2 >> 16 " + " ".join(f"WHEN {mask} THEN ' {fields_text(mask)}'" for mask in FIELD_RANGES) + " ELSE '' END"
)
_INTERVAL_DIGITS: Final = "CASE WHEN $2 & 65535 = 65535 THEN '' ELSE '(' || ($2 & 65535)::text || ')' END"
#: Stands for a missing modifier (NULL) in a call of format_type(); every modifier is larger.
NO_MODIFIER: Final = -(1 << 32)
_FORMAT_TYPE: Final = f"""coalesce((SELECT
    pg_lookups.type_shown(n.head, n.tail, n.element, coalesce($2::int8, {NO_MODIFIER}))
    FROM pg_lookups.type_names n WHERE n.oid = $1), CASE WHEN $1 = 0 THEN '-' WHEN $1 IS NOT NULL THEN '???' END)"""
#: Functions that only bodies call, in the schema of the relations that they look up: the types of their results.
OF_BODIES: Final[dict[str, str]] = {"type_shown": "text"}


def _signature(column: str) -> str:
    return f"(SELECT s.{column} FROM pg_lookups.signatures s WHERE s.oid = $1)"


def _rounded(unit: int, name: str) -> str:
    """A number of bytes in a unit, rounded half away from zero, as in dbsize.c."""
    return f"(($1 / {unit // 2} + CASE WHEN $1 < 0 THEN -1 ELSE 1 END) / 2)::text || ' {name}'"


def _below(unit: int) -> str:
    return f"$1 BETWEEN {1 - 20479 * unit // 2} AND {20479 * unit // 2 - 1}"


_PRETTY: Final = (
    f"CASE WHEN $1 BETWEEN -10239 AND 10239 THEN $1::text || ' bytes' "
    f"WHEN {_below(1 << 10)} THEN {_rounded(1 << 10, 'kB')} "
    f"WHEN {_below(1 << 20)} THEN {_rounded(1 << 20, 'MB')} WHEN {_below(1 << 30)} THEN {_rounded(1 << 30, 'GB')} "
    f"WHEN {_below(1 << 40)} THEN {_rounded(1 << 40, 'TB')} ELSE {_rounded(1 << 50, 'PB')} END"
)
#: A small number of bytes, in bytes.
_PRETTY_NUMERIC: Final = (
    f"CASE WHEN abs($1) < 10240 THEN $1::text || ' bytes' ELSE {_PRETTY.replace('$1', 'trunc($1)::int8')} END"
)
_SIZE: Final = "coalesce((SELECT s.bytes FROM pg_lookups.sizes s WHERE s.oid = $1), 0)"
_LSN: Final = "(SELECT lsn FROM pg_lookups.log_position)"


def _digits(text: str) -> str:
    """The number in a text of hexadecimal digits."""
    digit = f"strpos('0123456789ABCDEF', upper(substr(lpad({text}, 8, '0'), n, 1))) - 1"
    return f"(SELECT sum((({digit})::int8) << (4 * (8 - n))) FROM generate_series(1, 8) n)"


def _position(lsn: str) -> str:
    """The number of a pg_lsn."""
    high, low = (_digits(f"split_part({lsn}::text, '/', {part})") for part in (1, 2))
    return f"({high} * 4294967296 + {low})"


#: An expression in its pretty form; texts without needless parentheses are not listed.
_PRETTY_TEXT: Final = (
    "coalesce((SELECT p.pretty FROM pg_lookups.pretty_expressions p WHERE p.text = $1::text), $1::text)"
)


def _constraint(shown: str) -> str:
    """A constraint's definition, or its pretty form."""
    return f"(SELECT {shown} FROM pg_lookups.constraint_definitions d WHERE d.oid = $1)"


def _cleaned(name: str) -> str:
    """An encoding's name as PostgreSQL compares it: letters and digits in lower case (clean_encoding_name)."""
    return f"lower(regexp_replace({name}::text, '[^a-zA-Z0-9]', '', 'g'))"


def _index(shown: str, place: str) -> str:
    """The definition of an index (place 0) or of one of its columns."""
    return f"(SELECT {shown} FROM pg_lookups.index_definitions d WHERE d.oid = $1 AND d.place = {place})"


def _serial(shown: str) -> str:
    """The sequence of column $2 of the relation $1."""
    return f"(SELECT s.{shown} FROM pg_lookups.serial_sequences s WHERE s.relation = $1 AND s.attname = $2)"


#: The oid of the relation that pg_get_serial_sequence(text, text) names.
SERIAL_OID: Final = _serial("oid")
#: A part of a qualified name, quoted or not.
_PART: Final = r"""\s*("(?:[^"]|"")+"|[^".\s]+)\s*"""
#: The name $1 with each part as quote_ident writes it; unquoted parts are folded to lower case
#: (stringToQualifiedNameList).
_FOLDED: Final = f"""CASE WHEN $1 ~ '^[a-z_][a-z0-9_.]*$' THEN $1 ELSE (SELECT array_to_string(array(
    SELECT quote_ident(CASE WHEN u.part LIKE '"%' THEN replace(substr(u.part, 2, length(u.part) - 2), '""', '"')
        ELSE lower(u.part) END) FROM unnest(regexp_match($1, '^{_PART}(?:\\.{_PART})?(?:\\.{_PART})?$'))
        WITH ORDINALITY u(part, place) WHERE u.part IS NOT NULL ORDER BY u.place), '.')) END"""
#: Names that regclass accepts: qualified or not, also with the database, and quoted.
_TO_REGCLASS: Final = f"""(SELECT (min(coalesce(array_position(current_schemas(true), r.within::name), 0)::int8
    * 4294967296 + r.oid::int8) % 4294967296)::oid FROM pg_lookups.relation_names r, (SELECT {_FOLDED} AS folded) g
    WHERE r.written = CASE WHEN g.folded LIKE quote_ident(current_database()) || '.%.%'
        THEN substr(g.folded, length(quote_ident(current_database())) + 2) ELSE g.folded END
    AND (r.within = '' OR r.within = ANY (current_schemas(true))))"""
#: The properties of an index column, by the index's method (403 is btree); NULL for an unknown property, and for the
#: order of INCLUDE columns.
_INDEX_PROPERTY: Final = """(SELECT CASE
    WHEN c.relam <> 403 THEN CASE lower($3) WHEN 'search_nulls' THEN c.relam IN (783, 3580, 4000)
        WHEN 'returnable' THEN CASE WHEN c.relam NOT IN (783, 4000) THEN false END
        ELSE CASE WHEN lower($3) IN ('asc', 'desc', 'nulls_first', 'nulls_last', 'orderable', 'distance_orderable',
            'search_array') THEN false END END
    WHEN lower($3) IN ('asc', 'desc', 'nulls_first', 'nulls_last', 'orderable', 'search_array', 'search_nulls')
        AND $2 > i.indnkeyatts THEN CASE WHEN lower($3) = 'orderable' THEN false END
    ELSE CASE lower($3)
        WHEN 'asc' THEN i.indoption[$2 - 1] & 1 = 0 WHEN 'desc' THEN i.indoption[$2 - 1] & 1 = 1
        WHEN 'nulls_first' THEN i.indoption[$2 - 1] & 2 = 2 WHEN 'nulls_last' THEN i.indoption[$2 - 1] & 2 = 0
        WHEN 'orderable' THEN true WHEN 'distance_orderable' THEN false WHEN 'returnable' THEN true
        WHEN 'search_array' THEN true WHEN 'search_nulls' THEN true END END
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indexrelid = $1 AND $2 BETWEEN 1 AND i.indnatts)"""
#: The parser's names for types, in addition to the types' own.
_SPELLINGS: Final = (
    "CASE {0} "
    + " ".join(
        f"WHEN '{spelling}' THEN '{name}'"
        for spelling, name in (("int", "int4"), ("decimal", "numeric"), ("dec", "numeric"), ("float", "float8"))
    )
    + " ELSE {0} END"
)
#: The type name $1 without a modifier and brackets, in lower case if nothing is quoted.
_TYPE_WRITTEN: Final = r"""regexp_replace(regexp_replace(regexp_replace(btrim(
    CASE WHEN strpos($1, '"') = 0 THEN lower($1) ELSE $1 END),
    '(\s*\[\d*\])+$', ''), '\s*\([^)]*\)', ''), '\s+', ' ', 'g')"""
#: Names that regtype accepts: a type's name in one of its spellings, or with its schema; and arrays of these types.
_TO_REGTYPE: Final = f"""(SELECT min((CASE WHEN g.is_array THEN t.typarray ELSE t.oid END)::int8)::oid
    FROM (SELECT {_SPELLINGS.format("w.written")} AS name, w.is_array
        FROM (SELECT {_TYPE_WRITTEN} AS written, $1 ~ '\\]\\s*$' AS is_array) w) g
    CROSS JOIN pg_lookups.type_names n JOIN pg_type t ON t.oid = n.oid
    WHERE g.name IN (n.plain, n.alias, quote_ident(n.alias), '"' || n.alias || '"') AND n.head || n.tail = n.plain
    OR g.name IN (n.within || '.' || n.plain, quote_ident(n.within) || '.' || n.plain) AND n.within <> ''
    OR g.name IN (coalesce(nullif(n.within, ''), 'pg_catalog') || '.' || quote_ident(n.alias),
        '"' || coalesce(nullif(n.within, ''), 'pg_catalog') || '"."' || n.alias || '"'))"""
#: Names that regproc accepts: of exactly one function.
_TO_REGPROC: Final = f"""(SELECT CASE WHEN count(*) = 1 THEN min(p.oid) END
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace CROSS JOIN (SELECT {_FOLDED} AS folded) g
    WHERE quote_ident(p.proname) = g.folded AND n.nspname = ANY (current_schemas(true))
    OR quote_ident(n.nspname) || '.' || quote_ident(p.proname) = g.folded)"""

#: A role's name as written in access control lists (putid).
_PUTID: Final = """CASE WHEN a.rolname ~ '^[A-Za-z0-9_]+$' THEN a.rolname::text
    ELSE '"' || replace(a.rolname, '"', '""') || '"' END"""
#: The grantee, the privilege letters and the grantor of an access control item; by oids.
_ACL_ITEM: Final = """regexp_match(i::text, '^("(?:[^"]|"")*"|[^"=]*)=([a-zA-Z*]*)/(.*)$')"""
_ACL_EXPLODE: Final = f"""SELECT r.oid AS grantor, coalesce(e.oid, 0::oid) AS grantee, w.word AS privilege_type,
    strpos(p.item[2], w.letter || '*') > 0 AS is_grantable
    FROM (SELECT {_ACL_ITEM} AS item FROM unnest($1) i) p
    JOIN (VALUES ('a', 'INSERT'), ('r', 'SELECT'), ('w', 'UPDATE'), ('d', 'DELETE'), ('D', 'TRUNCATE'),
        ('x', 'REFERENCES'), ('t', 'TRIGGER'), ('X', 'EXECUTE'), ('U', 'USAGE'), ('C', 'CREATE'), ('c', 'CONNECT'),
        ('T', 'TEMPORARY'), ('s', 'SET'), ('A', 'ALTER SYSTEM')) w(letter, word) ON strpos(p.item[2], w.letter) > 0
    LEFT JOIN (SELECT a.oid, {_PUTID} AS name FROM pg_authid a) r ON r.name = p.item[3]
    LEFT JOIN (SELECT a.oid, {_PUTID} AS name FROM pg_authid a) e ON e.name = p.item[1]"""
#: The default privileges: an object's owner has all, and PUBLIC has those that PostgreSQL grants by default.
_ACL_DEFAULT: Final = f"""(SELECT (CASE $1 WHEN 'd' THEN ARRAY['=Tc/' || r.name] WHEN 'f' THEN ARRAY['=X/' || r.name]
        WHEN 'l' THEN ARRAY['=U/' || r.name] WHEN 'T' THEN ARRAY['=U/' || r.name] ELSE ARRAY[]::text[] END
    || CASE WHEN strpos('rsdflLnptFST', $1::text) > 0 THEN ARRAY[r.name || '=' || CASE $1 WHEN 'r' THEN 'arwdDxt'
        WHEN 's' THEN 'rwU' WHEN 'd' THEN 'CTc' WHEN 'f' THEN 'X' WHEN 'L' THEN 'rw' WHEN 'n' THEN 'UC'
        WHEN 'p' THEN 'sA' WHEN 't' THEN 'C' ELSE 'U' END || '/' || r.name] ELSE ARRAY[]::text[] END)::aclitem[]
    FROM (SELECT {_PUTID} AS name FROM pg_authid a WHERE a.oid = $2) r)"""


#: The description, in messages about dependencies, of the object $2 of the catalog $1, or of column $3 of a relation.
_DESCRIBED: Final = """(SELECT CASE WHEN $3 > 0 AND $1 = 1259 THEN (SELECT 'column ' || a.attname || ' of '
    FROM pg_attribute a WHERE a.attrelid = $2 AND a.attnum = $3) ELSE '' END
    || d.text || coalesce(d.target::regclass::text, '')
    FROM pg_lookups.object_descriptions d WHERE d.classid = $1 AND d.oid = $2)"""

_SIMPLE: Final[dict[str, str]] = {
    "pg_table_is_visible(oid)": "(SELECT v.visible FROM pg_lookups.relation_visibility v WHERE v.oid = $1)",
    "pg_collation_is_visible(oid)": "(SELECT true FROM pg_collation x WHERE x.oid = $1)",  # system catalogs only
    "pg_type_is_visible(oid)": "(SELECT n.head || n.tail = n.plain FROM pg_lookups.type_names n WHERE n.oid = $1)",
    "format_type(oid, int4)": _FORMAT_TYPE,
    "pg_get_userbyid(oid)": "coalesce((SELECT rolname FROM pg_authid WHERE oid = $1), "
    "('unknown (OID=' || $1::text || ')')::name)",
    "obj_description(oid)": "(SELECT min(description) FROM pg_description WHERE objoid = $1 AND objsubid = 0)",
    "obj_description(oid, name)": "(SELECT d.description FROM pg_description d JOIN pg_class c ON c.oid = d.classoid "
    "WHERE d.objoid = $1 AND d.objsubid = 0 AND c.relname = $2 AND c.relnamespace = 11)",
    "col_description(oid, int4)": "(SELECT description FROM pg_description "
    "WHERE objoid = $1 AND classoid = 1259 AND objsubid = $2)",
    "shobj_description(oid, name)": "(SELECT d.description FROM pg_shdescription d JOIN pg_class c "
    "ON c.oid = d.classoid WHERE d.objoid = $1 AND c.relname = $2 AND c.relnamespace = 11)",
    "pg_get_expr(pg_node_tree, oid)": "$1::text",
    "pg_get_expr(pg_node_tree, oid, bool)": f"CASE WHEN $3 THEN {_PRETTY_TEXT} ELSE $1::text END",
    "pg_get_constraintdef(oid)": _constraint("d.definition"),
    "pg_get_constraintdef(oid, bool)": _constraint("CASE WHEN $2 THEN d.pretty ELSE d.definition END"),
    "pg_get_indexdef(oid)": _index("d.definition", "0"),
    "pg_get_indexdef(oid, int4, bool)": _index("CASE WHEN $3 THEN d.pretty ELSE d.definition END", "$2"),
    "pg_get_viewdef(oid)": _view("plain"),
    "pg_get_viewdef(oid, bool)": _view_as_asked(),
    "pg_get_viewdef(oid, int4)": _view("pretty"),
    "pg_get_viewdef(text)": _view("plain"),
    "pg_get_viewdef(text, bool)": _view_as_asked(),
    "pg_get_function_arguments(oid)": _signature("arguments"),
    "pg_get_function_identity_arguments(oid)": _signature("identity"),
    "pg_get_function_result(oid)": _signature("result"),
    "pg_get_function_sqlbody(oid)": "(SELECT prosqlbody::text FROM pg_proc WHERE oid = $1)",
    "pg_get_functiondef(oid)": _signature("definition"),
    "pg_encoding_to_char(int4)": "CASE WHEN $1 IS NOT NULL THEN coalesce("
    "(SELECT e.name FROM pg_lookups.encodings e WHERE e.encoding = $1), '')::name END",
    "pg_char_to_encoding(name)": f"CASE WHEN $1 IS NOT NULL THEN coalesce((SELECT e.encoding "
    f"FROM pg_lookups.encodings e WHERE {_cleaned('e.name')} = {_cleaned('$1')}), -1) END",
    "pg_tablespace_location(oid)": "''",
    "pg_relation_filenode(regclass)": "(SELECT relfilenode FROM pg_class WHERE oid = $1)",
    "pg_relation_filepath(regclass)": "NULL::text",
    "pg_relation_is_publishable(regclass)": "false",
    "pg_relation_is_updatable(regclass, bool)": _UPDATES,
    "pg_column_is_updatable(regclass, int2, bool)": "(SELECT CASE relkind WHEN 'r' THEN $2 > 0 WHEN 'v' THEN $2 > 0 "
    "AND $2 IN (SELECT place FROM pg_lookups.view_updates WHERE oid = $1) ELSE false END FROM pg_class WHERE oid = $1)",
    "pg_relation_size(regclass)": _SIZE,
    "pg_relation_size(regclass, text)": f"CASE WHEN $2 = 'main' THEN {_SIZE} ELSE 0 END",
    "pg_table_size(regclass)": _SIZE,
    "pg_total_relation_size(regclass)": _SIZE,
    "pg_indexes_size(regclass)": "0::int8",
    "pg_database_size(name)": "(SELECT coalesce(sum(bytes), 0)::int8 FROM pg_lookups.sizes)",
    "pg_database_size(oid)": "(SELECT coalesce(sum(bytes), 0)::int8 FROM pg_lookups.sizes)",
    "pg_tablespace_size(oid)": "(SELECT coalesce(sum(bytes), 0)::int8 FROM pg_lookups.sizes)",
    "pg_tablespace_size(name)": "(SELECT coalesce(sum(bytes), 0)::int8 FROM pg_lookups.sizes)",
    "pg_size_pretty(int8)": _PRETTY,
    "pg_size_pretty(numeric)": _PRETTY_NUMERIC,
    "row_security_active(oid)": "false",
    "row_security_active(text)": "false",
    "pg_is_in_recovery()": "false",
    "pg_is_other_temp_schema(oid)": "CASE WHEN $1 IS NOT NULL THEN false END",
    "pg_my_temp_schema()": "coalesce((SELECT oid FROM pg_namespace WHERE nspname = 'pg_temp'), 0::oid)",
    "pg_blocking_pids(int4)": "ARRAY(SELECT blocker FROM pg_lookups.lock_waits WHERE waiter = $1)",
    "pg_safe_snapshot_blocking_pids(int4)": "'{}'::int4[]",
    "oidvectortypes(oidvector)": "CASE WHEN $1 IS NOT NULL THEN coalesce((SELECT "
    "string_agg(format_type(t, NULL), ', ' ORDER BY n) FROM unnest($1) WITH ORDINALITY AS u(t, n)), '') END",
    "pg_last_xact_replay_timestamp()": "NULL::timestamptz",
    "pg_last_wal_receive_lsn()": "NULL::pg_lsn",
    "pg_last_wal_replay_lsn()": "NULL::pg_lsn",
    **dict.fromkeys((f"pg_current_wal_{what}lsn()" for what in ("", "insert_", "flush_")), _LSN),
    "pg_wal_lsn_diff(pg_lsn, pg_lsn)": f"{_position('$1')} - {_position('$2')}",
    "pg_client_encoding()": "getdatabaseencoding()",
    "inet_client_addr()": "(SELECT client_addr FROM pg_stat_activity WHERE pid = pg_backend_pid())",
    "text(inet)": "$1::text",
    "timestamp(date, time)": "$1 + $2",
    "timestamptz(date, time)": "($1 + $2)::timestamptz",
    "timestamptz(date, timetz)": "$1 + $2",
    "point(float8, float8)": "('(' || $1::text || ',' || $2::text || ')')::point",
    "inet_client_port()": "(SELECT client_port FROM pg_stat_activity WHERE pid = pg_backend_pid())",
    "inet_server_port()": "current_setting('port')::int4",
    "inet_server_addr()": "(SELECT server_addr::inet FROM pg_lookups.own_connection)",
    "pg_rotate_logfile()": "false",
    **dict.fromkeys(
        (
            *("pg_stat_reset()", "pg_stat_reset_shared(text)", "pg_stat_reset_slru(text)", "pg_stat_clear_snapshot()"),
            *("pg_stat_reset_single_table_counters(oid)", "pg_stat_reset_single_function_counters(oid)"),
            *("pg_stat_reset_replication_slot(text)", "pg_stat_force_next_flush()"),
        ),
        "''",
    ),
    "pg_trigger_depth()": "0",
    "current_query()": "(SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid())",
    "pg_encoding_max_length(int4)": "CASE WHEN $1 = 0 OR $1 BETWEEN 8 AND 34 THEN 1 "
    "WHEN $1 IN (2, 35, 36, 37, 38, 41) THEN 2 WHEN $1 IN (1, 3, 5, 40) THEN 3 WHEN $1 IN (4, 6, 7, 39) THEN 4 END",
    "pg_current_xact_id()": "txid_current()::text::xid8",
    "pg_collation_actual_version(oid)": "NULL::text",
    "pg_notification_queue_usage()": "(SELECT usage FROM pg_lookups.notification_queue)",
    "pg_get_serial_sequence(text, text)": _serial("shown"),
    "to_regclass(text)": f"{_TO_REGCLASS}::regclass",
    "to_regtype(text)": f"{_TO_REGTYPE}::regtype",
    "to_regnamespace(text)": f"(SELECT oid FROM pg_namespace WHERE quote_ident(nspname) = {_FOLDED})::regnamespace",
    "to_regrole(text)": f"(SELECT oid FROM pg_authid WHERE quote_ident(rolname) = {_FOLDED})::regrole",
    "to_regproc(text)": f"{_TO_REGPROC}::regproc",
    "pg_index_column_has_property(regclass, int4, text)": _INDEX_PROPERTY,
    "age(xid)": "CASE WHEN $1 IS NOT NULL THEN 0 END",
    "mxid_age(xid)": "CASE WHEN $1 IS NOT NULL THEN 0 END",
    "pg_describe_object(oid, oid, int4)": _DESCRIBED,
    "pg_sequence_last_value(regclass)": "(SELECT l.last_value FROM pg_lookups.sequence_values l WHERE l.oid = $1)",
    "pg_stat_get_live_tuples(oid)": "coalesce((SELECT n_live_tup FROM pg_stat_all_tables WHERE relid = $1), 0)",
    "pg_stat_get_function_calls(oid)": "NULL::int8",
    "pg_filenode_relation(oid, oid)": "$2::regclass",
    "acldefault(char, oid)": _ACL_DEFAULT,
    "pg_event_trigger_table_rewrite_oid()": "0::oid",
    "pg_jit_available()": "false",
    "getdatabaseencoding()": "'UTF8'::name",
    "nameconcatoid(name, oid)": "($1 || '_' || $2::text)::name",
    "pg_get_statisticsobjdef_expressions(oid)": "NULL::text[]",
    "pg_partition_root(regclass)": "NULL::regclass",
    "pg_get_replica_identity_index(regclass)": "NULL::regclass",
}
#: Functions about features that Millstream lacks.
_NONE: Final = (
    "pg_get_triggerdef(oid)",
    "pg_get_triggerdef(oid, bool)",
    "pg_get_ruledef(oid)",
    "pg_get_ruledef(oid, bool)",
    "pg_get_statisticsobjdef(oid)",
    "pg_get_statisticsobjdef_columns(oid)",
    "pg_get_partkeydef(oid)",
    "pg_get_partition_constraintdef(oid)",
    "pg_get_function_arg_default(oid, int4)",
)
_XACT: Final = (
    *("numscans", "tuples_returned", "tuples_fetched", "tuples_inserted", "tuples_updated", "tuples_deleted"),
    *("tuples_hot_updated", "blocks_fetched", "blocks_hit"),
)
_COUNTERS: Final = (
    *(*_XACT, "dead_tuples", "mod_since_analyze", "ins_since_vacuum"),
    *("vacuum_count", "autovacuum_count", "analyze_count", "autoanalyze_count"),
    *("db_numbackends", "db_xact_commit", "db_xact_rollback", "db_blocks_fetched", "db_blocks_hit"),
    *("db_tuples_returned", "db_tuples_fetched", "db_tuples_inserted", "db_tuples_updated", "db_tuples_deleted"),
    *("db_conflict_all", "db_temp_files", "db_temp_bytes", "db_deadlocks", "db_checksum_failures", "db_sessions"),
    *("db_sessions_abandoned", "db_sessions_fatal", "db_sessions_killed", "db_conflict_tablespace"),
    *("db_conflict_lock", "db_conflict_snapshot", "db_conflict_bufferpin", "db_conflict_startup_deadlock"),
)
#: Counters of time, in milliseconds, which are zero.
_TIMES: Final = (
    *("db_blk_read_time", "db_blk_write_time", "db_session_time", "db_active_time", "db_idle_in_transaction_time"),
    *("function_total_time", "function_self_time"),
)
#: Times of events that never happen.
_MOMENTS: Final = ("db_stat_reset_time", "db_checksum_last_failure")
_PRIVILEGES: Final = (
    *("table", "column", "any_column", "sequence", "database", "function", "schema", "tablespace", "type"),
    *("language", "server", "foreign_data_wrapper", "parameter"),
)
_VISIBLE: Final = {
    "pg_function_is_visible(oid)": ("pg_proc", "pro"),
    "pg_operator_is_visible(oid)": ("pg_operator", "opr"),
    "pg_opclass_is_visible(oid)": ("pg_opclass", "opc"),
    "pg_opfamily_is_visible(oid)": ("pg_opfamily", "opf"),
    "pg_conversion_is_visible(oid)": ("pg_conversion", "con"),
    "pg_statistics_obj_is_visible(oid)": ("pg_statistic_ext", "stx"),
    "pg_ts_config_is_visible(oid)": ("pg_ts_config", "cfg"),
    "pg_ts_dict_is_visible(oid)": ("pg_ts_dict", "dict"),
    "pg_ts_parser_is_visible(oid)": ("pg_ts_parser", "prs"),
    "pg_ts_template_is_visible(oid)": ("pg_ts_template", "tmpl"),
}


def _scalars() -> Iterator[tuple[str, str]]:
    yield from _SIMPLE.items()
    for signature in _NONE:
        yield signature, "NULL::text"
    for signature, (relation, prefix) in _VISIBLE.items():
        yield signature, _visible(relation, prefix)
    for counter in _COUNTERS:
        yield f"pg_stat_get_{counter}(oid)", "0::int8"
    for counter in _TIMES:
        yield f"pg_stat_get_{counter}(oid)", "0::float8"
    for moment in _MOMENTS:
        yield f"pg_stat_get_{moment}(oid)", "NULL::timestamptz"
    for counter in _XACT:
        yield f"pg_stat_get_xact_{counter}(oid)", "0::int8"


#: Bodies by name and parameters, as ``name(type, ...)``.
SCALARS: Final[dict[str, str]] = dict(_scalars())
#: Bodies for an argument that is a subquery, as in pg_table_size(): they evaluate it once, not for each comparison.
OF_SUBQUERIES: Final[dict[str, str]] = {
    name: f"(SELECT {SCALARS[name].replace('$1', 's.bytes')} FROM (SELECT $1 AS bytes) s)"
    for name in ("pg_size_pretty(int8)", "pg_size_pretty(numeric)")
}
#: Functions whose first argument may be the text of a relation's name, found as the session finds it: the body gets its
#: oid.
OF_RELATIONS: Final = frozenset(("pg_get_viewdef", "row_security_active", "pg_get_serial_sequence"))
#: Functions about a role's privileges; for kinds of objects without grants, PUBLIC has the privilege.
ALLOWED: Final = frozenset(f"has_{what}_privilege" for what in _PRIVILEGES) | {"pg_has_role"}
#: Functions in FROM.
TABLES: Final[dict[str, str]] = {
    "pg_get_keywords()": "SELECT word, catcode::\"char\", barelabel = 't' AS barelabel, catdesc, baredesc "
    "FROM pg_lookups.keywords",
    "pg_options_to_table(_text)": "SELECT split_part(o, '=', 1) AS option_name, "
    "substr(o, strpos(o, '=') + 1) AS option_value FROM unnest($1) o",
    "pg_show_all_settings()": "SELECT * FROM pg_settings",
    "pg_available_extensions()": "SELECT name, default_version, comment FROM pg_available_extensions",
    "pg_available_extension_versions()": "SELECT name, version, superuser, trusted, relocatable, schema, requires, "
    "comment FROM pg_available_extension_versions",
    "pg_listening_channels()": "SELECT channel AS pg_listening_channels FROM pg_lookups.listening_channels",
    "pg_partition_ancestors(regclass)": "SELECT $1 AS relid WHERE false",
    "pg_partition_tree(regclass)": "SELECT $1 AS relid, $1 AS parentrelid, true AS isleaf, 0 AS level WHERE false",
    "aclexplode(_aclitem)": _ACL_EXPLODE,
    "ts_token_type(oid)": "SELECT t.tokid, t.alias, t.description FROM pg_ts_parser p, pg_lookups.token_types t "
    "WHERE p.oid = $1",
    "ts_token_type(text)": "SELECT t.tokid, t.alias, t.description FROM pg_ts_parser p, pg_lookups.token_types t "
    "WHERE p.prsname = regexp_replace($1, '^pg_catalog[.]', '')",
    "_pg_expandarray(anyarray)": "SELECT x, n::int4 AS n FROM unnest($1) WITH ORDINALITY AS u(x, n)",
}
#: information_schema's own functions: declared types, result and body.
INFORMATION: Final[dict[str, tuple[tuple[str, ...], str, str]]] = {
    "_pg_truetypid": (
        ("record", "record"),
        "oid",
        "CASE WHEN ($2).typtype = 'd' THEN ($2).typbasetype ELSE ($1).atttypid END",
    ),
    "_pg_truetypmod": (
        ("record", "record"),
        "int4",
        "CASE WHEN ($2).typtype = 'd' THEN ($2).typtypmod ELSE ($1).atttypmod END",
    ),
    "_pg_char_max_length": (
        ("oid", "int4"),
        "int4",
        "CASE WHEN $2 = -1 THEN NULL WHEN $1 IN (1042, 1043) THEN $2 - 4 WHEN $1 IN (1560, 1562) THEN $2 END",
    ),
    "_pg_char_octet_length": (
        ("oid", "int4"),
        "int4",
        "CASE WHEN $1 IN (25, 1042, 1043) THEN CASE WHEN $2 = -1 THEN 1073741824 ELSE ($2 - 4) * 4 END END",
    ),
    "_pg_numeric_precision": (
        ("oid", "int4"),
        "int4",
        "CASE $1 WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53 "
        "WHEN 1700 THEN CASE WHEN $2 = -1 THEN NULL ELSE (($2 - 4) >> 16) & 65535 END END",
    ),
    "_pg_numeric_precision_radix": (
        ("oid", "int4"),
        "int4",
        "CASE WHEN $1 IN (20, 21, 23, 700, 701) THEN 2 WHEN $1 = 1700 THEN 10 END",
    ),
    "_pg_numeric_scale": (
        ("oid", "int4"),
        "int4",
        "CASE WHEN $1 IN (20, 21, 23) THEN 0 "
        "WHEN $1 = 1700 THEN CASE WHEN $2 = -1 THEN NULL ELSE ($2 - 4) & 65535 END END",
    ),
    "_pg_datetime_precision": (
        ("oid", "int4"),
        "int4",
        "CASE WHEN $1 = 1082 THEN 0 WHEN $1 IN (1083, 1114, 1184, 1266) THEN CASE WHEN $2 < 0 THEN 6 ELSE $2 END "
        "WHEN $1 = 1186 THEN CASE WHEN $2 < 0 OR $2 & 65535 = 65535 THEN 6 ELSE $2 & 65535 END END",
    ),
    "_pg_interval_type": (
        ("oid", "int4"),
        "text",
        f"CASE WHEN $1 = 1186 AND $2 >= 0 AND $2 >> 16 <> {FULL_RANGE} "
        f"THEN upper(ltrim({_INTERVAL_FIELDS}) || {_INTERVAL_DIGITS}) END",
    ),
    "_pg_index_position": (
        ("oid", "int2"),
        "int4",
        "(SELECT array_position(i.indkey::int2[], $2) FROM pg_index i WHERE i.indexrelid = $1)",
    ),
}
#: oids as text, by the oid's type.
SHOWN: Final[dict[str, str]] = {
    "regclass": "(SELECT v.shown FROM pg_lookups.relation_visibility v WHERE v.oid = $1)",
    "regtype": "(SELECT n.head || n.tail FROM pg_lookups.type_names n WHERE n.oid = $1)",
    "regproc": "(SELECT rtrim(shown, '(') FROM pg_lookups.function_names WHERE oid = $1)",
    "regprocedure": "(SELECT alone || types FROM pg_lookups.function_names WHERE oid = $1)",
    "regnamespace": "(SELECT quote_ident(nspname) FROM pg_namespace WHERE oid = $1)",
    "regrole": "(SELECT quote_ident(rolname) FROM pg_authid WHERE oid = $1)",
    "regoper": "(SELECT CASE WHEN (SELECT count(*) FROM pg_operator p WHERE p.oprname = o.oprname) > 1 "
    "THEN 'pg_catalog.' ELSE '' END || o.oprname FROM pg_operator o WHERE o.oid = $1)",
    "regoperator": "(SELECT oprname || '(' || CASE WHEN oprleft = 0 THEN 'NONE' ELSE format_type(oprleft, NULL) END "
    "|| ',' || format_type(oprright, NULL) || ')' FROM pg_operator WHERE oid = $1)",
    "regcollation": "(SELECT quote_ident(collname) FROM pg_collation WHERE oid = $1)",
    "regconfig": "(SELECT quote_ident(cfgname) FROM pg_ts_config WHERE oid = $1)",
    "regdictionary": "(SELECT quote_ident(dictname) FROM pg_ts_dict WHERE oid = $1)",
}
#: Texts as oids, by type; the binder looks up constants.
READ: Final[dict[str, str]] = {
    "regclass": "to_regclass($1)",
    "regtype": "to_regtype($1)",
    "regnamespace": "to_regnamespace($1)",
    "regrole": "to_regrole($1)",
    "regproc": "to_regproc($1)",
}
