"""The allow-list: every function, operator and aggregate that algebra may contain, by canonical name.

Owns: canonical names, arity, result types and volatility. The binder resolves PostgreSQL's spellings to these names; a
printer (executor/) knows how each is written for its engine and refuses every other. What is not here is no function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

#: Operators by canonical name, with PostgreSQL's spelling for EXPLAIN.
OPERATORS: Final[dict[str, str]] = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "mod": "%",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "AND",
    "or": "OR",
    "concat": "||",
    "like": "~~",
    "ilike": "~~*",
    "regex_match": "~",
    "regex_imatch": "~*",
    "is_distinct": "IS DISTINCT FROM",
    "is_not_distinct": "IS NOT DISTINCT FROM",
}

Volatility = Literal["immutable", "stable", "volatile"]


class Function(Struct, frozen=True):
    """A scalar function's canonical name, the least and greatest number of arguments (-1: any), and volatility."""

    name: str
    least: int
    greatest: int
    volatility: Volatility = "immutable"


def _functions(*items: Function) -> dict[str, Function]:
    return {item.name: item for item in items}


#: Functions that take and give back advisory locks.
ADVISORY: Final = tuple(
    f"pg_{tried}advisory_{done}{shared}"
    for shared in ("", "_shared")
    for tried, done in (("", "lock"), ("", "xact_lock"), ("try_", "lock"), ("try_", "xact_lock"), ("", "unlock"))
)

UNLOCK_ALL: Final = "pg_advisory_unlock_all"

