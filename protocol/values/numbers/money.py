"""money: whole cents; ``-$1,234.50`` in text, 64 bits in binary."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.money import money_text, read_money
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import Codec, Value, by_value
from protocol.values.numbers import integers_and_floats

#: Whole dollars are padded to this number of digits, a multiple of three.
_WIDTH: Final = 18


def _text(array: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    """Digits in groups of three, without leading zeros."""
    digits = pc.utf8_lpad(pc.utf8_ltrim(array.cast(pa.string()), "-"), _WIDTH + 2, "0")
    groups = [pc.utf8_slice_codeunits(digits, place, place + 3) for place in range(0, _WIDTH, 3)]
    dollars = pc.utf8_ltrim(pc.binary_join_element_wise(*groups, constant(",")), "0,")
    dollars = pc.if_else(pc.equal(dollars, constant("")), constant("0"), dollars)
    sign = pc.if_else(pc.less(array, 0), constant("-$"), constant("$"))
    cents = pc.utf8_slice_codeunits(digits, _WIDTH)
    return pc.binary_join_element_wise(sign, dollars, constant("."), cents, constant(""))


def _from_text(text: str, type_: SqlType, timezone: str = "") -> Value:
    return read_money(text)


def _column(texts: pa.Array, type_: SqlType, timezone: str = "") -> pa.Array:
    return by_value(texts, read_money, pa.int64())


def money_out(cents: int, type_: SqlType) -> str:
    """The text of one amount."""
    return money_text(cents)


CODECS: Final[dict[str, Codec]] = {
    "money": replace(integers_and_floats.CODECS["int8"], text=_text, from_text=_from_text, column_from_text=_column)
}
