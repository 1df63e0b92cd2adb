"""Strings for Spark: functions that give PostgreSQL's result character by character on either engine.

Owns: these builders of the allow-list. Positions and lengths may be computed, and behave as PostgreSQL's below 1 and 0,
too. Where Spark takes constants alone (patterns, padding), anything else is refused by name. Functions that are not
here differ: case mapping by locale (for queries: ``query_dialect``), regular expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from executor.printing.nodes import Build, Expr, binary, function
from executor.spark.printing.nodes import cast, literal_int, once, refuse
from planner.algebra.nodes import Call, Literal

_STRINGS: Final = frozenset(("text", "varchar", "bpchar", "name"))
_INTEGERS: Final = frozenset(("int2", "int4", "int8"))
_BLANK: Final = "' '"
_NEGATIVE: Final = "RAISE_ERROR('22011:negative substring length not allowed')"


def _require_strings(node: Call, count: int) -> None:
    """The first arguments are strings, the others integers."""
    kinds = [item.type.name for item in node.arguments]
    if any(kind not in _STRINGS for kind in kinds[:count]) or any(kind not in _INTEGERS for kind in kinds[count:]):
        raise refuse(node)


def _strings(name: str, result: str = "") -> Build:
    """A function over strings that is the same in both; ``result`` casts where Spark's integer type differs."""

    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        if any(item.type.name not in (*_STRINGS, *_INTEGERS) for item in node.arguments):
            raise refuse(node)
        if node.arguments[0].type.name not in _STRINGS:
            raise refuse(node)
        value = function(name, *arguments)
        return cast(value, result) if result else value

    return build


def _octet_length(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    if node.arguments[0].type.name not in ("text", "varchar", "name", "bytea"):
        raise refuse(node)
    return function("OCTET_LENGTH", arguments[0])


def _concat(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    kinds = {item.type.name for item in node.arguments}
    if not (kinds <= _STRINGS or kinds == {"bytea"}):
        raise refuse(node)
    return function("CONCAT", *arguments)


def _concat_values(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    if any(item.type.name not in _STRINGS for item in node.arguments):
        raise refuse(node)
    return function("CONCAT_WS", exp.Var(this="''"), *arguments)


def _like(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    """Spark raises where a backslash precedes anything but %, _ and itself; PostgreSQL takes the character."""
    pattern = node.arguments[1]
    if (
        not (isinstance(pattern, Literal) and isinstance(pattern.value, str))
        or node.arguments[0].type.name not in _STRINGS
    ):
        raise refuse(node, "with a pattern that is not constant")
    plain = pattern.value.replace("\\\\", "").replace("\\%", "").replace("\\_", "")
    if "\\" in plain:
        raise refuse(node, "with a backslash before an ordinary character")
    return binary(exp.Like, *arguments)


def _checked(name: str, least: Mapping[int, int], filled: Mapping[int, str] | None = None) -> Build:
    """A string function whose argument i is a constant of at least ``least[i]``, or a constant that is not empty."""
    plain = _strings(name)

    def build(dialect: object, arguments: list[Expr], node: Call) -> Expr:
        for index, limit in least.items():
            if index < len(node.arguments) and literal_int(node, index) < limit:
                raise refuse(node, f"with an argument below {limit}")
        for index in filled or {}:
            if index < len(node.arguments):
                item = node.arguments[index]
                if not (isinstance(item, Literal) and item.value):
                    raise refuse(node, "with an argument that is not constant")
        return plain(dialect, arguments, node)

    return build


def _trim(side: str) -> Build:
    """Blanks, or all characters of a second string."""

    def build(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
        _require_strings(node, len(arguments))
        value, *characters = (dialect.generate(item) for item in arguments)
        return exp.Var(this=f"TRIM({side} {characters[0] if characters else _BLANK} FROM {value})")

    return build


def _joined(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    _require_strings(node, len(arguments))
    return function("CONCAT_WS", *arguments)


def _substring(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """What lies before the first character counts as empty; a length below 0 is an error unless something is NULL."""
    _require_strings(node, 1)
    if len(arguments) == 2:
        return once(dialect, arguments, node, "SUBSTRING({0}, IF({1} < 1, 1, {1}))")
    shorter = "SUBSTRING({0}, 1, CAST(GREATEST(CAST({1} AS BIGINT) + {2} - 1, 0L) AS INT))"
    checked = f"WHEN {{2}} < 0 THEN {_NEGATIVE} WHEN {{1}} < 1 THEN {shorter} ELSE SUBSTRING({{0}}, {{1}}, {{2}})"
    return once(dialect, arguments, node, f"CASE WHEN {{0}} || {{1}} || {{2}} IS NULL THEN NULL {checked} END")


def _left(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    _require_strings(node, 1)
    rest = "SUBSTRING({0}, 1, GREATEST(CHAR_LENGTH({0}) + {1}, 0))"
    return once(dialect, arguments, node, f"CASE WHEN {{1}} < 0 THEN {rest} ELSE LEFT({{0}}, {{1}}) END")


def _right(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    _require_strings(node, 1)
    rest = "SUBSTRING({0}, CAST(LEAST(1L - {1}, 2147483647L) AS INT))"
    return once(dialect, arguments, node, f"CASE WHEN {{1}} < 0 THEN {rest} ELSE RIGHT({{0}}, {{1}}) END")


def _sha256(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    return function("UNHEX", function("SHA2", arguments[0], exp.Literal.number(256)))


TEXTUAL: Final[Mapping[str, Build]] = {
    "concat": _concat,
    "concat_values": _concat_values,
    "concat_ws": _joined,
    "like": _like,
    "char_length": _strings("CHAR_LENGTH"),
    "octet_length": _octet_length,
    "padded": lambda dialect, arguments, node: arguments[0],
    "substring": _substring,
    "position": _strings("INSTR", "INT"),
    "btrim": _trim("BOTH"),
    "ltrim": _trim("LEADING"),
    "rtrim": _trim("TRAILING"),
    "replace": _strings("REPLACE"),
    "translate": _strings("TRANSLATE"),
    "left": _left,
    "right": _right,
    "lpad": _checked("LPAD", {1: 0}, {2: ""}),
    "rpad": _checked("RPAD", {1: 0}, {2: ""}),
    "repeat": _strings("REPEAT"),
    "reverse": _strings("REVERSE"),
    "split_part": _checked("SPLIT_PART", {2: 1}, {1: ""}),
    "starts_with": _strings("STARTSWITH"),
    "ascii": _strings("ASCII"),
    "md5": _strings("MD5"),
    "sha256": _sha256,
}