#: 'add' and 'sub' also do date + integer, date - date, timestamp +- interval, interval +- interval; 'mul' and 'div'
#: interval by number. 'and', 'or', 'in', 'coalesce', 'greatest', 'least' and 'concat_values' take any number.
FUNCTIONS: Final[dict[str, Function]] = _functions(
    *(Function(name, 2, -1 if name in ("and", "or") else 2) for name in OPERATORS),
    Function("not", 1, 1),
    Function("neg", 1, 1),
    Function("is_null", 1, 1),
    Function("is_not_null", 1, 1),
    Function("is_true", 1, 1),
    Function("is_false", 1, 1),
    Function("is_not_true", 1, 1),
    Function("is_not_false", 1, 1),
    Function("in", 2, -1),  # first = any of the others
    Function("coalesce", 1, -1),
    Function("grouping", 1, 31),  # until the groups of its query are known (planner/bind/queries/grouping.py)
    Function("nullif", 2, 2),
    Function("row", 1, -1),
    *(Function(name, 2, 2) for name in ("json_record", "json_records")),  # a document, and whose error it is
    Function("field", 2, 2),  # a row, and the place of its field
    Function("greatest", 1, -1),
    Function("least", 1, -1),
    Function("abs", 1, 1),
    Function("sign", 1, 1),
    Function("round", 1, 2),
    Function("trunc", 1, 2),
    Function("ceil", 1, 1),
    Function("floor", 1, 1),
    Function("sqrt", 1, 1),
    Function("power", 2, 2),
    Function("exp", 1, 1),
    Function("ln", 1, 1),
    Function("log", 1, 2),  # of a base
    *(Function(name, 1, 1) for name in ("cbrt", "degrees", "radians", "factorial", "bitnot", "to_hex")),
    *(Function(name, 1, 1) for name in ("sin", "cos", "tan", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh")),
    *(Function(name, 1, 1) for name in ("asinh", "acosh", "atanh")),
    Function("pi", 0, 0),
    Function("atan2", 2, 2),
    Function("whole_quotient", 2, 2),  # div()
    *(Function(name, 2, 2) for name in ("gcd", "lcm", "bitand", "bitor", "bitxor", "shift_left", "shift_right")),
    Function("width_bucket", 4, 4),
    Function("square", 1, 1),  # of a double: infinite where it overflows
    Function("finite", 2, 2),  # an aggregate of doubles and the greatest size among them; 22003 where it overflowed
    # Doubles as integers, and back (planner/incremental/dataflow/float_sums.py).
    Function("float_units", 2, 2),  # a double, and a tier
    Function("float_is_outside", 1, 1),  # of all tiers
    Function("float_of_units", 3, 3),  # sums of units of each tier
    *(Function(name, 1, 1) for name in ("scale", "min_scale", "trim_scale")),
    Function("written_scale", 1, 2),  # decimals of a number as it is written: a text, a parameter; those in a type
    Function("scaled_text", 2, 2),  # a number with so many decimals, or more where it has them; a bpchar's characters
    Function("padded", 1, 1),  # a bpchar as a text with its blanks
    Function("transcendental", 3, 4),  # a function by its name of its arguments, and the most decimals that they show
    Function("transcendental_scale", 3, 4),  # the scale that it shows
    Function("div_scaled", 3, 3),  # a quotient, and the larger of the scales that its operands show
    Function("quotient_scale", 3, 3),  # the scale that it shows
    *(Function(name, 1, 1) for name in ("sind", "cosd", "tand", "cotd", "asind", "acosd", "atand")),
    Function("atan2d", 2, 2),
    Function("lower", 1, 1),
    Function("upper", 1, 1),
    Function("initcap", 1, 1),
    Function("char_length", 1, 1),
    Function("octet_length", 1, 1),
    Function("substring", 2, 3),  # text, from, for
    Function("position", 2, 2),  # strpos(text, part)
    Function("btrim", 1, 2),
    Function("ltrim", 1, 2),
    Function("rtrim", 1, 2),
    Function("replace", 3, 3),
    Function("left", 2, 2),
    Function("right", 2, 2),
    Function("lpad", 2, 3),
    Function("rpad", 2, 3),
    Function("repeat", 2, 2),
    Function("reverse", 1, 1),
    Function("split_part", 3, 3),
    Function("starts_with", 2, 2),
    Function("ascii", 1, 1),
    Function("chr", 1, 1),
    Function("md5", 1, 1),
    Function("concat_values", 1, -1),  # PostgreSQL's concat(): NULLs are skipped
    Function("concat_ws", 2, -1),
    Function(
        "regex_replace", 4, 4
    ),  # text, a pattern of catalog.values.regex.backtracking, RE2's replacement and options
    Function("regex_count", 3, 3),  # text, pattern, options
    Function("regex_extract", 4, 4),  # text, pattern, group, options
    Function("regex_groups", 4, 4),  # text, pattern, number of groups, options
    # The same with all of PostgreSQL's arguments, matched as it matches.
    Function("regexp_count", 4, 4),
    Function("regexp_instr", 7, 7),
    Function("regexp_like", 3, 3),
    Function("regexp_match", 3, 3),
    Function("regexp_replace", 6, 6),
    Function("regexp_substr", 6, 6),
    Function("regexp_substring", 2, 2),
    Function("similar", 2, 2),  # an SQL pattern as a regular expression
    Function("parse_ident", 1, 2),
    Function("overlay", 3, 4),
    Function("translate", 3, 3),
    Function("normalize", 1, 1),  # to NFC
    *(Function(name, 2, 2) for name in ("text_normalized", "text_is_normalized")),  # a text, and the form
    Function("text_unescaped", 1, 1),  # unistr()
    *(Function(name, 2, 2) for name in ("octets_decoded", "octets_encoded")),  # and in which encoding
    Function("octets_converted", 3, 3),
    Function("quote_ident", 2, 2),  # with the words that are quoted
    Function("quote_literal", 1, 1),
    Function("type_shown", 4, 4),  # around a modifier: what stands before and behind it, the type's oid, and it
    Function("sha256", 1, 1),
    # Of bytea.
    *(Function(f"octets_sha{bits}", 1, 1) for bits in (224, 384, 512)),
    *(Function(f"octets_{name}", 1, 1) for name in ("bit_count", "encode_escape", "read", "as_text", "of_text")),
    *(Function(f"octets_{name}", 2, 2) for name in ("get_byte", "get_bit", "from", "position", "like")),
    *(Function(f"octets_{name}", 2, 2) for name in ("btrim", "ltrim", "rtrim")),
    *(Function(f"octets_{name}", 3, 3) for name in ("set_byte", "set_bit", "part", "overlay")),
    Function("octets_overlay_count", 4, 4),
    # Bit strings, money, network and hardware addresses (``planner.bind.conversion.carried_types``).
    *(Function(f"bits_{name}", 1, 1) for name in ("not", "octets", "count", "int4", "int8")),
    *(Function(f"bits_{name}", 2, 2) for name in ("and", "or", "xor", "left", "right", "get", "from", "position")),
    *(Function(f"bits_{name}", 3, 3) for name in ("set", "part", "overlay")),
    Function("bits_of", 2, 2),  # a number, and how many bits
    Function("bits_overlay_count", 4, 4),
    *(Function(f"money_{name}", 1, 1) for name in ("whole", "rounded", "numeric", "cents", "of_cents")),
    *(Function(f"money_{name}", 2, 2) for name in ("add", "sub", "times", "scaled", "parts", "divided", "ratio")),
    *(Function(f"net_{name}", 1, 1) for name in ("host", "family", "bits", "network", "mask", "hostmask", "broadcast")),
    *(Function(f"net_{name}", 1, 1) for name in ("abbrev", "not", "cidr", "inet", "show")),
    *(Function(f"net_{name}", 2, 2) for name in ("and", "or", "add", "added", "sub", "distance", "set_bits")),
    *(Function(f"net_{name}", 2, 2) for name in ("inside", "within", "around", "holds", "overlaps", "alike", "merge")),
    Function("net_set_cidr_bits", 2, 2),
    *(Function(f"lsn_{name}", 2, 2) for name in ("add", "added", "sub", "distance")),
    *(Function(name, 1, 1) for name in ("lsn_of", "size_read")),  # a number's place in the log; a size's octets
    *(Function(f"mac_{name}", 1, 1) for name in ("not", "trunc", "local", "longer", "shorter")),
    *(Function(f"mac_{name}", 2, 2) for name in ("and", "or")),
    *(Function(f"hs_{name}", 1, 1) for name in ("keys", "values", "array", "matrix", "of_array", "of_shaped")),
    *(Function(f"hs_{name}", 1, 1) for name in ("json", "json_loose", "jsonb_loose", "order", "ordered")),
    *(Function(f"hs_{name}", 2, 2) for name in ("get", "slice_array", "slice", "exists", "exists_any", "exists_all")),
    *(Function(f"hs_{name}", 2, 2) for name in ("defined", "delete", "delete_array", "delete_pairs", "concat")),
    *(Function(f"hs_{name}", 2, 2) for name in ("contains", "contained", "pair", "pairs")),
    Function("hs_assign", 3, 3),  # a value, a key, and its new value
    # Texts that are ordered as such values are, and the values again.
    *(Function(f"{name}_{part}", 1, 1) for name in ("net", "lsn", "tid") for part in ("order", "ordered")),
    *(Function(name, 1, 1) for name in ("encode_hex", "encode_base64", "decode_hex", "decode_base64")),
    Function("extract", 2, 2),  # literal field, source
    Function("julian", 1, 1),  # extract(julian) of a moment
    Function("date_trunc", 2, 3),  # in a zone
    Function("date_bin", 3, 3),
    Function("hop_start", 5, 5),  # slide, size, time, origin, n: date_bin(slide, time, origin) - n * slide
    Function("make_date", 3, 3),
    Function("make_time", 3, 3),
    Function("make_timestamp", 6, 6),
    Function("make_interval", 7, 7),  # years to seconds
    Function("timezone", 2, 2),  # AT TIME ZONE: name, moment
    Function("age", 2, 2),
    Function("justify_hours", 1, 1),
    Function("justify_days", 1, 1),
    Function("justify_interval", 1, 1),
    Function("isfinite", 1, 1),
    Function("interval_length", 1, 1),  # microseconds, a month as 30 days
    Function("overlaps", 4, 4),
    Function("to_number", 2, 2),
    Function("to_char", 2, 2),  # a constant pattern
    Function(
        "read_moment", 2, 2
    ),  # to_date(), to_timestamp(text, a constant pattern); a timestamp where the zone is not read
    Function("to_timestamp", 1, 1),  # of seconds
    Function("late", 2, -1),  # a function's name and its arguments, of which some are constants elsewhere
    Function("array", 0, -1),
    # Of arrays of any dimensions.
    *(Function(f"shaped_{name}", 1, 1) for name in ("items", "ndims", "dims")),
    *(Function(f"shaped_{name}", 2, 2) for name in ("length", "lower", "upper", "cat")),
    Function("shaped_subscripts", 2, 3),
    Function("shaped_at", 2, 7),  # array, a place in each dimension
    Function("shaped_slice", 3, 13),  # array, lower bounds, as many upper bounds
    Function("shaped_replace", 3, 3),
    Function("shaped_put", 3, 14),  # array, a value, a place in each dimension; or as many lower and upper bounds
    Function("stacked", 1, 1),  # ARRAY[...] of a list of arrays
    Function("gathered", 1, 1),  # array_agg() of arrays, of their list
    Function("array_fill", 2, 3),
    Function("any", 3, 3),  # a function's name, its first argument, the array of its second ones
    Function("all", 3, 3),
    Function("for_each", 3, 3),  # an array, its element, and what becomes of each: the array of these
    Function("element", 1, 1),  # of the array of for_each() around it; how many of these are around that one
    Function("subscript", 2, 2),
    Function("slice", 3, 3),
    Function("cardinality", 1, 1),
    Function("array_ndims", 1, 1),
    Function("array_dims", 1, 1),
    Function("array_length", 2, 2),  # array, dimension
    Function("array_lower", 2, 2),
    Function("array_append", 2, 2),
    Function("array_prepend", 2, 2),
    Function("array_cat", 2, 2),
    Function("array_remove", 2, 2),
    Function("array_replace", 3, 3),
    # Of the scales beside an array, and the array (planner/scales): what is left of them, and with another in places.
    Function("scales_without", 3, 3),
    Function("scales_with", 4, 4),
    Function("scales_alike", 2, 2),  # one scale for each element of an array
    Function("scales_once", 2, 2),  # of sorted values, the first of equal ones
    Function("require", 3, 3),  # unless a condition is false the second; else an error: "!SQLSTATE!message"
    *(Function(name, 1, 1) for name in ("null_on_error", "fails")),  # planner/incremental/programs/row_failures.py
    Function("declared", 1, 1),  # its argument, a constant made of an enum's labels
    Function("array_position", 2, 3),
    # Of ranges (planner/bind/calls/operator_calls/ranges.py).
    Function("range_make", 3, 3),  # bounds, NULL where there is none, and which of them are included: "[)"
    *(Function(f"range_{name}", 1, 1) for name in ("lower", "upper", "is_empty")),
    *(Function(f"range_{name}", 1, 1) for name in ("lower_inc", "upper_inc", "lower_inf", "upper_inf")),
    *(Function(f"range_{name}", 2, 2) for name in ("contains", "contained", "contains_value", "contained_value")),
    *(Function(f"range_{name}", 2, 2) for name in ("overlaps", "before", "after", "overleft", "overright", "adjacent")),
    *(Function(f"range_{name}", 2, 2) for name in ("union", "merge", "intersect", "minus")),
    # Of multiranges, and ranges as such.
    Function("multirange_make", 1, 1),  # of an array of ranges
    Function("multirange_of", 1, 1),  # of a range
    Function("multirange_parts", 1, 1),  # its ranges as an array
    Function("multirange_span", 1, 1),  # the range from its first bound to its last
    *(Function(f"multirange_{name}", 2, 2) for name in ("contains", "contains_value", "overlaps")),
    *(Function(f"multirange_{name}", 2, 2) for name in ("union", "intersect", "minus")),
    Function("array_positions", 2, 2),
    Function("array_to_string", 2, 3),
    Function("string_to_array", 2, 3),
    Function("trim_array", 2, 2),
    Function("bucket_of", 2, 2),  # width_bucket() between the elements of a sorted array
    *(Function(f"percentile_{kind}_at", 2, 2) for kind in ("cont", "disc")),  # of a sorted array without NULLs
    # Documents: of json and jsonb alike where the name does not say jsonb.
    Function("to_json", 1, 1),
    Function("json_value", 1, 1),  # to_json, but null for NULL
    Function("json_build_array", 0, -1),  # documents
    Function("json_items", 1, 1),  # an array as json_agg() writes what it has gathered
    Function("json_build_object", 0, -1),  # key, document, ...
    Function("json_items_object", 1, 1),  # of an array of keys and values in turn
    Function("json_lined", 2, 2),  # a document, and whether the items of its outermost list get lines of their own
    Function("json_row", 0, -1),  # the same in row_to_json's form
    Function("json_get", 2, 2),
    Function("json_get_text", 2, 2),
    Function("json_path", 2, 2),
    Function("json_path_text", 2, 2),
    Function("json_typeof", 1, 1),
    Function("json_key", 1, 1),  # a member's name as a document has it; NULL is an error
    Function("json_order", 1, 1),  # bytes that are ordered as documents are
    Function("json_array_length", 1, 1),
    Function("json_contains", 2, 2),
    Function("json_contained", 2, 2),
    Function("json_exists", 2, 2),
    Function("json_exists_any", 2, 2),
    Function("json_exists_all", 2, 2),
    Function("json_concat", 2, 2),
    Function("json_remove", 2, 2),
    Function("json_remove_path", 2, 2),
    Function("jsonb_set", 3, 4),
    Function("jsonb_set_lax", 3, 5),
    Function("jsonb_insert", 3, 4),
    Function("json_object", 1, 2),
    Function("json_strip_nulls", 1, 1),
    Function("jsonb_strip_nulls", 1, 1),
    Function("jsonb_pretty", 1, 1),
    # Over a document, a path, its variables, and whether its errors are passed over.
    Function("path_found", 2, 2),  # path_exists and path_match with no variables, errors passed over
    Function("path_holds", 2, 2),
    *(Function(f"path_{name}", 4, 4) for name in ("exists", "match", "first", "array", "all")),
    *(Function(f"path_{name}_tz", 4, 4, "stable") for name in ("exists", "match", "first", "array", "all")),
    Function("json_elements", 1, 1),
    Function("json_elements_text", 1, 1),
    Function("json_assign", 4, 4),  # document, path, the new value, whether NULL is an empty array
    Function("json_array_text", 2, 2),  # a JSON array as an array's text; whether its elements are documents
    Function("json_keys", 1, 1),
    Function("json_values", 1, 1),
    Function("json_values_text", 1, 1),
    # What set-returning functions yield, as an array.
    Function("series", 3, 3),  # first, last, step
    Function("array_subscripts", 2, 3),
    Function("regexp_split_to_array", 2, 3),
    Function("regexp_matches", 3, 3),
    Function("array_contains", 2, 2),
    Function("array_contained", 2, 2),
    Function("array_overlaps", 2, 2),
    Function("array_has", 2, 2),  # 'any' of eq where NULL is as good as false
    Function("hashed_chance", 2, 2),  # a number from 0 to 1 by a row's identity and a seed
    # Of a stored row's columns (planner/bind/state/row_versions.py).
    Function("row_version", 1, -1),
    Function("row_hash", 1, -1),
    Function("row_place", 2, 2),  # its hash, and its number among those of the same hash's first half
    Function("random", 0, 0, "volatile"),
    Function("gen_random_uuid", 0, 0, "volatile"),
    Function("clock_timestamp", 0, 0, "volatile"),
    # Made by executor.tables.drawing before an engine sees the rest: they read and change what no snapshot shows.
    Function("nextval", 1, 1, "volatile"),
    Function("currval", 1, 1, "volatile"),
    Function("lastval", 0, 0, "volatile"),
    Function("setval", 2, 3, "volatile"),
    Function("pg_sleep", 1, 1, "volatile"),
    *(Function(name, 1, 2, "volatile") for name in ADVISORY),
    Function(UNLOCK_ALL, 0, 0, "volatile"),
    # Evaluated by the session before an engine sees them (server/), one value per transaction or session.
    Function("now", 0, 0, "stable"),
    Function("current_date", 0, 0, "stable"),
    Function("current_user", 0, 0, "stable"),
    Function("session_user", 0, 0, "stable"),
    Function("current_database", 0, 0, "stable"),
    Function("current_schema", 0, 0, "stable"),
    Function("version", 0, 0, "stable"),
    Function("pg_backend_pid", 0, 0, "stable"),
    Function("pg_postmaster_start_time", 0, 0, "stable"),
    Function("statement_timestamp", 0, 0, "stable"),
    Function("txid_current", 0, 0, "stable"),
    Function("pg_reload_conf", 0, 0, "volatile"),
    Function("pg_cancel_backend", 1, 1, "volatile"),
    Function("pg_terminate_backend", 1, 2, "volatile"),
    Function("suspend_query", 1, 1, "volatile"),
    Function("checkpoint_query", 1, 1, "volatile"),
    Function("migrate_query", 2, 2, "volatile"),
    Function("migrate_view", 2, 2, "volatile"),
    Function("suspend_view", 1, 1, "volatile"),
    Function("resume_view", 1, 1, "volatile"),
    Function("checkpoint_view", 1, 1, "volatile"),
    Function("plan_svg", 1, 1, "volatile"),
    Function("drain_server", 1, 1, "volatile"),
    Function("adopt_server", 1, 1, "volatile"),
    Function("forget_query", 1, 1, "volatile"),
    Function("current_setting", 1, 2, "stable"),
    Function("current_of", 3, 3, "stable"),  # of a cursor, a table's oid and a place in its key
    Function("set_config", 3, 3, "volatile"),
    Function("session_call", 2, -1, "volatile"),  # a session function of computed arguments: its name, and these
)

#: Comparisons by canonical name, as Python's own values compare (and numpy's arrays).
COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
#: What the session knows and says at once, without an effect.
SESSION_VALUES: Final = frozenset(
    (
        *("now", "current_date", "statement_timestamp", "current_user", "session_user", "current_database"),
        *("current_schema", "current_setting", "version", "pg_backend_pid", "pg_postmaster_start_time", "txid_current"),
    )
)
#: Functions that the session replaces by a literal before an engine sees them.
SESSION_FUNCTIONS: Final = SESSION_VALUES | {
    *("pg_reload_conf", "pg_cancel_backend", "pg_terminate_backend"),
    *("suspend_query", "checkpoint_query", "migrate_query", "drain_server", "forget_query"),
    "adopt_server",
    *("suspend_view", "resume_view", "checkpoint_view", "migrate_view", "plan_svg"),
    "set_config",
    "current_of",
}

#: Of these, those that may be called for each row.
CALLED_BY_ROW: Final = frozenset(("pg_cancel_backend", "pg_terminate_backend", "set_config"))
#: Functions with an effect, which no engine calls: those of sequences, what notifies, what waits, what locks, and those
#: of the session with computed arguments.
DRAWN_FUNCTIONS: Final = frozenset(
    ("nextval", "currval", "lastval", "setval", "pg_notify", "pg_sleep", "session_call", *ADVISORY, UNLOCK_ALL)
)

#: Aggregates by canonical name. 'row_number_merge' and the like do not exist: states merge with these same names.
AGGREGATES: Final = frozenset(
    [
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "min_by",  # the first argument where the second is least, or greatest: of no SQL
        "max_by",
        "min_rows",  # an array of the least rows, or the greatest, as many as the second argument says: of no SQL
        "max_rows",
        "merged_min_rows",  # the same of such arrays
        "merged_max_rows",
        "spread",  # count, sum and sum of squared distances from the mean: of no SQL (planner.incremental.aggregates)
        "paired_spread",
        "merged_spread",  # the same of such arrays
        "merged_paired_spread",
        "bool_and",
        "bool_or",
        "bit_and",
        "bit_or",
        "bit_xor",
        "range_agg",
        "range_intersect_agg",
        "corr",
        "covar_pop",
        "covar_samp",
        "regr_avgx",
        "regr_avgy",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "percentile_cont",
        "percentile_disc",
        "mode",
        "stddev_samp",
        "stddev_pop",
        "var_samp",
        "var_pop",
        "string_agg",
        "array_agg",
        "json_agg",
        "jsonb_agg",
        "json_object_agg",
        "jsonb_object_agg",
    ]
)

#: Functions that exist only over a window. The first group ignores the frame.
RANKING_FUNCTIONS: Final = frozenset(
    ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead")
)
WINDOW_FUNCTIONS: Final = RANKING_FUNCTIONS | {"first_value", "last_value", "nth_value"}
