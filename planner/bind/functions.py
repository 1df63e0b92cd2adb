"""Function calls of the grammar -> calls of canonical functions.

Owns: PostgreSQL's names and signatures for what ``planner.functions`` has, the digits of numeric results, and the
errors for the rest (42883, 0A000). Aggregates are in ``planner.bind.aggregates``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from catalog.errors import SqlError, unsupported
from catalog.types import BOOL, FLOAT8, TEXT, SqlType, by_name, by_oid, is_known, numeric
from planner.bind.aggregates import AGGREGATE_NAMES, AMBIGUOUS, NO_MATCH, bind_aggregate
from planner.bind.environment import Environment
from planner.bind.overloads import ANY, Beyond, Overload, Table, find_function, table
from planner.bind.resolution import Ambiguous, TypeCall
from planner.bind.sequence_calls import bind_sequence_call, bind_serial_sequence, is_sequence_call
from planner.bind.typenames import names_of
from planner.bind.types import coerce, display, numeric_result, target_type
from planner.bind.windows import bind_window
from planner.expression import Call, Cast, Literal, Scalar
from planner.functions import FUNCTIONS, WINDOW_FUNCTIONS

Bind = Callable[[Environment, Any], Scalar]

#: PostgreSQL's names: "canonical: arguments > result; ..." with "=" for the name itself.
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
    "log": "=: float8 > float8; numeric > numeric",
    "log10": "log: float8 > float8; numeric > numeric",
    "power": "=: float8 float8 > float8; numeric numeric > numeric",
    "pow": "power: float8 float8 > float8; numeric numeric > numeric",
    "mod": "=: int2 int2 > int2; int4 int4 > int4; int8 int8 > int8; numeric numeric > numeric",
    "lower": "=: text > text",
    "upper": "=: text > text",
    "initcap": "=: text > text",
    "reverse": "=: text > text",
    "md5": "=: text > text",
    "ascii": "=: text > int4",
    "chr": "=: int4 > text",
    "length": "char_length: text > int4; bpchar > int4",
    "char_length": "=: text > int4; bpchar > int4",
    "character_length": "char_length: text > int4; bpchar > int4",
    "octet_length": "=: text > int4; bytea > int4; bpchar > int4",
    "substring": "=: text int4 > text; text int4 int4 > text",
    "substr": "substring: text int4 > text; text int4 int4 > text",
    "position": "=: text text > int4",
    "strpos": "position: text text > int4",
    "btrim": "=: text > text; text text > text",
    "ltrim": "=: text > text; text text > text",
    "rtrim": "=: text > text; text text > text",
    "replace": "=: text text text > text",
    "left": "=: text int4 > text",
    "right": "=: text int4 > text",
    "lpad": "=: text int4 > text; text int4 text > text",
    "rpad": "=: text int4 > text; text int4 text > text",
    "repeat": "=: text int4 > text",
    "split_part": "=: text text int4 > text",
    "starts_with": "=: text text > bool",
    "date_trunc": "=: text timestamp > timestamp; text timestamptz > timestamptz; text interval > interval",
    "date_bin": "=: interval timestamp timestamp > timestamp; interval timestamptz timestamptz > timestamptz",
    "make_date": "=: int4 int4 int4 > date",
    "extract": "=: text date > numeric; text time > numeric; text timestamp > numeric; text timestamptz > numeric;"
    " text interval > numeric",
    "date_part": "extract: text date > numeric; text time > numeric; text timestamp > numeric;"
    " text timestamptz > numeric; text interval > numeric",
    "random": "=: > float8",
    "gen_random_uuid": "=: > uuid",
    "clock_timestamp": "=: > timestamptz",
    "now": "=: > timestamptz",
    "transaction_timestamp": "now: > timestamptz",
    "current_database": "=: > name",
    "current_schema": "=: > name",
    "version": "=: > text",
    "pg_backend_pid": "=: > int4",
    "current_setting": "=: text > text; text bool > text",
    "set_config": "=: text text bool > text",
}
#: What to write instead of functions that PostgreSQL has and Millstream has not.
_INSTEAD: Final[dict[str, str]] = {
    "timezone": "Set the session's TimeZone.",
    "overlay": "Use left(), right() and ||.",
    "age": "Subtract the timestamps.",
    "to_char": "Use date_trunc(), extract() or a cast to text.",
    "to_date": "Use a cast to date.",
    "to_timestamp": "Use a cast to timestamp.",
    "to_number": "Use a cast to numeric.",
    "generate_series": "Insert the numbers into a table.",
    "concat_ws": "Use || and coalesce().",
    "format": "Use ||.",
    "regexp_replace": "Use replace().",
    "regexp_match": "Use ~.",
    "regexp_matches": "Use ~.",
    "array_to_string": "Use string_agg().",
    "statement_timestamp": "Use now().",
    "cbrt": "Use power().",
    "to_json": "Use a cast to json.",
    "to_jsonb": "Use a cast to jsonb.",
    "json_agg": "Use string_agg() or array_agg().",
    "jsonb_agg": "Use string_agg() or array_agg().",
}


def _parse_signatures(name: str, text: str) -> Table:
    canonical, _, rest = text.partition(":")
    canonical = name if canonical == "=" else canonical
    found = []
    for signature in rest.split(";"):
        arguments, result = signature.split(">")
        found.append(Overload(canonical, tuple(arguments.split()), result.strip()))
    return table(found)


_OVERLOADS: Final = {name: _parse_signatures(name, text) for name, text in _SIGNATURES.items()}


def bind_function(env: Environment, node: Any, bind: Bind) -> Scalar:
    """A FuncCall: an aggregate, a function of the allow-list, or a cast written as a call."""
    names = names_of(node.funcname)
    name = names[-1]
    if node.over is not None:
        return bind_window(env, node, bind)
    if name in WINDOW_FUNCTIONS:
        raise env.error("42809", f"window function {name} requires an OVER clause", node)
    if len(names) > 1 and names[0] != "pg_catalog":
        raise env.error("42883", f"function {'.'.join(names)}() does not exist", node)
    if name in AGGREGATE_NAMES:
        return bind_aggregate(env, node, bind)
    _check_plain(env, node, name)
    if is_sequence_call(name, len(node.args or ())):
        return bind_sequence_call(env, name, node, bind)
    if name == "pg_get_serial_sequence" and len(node.args or ()) == 2:
        return bind_serial_sequence(env, node, bind)
    arguments = [bind(env, item) for item in node.args or ()]
    if name == "concat":
        return _concat(env, arguments, node)
    return _call(env, name, arguments, node)


def _check_plain(env: Environment, node: Any, name: str) -> None:
    """DISTINCT, ORDER BY and FILTER belong to aggregates."""
    if node.agg_within_group:
        raise unsupported("WITHIN GROUP", position=env.binding.position(node))
    for present, words in ((node.agg_distinct, "DISTINCT"), (node.agg_order, "ORDER BY"), (node.agg_filter, "FILTER")):
        if present:
            raise env.error("42809", f"{words} specified, but {name} is not an aggregate function", node)
    if node.func_variadic or any(type(item).__name__ == "NamedArgExpr" for item in node.args or ()):
        raise unsupported("VARIADIC or named argument", "Give the arguments by position.", env.binding.position(node))


def _call(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    chosen = _choose(env, name, arguments, node)
    if isinstance(chosen, TypeCall):
        found = coerce(env.binding, arguments[0], by_oid(chosen.target), "explicit", node.args[0])
        assert found is not None, "the call was chosen so that its argument coerces"
        return found
    coerced = [
        _argument(env, item, target, place)
        for item, target, place in zip(arguments, chosen.arguments, node.args or (), strict=True)
    ]
    if chosen.name == "extract":
        return _extract(env, name, coerced, node)
    if chosen.name == "mod":
        coerced = [Cast(item, by_name(chosen.result)) if item.type.name != chosen.result else item for item in coerced]
    kind = _numeric_kind(env, chosen.name, coerced, node) if chosen.result == "numeric" else by_name(chosen.result)
    call = Call(chosen.name, tuple(coerced), kind)
    if FUNCTIONS[chosen.name].volatility != "immutable":
        env.binding.remember(call, node, name)
        env.binding.volatile |= FUNCTIONS[chosen.name].volatility == "volatile"
    return call


def _argument(env: Environment, scalar: Scalar, target: str, node: Any) -> Scalar:
    kind = TEXT if target == ANY else target_type(target, scalar.type)
    if target == "text" and scalar.type.name == "varchar":
        return scalar
    found = coerce(env.binding, scalar, kind, "implicit", node)
    assert found is not None, "the overload was chosen so that its arguments coerce"
    return found


def _choose(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Overload | TypeCall:
    """What the call means. Raises 42883, 42725, and 0A000 for what only PostgreSQL has."""
    try:
        found = find_function(name, tuple(item.type.oid for item in arguments), _OVERLOADS.get(name, {}))
    except Ambiguous:
        raise _no_function(env, name, arguments, node, ambiguous=True) from None
    if found is None or (isinstance(found, TypeCall) and not is_known(found.target)):
        raise _no_function(env, name, arguments, node, ambiguous=False)
    if isinstance(found, Beyond):
        raise unsupported(found.words, _INSTEAD.get(name), env.binding.position(node))
    return found


def _no_function(env: Environment, name: str, arguments: list[Scalar], node: Any, ambiguous: bool) -> SqlError:
    written = ".".join(names_of(node.funcname)) or name
    signature = f"{written}({', '.join(display(item.type) for item in arguments)})"
    if ambiguous:
        return env.error("42725", f"function {signature} is not unique", node, hint=AMBIGUOUS)
    return env.error("42883", f"function {signature} does not exist", node, hint=NO_MATCH)


def _concat(env: Environment, arguments: list[Scalar], node: Any) -> Scalar:
    if not arguments:
        raise _no_function(env, "concat", arguments, node, ambiguous=False)
    shown = [
        item if item.type == BOOL else coerce(env.binding, item, TEXT, "explicit", place)  # its output is not its cast
        for item, place in zip(arguments, node.args, strict=True)
    ]
    return Call("concat_values", tuple(item for item in shown if item is not None), TEXT)


def _numeric_kind(env: Environment, name: str, arguments: list[Scalar], node: Any) -> SqlType:
    """Digits of a function's numeric result."""
    precision, scale = arguments[0].type.modifiers
    match name:
        case "round" | "trunc" if len(arguments) == 2:
            digits = arguments[1]
            if not isinstance(digits, Literal) or not isinstance(digits.value, int):
                instead = "Give the number of decimals as a constant."
                raise unsupported(f"{name}() to a computed number of decimals", instead, env.binding.position(node))
            kept = max(min(digits.value, 38), 0)
            return numeric(precision - scale + 1 + kept, kept)
        case "round" | "trunc" | "ceil" | "floor":
            return numeric(precision - scale + 1, 0)
        case "sign":
            return numeric(1, 0)
        case "abs":
            return arguments[0].type
        case "mod":
            return numeric_result("mod", arguments[0].type, arguments[1].type)
        case _:
            raise unsupported(f"{name}() of numeric", "Cast to double precision.", env.binding.position(node))


