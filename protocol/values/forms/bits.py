"""bit and bit varying: digits in text; in binary their number, then bytes, the last one filled up with zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.forms.bits import fit_bits
from catalog.values.types import SqlType
from protocol.values.codec import Codec, Value, by_value
from protocol.values.forms.form_codec import Binary, exactly, formed_codec, short


def _write(digits: str) -> bytes:
    size = -(-len(digits) // 8)
    packed = int(digits.ljust(8 * size, "0"), 2).to_bytes(size, "big") if digits else b""
    return len(digits).to_bytes(4, "big") + packed


def _read(data: bytes) -> str:
    """The text of a binary field. Raises 08P01 and 22P03."""
    if len(data) < 4:
        raise short()
    count = int.from_bytes(data[:4], "big", signed=True)
    if count < 0:
        raise SqlError("22P03", "invalid length in external bit string")
    packed = exactly(data[4:], -(-count // 8))
    return f"{int.from_bytes(packed, 'big'):0{8 * len(packed)}b}"[:count] if count else ""


def _fitted(codec: Codec) -> Codec:
    """The codec with decoders that check or fit the type's declared length."""

    def fit(digits: Any, type_: SqlType) -> Value:
        return fit_bits(digits, type_.name, type_.modifiers[0], explicit=False) if type_.modifiers else digits

    def column(read: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
        def fitted(values: pa.Array, type_: SqlType, *others: str) -> pa.Array:
            digits = read(values, type_, *others)
            return by_value(digits, lambda text: fit(text, type_), pa.string()) if type_.modifiers else digits

        return fitted

    def from_text(text: str, type_: SqlType, timezone: str = "") -> Value:
        return fit(codec.from_text(text, type_, timezone), type_)

    return replace(
        codec,
        from_text=from_text,
        from_binary=lambda data, type_: fit(codec.from_binary(data, type_), type_),
        column_from_text=column(codec.column_from_text),
        column_from_binary=column(codec.column_from_binary),
    )


_BINARY: Final[Binary] = dict.fromkeys(("bit", "varbit"), (_write, _read))
CODECS: Final[dict[str, Codec]] = {name: _fitted(formed_codec(name, _BINARY)) for name in _BINARY}
