"""Functions of texts whose arguments PostgreSQL takes in any type or reads when it plans.

Owns: values shown by their output functions (concat, concat_ws, format, quote_*), and names of encodings and forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from catalog.errors import SqlError, unsupported
from catalog.names import quoted_words
from catalog.types import BOOL, BYTEA, DATE, INT4, TEXT, TIMESTAMP, SqlType
from planner.bind.calls.calling import Special, wrong_for
from planner.bind.calls.choice import no_function
from planner.bind.calls.late import late
from planner.bind.environment import Environment
from planner.bind.types import blank_padded, coerce
from planner.expression import Call, Cast, Literal, Scalar
from planner.formats import moment_pattern, moment_reader, number_pattern


def _shown(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    """A value as its output function writes it, which for boolean is not its cast: the engines know that one."""
    if scalar.type == BOOL:
        return scalar
    return coerce(env.binding, blank_padded(scalar), TEXT, "explicit", node) or scalar


def _concat(env: Environment, arguments: list[Scalar], node: Any) -> Scalar:
    if not arguments:
        raise no_function(env, arguments, node)
    shown = [_shown(env, item, place) for item, place in zip(arguments, node.args, strict=True)]
    return Call("concat_values", tuple(shown), TEXT)


def _concat_ws(env: Environment, arguments: list[Scalar], node: Any) -> Scalar:
    separator = coerce(env.binding, arguments[0], TEXT, "implicit", node.args[0]) if arguments else None
    if separator is None or len(arguments) < 2:
        raise no_function(env, arguments, node)
    shown = [_shown(env, item, place) for item, place in zip(arguments[1:], node.args[1:], strict=True)]
    return Call("concat_ws", (separator, *shown), TEXT)


#: %[position$][-][width]type
_SPECIFIER: Final = re.compile(r"%(?:%|(?:(\d+)\$)?(-?)(\d*)([sIL])?)")


def _format(env: Environment, arguments: list[Scalar], node: Any) -> Scalar:
    """format() of a constant pattern is a concatenation."""
    pattern = coerce(env.binding, arguments[0], TEXT, "implicit", node.args[0]) if arguments else None
    if pattern is None:
        raise no_function(env, arguments, node)
    if not isinstance(pattern, Literal):
        return late("format", [pattern, *map(_known, arguments[1:])], TEXT)
    if pattern.value is None:
        return pattern
    text, place, given = str(pattern.value), 0, 0
    pieces: list[Scalar] = [Literal("", TEXT)]
    while place < len(text):
        end = text.find("%", place)
        if end != place:
            pieces.append(Literal(text[place:end] if end >= 0 else text[place:], TEXT))
        if end < 0:
            break
        found = _SPECIFIER.match(text, end)
        if found is None or (found[0] != "%%" and found[4] is None):
            raise _bad_specifier(env, text, found.end() if found else end + 1, node)
        place = found.end()
        if found[0] == "%%":
            pieces.append(Literal("%", TEXT))
            continue
        given = int(found[1]) if found[1] else given + 1
        if given == 0:
            raise env.error("22023", "format specifies argument 0, but arguments are numbered from 1", None)
        if given >= len(arguments):
            raise env.error("22023", "too few arguments for format()", None)
        value = _conversion(env, found[4], arguments[given], node.args[given])
        pieces.append(_padded(value, int(found[3]), bool(found[2])) if found[3] else value)
    return Call("concat_values", tuple(pieces), TEXT)


def _known(scalar: Scalar) -> Scalar:
    """A constant that nothing has typed is a text."""
    return Literal(scalar.value, TEXT) if isinstance(scalar, Literal) and scalar.type.name == "unknown" else scalar


def _bad_specifier(env: Environment, text: str, place: int, node: Any) -> Exception:
    if place >= len(text):
        hint = 'For a single "%" use "%%".'
        return env.error("22023", "unterminated format() type specifier", None, hint=hint)
    if text[place] in "*$":
        return unsupported("format() with a width from its arguments", "Use lpad().", env.binding.position(node))
    message = f'unrecognized format() type specifier "{text[place]}"'
    return env.error("22023", message, None, hint='For a single "%" use "%%".')


def _conversion(env: Environment, letter: str, scalar: Scalar, node: Any) -> Scalar:
    shown = _shown(env, scalar, node)
    if shown.type == BOOL:
        shown = Call("concat_values", (shown,), TEXT) if letter == "s" else shown
    match letter:
        case "I":
            if scalar.type.name == "unknown" and isinstance(scalar, Literal) and scalar.value is None:
                raise env.error("22004", "null values cannot be formatted as an SQL identifier", None)
            return _quoted_name(Call("coalesce", (_text(shown), _null_name()), TEXT))
        case "L":
            return _nullable(_text(shown))
        case _:
            return shown


def _null_name() -> Scalar:
    message = "null values cannot be formatted as an SQL identifier"
    return Call("error", (Literal("22004", TEXT), Literal(message, TEXT)), TEXT)


def _text(shown: Scalar) -> Scalar:
    """A boolean's output, NULL for NULL."""
    if shown.type != BOOL:
        return shown
    return Call(
        "substring", (Call("concat", (shown, Literal("", TEXT)), TEXT), Literal(1, INT4), Literal(1, INT4)), TEXT
    )


