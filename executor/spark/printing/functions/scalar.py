"""Scalar functions and operators for Spark, by canonical name: each is printed with PostgreSQL's meaning.

Owns: the allow-list FUNCTIONS. A builder gets the dialect, the printed arguments and the call. Where Spark agrees with
PostgreSQL only for some arguments (literal lengths, LIKE patterns without stray escapes, exact decimals), the builder
checks them and refuses the rest by name. Functions that are not here differ: case mapping by locale, regular
expressions, float functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from catalog.values.types import SqlType
from executor.printing import floats
from executor.printing.nodes import Build, Expr, binary, chain, function, operand
from executor.spark.printing.functions.overflows import CHECKER, FINITE
from executor.spark.printing.functions.quotients import decimals, quotient
from executor.spark.printing.functions.temporal import TEMPORAL, add_interval, is_temporal
from executor.spark.printing.functions.textual import TEXTUAL
from executor.spark.printing.nodes import cast, literal_int, once, refuse
from planner.algebra.nodes import Call, Literal

_INTEGER_TYPES: Final[dict[str, str]] = {"int2": "SMALLINT", "int4": "INT", "int8": "BIGINT"}
_DIGITS: Final[dict[str, int]] = {"int2": 5, "int4": 10, "int8": 19}
_STRINGS: Final = frozenset(("text", "varchar", "bpchar", "name"))
#: Decimals of a product that leave enough digits before the point: 14.
_PRODUCT_SCALE: Final = 24


def _decimal(value: Expr, kind: SqlType) -> Expr:
    """An operand of decimal arithmetic."""
    return cast(value, f"DECIMAL({_DIGITS[kind.name]},0)") if kind.name in _DIGITS else value


def _as_numeric(kind: SqlType) -> SqlType:
    """The type of ``_decimal``."""
    return SqlType("numeric", (_DIGITS[kind.name], 0)) if kind.name in _DIGITS else kind


def _scale(kind: SqlType) -> int:
    return kind.scale if kind.name == "numeric" else 0


def _fits(left: SqlType, right: SqlType) -> bool:
    """Whether 38 digits hold all values of both types at one scale."""

    def whole(kind: SqlType) -> int:
        return kind.precision - kind.scale if kind.name == "numeric" else _DIGITS[kind.name]

    return max(whole(left), whole(right)) + max(_scale(left), _scale(right)) <= 38


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _arithmetic(kind: type[exp.Binary]) -> Build:
    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        left, right = (item.type for item in node.arguments)
        if is_temporal(left) or is_temporal(right):
            return add_interval(dialect, node, arguments)
        if node.type.name in _INTEGER_TYPES:
            return _integers(kind, arguments, node)
        if node.type.name == "numeric":
            return _decimals(dialect, kind, arguments, node)
        if node.type.name == "float8" and left.name == right.name == "float8" and kind is not exp.Mod:
            return floats.checked(CHECKER, dialect, arguments, node)
        raise refuse(node)

    return build


def _integers(kind: type[exp.Binary], arguments: list[Expr], node: Call) -> Expr:
    """Computed as bigint and cast back: 22003 then names the type."""
    if any(item.type.name not in _INTEGER_TYPES for item in node.arguments):
        raise refuse(node)
    pairs = zip(arguments, node.arguments, strict=True)
    left, right = (value if item.type.name == "int8" else cast(value, "BIGINT") for value, item in pairs)
    result = binary(exp.IntDiv if kind is exp.Div else kind, left, right)
    if kind is exp.Div:  # sqlglot prints DIV; Spark's is an operator on bigints that truncates as PostgreSQL's does
        result = exp.Paren(this=result)
    return result if node.type.name == "int8" else cast(result, _INTEGER_TYPES[node.type.name])


def _decimals(dialect: Any, kind: type[exp.Binary], arguments: list[Expr], node: Call) -> Expr:
    """Exact, or refused: Spark keeps the scale (allowPrecisionLoss is off) and raises beyond 38 digits."""
    kinds = [item.type for item in node.arguments]
    if any(item.name not in ("numeric", *_DIGITS) for item in kinds):
        raise refuse(node)
    left, right = (_decimal(value, item) for value, item in zip(arguments, kinds, strict=True))
    if kind is exp.Div:
        return quotient(dialect.generate(left), dialect.generate(right), *map(_as_numeric, kinds))
    scale = sum(map(_scale, kinds)) if kind is exp.Mul else max(map(_scale, kinds))
    if scale != node.type.scale:
        return _rounded_product(left, right, scale, node)
    if kind is exp.Mod and not _fits(*kinds):
        raise refuse(node)
    return binary(kind, left, right)


def _quotient_scale(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    kinds = [item.type for item in node.arguments[:2]]
    if any(item.name not in ("numeric", *_DIGITS) for item in kinds):
        raise refuse(node)
    *sides, least = arguments
    left, right = (dialect.generate(_decimal(value, kind)) for value, kind in zip(sides, kinds, strict=True))
    return decimals(left, right, dialect.generate(least), *map(_as_numeric, kinds))


def _rounded_product(left: Expr, right: Expr, scale: int, node: Call) -> Expr:
    """A product whose type has fewer decimals: Spark computes it with all of them, then rounds half away from zero."""
    if node.function != "mul" or scale > _PRODUCT_SCALE:
        raise refuse(node, "with more decimals than 38 digits hold")
    return cast(exp.Paren(this=binary(exp.Mul, left, right)), f"DECIMAL({node.type.precision},{node.type.scale})")


def _negate(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    name = node.type.name
    if name in _INTEGER_TYPES and name != "int8":
        return cast(exp.Neg(this=operand(cast(arguments[0], "BIGINT"))), _INTEGER_TYPES[name])
    if name not in ("int8", "numeric", "float8", "float4"):
        raise refuse(node)
    return exp.Paren(this=exp.Neg(this=operand(arguments[0])))


def _absolute(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    name = node.type.name
    if name in _INTEGER_TYPES and name != "int8":
        return cast(function("ABS", cast(arguments[0], "BIGINT")), _INTEGER_TYPES[name])
    if name not in ("int8", "numeric", "float8", "float4"):
        raise refuse(node)
    return function("ABS", arguments[0])


def _round(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    """numeric: half away from zero; double: half to even."""
    source = node.arguments[0].type
    if source.name == "float8" and len(arguments) == 1:
        return function("RINT", arguments[0])
    digits = literal_int(node, 1) if len(arguments) > 1 else 0
    if source.name != "numeric" or node.type.name != "numeric" or not 0 <= digits <= node.type.scale:
        raise refuse(node)
    rounded = function("ROUND", arguments[0], exp.Literal.number(digits))
    return cast(rounded, f"DECIMAL({node.type.precision},{node.type.scale})")


def _ceil_floor(name: str) -> Build:
    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        if node.arguments[0].type.name != "numeric" or node.type.name != "numeric":
            raise refuse(node)
        return cast(function(name, arguments[0]), f"DECIMAL({node.type.precision},{node.type.scale})")

    return build


# -- comparison and logic --------------------------------------------------------------------------------------------


def _require_alike(node: Call) -> None:
    """Comparable without a conversion of Spark's own. Decimals must not lose digits when brought to one scale."""
    first = node.arguments[0].type
    for item in node.arguments[1:]:
        other = item.type
        numbers = all(kind.name == "numeric" or kind.name in _DIGITS for kind in (first, other))
        if numbers and not _fits(first, other):
            raise refuse(node)
        strings = first.name in _STRINGS and other.name in _STRINGS
        if (
            not (numbers or strings or first.name == other.name)
            or first.name in ("json", "jsonb")
            or first.element != other.element
        ):
            raise refuse(node)


