"""bool: ``t`` and ``f``, or one byte; input accepts 1, 0 and unique prefixes of true, false, yes, no, on and off."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import invalid_text
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import BLANKS, Codec, ColumnError, bad_binary, fixed, network_vector

TRUE_TEXTS: Final[tuple[str, ...]] = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
FALSE_TEXTS: Final[tuple[str, ...]] = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_VALUES: Final[dict[str, bool]] = {text: text in TRUE_TEXTS for text in (*TRUE_TEXTS, *FALSE_TEXTS)}
_SPELLINGS: Final = pa.array([*TRUE_TEXTS, *FALSE_TEXTS])


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    return pc.if_else(array, constant("t"), constant("f"))


def _binary(array: pa.Array, type_: SqlType) -> pa.Array:
    return fixed(np.asarray(array.fill_null(constant(False))).astype(np.uint8), array)


def _from_text(text: str, type_: SqlType, timezone: str) -> bool:
    value = _VALUES.get(text.strip(BLANKS).lower())
    if value is None:
        raise invalid_text("boolean", text)
    return value


def _from_binary(data: bytes, type_: SqlType) -> bool:
    if len(data) != 1:
        raise bad_binary("boolean")
    return data != b"\0"


def _column_from_text(strings: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    codes = pc.index_in(pc.ascii_lower(pc.ascii_trim(strings, BLANKS)), _SPELLINGS)
    values = pc.less(codes, constant(len(TRUE_TEXTS)))
    if values.null_count > strings.null_count:
        index = pc.indices_nonzero(pc.and_(pc.is_null(values), pc.is_valid(strings)))[0].as_py()
        raise ColumnError(index, invalid_text("boolean", strings[index].as_py()))
    return values


def _column_from_binary(binaries: pa.Array, type_: SqlType) -> pa.Array:
    values = pa.array(network_vector(binaries, "u1", "boolean") != 0)
    return values if binaries.null_count == 0 else pc.if_else(pc.is_valid(binaries), values, constant(None))


CODECS: Final[dict[str, Codec]] = {
    "bool": Codec(
        text=_text,
        binary=_binary,
        from_text=_from_text,
        from_binary=_from_binary,
        column_from_text=_column_from_text,
        column_from_binary=_column_from_binary,
    )
}
