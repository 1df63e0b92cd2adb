"""numeric's binary form: columns equal the results of numeric_send for each value."""

from __future__ import annotations

import struct
from decimal import Context, Decimal
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from catalog.values.types import UNCONSTRAINED, numeric
from protocol.values.registry import decode_binary_column, encode_binary, encode_text

_EXACT = Context(prec=60)


def sent(text: str) -> bytes:
    """The result of numeric_send, computed in the slow and obvious way from the text of numeric_out."""
    whole, _, fraction = text.lstrip("-").partition(".")
    scale = len(fraction)
    whole, fraction = whole.zfill(-(-len(whole) // 4) * 4), fraction.ljust(-(-scale // 4) * 4, "0")
    digits = whole + fraction
    groups = [int(digits[at : at + 4]) for at in range(0, len(digits), 4)]
    weight = len(whole) // 4 - 1
    while groups and not groups[-1]:
        groups.pop()
    while groups and not groups[0]:
        groups.pop(0)
        weight -= 1
    sign = 0x4000 if text.startswith("-") else 0
    return struct.pack(f">4h{len(groups)}h", len(groups), weight if groups else 0, sign, scale, *groups)


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """Decimals of any precision and scale: some with few digits, some with trailing zeros, some null; possibly a
    slice."""
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10 ** draw(st.integers(1, precision)) - 1
    mantissas = st.integers(-most, most) | st.sampled_from([0, 1, -1, most, -most, (most + 1) // 10])
    nulls = st.none() if draw(st.booleans()) else st.nothing()
    drawn = draw(st.lists(nulls | mantissas, min_size=1, max_size=8))
    values = [None if item is None else Decimal(item).scaleb(-scale, _EXACT) for item in drawn]
    return pa.array(values, pa.decimal128(precision, scale))[draw(st.integers(0, 1)) :]


@given(columns())
def test_columns_equal_what_is_sent_of_each_value(column: pa.Array) -> None:
    for type_ in (numeric(column.type.precision, column.type.scale), numeric(*UNCONSTRAINED)):
        texts = encode_text(column, type_).to_pylist()
        expected = [None if text is None else sent(text) for text in texts]
        assert encode_binary(column, type_).to_pylist() == expected
        assert encode_binary(pa.array(texts, pa.string()), type_).to_pylist() == expected


def test_the_largest_words() -> None:
    """Values near the limits of 64 bits, which 19 digits may exceed, with and without trailing zeros."""
    for scale in (0, 1, 3, 4, 19):
        edges = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**18, -(10**19) + 1, 10**18 - 1]
        for value in edges:
            column = pa.array([Decimal(value).scaleb(-scale, _EXACT), Decimal(0)], pa.decimal128(38, scale))
            type_ = numeric(38, scale)
            fields = encode_binary(column, type_)
            assert fields.to_pylist() == [sent(text) for text in encode_text(column, type_).to_pylist()]
            assert decode_binary_column(fields, type_).equals(column)


def test_a_word_on_either_side_of_the_point() -> None:
    """With the scale of a numeric of undeclared precision, and more digits than one word holds."""
    random = Random(5)
    for scale in (5, 14, 17, 18):
        ends = [10 ** random.randint(0, scale) for _ in range(300)]
        most = 10 ** (scale + 18)
        values = [random.randint(-most, most) // end * end for end in ends] + [1, -1, -(10**scale), most * 9 + 1, None]
        decimals = [None if value is None else Decimal(value).scaleb(-scale, _EXACT) for value in values]
        column = pa.array(decimals, pa.decimal128(38, scale))[1:]
        assert encode_binary(column, numeric(*UNCONSTRAINED)).to_pylist() == [
            None if text is None else sent(text) for text in encode_text(column, numeric(*UNCONSTRAINED)).to_pylist()
        ]
