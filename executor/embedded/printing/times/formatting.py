"""to_char() in DuckDB's SQL, as a concatenation of the pattern's fields; and to_timestamp(), which splits a text.

Owns: how each field of ``catalog.values.times.patterns`` is written for times, intervals and numbers (formatting.c).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlglot import exp

from catalog.values.times.patterns import Between, NumberPattern, Word, moment_pattern, moment_reader, number_pattern
from catalog.values.types import INT4, TEXT, SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import FLOATS, bound, cast_to, decimal, local, macro, once
from executor.printing.nodes import Expr, binary, case, function, number, operand, text
from planner.algebra.nodes import Call, Literal

Value = Callable[[Expr], Expr]


def _part(name: str) -> Value:
    return lambda moment: function("datepart", text(name), moment.copy())


def _of(kind: type[Any], value: Value, count: int) -> Value:
    return lambda moment: binary(kind, value(moment), number(count))


def _plus(value: Value, count: int) -> Value:
    return _of(exp.Add, value, count)


_YEAR, _ISO, _HOUR, _MICROS = _part("year"), _part("isoyear"), _part("hour"), _part("microsecond")
_HALF: Final = _plus(_of(exp.Mod, _plus(_HOUR, 11), 12), 1)


def _second_of_day(moment: Expr) -> Expr:
    return binary(exp.IntDiv, function("epoch_us", cast_to_time(moment)), number(1000000))


def cast_to_time(moment: Expr) -> Expr:
    """The time of day."""
    return exp.Cast(this=moment.copy(), to=exp.DataType(this=exp.DataType.Type.TIME))


_FRACTION: Final = _of(exp.Mod, _MICROS, 1000000)
#: Numeric fields: the number of digits, and the value.
_NUMBERS: Final[Mapping[str, tuple[int, Value]]] = {
    "YYYY": (4, _YEAR),
    "YYY": (3, _of(exp.Mod, _YEAR, 1000)),
    "YY": (2, _of(exp.Mod, _YEAR, 100)),
    "Y": (1, _of(exp.Mod, _YEAR, 10)),
    "IYYY": (4, _ISO),
    "IYY": (3, _of(exp.Mod, _ISO, 1000)),
    "IY": (2, _of(exp.Mod, _ISO, 100)),
    "I": (1, _of(exp.Mod, _ISO, 10)),
    "MM": (2, _part("month")),
    "DD": (2, _part("day")),
    "DDD": (3, _part("doy")),
    "D": (1, _plus(_part("dow"), 1)),
    "ID": (1, _part("isodow")),
    "IW": (2, _part("week")),
    "IDDD": (3, lambda day: binary(exp.Add, _of(exp.Mul, _plus(_part("week"), -1), 7)(day), _part("isodow")(day))),
    "WW": (2, _plus(_of(exp.IntDiv, _plus(_part("doy"), -1), 7), 1)),
    "W": (1, _plus(_of(exp.IntDiv, _plus(_part("day"), -1), 7), 1)),
    "Q": (1, _part("quarter")),
    "CC": (2, _part("century")),
    "J": (1, lambda moment: function("floor", _part("julian")(moment))),
    "HH": (2, _HALF),
    "HH12": (2, _HALF),
    "HH24": (2, _HOUR),
    "MI": (2, _part("minute")),
    "SS": (2, _of(exp.Mod, _of(exp.IntDiv, _MICROS, 1000000), 60)),
    "SSSS": (1, _second_of_day),
    "SSSSS": (1, _second_of_day),
    "MS": (3, _of(exp.IntDiv, _FRACTION, 1000)),
    "US": (6, _FRACTION),
    **{f"FF{digits}": (digits, _of(exp.IntDiv, _FRACTION, 10 ** (6 - digits))) for digits in range(1, 7)},
}


#: Fields that FM does not change.
_FRACTIONS: Final = frozenset(("MS", "US", *(f"FF{digits}" for digits in range(1, 7))))


def _interval_part(size: int, count: int) -> Value:
    return lambda span: binary(
        exp.Mod, binary(exp.IntDiv, macro("ms_interval_micros", span.copy()), number(size)), number(count)
    )


#: For intervals: hours are not reduced to a day.
_SPANS: Final[Mapping[str, tuple[int, Value]]] = {
    "DD": (2, lambda span: macro("ms_interval_day", span.copy())),
    "HH24": (2, _interval_part(3600000000, 1 << 62)),
    "MI": (2, _interval_part(60000000, 60)),
    "SS": (2, _interval_part(1000000, 60)),
    "MS": (3, _interval_part(1000, 1000)),
    "US": (6, _interval_part(1, 1000000)),
}
#: The texts for years AD and BC.
_ERAS: Final = {
    **dict.fromkeys(("AD", "BC"), ("AD", "BC")),
    **dict.fromkeys(("A.D.", "B.C."), ("A.D.", "B.C.")),
}
_NAMES: Final = {"MONTH": ("monthname", 9), "MON": ("monthname", 0), "DAY": ("dayname", 9), "DY": ("dayname", 0)}


def to_char(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """A number, timestamp or interval in a constant pattern; NULL for an empty pattern, except for numbers."""
    value, pattern = node.arguments
    assert isinstance(pattern, Literal)
    shape = str(pattern.value)
    match value.type.name:
        case "timestamp" | "timestamptz" | "interval":
            return once(arguments[0], value, lambda shown: _moment(printer, shown, shape, value.type.name))
        case _:
            return once(arguments[0], value, lambda shown: _number(printer, shown, value.type, shape))


def _moment(printer: EntryPoints, value: Expr, pattern: str, kind: str) -> Expr:
    if kind == "interval" and not _SPANS.keys() >= {
        item.name for item in moment_pattern(pattern) if isinstance(item, Word)
    }:
        return _whole_span(value, pattern)
    shown = local(printer, value) if kind == "timestamptz" else value
    fields = [
        text(item.text) if isinstance(item, Between) else _field(printer, item, shown, value, kind)
        for item in moment_pattern(pattern)
        if not isinstance(item, Word) or item.name != "FX"
    ]
    result = fields[0] if fields else text("")
    for field in fields[1:]:
        result = binary(exp.DPipe, result, field)
    absent = exp.Is(this=operand(value.copy()), expression=exp.null())
    if kind != "interval":
        absent = binary(exp.Or, absent, function("isinf", value.copy()))
    return case([(absent, exp.null())], result)


def _whole_span(value: Expr, pattern: str) -> Expr:
    """An interval in a pattern with any words, by the kernel; NULL for an empty pattern."""
    parts = [macro(f"ms_interval_{part}", value.copy()) for part in ("months", "day", "micros")]
    return function("moments_shown_interval", *parts, text(pattern))


def _field(printer: EntryPoints, word: Word, moment: Expr, source: Expr, kind: str) -> Expr:
    name = word.name
    known = _SPANS if kind == "interval" else _NUMBERS
    if name in known:
        shown = _digits(known[name], word.fill or name in _FRACTIONS, moment, kind if name != "DD" else "")
        return macro("ms_ordinal", shown, text(word.ordinal)) if word.ordinal else shown
    if name == "RM":
        roman = macro("ms_roman_month", _part("month")(moment))
        roman = function("lower", roman) if word.text == "rm" else roman
        return function("rpad", roman, number(4), text(" ")) if word.fill else roman
    if name in _NAMES:
        return _name(word, moment)
    if name == "TZ":
        zone = (
            function("moments_zone_name", source.copy(), text(printer.timezone)) if kind == "timestamptz" else text("")
        )
        return function("lower", zone) if word.text == "tz" else zone
    if name in ("OF", "TZH", "TZM"):
        return _offset(printer, name, source, kind)
    if name == "Y,YYY":
        shown = function("printf", text("%d,%03d"), *(_of(op, _YEAR, 1000)(moment) for op in (exp.IntDiv, exp.Mod)))
        return macro("ms_ordinal", shown, text(word.ordinal)) if word.ordinal else shown
    if name in _ERAS:
        after, before = (text(_as_written(era, word)) for era in _ERAS[name])
        return case([(binary(exp.GT, _YEAR(moment), number(0)), after)], before)
    morning, evening = word.text.replace("P", "A").replace("p", "a"), word.text.replace("A", "P").replace("a", "p")
    return case([(binary(exp.LT, _HOUR(moment), number(12)), text(morning))], text(evening))


def _as_written(name: str, word: Word) -> str:
    """A name in the capitalization of the pattern's word."""
    return name if word.text == word.name else name.lower()


