"""JSON documents as text: their parts as slices, and jsonb's output form, whose slices have that form, too.

Owns: ``fields`` and ``elements`` (a document's parts as written, which is what json gives back), ``parse`` and
``canonical`` (what jsonb keeps: keys by length and then bytes, the last of equal ones, numbers as numeric prints them).
Knows no engine. Recursion ends in 54001.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from catalog.values.errors import SqlError

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_PLAIN: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
#: The limits of numeric: digits before the point and after it, and the exponent that its input accepts.
_DIGITS: Final = 131072
_DECIMALS: Final = 16383
_EXPONENT: Final = (1 << 30) - 1


class Number(str):
    """A number as the text that numeric prints for it."""

    __slots__ = ()


def number(value: Decimal) -> Number:
    """A number's text. Raises 22003 if numeric cannot hold the number."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "neither JSON nor its paths have infinities"
    if (value and value.adjusted() >= _DIGITS) or -exponent > _DECIMALS:
        raise _overflow()
    return Number(format(value if value else abs(value), "f"))


def read_number(text: str) -> Number:
    """A number's text in jsonb's form."""
    if len(text) <= _DECIMALS and _PLAIN.fullmatch(text):
        return Number(text.removeprefix("-") if not text.strip("-0.") else text)
    try:
        value = Decimal(text)
    except InvalidOperation:  # an exponent beyond Decimal's range
        raise _overflow() from None
    if abs(int(value.as_tuple().exponent)) > _EXPONENT:
        raise _overflow()
    return number(value)


def _overflow() -> SqlError:
    return SqlError("22003", "value overflows numeric format")


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


_SCANNER: Final = json.JSONDecoder(parse_constant=_refuse)
_READER: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=read_number, parse_int=read_number)


def _guarded(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except RecursionError:
        raise SqlError("54001", "stack depth limit exceeded") from None
    except ValueError:
        raise SqlError("22P02", "invalid input syntax for type json", f'The input is "{text[:200]}".') from None


def check(text: str) -> str:
    """Checks a text as json's input does, and returns it. Raises 22P02."""
    _guarded(_SCANNER.decode, text)
    return text


def parse(text: str) -> Any:
    """The value of a document: dict, list, str, bool, None, ``Number``."""
    return _guarded(_READER.decode, text)


def canonical(value: Any) -> str:
    """A value's text in jsonb's output form. Raises 22P05 for a character that no text can hold."""
    pieces: list[str] = []
    try:
        _write(value, pieces.append)
    except RecursionError:
        raise SqlError("54001", "stack depth limit exceeded") from None
    return "".join(pieces)


def quoted(text: str) -> str:
    """A JSON string."""
    if "\0" in text:
        raise SqlError("22P05", "unsupported Unicode escape sequence", "\\u0000 cannot be converted to text.")
    return json.dumps(text, ensure_ascii=False)


def scalar(value: Any) -> str | None:
    """The text of a value that is neither object nor array; None for these."""
    if isinstance(value, Number):
        return value
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return None


def sorted_keys(value: dict[str, Any]) -> list[str]:
    """An object's keys in jsonb's sort order."""
    return sorted(value, key=lambda key: (len(data := key.encode("utf-8", "surrogatepass")), data))


def _write(value: Any, write: Callable[[str], object]) -> None:
    plain = scalar(value)
    if plain is not None:
        write(plain)
    elif isinstance(value, dict):
        separator = "{"
        for key in sorted_keys(value):
            write(f"{separator}{quoted(key)}: ")
            _write(value[key], write)
            separator = ", "
        write("}" if value else "{}")
    else:
        separator = "["
        for item in value:
            write(separator)
            _write(item, write)
            separator = ", "
        write("]" if value else "[]")


# --- slices ----------------------------------------------------------------------------------------------------------


def kind(text: str) -> str:
    """The result of json_typeof()."""
    first = text[_skip(text, 0)]
    names = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
    return names.get(first, "number")


def text_of(document: str) -> str | None:
    """A part as ->> returns it: strings unquoted, null as NULL, others as written."""
    found = kind(document)
    if found == "string":
        return str(_SCANNER.decode(document))
    return None if found == "null" else document.strip(" \t\n\r")


def fields(text: str) -> Iterator[tuple[str, str]]:
    """An object's keys, and their values as written."""
    position = _skip(text, _skip(text, 0) + 1)
    while text[position] != "}":
        key, end = _SCANNER.raw_decode(text, position)
        start = _skip(text, _skip(text, end) + 1)
        _, end = _SCANNER.raw_decode(text, start)
        yield key, text[start:end]
        position = _next(text, end)


def elements(text: str) -> Iterator[str]:
    """An array's elements as written."""
    position = _skip(text, _skip(text, 0) + 1)
    while text[position] != "]":
        _, end = _SCANNER.raw_decode(text, position)
        yield text[position:end]
        position = _next(text, end)


def _skip(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    assert match is not None
    return match.end()


def _next(text: str, end: int) -> int:
    """The place of the next part, or of the closing bracket."""
    position = _skip(text, end)
    return _skip(text, position + 1) if text[position] == "," else position
