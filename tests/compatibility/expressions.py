"""Generates expressions: the operators, functions, aggregates and casts of PostgreSQL's catalogs, applied to edge
values.

Owns: ``Expression`` (its text, its parts, and the name under which a difference is listed) and ``Expressions``, which
draws them by type. The expected result is PostgreSQL's; both servers are asked.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final

from msgspec import Struct

from catalog.postgres import aggregates, casts, functions, operators, rows, types
from tests.compatibility.tables import ROWS, VALUES, column, written

#: The name under which a plain call of an operator or function is listed, by the category of its first argument's type.
_FAMILIES: Final = {"N": "numbers", "S": "strings", "D": "dates and times", "T": "dates and times", "B": "booleans"}
#: The functions of chapter 9 of the manual that depend only on their arguments, without text search, XML and geometry.
_DOCUMENTED: Final = frozenset(
    [
        "abs",
        "cbrt",
        "ceil",
        "ceiling",
        "degrees",
        "div",
        "exp",
        "factorial",
        "floor",
        "gcd",
        "lcm",
        "ln",
        "log",
        "log10",
        "min_scale",
        "mod",
        "pi",
        "power",
        "radians",
        "round",
        "scale",
        "sign",
        "sqrt",
        "trim_scale",
        "trunc",
        "width_bucket",
        "acos",
        "acosd",
        "asin",
        "asind",
        "atan",
        "atand",
        "atan2",
        "atan2d",
        "cos",
        "cosd",
        "cot",
        "cotd",
        "sin",
        "sind",
        "tan",
        "tand",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "bit_length",
        "char_length",
        "character_length",
        "lower",
        "octet_length",
        "upper",
        "ascii",
        "btrim",
        "chr",
        "concat",
        "concat_ws",
        "format",
        "initcap",
        "left",
        "length",
        "lpad",
        "ltrim",
        "md5",
        "normalize",
        "is_normalized",
        "unistr",
        "parse_ident",
        "quote_ident",
        "quote_literal",
        "quote_nullable",
        "regexp_count",
        "regexp_instr",
        "regexp_like",
        "regexp_match",
        "regexp_replace",
        "regexp_split_to_array",
        "regexp_substr",
        "repeat",
        "replace",
        "reverse",
        "right",
        "rpad",
        "rtrim",
        "split_part",
        "starts_with",
        "string_to_array",
        "strpos",
        "substr",
        "substring",
        "to_hex",
        "translate",
        "overlay",
        "position",
        "bit_count",
        "get_bit",
        "get_byte",
        "set_bit",
        "set_byte",
        "sha224",
        "sha256",
        "sha384",
        "sha512",
        "encode",
        "decode",
        "to_char",
        "to_date",
        "to_number",
        "to_timestamp",
        "date_bin",
        "date_part",
        "date_trunc",
        "extract",
        "isfinite",
        "justify_days",
        "justify_hours",
        "justify_interval",
        "make_date",
        "make_interval",
        "make_time",
        "make_timestamp",
        "make_timestamptz",
        "timezone",
        "overlaps",
        "array_append",
        "array_cat",
        "array_dims",
        "array_length",
        "array_lower",
        "array_ndims",
        "array_position",
        "array_positions",
        "array_prepend",
        "array_remove",
        "array_replace",
        "array_to_string",
        "array_upper",
        "cardinality",
        "trim_array",
        "to_json",
        "to_jsonb",
        "array_to_json",
        "json_build_array",
        "json_array_length",
        "jsonb_array_length",
        "json_extract_path",
        "jsonb_extract_path",
        "json_extract_path_text",
        "jsonb_extract_path_text",
        "json_object",
        "jsonb_object",
        "jsonb_set",
        "jsonb_set_lax",
        "jsonb_insert",
        "json_strip_nulls",
        "jsonb_strip_nulls",
        "jsonb_pretty",
        "json_typeof",
        "jsonb_typeof",
        "jsonb_exists",
        "jsonb_concat",
        "num_nulls",
        "num_nonnulls",
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "bool_and",
        "bool_or",
        "every",
        "bit_and",
        "bit_or",
        "bit_xor",
        "string_agg",
        "array_agg",
        "json_agg",
        "jsonb_agg",
        "json_object_agg",
        "jsonb_object_agg",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "variance",
        "var_pop",
        "var_samp",
        "corr",
        "covar_pop",
        "covar_samp",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
    ]
)
#: Values that keep results small, for arguments that are lengths or counts.
_SIZED: Final = frozenset(("repeat", "lpad", "rpad", "generate_series", "array_fill", "factorial", "numeric_fac"))


class Signature(Struct, frozen=True):
    """An operator, function or cast on types: ``name`` is listed, ``write`` combines operands to SQL."""

    name: str
    construct: str
    arguments: tuple[str, ...]
    result: str
    write: Callable[[tuple[str, ...]], str]


class Expression(Struct, frozen=True):
    """An SQL expression with its parts."""

    text: str
    type: str
    name: str
    construct: str
    parts: tuple[Expression, ...] = ()


def _family(argument: str) -> str:
    if argument.startswith("_") or argument in ("anyarray", "anycompatiblearray"):
        return "arrays"
    if argument in ("json", "jsonb"):
        return "JSON"
    found = types().get(_oid(argument))
    return _FAMILIES.get(found.category, "other types") if found else "other types"


@cache
def _oid(name: str) -> int:
    return next((oid for oid, item in types().items() if item.name == name), 0)


def _type(oid: int) -> str:
    return types()[oid].name if oid in types() else ""


def _usable(*names: str) -> bool:
    return all(name in VALUES for name in names)


def _operators() -> Iterator[Signature]:
    for name in sorted({str(row["oprname"]) for row in rows("pg_operator")}):
        for item in operators(name):
            left, right, result = _type(item.left) if item.left else "", _type(item.right), _type(item.result)
            if name in ("*<", "*<=", "*<>", "*=", "*>", "*>=", "~<~", "~<=~", "~>=~", "~>~", "<->", "^@", "@@", "@@@"):
                continue
            if not left and _usable(right):
                yield Signature(f"{name} {right}", _operator_family(name, right), (right,), result, _prefixed(name))
            elif left and _usable(left, right):
                shown = f"{left} {name} {right}"
                yield Signature(shown, _operator_family(name, left), (left, right), result, _infixed(name))


def _operator_family(name: str, argument: str) -> str:
    kind = "comparisons" if name in ("=", "<>", "<", "<=", ">", ">=") else "operators"
    return f"{kind} of {_family(argument)}"


def _prefixed(symbol: str) -> Callable[[tuple[str, ...]], str]:
    return lambda operands: f"{symbol} ({operands[0]})"


def _infixed(symbol: str) -> Callable[[tuple[str, ...]], str]:
    return lambda operands: f"({operands[0]}) {symbol} ({operands[1]})"


def _called(name: str) -> Callable[[tuple[str, ...]], str]:
    return lambda operands: f"{name}({', '.join(operands)})"


def _functions(kind: str) -> Iterator[Signature]:
    for name in sorted({str(row["proname"]) for row in rows("pg_proc") if row["prokind"] == kind}):
        if name not in _DOCUMENTED:
            continue
        for item in functions(name):
            arguments = tuple(map(_type, item.arguments))
            if item.kind != kind or item.returns_set or item.variadic or item.volatility == "v" or not arguments:
                continue
            if not _usable(*arguments):
                continue
            if kind == "a" and aggregates()[item.oid].kind != "n":
                continue
            shown = f"{name}({', '.join(arguments)})"
            construct = "aggregates" if kind == "a" else f"functions of {_family(arguments[0])}"
            yield Signature(shown, construct, arguments, _type(item.result), _called(name))


def _casts() -> Iterator[Signature]:
    for (source, target), _ in casts().items():
        names = (_type(source), _type(target))
        if _usable(*names) and names[0] != names[1]:
            yield _cast(*names)
    for name in VALUES:
        yield _cast(name, "text")
        yield _cast("text", name)


def _cast(source: str, target: str) -> Signature:
    shown = f"{source}::{target}"
    return Signature(shown, "casts", (source,), target, lambda operands: f"({operands[0]})::{written(target)}")


def _forms(name: str) -> Iterator[Signature]:
    """Constructs of PostgreSQL's grammar, for each type."""

    def form(shown: str, arguments: tuple[str, ...], result: str, pattern: str) -> Signature:
        return Signature(f"{shown} ({name})", shown, arguments, result, partial(_filled, pattern))

    same = (name, name)
    yield form("IS [NOT] NULL", (name,), "bool", "({0}) IS NULL")
    yield form("IS [NOT] NULL", (name,), "bool", "({0}) IS NOT NULL")
    yield form("CASE", ("bool", *same), name, "CASE WHEN {0} THEN {1} ELSE {2} END")
    yield form("COALESCE", same, name, "COALESCE({0}, {1})")
    yield form("subquery as a value", (name,), name, "(SELECT {0})")
    if name == "json":
        return
    yield form("CASE", (*same, name, "text"), "text", "CASE {0} WHEN {1} THEN 'x' WHEN {2} THEN {3} END")
    yield form("IS [NOT] DISTINCT FROM", same, "bool", "({0}) IS DISTINCT FROM ({1})")
    yield form("IS [NOT] DISTINCT FROM", same, "bool", "({0}) IS NOT DISTINCT FROM ({1})")
    yield form("IN", (*same, name), "bool", "({0}) IN ({1}, {2})")
    yield form("IN", (*same, name), "bool", "({0}) NOT IN ({1}, {2})")
    yield form("BETWEEN", (*same, name), "bool", "({0}) BETWEEN {1} AND {2}")
    yield form("BETWEEN", (*same, name), "bool", "({0}) NOT BETWEEN SYMMETRIC {1} AND {2}")
    yield form("NULLIF", same, name, "NULLIF({0}, {1})")
    yield form("GREATEST, LEAST", (*same, name), name, "GREATEST({0}, {1}, {2})")
    yield form("GREATEST, LEAST", same, name, "LEAST({0}, {1})")
    yield form("row values", (*same, *same), "bool", "(({0}), ({1})) < (({2}), ({3}))")
    yield form("row values", (*same, *same), "bool", "ROW({0}, {1}) = ROW({2}, {3})")