def _digits(field: tuple[int, Value], fill: bool, moment: Expr, kind: str) -> Expr:
    width, value = field
    whole = exp.Cast(this=value(moment), to=exp.DataType(this=exp.DataType.Type.BIGINT))
    if not fill:
        return exp.Cast(this=whole, to=exp.DataType(this=exp.DataType.Type.VARCHAR))
    plain = function("printf", text(f"%0{width}d"), whole)
    if kind != "interval" or width > 2:
        return plain  # sprintf counts the sign as a digit
    return case([(binary(exp.LT, whole.copy(), number(0)), function("printf", text("%03d"), whole.copy()))], plain)


def _name(word: Word, moment: Expr) -> Expr:
    called, width = _NAMES[word.name]
    name = function(called, moment.copy())
    if not width:
        name = function("left", name, number(3))
    if word.text == word.name:
        name = function("upper", name)
    elif word.text == word.name.lower():
        name = function("lower", name)
    return function("rpad", name, number(width), text(" ")) if width and word.fill and not word.local else name


def _offset(printer: EntryPoints, name: str, source: Expr, kind: str) -> Expr:
    """The session zone's offset from UTC at the instant; a timestamp without time zone has none."""
    minutes = number(0)
    if kind == "timestamptz":
        utc = function("timezone", text("UTC"), source.copy())
        seconds = function("date_diff", text("second"), utc, local(printer, source.copy()))
        minutes = binary(exp.IntDiv, seconds, number(60))
    if name == "OF":
        return macro("ms_offset_text", minutes)
    if name == "TZH":
        return function("left", macro("ms_offset_text", minutes), number(3))
    rest = binary(exp.Mod, function("abs", minutes), number(60))
    return function("printf", text("%02d"), exp.Cast(this=rest, to=exp.DataType(this=exp.DataType.Type.BIGINT)))


