"""Functions of texts that take arguments of any type, or constants that the planner reads.

Owns: values shown by their output functions (concat, concat_ws, format, quote_*), and names of encodings and forms.
"""

from __future__ import annotations

import re
from typing import Any, Final

from catalog.values.identifiers import quoted_words
from catalog.values.times.patterns import Word, moment_pattern
from catalog.values.types import BOOL, BYTEA, DATE, INT4, TEXT, TIMESTAMP, SqlType
from planner.algebra.nodes import Call, Case, Cast, Literal, Scalar
from planner.bind.calls.overloading.call_forms import Special
from planner.bind.calls.overloading.choice import no_function
from planner.bind.calls.overloading.deferred_calls import late
from planner.bind.conversion.coercion import blank_padded, coerce
from planner.bind.conversion.requirements import wrong_for
from planner.bind.state.environment import Environment


def _shown(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    """A value as its output function writes it, which for boolean is not its cast: the engines know that one."""
    if scalar.type == BOOL:
        return scalar
    if scalar.type.name == "xml":
        return Call("xml_shown", (scalar,), TEXT)
    if scalar.type.name == "inet":  # whose cast has the bits of its network always
        return Cast(scalar, TEXT)
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


#: %[position$][-][width]type, where the width may be an argument, too: * or *position$
_SPECIFIER: Final = re.compile(r"%(?:%|(?:(\d+)\$)?(-?)(\d*)(\*(?:(\d+)\$)?)?([sIL])?)")


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
        if found is None or (found[0] != "%%" and (found[6] is None or (found[3] and found[4]))):
            raise _bad_specifier(env, text, found.end() if found else end + 1, node)
        place = found.end()
        if found[0] == "%%":
            pieces.append(Literal("%", TEXT))
            continue
        width: Scalar | None = Literal(int(found[3]), INT4) if found[3] else None
        if found[4]:
            given = _place(env, found[5], given, arguments)
            width = coerce(env.binding, arguments[given], INT4, "explicit", node.args[0])
        given = _place(env, found[1], given, arguments)
        value = _conversion(env, found[6], arguments[given], node.args[0])
        pieces.append(value if width is None else _padded(value, width, bool(found[2])))
    return Call("concat_values", tuple(pieces), TEXT)


def most_asked(text: str) -> int:
    """How many arguments a pattern of format() asks for at most."""
    found = [match for match in _SPECIFIER.finditer(text) if match[0] != "%%"]
    return 2 * len(found) + max((int(place) for match in found for place in match.group(1, 5) if place), default=0)


def _place(env: Environment, written: str | None, given: int, arguments: list[Scalar]) -> int:
    """The argument that a specifier names, or the next one. Raises 22023."""
    place = int(written) if written else given + 1
    if place == 0:
        raise env.error("22023", "format specifies argument 0, but arguments are numbered from 1", None)
    if place >= len(arguments):
        raise env.error("22023", "too few arguments for format()", None)
    return place


def _known(scalar: Scalar) -> Scalar:
    """A constant that nothing has typed is a text."""
    return Literal(scalar.value, TEXT) if isinstance(scalar, Literal) and scalar.type.name == "unknown" else scalar


def _bad_specifier(env: Environment, text: str, place: int, node: Any) -> Exception:
    if place >= len(text):
        hint = 'For a single "%" use "%%".'
        return env.error("22023", "unterminated format() type specifier", None, hint=hint)
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


def _padded(value: Scalar, width: Scalar, left: bool) -> Scalar:
    """The value, '' for NULL, in at least ``width`` characters; a negative width begins at the left, too."""
    whole, zero = Call("concat_values", (value,), TEXT), Literal(0, INT4)
    least = Call("coalesce", (Call("abs", (width,), INT4), zero), INT4)
    size = Call("greatest", (Call("char_length", (whole,), INT4), least), INT4)
    at_left, at_right = (Call(name, (whole, size, Literal(" ", TEXT)), TEXT) for name in ("rpad", "lpad"))
    if left:
        return at_left
    if isinstance(width, Literal):
        return at_left if isinstance(width.value, int) and width.value < 0 else at_right
    return Case(((Call("lt", (width, zero), BOOL), at_left),), at_right, TEXT)


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
    value, form = (*arguments, Literal("nfc", TEXT))[:2]
    if isinstance(form, Literal) and str(form.value).lower() == "nfc":
        return Call("normalize", (value,), TEXT)
    return Call("text_normalized", (value, form), TEXT)


def _is_normalized(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    return Call("text_is_normalized", tuple((*arguments, Literal("nfc", TEXT))[:2]), BOOL)


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


def _converted(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """convert_from(), convert_to() and length() in an encoding; UTF8 is that of all texts."""
    value, encoding = arguments
    usual = isinstance(encoding, Literal) and re.sub("[^a-z0-9]", "", str(encoding.value).lower()) in (
        "utf8",
        "unicode",
    )
    if name == "convert_to":
        return Call("octets_of_text", (value,), BYTEA) if usual else Call("octets_encoded", (value, encoding), BYTEA)
    text = Call("octets_as_text", (value,), TEXT) if usual else Call("octets_decoded", (value, encoding), TEXT)
    return Call("char_length", (text,), INT4) if name == "length" else text


def _bit_length(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    return Call("mul", (Call("octet_length", (arguments[0],), INT4), Literal(8, INT4)), INT4)


def _to_char(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    value, pattern = arguments
    assert isinstance(pattern, Literal)
    is_moment = value.type.name in ("timestamp", "timestamptz", "interval")
    if pattern.value is None or (is_moment and not pattern.value):
        return Literal(None, TEXT)
    return Call("to_char", (value, pattern), TEXT)


#: Fields after which a text's instant needs more than the session's clock: the zone, and digits of a second to keep.
_OF_INSTANTS: Final = frozenset(("TZH", "TZM", *(f"FF{digits}" for digits in range(1, 7))))


def _read_moment(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """to_date() and to_timestamp() of a text."""
    value, pattern = arguments
    kind = DATE if name == "to_date" else SqlType("timestamptz")
    assert isinstance(pattern, Literal)
    if pattern.value is None:
        return Literal(None, kind)
    items = moment_pattern(str(pattern.value))
    is_whole = name == "to_date" or any(isinstance(item, Word) and item.name in _OF_INSTANTS for item in items)
    if is_whole:
        return Call("read_moment", (value, pattern), kind)
    return Cast(Call("read_moment", (value, pattern), TIMESTAMP), kind)


TEXT_FUNCTIONS: Final[dict[str, Special]] = {
    **dict.fromkeys(("quote_ident", "quote_literal", "quote_nullable"), _quote),
    "normalize": _normalize,
    "text_is_normalized": _is_normalized,
    **dict.fromkeys(("encode", "decode"), _recode),
    **dict.fromkeys(("octets_as_text", "octets_of_text"), _converted),
    "to_char": _to_char,
    "read_moment": _read_moment,
    "bit_length": _bit_length,
}
