"""PostgreSQL's names and signatures for the functions of ``planner.algebra.functions``.

Owns: ``OVERLOADS``, by PostgreSQL's name, and the hints for functions that Millstream does not have.
"""

from __future__ import annotations

from itertools import product
from typing import Final

from catalog.values.types import RANGES
from planner.algebra.functions import ADVISORY
from planner.bind.calls.overloading.overloads import signatures
from planner.bind.conversion.carried_types import SIGNATURES as FORMED

_TRIGONOMETRY: Final = ("sin", "cos", "tan", "cot", "asin", "acos", "atan")
_FORMATTED: Final = ("int4", "int8", "numeric", "float4", "float8")
_HYPERBOLIC: Final = ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
#: Arguments of extract().
_PARTS: Final = "; ".join(
    f"text {kind} > numeric" for kind in ("date", "time", "timetz", "timestamp", "timestamptz", "interval")
)

#: PostgreSQL's names: "canonical: arguments > result; ... | ..." with "=" for the name itself.
_SIGNATURES: Final[dict[str, str]] = {
    "abs": "=: int2 > int2; int4 > int4; int8 > int8; float4 > float4; float8 > float8; numeric > numeric",
    "sign": "=: float8 > float8; numeric > numeric",
    "round": "=: float8 > float8; numeric > numeric; numeric int4 > numeric",
    "trunc": "=: float8 > float8; numeric > numeric; numeric int4 > numeric",
    "ceil": "=: float8 > float8; numeric > numeric",
    "ceiling": "ceil: float8 > float8; numeric > numeric",
    "floor": "=: float8 > float8; numeric > numeric",
    "sqrt": "=: float8 > float8; numeric > numeric",
    "exp": "=: float8 > float8; numeric > numeric",
    "ln": "=: float8 > float8; numeric > numeric",
    "log": "=: float8 > float8; numeric > numeric; numeric numeric > numeric",
    "log10": "log: float8 > float8; numeric > numeric",
    "power": "=: float8 float8 > float8; numeric numeric > numeric",
    "pow": "power: float8 float8 > float8; numeric numeric > numeric",
    "mod": "=: int2 int2 > int2; int4 int4 > int4; int8 int8 > int8; numeric numeric > numeric",
    "cbrt": "=: float8 > float8",
    "pi": "=: > float8",
    "degrees": "=: float8 > float8",
    "radians": "=: float8 > float8",
    **dict.fromkeys((*_TRIGONOMETRY, *_HYPERBOLIC), "=: float8 > float8"),
    "atan2": "=: float8 float8 > float8",
    "div": "whole_quotient: numeric numeric > numeric",
    "gcd": "=: int4 int4 > int4; int8 int8 > int8; numeric numeric > numeric",
    "lcm": "=: int4 int4 > int4; int8 int8 > int8; numeric numeric > numeric",
    "scale": "=: numeric > int4",
    "min_scale": "=: numeric > int4",
    "trim_scale": "=: numeric > numeric",
    **dict.fromkeys(("sind", "cosd", "tand", "cotd", "asind", "acosd", "atand"), "=: float8 > float8"),
    "atan2d": "=: float8 float8 > float8",
    "factorial": "=: int8 > numeric",
    "width_bucket": "=: float8 float8 float8 int4 > int4; numeric numeric numeric int4 > int4",
    "to_hex": "=: int4 > text; int8 > text",
    "bit_length": "=: text > int4; bytea > int4",
    "overlay": "=: text text int4 > text; text text int4 int4 > text |"
    " octets_overlay: bytea bytea int4 > bytea | octets_overlay_count: bytea bytea int4 int4 > bytea",
    "translate": "=: text text text > text",
    "normalize": "=: text > text; text text > text",
    "is_normalized": "text_is_normalized: text > bool; text text > bool",
    "unistr": "text_unescaped: text > text",
    "convert": "octets_converted: bytea name name > bytea",
    "quote_ident": "=: text > text",
    "quote_literal": "=: text > text; anyelement > text",
    "quote_nullable": "=: text > text; anyelement > text",
    "sha256": "=: bytea > bytea",
    **{name: f"octets_{name}: bytea > bytea" for name in ("sha224", "sha384", "sha512")},
    "convert_from": "octets_as_text: bytea name > text",
    "convert_to": "octets_of_text: text name > bytea",
    "bit_count": "octets_bit_count: bytea > int8",
    "get_byte": "octets_get_byte: bytea int4 > int4",
    "get_bit": "octets_get_bit: bytea int8 > int4",
    "set_byte": "octets_set_byte: bytea int4 int4 > bytea",
    "set_bit": "octets_set_bit: bytea int8 int4 > bytea",
    "encode": "=: bytea text > text",
    "decode": "=: text text > bytea",
    "timezone": "=: text timestamp > timestamptz; text timestamptz > timestamp;"
    " interval timestamp > timestamptz; interval timestamptz > timestamp; text timetz > timetz;"
    " interval timetz > timetz",
    "age": "=: timestamp timestamp > interval; timestamptz timestamptz > interval; timestamp > interval;"
    " timestamptz > interval",
    "make_time": "=: int4 int4 float8 > time",
    "make_timestamp": "=: int4 int4 int4 int4 int4 float8 > timestamp",
    "make_timestamptz": "=: int4 int4 int4 int4 int4 float8 > timestamptz;"
    " int4 int4 int4 int4 int4 float8 text > timestamptz",
    "justify_hours": "=: interval > interval",
    "justify_days": "=: interval > interval",
    "justify_interval": "=: interval > interval",
    "isfinite": "=: date > bool; timestamp > bool; timestamptz > bool; interval > bool",
    "overlaps": "=: timetz timetz timetz timetz > bool; "
    + "; ".join(
        f"{kind} {one} {kind} {other} > bool"
        for kind in ("timestamp", "timestamptz", "time")
        for one, other in product((kind, "interval"), repeat=2)
    ),
    "to_char": "=: "
    + "; ".join(f"{kind} text > text" for kind in ("timestamp", "timestamptz", "interval", *_FORMATTED)),
    "to_number": "=: text text > numeric",
    "to_timestamp": "=: float8 > timestamptz | read_moment: text text > timestamptz",
    "to_date": "read_moment: text text > date",
    "regexp_replace": "=: text text text > text; text text text text > text; text text text int4 > text;"
    " text text text int4 int4 > text; text text text int4 int4 text > text",
    "regexp_like": "=: text text > bool; text text text > bool",
    "regexp_count": "=: text text > int4; text text int4 > int4; text text int4 text > int4",
    "regexp_instr": "=: text text > int4; text text int4 > int4; text text int4 int4 > int4;"
    " text text int4 int4 int4 > int4; text text int4 int4 int4 text > int4;"
    " text text int4 int4 int4 text int4 > int4",
    "regexp_substr": "=: text text > text; text text int4 > text; text text int4 int4 > text;"
    " text text int4 int4 text > text; text text int4 int4 text int4 > text",
    "regexp_match": "=: text text > _text; text text text > _text",
    "lower": "=: text > text | range_lower: anyrange > anyelement; anymultirange > anyelement",
    "upper": "=: text > text | range_upper: anyrange > anyelement; anymultirange > anyelement",
    "isempty": "range_is_empty: anyrange > bool; anymultirange > bool",
    **{
        name: f"range_{name}: anyrange > bool; anymultirange > bool"
        for name in ("lower_inc", "upper_inc", "lower_inf", "upper_inf")
    },
    "range_merge": "=: anyrange anyrange > anyrange | multirange_span: anymultirange > anyrange",
    "multirange": "multirange_of: anyrange > anymultirange",
    **{name: f"range_make: {of} {of} > {name}; {of} {of} text > {name}" for name, of in RANGES.items()},
    "initcap": "=: text > text",
    "reverse": "=: text > text",
    "md5": "=: text > text; bytea > text",
    "ascii": "=: text > int4",
    "chr": "=: int4 > text",
    "length": "char_length: text > int4; bpchar > int4 | octet_length: bytea > int4 |"
    " octets_as_text: bytea name > int4",
    "char_length": "=: text > int4; bpchar > int4",
    "character_length": "char_length: text > int4; bpchar > int4",
    "octet_length": "=: text > int4; bytea > int4; bpchar > int4",
    "substring": "=: text int4 > text; text int4 int4 > text |"
    " octets_from: bytea int4 > bytea | octets_part: bytea int4 int4 > bytea |"
    " regexp_substr: text text > text; text text text > text",
    "substr": "substring: text int4 > text; text int4 int4 > text |"
    " octets_from: bytea int4 > bytea | octets_part: bytea int4 int4 > bytea",
    "position": "=: text text > int4 | octets_position: bytea bytea > int4",
    "strpos": "position: text text > int4",
    "btrim": "=: text > text; text text > text | octets_btrim: bytea bytea > bytea",
    "ltrim": "=: text > text; text text > text | octets_ltrim: bytea bytea > bytea",
    "rtrim": "=: text > text; text text > text | octets_rtrim: bytea bytea > bytea",
    "replace": "=: text text text > text",
    "left": "=: text int4 > text",
    "right": "=: text int4 > text",
    "lpad": "=: text int4 > text; text int4 text > text",
    "rpad": "=: text int4 > text; text int4 text > text",
    "repeat": "=: text int4 > text",
    "split_part": "=: text text int4 > text",
    "starts_with": "=: text text > bool",
    "date_trunc": "=: text timestamp > timestamp; text timestamptz > timestamptz; text interval > interval;"
    " text timestamptz text > timestamptz",
    "date_bin": "=: interval timestamp timestamp > timestamp; interval timestamptz timestamptz > timestamptz",
    "make_date": "=: int4 int4 int4 > date",
    "extract": f"=: {_PARTS}",
    "date_part": f"extract: {_PARTS}",
    "random": "=: > float8",
    "gen_random_uuid": "=: > uuid",
    "clock_timestamp": "=: > timestamptz",
    "now": "=: > timestamptz",
    "transaction_timestamp": "now: > timestamptz",
    "current_database": "=: > name",
    "current_schema": "=: > name",
    "version": "=: > text",
    "pg_backend_pid": "=: > int4",
    "pg_postmaster_start_time": "=: > timestamptz",
    "pg_conf_load_time": "pg_postmaster_start_time: > timestamptz",
    "statement_timestamp": "=: > timestamptz",
    "txid_current": "=: > int8",
    "pg_reload_conf": "=: > bool",
    "pg_cancel_backend": "=: int4 > bool",
    "pg_terminate_backend": "=: int4 > bool; int4 int8 > bool",
    **{
        name: "=: int8 > {0}; int4 int4 > {0}".format("bool" if "try" in name or "unlock" in name else "void")
        for name in ADVISORY
    },
    "pg_advisory_unlock_all": "=: > void",
    "current_setting": "=: text > text; text bool > text",
    "set_config": "=: text text bool > text",
}


def _merged() -> dict[str, str]:
    """The signatures, with those of ``carried_types`` behind."""
    names = dict.fromkeys((*_SIGNATURES, *FORMED))
    return {name: " | ".join(text[name] for text in (_SIGNATURES, FORMED) if name in text) for name in names}


OVERLOADS: Final = {name: signatures(name, text) for name, text in _merged().items()}