#: Fields of extract() with the digits of their values, by what has them.
_DATE_FIELDS: Final = (
    "year",
    "month",
    "day",
    "quarter",
    "week",
    "dow",
    "isodow",
    "doy",
    "isoyear",
    "decade",
    "century",
    "millennium",
)
_TIME_FIELDS: Final = ("hour", "minute", "second", "milliseconds", "microseconds")
_DIGITS: Final = {"second": (8, 6), "milliseconds": (8, 3), "microseconds": (10, 0)}
_SPELLINGS: Final = {
    **{f"{field}s": field for field in ("year", "month", "day", "week", "hour", "minute", "second", "decade")},
    "centuries": "century",
    "millisecond": "milliseconds",
    "microsecond": "microseconds",
}


def _extract(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    field, source = arguments
    if not isinstance(field, Literal) or not isinstance(field.value, str):
        raise unsupported(f"{name}() of a computed field", "Name the field as a constant.", env.binding.position(node))
    word = _SPELLINGS.get(field.value.lower(), field.value.lower())
    shown = display(source.type)
    if word in ("julian", "timezone", "timezone_hour", "timezone_minute"):
        raise unsupported(f"{name}({word})", position=env.binding.position(node))
    if word not in (*_DATE_FIELDS, *_TIME_FIELDS, "epoch"):
        raise env.error("22023", f'unit "{field.value}" not recognized for type {shown}', node)
    refused = {"date": _TIME_FIELDS, "time": _DATE_FIELDS, "interval": ("week", "dow", "isodow", "doy", "isoyear")}
    if word in refused.get(source.type.name, ()):
        raise env.error("0A000", f'unit "{field.value}" not supported for type {shown}', node)
    digits = (12, 0) if (word, source.type.name) == ("epoch", "date") else (20, 6) if word == "epoch" else (10, 0)
    call = Call("extract", (Literal(word, TEXT), source), numeric(*_DIGITS.get(word, digits)))
    return Cast(call, FLOAT8, True) if name == "date_part" else call
