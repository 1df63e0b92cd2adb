"""bytea: text in hexadecimal (``\\x`` and digits) or in the old escape format; binary is the bytes themselves."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import Codec, by_value, offsets, value_bytes, variable
from protocol.values.styles import ESCAPE, octets_of
from protocol.values.text.hexadecimal import from_digits, to_digits

_PREFIX: Final = "\\x"
#: The size of each octet in the escape format.
_SIZES: Final = np.where((np.arange(256) < 0x20) | (np.arange(256) > 0x7E), 4, 1)
_SIZES[ord("\\")] = 2
_ESCAPE: Final = re.compile(rb"\\(?:\\|[0-3][0-7]{2})?")


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    if octets_of(timezone) == ESCAPE:
        return _escaped(array)
    digits = variable(to_digits(value_bytes(array)), 2 * np.diff(offsets(array)), array)
    return pc.binary_join_element_wise(constant(_PREFIX), digits.cast(pa.string()), constant(""))


def _escaped(array: pa.Array) -> pa.Array:
    """Printable ASCII octets as they are, a backslash doubled, all others as a backslash and three octal digits."""
    data = value_bytes(array)
    sizes = _SIZES[data]
    ends = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    starts = ends[:-1]
    out = np.empty(int(ends[-1]), np.uint8)
    out[starts] = np.where(sizes == 1, data, ord("\\"))
    out[starts[sizes == 2] + 1] = ord("\\")
    octal = sizes == 4
    for place, shift in enumerate((6, 3, 0), 1):
        out[starts[octal] + place] = (data[octal] >> shift & 7) + ord("0")
    bounds = offsets(array) - offsets(array)[0]
    return variable(out, np.diff(ends[bounds]), array).cast(pa.string())


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
    return array


def _from_text(text: str, type_: SqlType, timezone: str) -> bytes:
    if text.startswith(_PREFIX):
        return _from_hexadecimal(text[2:])
    return _ESCAPE.sub(_unescape, text.encode())


def _from_hexadecimal(digits: str) -> bytes:
    compact = digits.translate(dict.fromkeys(map(ord, " \t\n\r")))
    wrong = re.search("[^0-9a-fA-F]", compact)
    if wrong:
        raise SqlError("22023", f'invalid hexadecimal digit: "{wrong.group()}"')
    if len(compact) % 2:
        raise SqlError("22023", "invalid hexadecimal data: odd number of digits")
    return bytes.fromhex(compact)


def _unescape(match: re.Match[bytes]) -> bytes:
    escape = match.group()
    if escape == b"\\\\":
        return b"\\"
    if len(escape) == 4:
        return bytes((int(escape[1:], 8),))
    raise SqlError("22P02", "invalid input syntax for type bytea")


def _from_binary(data: bytes, type_: SqlType) -> bytes:
    return bytes(data)


def _column_from_text(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    exact = partial(by_value, strings, partial(_from_text, type_=type_, timezone=timezone), pa.binary())
    if strings.null_count == 0 and pc.all(pc.starts_with(strings, _PREFIX)).as_py():
        digits = pc.utf8_slice_codeunits(strings, 2)
        lengths = np.diff(offsets(digits))
        if not (lengths % 2).any():
            data = from_digits(value_bytes(digits))
            if data is not None:
                return variable(data, lengths // 2, strings)
    return exact()


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    return binaries


CODECS: Final[dict[str, Codec]] = {
    "bytea": Codec(
        text=_text,
        binary=_binary,
        from_text=_from_text,
        from_binary=_from_binary,
        column_from_text=_column_from_text,
        column_from_binary=_column_from_binary,
    )
}
