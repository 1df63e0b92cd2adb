"""numeric: the codec. Its text is ``decimal_text``'s, its binary form ``decimal_binary``'s."""

from __future__ import annotations

from typing import Final

from protocol.values.codec import Codec
from protocol.values.decimal_binary import decode_numeric, decode_numeric_column, encode_numeric
from protocol.values.decimal_text import numeric_column, numeric_text, parse_numeric

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
