"""Text functions whose edges differ between PostgreSQL and DuckDB: concatenation, patterns, substrings, padding."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from executor.embedded.printing.casts import shown, to_text
from executor.embedded.printing.nodes import called, cast_to, macro
from executor.printing.nodes import Build, Expr, case, chain, function, operand, text
from planner.expression import Call, Literal


def _texts(printer: Any, arguments: list[Expr], node: Call) -> list[Expr]:
    return [to_text(printer, value, item.type) for value, item in zip(arguments, node.arguments, strict=True)]


def concat(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return chain(exp.DPipe, arguments if node.type.name == "bytea" else _texts(printer, arguments, node))


def concat_values(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return function(
        "concat", *(shown(printer, value, item.type) for value, item in zip(arguments, node.arguments, strict=True))
    )


def concat_ws(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    pairs = zip(arguments[1:], node.arguments[1:], strict=True)
    return function("concat_ws", arguments[0], *(shown(printer, value, item.type) for value, item in pairs))


def overlay(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    """Without a count, as many characters as are put in."""
    count = arguments[3] if len(arguments) == 4 else function("length", arguments[1].copy())
    return macro("ms_overlay", *arguments[:3], count)


def like(kind: type[Any]) -> Build:
    """LIKE; the escape is the backslash, named only where a pattern may hold one (DuckDB is faster without)."""

    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
        pattern = node.arguments[1]
        match = kind(this=operand(arguments[0]), expression=operand(arguments[1]))
        if isinstance(pattern, Literal) and "\\" not in str(pattern.value):
            return match
        return exp.Escape(this=match, expression=text("\\"))

    return build


def regex_count(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    value, pattern, options = arguments
    found = function("len", function("regexp_extract_all", value, pattern, exp.Literal.number(0), options))
    return cast_to(printer, found, node.type)


def regex_extract(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    """NULL where nothing matches."""
    value, pattern, _, options = arguments
    matched = function("regexp_matches", value.copy(), pattern.copy(), options.copy())
    return case([(matched, function("regexp_extract", *arguments))], exp.null())


def regex_groups(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    value, pattern, _, options = arguments
    count = node.arguments[2]
    assert isinstance(count, Literal)
    places = range(1, int(str(count.value)) + 1) if count.value else range(1)
    parts = [
        function("regexp_extract", value.copy(), pattern.copy(), exp.Literal.number(place), options.copy())
        for place in places
    ]
    matched = function("regexp_matches", value, pattern, options)
    return case([(matched, function("list_value", *parts))], exp.null())


def substring(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    if len(arguments) == 2:
        return macro("ms_substring_from", *arguments)
    start, length = node.arguments[1:]
    if (
        isinstance(start, Literal)
        and isinstance(length, Literal)
        and isinstance(start.value, int)
        and isinstance(length.value, int)
        and length.value >= 0
    ):
        first = max(start.value, 1)
        count = max(start.value + length.value - first, 0)
        return function("substring", arguments[0], exp.Literal.number(first), exp.Literal.number(count))
    return macro("ms_substring", *arguments)


def padded(name: str) -> Build:
    return lambda printer, arguments, node: called(
        name, *(arguments if len(arguments) == 3 else [*arguments, text(" ")])
    )


def trimmed(name: str) -> Build:
    return lambda printer, arguments, node: function(
        name, *(arguments if len(arguments) == 2 else [*arguments, text(" ")])
    )


def octet_length(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    name = "octet_length" if node.arguments[0].type.name == "bytea" else "strlen"
    return cast_to(printer, function(name, *arguments), node.type)
