"""The codec of numeric, made of ``numeric_text`` and ``numeric_binary``."""

from __future__ import annotations

from typing import Final

from protocol.values.codec import Codec
from protocol.values.numbers.numeric_binary import decode_numeric, decode_numeric_column, encode_numeric
from protocol.values.numbers.numeric_text import numeric_column, numeric_text, parse_numeric

CODECS: Final[dict[str, Codec]] = {
    "numeric": Codec(
        text=numeric_text,
        binary=encode_numeric,
        from_text=parse_numeric,
        from_binary=decode_numeric,
        column_from_text=numeric_column,
        column_from_binary=decode_numeric_column,
    )
}
