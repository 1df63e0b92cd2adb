"""Text functions whose edges differ between PostgreSQL and DuckDB: concatenation, patterns, substrings, padding."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from catalog.errors import SqlError
from executor.embedded.casts import shown, to_text
from executor.embedded.nodes import called, cast_to, macro
from executor.nodes import Build, Expr, chain, function, operand, text
from planner.expression import Call, Literal


def _texts(printer: Any, arguments: list[Expr], node: Call) -> list[Expr]:
    return [to_text(printer, value, item.type) for value, item in zip(arguments, node.arguments, strict=True)]


def concat(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return chain(exp.DPipe, arguments if node.type.name == "bytea" else _texts(printer, arguments, node))


def concat_values(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return function(
        "concat", *(shown(printer, value, item.type) for value, item in zip(arguments, node.arguments, strict=True))
    )


def like(kind: type[Any]) -> Build:
    """LIKE; the escape is the backslash, named only where a pattern may hold one (DuckDB is faster without)."""

    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
        pattern = node.arguments[1]
        match = kind(this=operand(arguments[0]), expression=operand(arguments[1]))
        if isinstance(pattern, Literal) and "\\" not in str(pattern.value):
            return match
        return exp.Escape(this=match, expression=text("\\"))

    return build


def regex(options: str) -> Build:
    return lambda printer, arguments, node: function("regexp_matches", *arguments, text(options))


def substring(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    if len(arguments) == 2:
        return function("substring", arguments[0], function("greatest", arguments[1], exp.Literal.number(1)))
    start, length = node.arguments[1:]
    if (
        isinstance(start, Literal)
        and isinstance(length, Literal)
        and isinstance(start.value, int)
        and isinstance(length.value, int)
    ):
        if length.value < 0:
            raise SqlError("22011", "negative substring length not allowed")
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


def octets(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    name = "octet_length" if node.arguments[0].type.name == "bytea" else "strlen"
    return cast_to(printer, function(name, *arguments), node.type)