# --- numbers ----------------------------------------------------------------------------------------------------------


def _number(printer: EntryPoints, value: Expr, kind: SqlType, shape: str) -> Expr:
    """A number: by the engine's SQL for common patterns, else by the kernel, which also formats floating point numbers
    with more digits than are exact."""
    pattern = number_pattern(shape)
    other = function("num_shown", cast_to(printer, value.copy(), TEXT), text(shape), text(kind.name))
    if pattern is None or (pattern.shift and kind.name in FLOATS):
        return other
    usual = _usual_number(printer, value, kind, pattern)
    if kind.name not in FLOATS:
        return usual
    fits = macro("ms_char_certain", value.copy(), number((6 if kind.name == "float4" else 15) - pattern.decimals))
    return case([(fits, usual)], other)


def _usual_number(printer: EntryPoints, value: Expr, kind: SqlType, pattern: NumberPattern) -> Expr:
    digits = _rounded(printer, value, kind, pattern.decimals or pattern.shift)
    if pattern.shift:
        digits = macro("ms_char_shifted", digits)
    sizes = (pattern.digits, pattern.forced, pattern.decimals)
    whole: Expr = macro("ms_char_whole", digits, *map(number, sizes))
    decimals: Expr = macro("ms_char_decimals", digits.copy(), number(pattern.digits), number(pattern.decimals))
    if not pattern.fill:
        decimals = macro("ms_char_kept", decimals, number(pattern.kept))
        if pattern.decimals:
            whole = macro("ms_char_zero", whole, decimals.copy())
    for place, group in enumerate(sorted(pattern.groups)):
        whole = macro("ms_char_grouped", whole, number(group + place))
    sign: Expr = macro("ms_char_sign", digits.copy(), text("+" if "S" in pattern.sign else ""))
    if "MI" in pattern.sign and pattern.fill:
        sign = function("rpad", sign, number(1), text(" "))
    closing: Expr = text(pattern.suffix)
    if pattern.ordinal:
        closing = macro("ms_char_ordinal", digits.copy(), number(pattern.digits), text(pattern.ordinal))
    if pattern.sign == "PR":
        is_negative = exp.EQ(this=sign.copy(), expression=text("-"))
        closing = case([(is_negative, text(">" + pattern.suffix))], text(" " * pattern.fill + pattern.suffix))
        sign = function("replace", sign, text("-"), text("<"))
    trailing, apart = pattern.sign.startswith("-"), pattern.sign.endswith("-")
    body = whole if trailing or apart else binary(exp.DPipe, sign, whole)
    if pattern.fill:
        width = pattern.digits + len(pattern.groups) + (not trailing and not apart)
        body = function("lpad", body, number(width), text(" "))
    parts = [text(pattern.prefix), *([sign] if apart else []), body, text("." if pattern.decimals else ""), decimals]
    parts += [*([sign] if trailing else []), closing]
    result = parts[0]
    for part in parts[1:]:
        result = binary(exp.DPipe, result, part)
    return result