def _padded(value: Scalar, width: int, left: bool) -> Scalar:
    """The value, '' for NULL, in at least ``width`` characters."""
    whole = Call("concat_values", (value,), TEXT)
    size = Call("greatest", (Call("char_length", (whole,), INT4), Literal(width, INT4)), INT4)
    return Call("rpad" if left else "lpad", (whole, size, Literal(" ", TEXT)), TEXT)


#: Functions of any number of arguments.
OF_TEXTS: Final = {"concat": _concat, "concat_ws": _concat_ws, "format": _format}


def _quoted_name(shown: Scalar) -> Scalar:
    return Call("quote_ident", (shown, Literal(f" {' '.join(sorted(quoted_words()))} ", TEXT)), TEXT)


def _nullable(shown: Scalar) -> Scalar:
    return Call("coalesce", (Call("quote_literal", (shown,), TEXT), Literal("NULL", TEXT)), TEXT)


def _quote(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    shown = coerce(env.binding, blank_padded(arguments[0]), TEXT, "explicit", node.args[0]) or arguments[0]
    match name:
        case "quote_ident":
            return _quoted_name(shown)
        case "quote_literal":
            return Call("quote_literal", (shown,), TEXT)
        case _:
            return _nullable(shown)


def _normalize(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    form = arguments[1].value if len(arguments) > 1 and isinstance(arguments[1], Literal) else "nfc"
    if len(arguments) > 1 and str(form).lower() != "nfc":
        raise unsupported("a normal form other than NFC", position=env.binding.position(node))
    return Call("normalize", (arguments[0],), TEXT)


def _recode(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """encode() and decode() by the name of the encoding."""
    encoding = arguments[1]
    assert isinstance(encoding, Literal)
    word = str(encoding.value).lower()
    kind = TEXT if name == "encode" else BYTEA
    if encoding.value is None:
        return Literal(None, kind)
    if word not in ("hex", "base64", "escape"):
        return wrong_for(arguments[0], kind, "22023", f'unrecognized encoding: "{encoding.value}"')
    if word == "escape":
        return Call("octets_encode_escape" if name == "encode" else "octets_read", (arguments[0],), kind)
    return Call(f"{name}_{word}", (arguments[0],), kind)


def _bit_length(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    return Call("mul", (Call("octet_length", (arguments[0],), INT4), Literal(8, INT4)), INT4)


def _to_char(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """The pattern is read here, so that what no engine writes is refused with its place."""
    value, pattern = arguments
    assert isinstance(pattern, Literal)
    is_moment = value.type.name in ("timestamp", "timestamptz", "interval")
    if pattern.value is None or (is_moment and not pattern.value):
        return Literal(None, TEXT)
    _check(env, moment_pattern if is_moment else number_pattern, pattern, node)
    return Call("to_char", (value, pattern), TEXT)


def _check(env: Environment, read: Callable[[str], object], pattern: Literal, node: Any) -> None:
    try:
        read(str(pattern.value))
    except SqlError as error:
        error.position = env.binding.position(node)
        raise


def _read_moment(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """to_date() and to_timestamp() of a text."""
    value, pattern = arguments
    kind = DATE if name == "to_date" else SqlType("timestamptz")
    assert isinstance(pattern, Literal)
    if pattern.value is None:
        return Literal(None, kind)
    _check(env, moment_reader, pattern, node)
    return Cast(Call("read_moment", (value, pattern), TIMESTAMP), kind)


TEXT_FUNCTIONS: Final[dict[str, Special]] = {
    **dict.fromkeys(("quote_ident", "quote_literal", "quote_nullable"), _quote),
    "normalize": _normalize,
    **dict.fromkeys(("encode", "decode"), _recode),
    "to_char": _to_char,
    "read_moment": _read_moment,
    "bit_length": _bit_length,
}