_SPECIAL: Final = (
    ("LIKE", ("text", "text"), "bool", "({0}) LIKE {1}"),
    ("LIKE", ("text",), "bool", "({0}) NOT LIKE 'a%'"),
    ("LIKE", ("varchar",), "bool", "({0}) ILIKE '_B%'"),
    ("LIKE", ("text",), "bool", "({0}) LIKE 'a#%%' ESCAPE '#'"),
    ("regular expressions", ("text",), "bool", "({0}) ~ '^[a-c]+$'"),
    ("regular expressions", ("text",), "bool", "({0}) !~* 'WORLD|b'"),
    ("regular expressions", ("text",), "bool", r"({0}) ~ '\d{{2,}}|\s'"),
    ("regular expressions", ("text",), "bool", "({0}) SIMILAR TO '%(b|o)%'"),
    ("EXTRACT", ("date",), "numeric", "EXTRACT({field} FROM {0})"),
    ("EXTRACT", ("timestamp",), "numeric", "EXTRACT({field} FROM {0})"),
    ("EXTRACT", ("timestamptz",), "numeric", "EXTRACT({field} FROM {0})"),
    ("EXTRACT", ("interval",), "numeric", "EXTRACT({field} FROM {0})"),
    ("EXTRACT", ("time",), "numeric", "EXTRACT({field} FROM {0})"),
    ("date_trunc, date_part", ("timestamp",), "timestamp", "date_trunc('{field}', {0})"),
    ("date_trunc, date_part", ("timestamptz",), "timestamptz", "date_trunc('{field}', {0})"),
    ("date_trunc, date_part", ("date",), "timestamptz", "date_trunc('{field}', {0})"),
    ("date_trunc, date_part", ("interval",), "interval", "date_trunc('{field}', {0})"),
    ("date_trunc, date_part", ("timestamp",), "float8", "date_part('{field}', {0})"),
    ("string syntax", ("text", "int4"), "text", "SUBSTRING({0} FROM {1})"),
    ("string syntax", ("text", "int2", "int2"), "text", "SUBSTRING({0} FROM {1} FOR {2})"),
    ("string syntax", ("text",), "text", "TRIM(BOTH 'a ' FROM {0})"),
    ("string syntax", ("text",), "text", "TRIM(LEADING FROM {0})"),
    ("string syntax", ("text", "text"), "int4", "POSITION({0} IN {1})"),
    ("string syntax", ("text", "text"), "text", "OVERLAY({0} PLACING {1} FROM 2 FOR 1)"),
    ("boolean tests", ("bool",), "bool", "({0}) IS NOT TRUE"),
    ("boolean tests", ("bool",), "bool", "({0}) IS FALSE"),
    ("boolean tests", ("bool",), "bool", "({0}) IS UNKNOWN"),
    ("AND, OR, NOT", ("bool", "bool"), "bool", "({0}) AND ({1})"),
    ("AND, OR, NOT", ("bool", "bool"), "bool", "({0}) OR NOT ({1})"),
    ("casts with a length", ("text",), "varchar", "({0})::varchar(3)"),
    ("casts with a length", ("text",), "bpchar", "({0})::char(4)"),
    ("casts with a length", ("numeric",), "numeric", "({0})::numeric(6,2)"),
    ("casts with a length", ("float8",), "numeric", "({0})::numeric(10,3)"),
    ("AT TIME ZONE", ("timestamp",), "timestamptz", "({0}) AT TIME ZONE 'Europe/Berlin'"),
    ("AT TIME ZONE", ("timestamptz",), "timestamp", "({0}) AT TIME ZONE 'America/New_York'"),
    ("AT TIME ZONE", ("timestamp",), "timestamptz", "({0}) AT TIME ZONE 'MSK'"),
    ("AT TIME ZONE", ("timestamptz",), "timestamp", "({0}) AT TIME ZONE 'EST5EDT,M3.2.0,M11.1.0'"),
    ("to_char", ("interval",), "text", "to_char({0}, 'YYYY,MM Y CC DDD RM HH12 AM SSSS FF3')"),
    ("to_char", ("timestamptz",), "text", "to_char({0}, 'FMDay TZ OF tz')"),
    ("VARIADIC", ("_text",), "json", "json_build_array(VARIADIC {0})"),
    ("VARIADIC", ("_int4",), "jsonb", "jsonb_build_object(VARIADIC {0})"),
    ("VARIADIC", ("text", "_text"), "text", "concat_ws({0}, VARIADIC {1})"),
    ("VARIADIC", ("jsonb", "_text"), "text", "jsonb_extract_path_text({0}, VARIADIC {1})"),
    ("concat, concat_ws, format", ("text", "int4"), "text", "concat({0}, {1}, NULL)"),
    ("concat, concat_ws, format", ("text", "bool"), "text", "concat_ws(',', {0}, {1})"),
    ("concat, concat_ws, format", ("text", "int4"), "text", "format('%s-%s', {0}, {1})"),
    ("ARRAY", ("int4", "int4"), "_int4", "ARRAY[{0}, {1}]"),
    ("ARRAY", ("text", "text"), "_text", "ARRAY[{0}, {1}]"),
    ("ARRAY", ("_int4",), "int4", "({0})[1]"),
    ("ARRAY", ("_text",), "_text", "({0})[1:2]"),
    ("ANY, ALL of arrays", ("int4", "_int4"), "bool", "({0}) = ANY ({1})"),
    ("ANY, ALL of arrays", ("text", "_text"), "bool", "({0}) <> ALL ({1})"),
    ("polymorphic functions", ("_int4",), "int4", "array_length({0}, 1)"),
    ("polymorphic functions", ("_int4",), "int4", "cardinality({0})"),
    ("polymorphic functions", ("_text", "text"), "_text", "array_append({0}, {1})"),
    ("polymorphic functions", ("_text", "text"), "int4", "array_position({0}, {1})"),
    ("polymorphic functions", ("_text",), "text", "array_to_string({0}, ',')"),
    ("polymorphic functions", ("int4",), "jsonb", "to_jsonb({0})"),
    ("polymorphic functions", ("text",), "json", "to_json({0})"),
)
_FIELDS: Final = (
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "dow",
    "doy",
    "epoch",
    "week",
    "quarter",
    "isoyear",
    "isodow",
    "century",
    "decade",
    "millennium",
    "milliseconds",
    "microseconds",
    "julian",
    "timezone",
    "no",
)


