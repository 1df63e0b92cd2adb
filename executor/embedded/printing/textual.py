"""Text functions whose edge cases differ between PostgreSQL and DuckDB: concatenation, patterns, substrings,
padding."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from catalog.values.regex.backtracking import common, read
from catalog.values.types import INT8, TEXT
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import called, cast_to, macro
from executor.printing.nodes import Build, Expr, binary, case, chain, function, number, operand, text
from planner.algebra.nodes import Call, Cast, Literal, Scalar
from planner.algebra.walk import walk

#: Functions that can make a long text from a short one.
_GROWING: Final = frozenset(("repeat", "lpad", "rpad"))
_TEXTUAL: Final = frozenset(("text", "varchar", "bpchar", "bytea"))
#: The most bytes of a value (MaxAllocSize, less a header).
_LONGEST: Final = (1 << 30) - 5
#: A replacement of so few characters that it makes no text too long that was not.
_SHORT: Final = 64


def _texts(printer: EntryPoints, arguments: list[Expr], node: Call) -> list[Expr]:
    return [printer.to_text(value, item.type) for value, item in zip(arguments, node.arguments, strict=True)]


def concat(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    whole = chain(exp.DPipe, arguments if node.type.name == "bytea" else _texts(printer, arguments, node))
    if not _is_large(node):
        return whole
    if _least(node) > _LONGEST:  # the engine would compute the parts before it checks the size
        return cast_to(printer, function("error", text("!54000!requested length too large")), node.type)
    return macro("ms_limited", chain(exp.Add, [_size(printer, item) for item in node.arguments]), operand(whole))


def replace(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """replace. If the result may be much longer than the text, its size is checked before it is computed."""
    _, old, new = node.arguments
    is_short = isinstance(old, Literal) and isinstance(new, Literal) and len(str(new.value)) <= _SHORT
    return function("replace", *arguments) if is_short and not _is_large(node) else macro("ms_replace", *arguments)


def _is_large(node: Scalar) -> bool:
    """Whether a part of an expression makes a long text from a short one."""
    return any(isinstance(item, Call) and item.function in _GROWING for item in walk(node))


def _least(value: Scalar) -> int:
    """The least number of bytes of a text, as far as constants determine it."""
    if isinstance(value, Cast) and value.type.name in _TEXTUAL:
        return _least(value.argument)
    if isinstance(value, Literal):
        return len(str(value.value)) if value.type.name in _TEXTUAL and value.value is not None else 0
    if not isinstance(value, Call):
        return 0
    count = value.arguments[1] if len(value.arguments) > 1 else None
    times = int(count.value) if isinstance(count, Literal) and isinstance(count.value, int) else 0
    if value.function == "repeat" and value.arguments:
        return _least(value.arguments[0]) * times
    if value.function in ("lpad", "rpad"):
        return times
    return sum(map(_least, value.arguments)) if value.function == "concat" else 0


def _size(printer: EntryPoints, value: Scalar) -> Expr:
    """The least number of bytes of a text, found without computing the text if it is made from a short one."""
    while isinstance(value, Cast) and value.type.name in _TEXTUAL:
        value = value.argument
    if isinstance(value, Call) and value.function == "repeat":
        short, count = value.arguments
        times = cast_to(printer, function("greatest", printer.expression(count), number(0)), INT8)
        return operand(binary(exp.Mul, operand(_size(printer, short)), operand(times)))
    if isinstance(value, Call) and value.function in ("lpad", "rpad"):
        return operand(cast_to(printer, printer.expression(value.arguments[1]), INT8))
    if isinstance(value, Call) and value.function == "concat":
        return operand(chain(exp.Add, [_size(printer, item) for item in value.arguments]))
    if value.type.name not in _TEXTUAL or _is_large(value):
        return number(0)
    size = "octet_length" if value.type.name == "bytea" else "strlen"
    return operand(cast_to(printer, function(size, printer.expression(value)), INT8))


def concat_values(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    return function(
        "concat", *(printer.shown(value, item.type) for value, item in zip(arguments, node.arguments, strict=True))
    )


def concat_ws(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    pairs = zip(arguments[1:], node.arguments[1:], strict=True)
    return function("concat_ws", arguments[0], *(printer.shown(value, item.type) for value, item in pairs))


def overlay(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """overlay; without a count, it replaces as many characters as it inserts."""
    count = arguments[3] if len(arguments) == 4 else function("length", arguments[1].copy())
    return macro("ms_overlay", *arguments[:3], count)


def like(kind: type[Any]) -> Build:
    """LIKE. The escape is the backslash, and is named only if a pattern may contain one (DuckDB is faster without)."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        pattern = node.arguments[1]
        match = kind(this=operand(arguments[0]), expression=operand(arguments[1]))
        if isinstance(pattern, Literal) and "\\" not in str(pattern.value):
            return match
        return exp.Escape(this=match, expression=text("\\"))

    return build


def regex_count(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    value, pattern, options = arguments
    found = function("len", function("regexp_extract_all", value, pattern, exp.Literal.number(0), options))
    return cast_to(printer, found, node.type)


def regex_extract(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """substring() by a regular expression; NULL without a match."""
    value, pattern, _, options = arguments
    matched = function("regexp_matches", value.copy(), pattern.copy(), options.copy())
    return case([(matched, function("regexp_extract", *arguments))], exp.null())


def regex_groups(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
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


def substring(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
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


def octet_length(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    name = "octet_length" if node.arguments[0].type.name == "bytea" else "strlen"
    return cast_to(printer, function(name, *arguments), node.type)


def regex_matches(ignore_case: bool) -> Build:
    """~ *; a constant pattern that RE2 matches in the same way is left to RE2. ~*: a constant pattern that RE2 reads
    alike is RE2's."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        value, pattern = arguments
        given = node.arguments[1]
        known = common(str(given.value)) if isinstance(given, Literal) and given.value is not None else None
        if known is None:
            return function("re_like", value, pattern, text("i" if ignore_case else ""))
        return function("regexp_matches", value, text(known), text("is" if ignore_case else "s"))

    return build


def regex_split(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """regexp_split; by RE2 if it finds the same separators."""
    pattern, flags = node.arguments[1], node.arguments[2] if len(node.arguments) > 2 else Literal("", TEXT)
    if isinstance(pattern, Literal) and isinstance(flags, Literal) and flags.value in ("", "i"):
        found = read(str(pattern.value), flags.value == "i")
        if pattern.value is not None and found is not None and not found.is_empty:
            return function("string_split_regex", arguments[0], text(found.text), text(f"s{flags.value}"))
    return function("re_split", *arguments, *([text("")] if len(arguments) == 2 else []))
