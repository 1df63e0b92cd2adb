"""The allow-list in DuckDB's SQL: every scalar function of ``planner.algebra.functions`` with PostgreSQL's semantics.

Owns: ``FUNCTIONS``, the table from canonical name to a builder of sqlglot nodes, and the one-line builders; the others
are in ``arithmetic``, ``textual`` and ``temporal``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from catalog.codec import encode
from catalog.values.errors import unsupported
from catalog.values.types import OIDS
from executor.embedded.functions import steered_calls
from executor.embedded.functions.texts import bit_strings, bytea, hstores, networks
from executor.embedded.printing.comparisons import bounded, compared
from executor.embedded.printing.composites.array_shapes import SHAPED
from executor.embedded.printing.composites.arrays import ARRAYS
from executor.embedded.printing.composites.documents import JSONS, ordered
from executor.embedded.printing.composites.multiranges import BUILDS as MULTIRANGES
from executor.embedded.printing.composites.ranges import BUILDS as RANGES
from executor.embedded.printing.composites.rows import ROWS
from executor.embedded.printing.composites.scaled import scaled_text, written_scale
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import INTEGERS, called, cast_to, macro, repeats
from executor.embedded.printing.numbers import floats
from executor.embedded.printing.numbers.arithmetic import (
    add,
    average_final,
    divide,
    divide_scaled,
    multiply,
    of_integers,
    quotient_scale,
    remainder,
    rounded,
    scale,
    shifted,
    spread_final,
    square_root,
    to_hex,
    transcendental,
    transcendental_named,
    variance_final,
    whole_quotient,
    width_bucket,
)
from executor.embedded.printing.set_functions import SETS
from executor.embedded.printing.textual import (
    concat,
    concat_values,
    concat_ws,
    like,
    octet_length,
    overlay,
    padded,
    regex_count,
    regex_extract,
    regex_groups,
    regex_matches,
    regex_split,
    replace,
    substring,
    trimmed,
)
from executor.embedded.printing.times.formatting import read_moment, to_char
from executor.embedded.printing.times.temporal import age, date_bin, date_trunc, extract, hop_start, is_finite, julian
from executor.embedded.printing.times.timetz import at_zone
from executor.printing.nodes import Build, Expr, binary, chain, function, number, operand, text
from planner.algebra.nodes import Call, Cast, Literal, Scalar

#: Functions of bytea.
BYTEA: Final = frozenset(bytea.FUNCTIONS) | frozenset(
    (
        *("eq", "ne", "lt", "le", "gt", "ge", "in", "is_null", "is_not_null", "is_distinct", "is_not_distinct"),
        *(
            "coalesce",
            "nullif",
            "row",
            "row_version",
            "row_hash",
            "to_json",
            "json_value",
            "json_items",
            "concat",
            "greatest",
            "least",
            "octet_length",
            "md5",
            "sha256",
        ),
        *("encode_hex", "encode_base64", "late", "require", "octets_decoded", "octets_converted"),
        *("null_on_error", "fails"),
    )
)


def _named(name: str) -> Build:
    """A function or macro of DuckDB with PostgreSQL's result and type."""
    return lambda printer, arguments, node: called(name, *arguments)


def _retyped(name: str) -> Build:
    """A function of DuckDB whose result is cast to PostgreSQL's type."""
    return lambda printer, arguments, node: cast_to(printer, called(name, *arguments), node.type)


def _operator(kind: type[Any]) -> Build:
    return lambda printer, arguments, node: binary(kind, arguments[0], arguments[1])


def _chained(kind: type[Any]) -> Build:
    return lambda printer, arguments, node: chain(kind, arguments)


def _extreme(name: str, by_pair: str) -> Build:
    """GREATEST and LEAST; for intervals and jsonb by PostgreSQL's comparison, which DuckDB's function does not use."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        if node.type.name not in ("interval", "jsonb"):
            return called(name, *arguments)
        found, *rest = arguments
        for item in rest:
            found = macro(f"{by_pair}_jsonb" if node.type.name == "jsonb" else by_pair, found, item)
        return found

    return build


def _null_if(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """NULLIF. DuckDB's is a macro that names its first argument twice."""
    return macro("nullif", *arguments) if repeats(node.arguments[0]) else function("nullif", *arguments)