def _special() -> Iterator[Signature]:
    for construct, arguments, result, pattern in _SPECIAL:
        for field in _FIELDS if "{field}" in pattern else ("",):
            shown = pattern.replace("{field}", field)
            yield Signature(
                f"{shown.format(*arguments)}",
                construct,
                arguments,
                result,
                partial(_filled, shown),
            )


def _filled(pattern: str, operands: tuple[str, ...]) -> str:
    return pattern.format(*operands)


@cache
def signatures() -> tuple[Signature, ...]:
    """All signatures that are drawn."""
    found = [*_operators(), *_functions("f"), *_casts(), *_special()]
    for name in VALUES:
        found += _forms(name)
    return tuple(found)


@cache
def aggregate_signatures() -> tuple[Signature, ...]:
    """Plain aggregates."""
    return tuple(_functions("a"))


@cache
def _by_result() -> dict[str, tuple[Signature, ...]]:
    found = defaultdict(list)
    for item in signatures():
        if _sized(item) is None:
            found[item.result].append(item)
    return {name: tuple(items) for name, items in found.items()}


def _sized(item: Signature) -> str | None:
    name = item.name.partition("(")[0]
    return name if name in _SIZED else None


class Expressions:
    """Draws expressions over the row ``id`` of ``w``."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._nested = False

    def nested(self, signature: Signature, depth: int) -> Expression:
        """A signature applied to calls. A NULL argument is avoided, as PostgreSQL could then skip other arguments, and
        their errors."""
        self._nested = True
        found = self.of(signature, depth)
        self._nested = False
        return found

    def of(self, signature: Signature, depth: int = 0) -> Expression:
        """A signature applied to operands; ``depth``: how many levels of calls they may be."""
        parts = tuple(self.operand(kind, depth, bool(_sized(signature))) for kind in signature.arguments)
        text = signature.write(tuple(item.text for item in parts))
        return Expression(text, signature.result, signature.name, signature.construct, parts)

    def operand(self, kind: str, depth: int, small: bool = False) -> Expression:
        """A column, a literal or a call of a type."""
        chance = self._source.random()
        if small and kind in ("int4", "int8", "int2"):
            return _leaf(self._source.choice(("0", "1", "5", "-1")), kind)
        if depth and chance < 0.5 and kind in _by_result():
            return self.of(self._source.choice(_by_result()[kind]), depth - 1)
        if chance < 0.8:
            return _leaf(column(kind), kind)
        if chance < 0.83 and not self._nested:
            return _leaf(f"NULL::{written(kind)}", kind)
        value = self._source.choice(VALUES[kind])
        bare = chance < 0.9
        return _leaf(value if bare else f"({value})::{written(kind)}", kind)

    def anything(self) -> Expression:
        """An operator on two operands of any types, mostly an error, which must be the same on both servers."""
        symbols = ("+", "-", "*", "/", "=", "<", "||", "%", "~~", "->", "^", "&", "@>")
        symbol = self._source.choice(symbols)
        kinds = tuple(self._source.choice(tuple(VALUES)) for _ in range(2))
        shown = f"{kinds[0]} {symbol} {kinds[1]}"
        return self.of(Signature(shown, "operators on any types", kinds, "", _infixed(symbol)))

    def row(self) -> int:
        """A row of ``w``."""
        return self._source.randrange(ROWS)


def _leaf(text: str, kind: str) -> Expression:
    return Expression(text, kind, kind, "values")