def _at_one_scale(arguments: list[Expr], node: Call) -> list[Expr]:
    """The two sides of a comparison. Spark would drop decimals where 38 digits do not hold all values of both numerics
    at one scale, so they are brought to it here: a value that it leaves no room for is 22003."""
    left, right = (item.type for item in node.arguments)
    if left.name != "numeric" or right.name != "numeric" or _fits(left, right):
        _require_alike(node)
        return _unpruned(arguments, node)
    return [cast(value, f"DECIMAL(38,{max(left.scale, right.scale)})") for value in arguments]


def _unpruned(arguments: list[Expr], node: Call) -> list[Expr]:
    """What is compared. Parquet's readers compare a bare floating point column with a file's least and greatest, which
    say nothing of NaN: NANVL(x, NaN) is x, and no reader knows it."""
    pairs = zip(arguments, node.arguments, strict=True)
    return [
        function("NANVL", value, exp.Var(this="DOUBLE('NaN')"))
        if item.type.name in ("float4", "float8") and not isinstance(item, Literal)
        else value
        for value, item in pairs
    ]


def _compare(kind: type[exp.Binary]) -> Build:
    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        return binary(kind, *_at_one_scale(arguments, node))

    return build


def _is_distinct(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    return exp.Not(this=exp.Paren(this=binary(exp.NullSafeEQ, *_at_one_scale(arguments, node))))


def _in(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    _require_alike(node)
    first, *others = _unpruned(arguments, node)
    return exp.In(this=operand(first), expressions=others)


def _chain(kind: type[exp.Binary]) -> Build:
    return lambda dialect, arguments, node: chain(kind, arguments)


def _is(value: Expr, negated: bool) -> Build:
    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        test = exp.Is(this=operand(arguments[0]), expression=value.copy())
        return exp.Not(this=exp.Paren(this=test)) if negated else exp.Paren(this=test)

    return build


def _conditional(name: str) -> Build:
    """COALESCE, GREATEST, LEAST, NULLIF: arguments in the result's type first."""

    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        _require_alike(node)
        target = node.type
        if target.name == "numeric" and name != "NULLIF":
            kind = f"DECIMAL({target.precision},{target.scale})"
            pairs = zip(arguments, node.arguments, strict=True)
            arguments = [value if item.type == target else cast(value, kind) for value, item in pairs]
        return function(name, *arguments)

    return build


# -- bits and signs ---------------------------------------------------------------------------------------------------


def _bits(kind: type[exp.Binary]) -> Build:
    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        if any(item.type != node.type or item.type.name not in _INTEGER_TYPES for item in node.arguments):
            raise refuse(node)
        return binary(kind, *arguments)

    return build


def _bit_not(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    if node.type.name not in _INTEGER_TYPES:
        raise refuse(node)
    return exp.Paren(this=exp.BitwiseNot(this=operand(arguments[0])))


def _shifted(name: str) -> Build:
    """Both take the distance modulo the number of bits; of smallints only PostgreSQL does not."""

    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        if node.type.name not in ("int4", "int8") or node.arguments[1].type.name != "int4":
            raise refuse(node)
        return function(name, *arguments)

    return build


def _sign(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    if node.type.name == "numeric":
        return cast(function("SIGNUM", arguments[0]), f"DECIMAL({node.type.precision},{node.type.scale})")
    if node.type.name != "float8":
        raise refuse(node)
    signs = "CASE WHEN ISNAN({0}) OR {0} = 0D THEN 0D ELSE SIGNUM({0}) END"
    return once(dialect, arguments, node, signs)


def _truncated(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """A numeric without what is beyond a constant number of decimals."""
    digits = literal_int(node, 1) if len(arguments) > 1 else 0
    if node.type.name != "numeric" or not 0 <= digits <= node.type.scale:
        raise refuse(node)
    unit = f"CAST('1E-{digits}' AS DECIMAL({digits + 1},{digits}))"
    cut = once(dialect, arguments[:1], node, "{0} - {0} % " + unit)
    return cast(cut, f"DECIMAL({node.type.precision},{node.type.scale})")


def _square_root(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """Of a double; the root is the one function of doubles that is exact in every engine."""
    if node.type.name != "float8" or node.arguments[0].type.name != "float8":
        raise refuse(node)
    wrong = "CAST(RAISE_ERROR('2201F:cannot take square root of a negative number') AS DOUBLE)"
    return once(dialect, arguments, node, f"CASE WHEN {{0}} < 0D THEN {wrong} ELSE SQRT({{0}}) END")


FUNCTIONS: Final[Mapping[str, Build]] = {
    "square": lambda dialect, arguments, node: once(dialect, arguments, node, "{0} * {0}"),
    "finite": lambda dialect, arguments, node: once(dialect, arguments, node, FINITE),
    "add": _arithmetic(exp.Add),
    "sub": _arithmetic(exp.Sub),
    "mul": _arithmetic(exp.Mul),
    "div": _arithmetic(exp.Div),
    "quotient_scale": _quotient_scale,
    "mod": _arithmetic(exp.Mod),
    "neg": _negate,
    "abs": _absolute,
    "round": _round,
    "ceil": _ceil_floor("CEIL"),
    "floor": _ceil_floor("FLOOR"),
    "eq": _compare(exp.EQ),
    "ne": _compare(exp.NEQ),
    "lt": _compare(exp.LT),
    "le": _compare(exp.LTE),
    "gt": _compare(exp.GT),
    "ge": _compare(exp.GTE),
    "is_distinct": _is_distinct,
    "is_not_distinct": _compare(exp.NullSafeEQ),
    "in": _in,
    "and": _chain(exp.And),
    "or": _chain(exp.Or),
    "not": lambda dialect, arguments, node: exp.Not(this=operand(arguments[0])),
    "is_null": _is(exp.null(), False),
    "is_not_null": _is(exp.null(), True),
    "is_true": _is(exp.true(), False),
    "is_false": _is(exp.false(), False),
    "is_not_true": _is(exp.true(), True),
    "is_not_false": _is(exp.false(), True),
    "coalesce": _conditional("COALESCE"),
    "greatest": _conditional("GREATEST"),
    "least": _conditional("LEAST"),
    "nullif": _conditional("NULLIF"),
    "bitand": _bits(exp.BitwiseAnd),
    "bitor": _bits(exp.BitwiseOr),
    "bitxor": _bits(exp.BitwiseXor),
    "bitnot": _bit_not,
    "shift_left": _shifted("SHIFTLEFT"),
    "shift_right": _shifted("SHIFTRIGHT"),
    "sign": _sign,
    "trunc": _truncated,
    "sqrt": _square_root,
    **TEXTUAL,
    **TEMPORAL,
}