def _rounded(printer: EntryPoints, value: Expr, kind: SqlType, decimals: int) -> Expr:
    """The number's digits as text, rounded to a number of decimals."""
    if kind.name in FLOATS:
        return function("printf", text(f"%.{decimals}f"), cast_to(printer, value, SqlType("float8")))
    whole = kind.precision - kind.scale if kind.name == "numeric" else 19
    to = decimal(min(38, whole + 1 + decimals), decimals)
    return cast_to(printer, exp.Cast(this=value, to=to), TEXT)


# --- reading ----------------------------------------------------------------------------------------------------------


#: The kernel's function, by its result.
_READERS: Final = {
    "date": "moments_read_date",
    "timestamp": "moments_read_timestamp",
    "timestamptz": "moments_read_instant",
}


def read_moment(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    """The value of a text by a constant pattern: by the engine's SQL for an ordinary text and a common pattern, else by
    the kernel."""
    pattern = node.arguments[1]
    assert isinstance(pattern, Literal)
    return once(arguments[0], node.arguments[0], lambda value: _read(printer, value, str(pattern.value), node.type))


def _read(printer: EntryPoints, value: Expr, pattern: str, kind: SqlType) -> Expr:
    zone = (text(printer.timezone),) if kind.name == "timestamptz" else ()
    other = function(_READERS[kind.name], value.copy(), text(pattern), *zone)
    reader = moment_reader(pattern)
    if reader is None or zone:
        return other
    shape, groups = reader
    names = exp.Array(expressions=[text(meaning) for meaning in groups])
    usual = function("regexp_extract", value.copy(), text(f"\\A{shape}\\z"), names)
    return bound(usual, lambda found: _usual(printer, found, set(groups), value, other, kind))


def _usual(printer: EntryPoints, found: Expr, groups: set[str], value: Expr, other: Expr, kind: SqlType) -> Expr:
    """The value of an ordinary text's parts; the parts are empty for other texts."""

    def part(meaning: str) -> Expr:
        return function("struct_extract", found.copy(), text(meaning))

    def of(meaning: str, default: int = 0) -> Expr:
        return cast_to(printer, part(meaning), INT4) if meaning in groups else number(default)

    month = macro("ms_month_number", part("name")) if "name" in groups else of("month", 1)
    day = of("year"), month, of("day", 1)
    made = macro("ms_read_day", *day)
    if kind.name == "timestamp":
        noon = part("noon") if "noon" in groups else text("am")
        hour = macro("ms_half_day", of("half"), noon) if "half" in groups else of("hour")
        micros = macro("ms_read_micros", hour, of("minute"), of("second"), of("millis"), of("micros"))
        made = macro("ms_read_moment", *day, micros)
    is_usual = binary(exp.NEQ, part("year"), text(""))
    is_there = exp.Not(this=exp.Is(this=operand(value.copy()), expression=exp.null()))
    return case([(is_usual, function("coalesce", made, other)), (is_there, other.copy())], exp.null())