def _negated(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """Negation. For integers it is a difference, so that the overflow's message names the type."""
    value = operand(arguments[0])
    found = exp.Sub(this=number(0), expression=value) if node.type.name in INTEGERS else exp.Neg(this=value)
    return cast_to(printer, found, node.type)


def _is_null(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return exp.Is(this=operand(arguments[0]), expression=exp.null())


def _is_not_null(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return exp.Not(this=exp.Paren(this=_is_null(printer, arguments, node)))


def _truth(default: bool, negated: bool) -> Build:
    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        known = function("coalesce", arguments[0], exp.true() if default else exp.false())
        return exp.Not(this=known) if negated else known

    return build


def _in(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    first, *others = [ordered(value, item.type) for value, item in zip(arguments, node.arguments, strict=True)]
    if node.arguments[0].type.name in OIDS | {"int8"}:  # the engine itself gives constants the column's type
        others = [_number(item, other) for item, other in zip(node.arguments[1:], others, strict=True)]
    return exp.In(this=operand(first), expressions=others)


def _number(scalar: Scalar, printed: Expr) -> Expr:
    """A constant integer, or one cast to an oid, as a number; other expressions as printed."""
    value = scalar.argument if isinstance(scalar, Cast) and scalar.type.name in OIDS else scalar
    if isinstance(value, Literal) and isinstance(value.value, int) and 0 <= value.value < 1 << 32:
        return number(value.value)
    return printed


def _error(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    state, message = node.arguments
    assert isinstance(state, Literal)
    assert isinstance(message, Literal)
    return cast_to(printer, function("error", text(f"!{state.value}!{message.value}")), node.type)


def _fails(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """Whether an expression raises: a list of its value is NULL only then."""
    return exp.Is(this=function("try", function("list_value", *arguments)), expression=exp.null())


def _steered(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The call of ``late_*`` for a call of ``late``."""
    name, *given = node.arguments
    assert isinstance(name, Literal)
    if node.type.name not in steered_calls.RESULTS:
        raise unsupported(f"{name.value}() with a computed argument", "Give it as a constant.")
    what = (str(name.value), tuple(item.type for item in given), node.type, printer.timezone)
    return function(f"late_{node.type.name}", text(json.dumps(encode(what))), *arguments[1:])


FUNCTIONS: Final[Mapping[str, Build]] = {
    "add": add(exp.Add),
    "sub": add(exp.Sub),
    "mul": multiply,
    "div": divide,
    "div_scaled": divide_scaled,
    "quotient_scale": quotient_scale,
    "scaled_text": scaled_text,
    "written_scale": written_scale,
    "padded": lambda printer, arguments, node: arguments[0],
    "transcendental": transcendental_named(""),
    "transcendental_scale": transcendental_named("_scale"),
    "mod": remainder,
    "square": floats.square,
    "finite": floats.finite,
    "float_units": floats.units,
    "float_is_outside": floats.is_outside,
    "float_of_units": floats.of_units,
    "eq": compared(exp.EQ),
    "ne": compared(exp.NEQ),
    "lt": bounded(exp.LT),
    "le": bounded(exp.LTE),
    "gt": bounded(exp.GT),
    "ge": bounded(exp.GTE),
    "and": _chained(exp.And),
    "or": _chained(exp.Or),
    "concat": concat,
    "like": like(exp.Like),
    "ilike": like(exp.ILike),
    "regex_match": regex_matches(False),
    "regex_imatch": regex_matches(True),
    **{
        f"regexp_{name}": _named(f"re_{name}")
        for name in ("like", "count", "instr", "substr", "match", "matches", "substring")
    },
    "regexp_replace": _named("re_replace"),
    "regexp_split_to_array": regex_split,
    "similar": _named("re_similar"),
    "is_distinct": compared(exp.NullSafeNEQ),
    "is_not_distinct": compared(exp.NullSafeEQ),
    "not": lambda printer, arguments, node: exp.Not(this=operand(arguments[0])),
    "neg": _negated,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "is_true": _truth(False, False),
    "is_false": _truth(True, True),
    "is_not_true": _truth(False, True),
    "is_not_false": _truth(True, False),
    "in": _in,
    "coalesce": _named("coalesce"),
    "nullif": _null_if,
    "greatest": _extreme("greatest", "ms_greater"),
    "least": _extreme("least", "ms_lesser"),
    "abs": _named("abs"),
    "sign": _retyped("sign"),
    "round": rounded("round"),
    "trunc": rounded("trunc"),
    "ceil": rounded("ceil"),
    "floor": rounded("floor"),
    "sqrt": square_root,
    **{name: _named(name) for name in ("pi", "sinh", "cosh", "tanh", "asinh", "atan", "atan2")},
    **{name: _named(f"ms_{name}") for name in ("sin", "cos", "tan", "cot", "asin", "acos", "acosh", "atanh")},
    **{name: _named(f"ms_{name}") for name in ("cbrt", "degrees", "radians")},
    "whole_quotient": whole_quotient,
    "gcd": of_integers("gcd"),
    "lcm": of_integers("lcm"),
    "factorial": _retyped("ms_factorial"),
    "width_bucket": width_bucket,
    "bitand": _operator(exp.BitwiseAnd),
    "bitor": _operator(exp.BitwiseOr),
    "bitxor": _named("xor"),
    "bitnot": lambda printer, arguments, node: exp.BitwiseNot(this=operand(arguments[0])),
    "shift_left": shifted("ms_shift_left"),
    "shift_right": shifted("ms_shift_right"),
    "to_hex": to_hex,
    "power": transcendental("ms_power"),
    "exp": transcendental("ms_exp"),
    "ln": transcendental("ln"),
    "log": transcendental("log10"),
    "scale": scale,
    "min_scale": scale,
    "trim_scale": lambda printer, arguments, node: cast_to(printer, arguments[0], node.type),
    **{name: _named(f"deg_{name}") for name in ("sind", "cosd", "tand", "cotd", "asind", "acosd", "atand", "atan2d")},
    "lower": _named("lower"),
    "upper": _named("ms_upper"),
    "initcap": _named("ms_initcap"),
    "char_length": _retyped("length"),
    "octet_length": octet_length,
    "substring": substring,
    "position": _retyped("strpos"),
    "btrim": trimmed("trim"),
    "ltrim": trimmed("ltrim"),
    "rtrim": trimmed("rtrim"),
    "replace": replace,
    "left": _named("left"),
    "right": _named("ms_right"),
    "parse_ident": lambda printer, arguments, node: function(
        "names_parse", *arguments, *([exp.true()] if len(arguments) == 1 else [])
    ),
    "lpad": padded("ms_lpad"),
    "rpad": padded("ms_rpad"),
    "repeat": _named("ms_repeat"),
    "reverse": _named("reverse"),
    "split_part": _named("ms_split_part"),
    "starts_with": _named("starts_with"),
    "ascii": _named("ascii"),
    "chr": _named("ms_chr"),
    "md5": _named("md5"),
    "concat_values": concat_values,
    "concat_ws": concat_ws,
    "overlay": overlay,
    "regex_replace": _named("regexp_replace"),
    "regex_count": regex_count,
    "regex_extract": regex_extract,
    "regex_groups": regex_groups,
    "translate": _named("translate"),
    "normalize": _named("nfc_normalize"),
    **{name: _named(name) for name in ("text_normalized", "text_is_normalized", "text_unescaped")},
    **{name: _named(name) for name in ("octets_decoded", "octets_encoded", "octets_converted")},
    "quote_ident": _named("ms_quote_ident"),
    "quote_literal": _named("ms_quote_literal"),
    "type_shown": _named("type_shown"),
    "sha256": lambda printer, arguments, node: function("unhex", function("sha256", *arguments)),
    **{name: _named(name) for family in (bytea, bit_strings, networks, hstores) for name in family.FUNCTIONS},
    **{name: _named(name) for name in hstores.OF_NULL},
    **{f"{name}_{part}": _named(f"{name}_{part}") for name in ("net", "lsn", "tid") for part in ("order", "ordered")},
    **{f"money_{name}": _named(f"ms_money_{name}") for name in ("whole", "rounded", "numeric", "cents", "of_cents")},
    **{f"money_{name}": _named(f"ms_money_{name}") for name in ("add", "sub", "parts", "divided", "ratio")},
    **{f"money_{name}": _named(f"ms_money_{name}") for name in ("times", "scaled")},
    **{f"lsn_{name}": _named(f"ms_lsn_{name}") for name in ("add", "added", "sub", "distance", "of")},
    **{name: _named(name) for name in ("xml_shown", "size_read")},
    "encode_hex": lambda printer, arguments, node: function("lower", function("hex", *arguments)),
    "encode_base64": _named("ms_base64"),
    "decode_hex": _named("ms_unhex"),
    "decode_base64": _named("ms_unbase64"),
    "extract": extract,
    "julian": julian,
    "date_trunc": date_trunc,
    "date_bin": date_bin,
    "hop_start": hop_start,
    "make_date": _named("ms_make_date"),
    "make_time": _named("ms_make_time"),
    "make_timestamp": _named("ms_make_timestamp"),
    "make_interval": _named("ms_make_interval"),
    "timezone": at_zone(_named("timezone")),
    "age": age,
    "justify_hours": _named("ms_justify_hours"),
    "justify_days": _named("ms_justify_days"),
    "justify_interval": _named("ms_justify_interval"),
    "isfinite": is_finite,
    "interval_length": _named("ms_interval_length"),
    "overlaps": _named("ms_overlaps"),
    "to_timestamp": _named("ms_to_timestamp"),
    "to_char": to_char,
    "to_number": _named("num_read"),
    "read_moment": read_moment,
    "random": _named("random"),
    "gen_random_uuid": _retyped("uuid"),
    "clock_timestamp": _named("now"),
    "avg_final": average_final,
    "variance_final": variance_final,
    "spread_final": spread_final,
    "error": _error,
    "hashed_chance": _named("ms_hashed_chance"),
    "row_version": lambda printer, arguments, node: function("ms_row_version", function("hash", *arguments)),
    "row_hash": lambda printer, arguments, node: function("ms_row_hash", function("hash", *arguments)),
    "row_place": _named("ms_row_place"),
    "late": _steered,
    **ARRAYS,
    **SHAPED,
    **JSONS,
    **ROWS,
    **SETS,
    **RANGES,
    **MULTIRANGES,
    "require": lambda printer, arguments, node: macro("ms_require", *arguments),
    "declared": lambda printer, arguments, node: arguments[0],
    "null_on_error": lambda printer, arguments, node: function("try", *arguments),
    "fails": _fails,
}
