"""json, kept as written; jsonb, kept in PostgreSQL's output form; jsonpath.

That form of jsonb has sorted keys (shorter first, then by bytes), the last of equal keys, one blank after each comma
and colon, and numbers printed as numeric prints them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.utf8 import decode_utf8
from protocol.values.codec import Codec, ColumnError, by_value
from protocol.values.text.strings import utf8_column

_JSONB_VERSION: Final = b"\x01"
#: Types whose binary format is a version byte and their text.
_VERSIONED: Final = ("jsonb", "jsonpath")


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return array


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
    data = array.cast(pa.binary())
    return (
        pc.binary_join_element_wise(constant(_JSONB_VERSION), data, constant(b"")) if type_.name in _VERSIONED else data
    )


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


class _Number(str):
    """A number as the text that numeric prints for it."""

    __slots__ = ()


def _number(text: str) -> _Number:
    value = Decimal(text)
    if abs(value.adjusted()) > 131072:
        raise SqlError("22003", "value overflows numeric format")
    return _Number(format(value if value else abs(value), "f"))


_CHECKER: Final = json.JSONDecoder(parse_constant=_refuse)
_READER: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_number, parse_int=_number)


def _invalid(text: str, error: Exception) -> SqlError:
    if isinstance(error, json.JSONDecodeError):
        token = text[error.pos : error.pos + 20].split() or [""]
        ended = error.pos >= len(text.rstrip())
        detail = "The input string ended unexpectedly." if ended else f'Token "{token[0]}" is invalid.'
    else:
        detail = f'Token "{error}" is invalid.'
    return SqlError("22P02", "invalid input syntax for type json", detail)


def _decode(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        return decoder.decode(text)
    except RecursionError:
        raise SqlError("54001", "stack depth limit exceeded") from None
    except ValueError as error:
        raise _invalid(text, error) from None


def check_json(text: str) -> str:
    """Checks a text as json_in does and returns it unchanged. Raises 22P02."""
    _decode(text, _CHECKER)
    return text


def canonical_jsonb(text: str) -> str:
    """jsonb_in and jsonb_out: the text in jsonb's output form. Raises 22P02, and 22P05 for a character that no text can
    hold."""
    pieces: list[str] = []
    _print(_decode(text, _READER), pieces.append)
    return "".join(pieces)


def _print(value: Any, write: Callable[[str], object]) -> None:
    match value:
        case _Number():
            write(value)
        case str():
            write(_quoted(value))
        case bool():
            write("true" if value else "false")
        case None:
            write("null")
        case dict():
            separator = "{"
            for key in sorted(value, key=_key_order):
                write(f"{separator}{_quoted(key)}: ")
                _print(value[key], write)
                separator = ", "
            write("}" if value else "{}")
        case _:
            separator = "["
            for item in value:
                write(separator)
                _print(item, write)
                separator = ", "
            write("]" if value else "[]")


def _key_order(key: str) -> tuple[int, bytes]:
    data = key.encode("utf-8", "surrogatepass")
    return len(data), data


def _quoted(text: str) -> str:
    if "\0" in text:
        raise SqlError("22P05", "unsupported Unicode escape sequence", "\\u0000 cannot be converted to text.")
    try:
        text.encode()
    except UnicodeEncodeError:
        detail = "Unicode high surrogate must not follow a high surrogate."
        raise SqlError("22P02", "invalid input syntax for type json", detail) from None
    return json.dumps(text, ensure_ascii=False)


def _parser(type_: SqlType) -> Callable[[str], str]:
    """The function that reads a type's text. A jsonpath passes unchanged; the engine parses it."""
    return {"json": check_json, "jsonb": canonical_jsonb}.get(type_.name, str)


def _from_text(text: str, type_: SqlType, timezone: str) -> str:
    return _parser(type_)(text)


def _from_binary(data: bytes, type_: SqlType) -> str:
    if type_.name in _VERSIONED:
        if data[:1] != _JSONB_VERSION:
            raise SqlError("XX000", f"unsupported {type_.name} version number {data[0] if data else 0}")
        data = data[1:]
    return _parser(type_)(decode_utf8(data))


def _column_from_text(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return by_value(strings, _parser(type_), pa.string())


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    if type_.name in _VERSIONED:
        filled = binaries.fill_null(constant(_JSONB_VERSION))
        wrong = pc.indices_nonzero(pc.invert(pc.starts_with(filled, _JSONB_VERSION)))
        if len(wrong):
            raise ColumnError(wrong[0].as_py(), SqlError("XX000", f"unsupported {type_.name} version number"))
        binaries = pc.if_else(pc.is_valid(binaries), pc.binary_replace_slice(filled, 0, 1, b""), constant(None))
    return _column_from_text(utf8_column(binaries), type_, "")


_JSON: Final = Codec(
    text=_text,
    binary=_binary,
    from_text=_from_text,
    from_binary=_from_binary,
    column_from_text=_column_from_text,
    column_from_binary=_column_from_binary,
)
CODECS: Final[dict[str, Codec]] = {"json": _JSON, "jsonb": _JSON, "jsonpath": _JSON}
