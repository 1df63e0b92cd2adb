"""Arrays and rows, encoded and decoded in both formats, with nulls and in slices; and invalid ones."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.array_shapes import shaped as shaped_as
from catalog.values.errors import SqlError
from catalog.values.types import Composite, array, by_name, row, shaped
from protocol.values.registry import decode_binary_column, decode_text_column, decode_value, encode_binary, encode_text
from tests.protocol.generated import SCALARS, arrow_value, as_list, column, same
from tests.rig.sampling import examples


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SCALARS)
@settings(max_examples=12)
@given(data=st.data())
def test_array_there_and_back(name: str, data: st.DataObject) -> None:
    element, values = SCALARS[name]
    type_ = array(element)
    items = data.draw(st.lists(st.none() | st.lists(st.none() | values, max_size=4), max_size=5))
    whole = column([[None], *items], type_)[1:]
    texts, binaries = encode_text(whole, type_), encode_binary(whole, type_)
    assert same(decode_text_column(texts, type_), whole)
    assert same(decode_binary_column(binaries, type_), whole)
    for item, text, binary in zip(items, texts.to_pylist(), binaries.to_pylist(), strict=True):
        if item is not None:
            assert same(column([as_list(decode_value(text.encode(), type_, 0))], type_), column([item], type_))
            assert same(column([as_list(decode_value(binary, type_, 1))], type_), column([item], type_))


@settings(max_examples=examples(60))
@given(st.data())
def test_row_there_and_back(data: st.DataObject) -> None:
    """Rows with any fields, also within arrays and rows, with NULLs and slices."""
    names = data.draw(st.lists(st.sampled_from(sorted(SCALARS)), min_size=1, max_size=4))
    kinds = [SCALARS[name][0] for name in names]
    fields = st.tuples(*(st.none() | SCALARS[name][1] for name in names))
    inner = row(Composite(1, "inner", tuple((f"a{place}", kind) for place, kind in enumerate(kinds))))
    type_ = row(Composite(3, "outer", (("one", inner), ("several", array(inner)))))
    values = data.draw(st.lists(st.none() | st.tuples(st.none() | fields, st.none() | st.lists(st.none() | fields))))

    def arrow(value: Any) -> Any:
        if value is None:
            return None
        pairs = zip(value, kinds, strict=True)
        return {f"f{place}": arrow_value(item) for place, (item, _) in enumerate(pairs, 1)}

    rows = [
        value and {"f1": arrow(value[0]), "f2": None if value[1] is None else list(map(arrow, value[1]))}
        for value in values
    ]
    array_ = pa.array([None, *rows], type_.arrow)[1:]
    assert same(decode_text_column(encode_text(array_, type_, "UTC"), type_, "UTC"), array_)
    assert same(decode_binary_column(encode_binary(array_, type_).cast(pa.binary()), type_), array_)


SIZES: Final = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@st.composite
def shaped_values(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> dict[str, list[Any]]:
    """An array of any dimensions and bounds, in Arrow's form."""
    sizes = draw(SIZES)
    lowers = draw(st.lists(st.integers(-9, 9), min_size=len(sizes), max_size=len(sizes)))
    count = prod(sizes)
    items = draw(st.lists(st.none() | values, min_size=count, max_size=count))
    return {"items": items, "shape": list(shaped_as(sizes, lowers))}


@pytest.mark.parametrize("name", ["int4", "text", "timetz", "numeric(15,2)", "timestamptz"])
@settings(max_examples=25)
@given(data=st.data())
def test_shaped_array_there_and_back(name: str, data: st.DataObject) -> None:
    element, values = SCALARS[name]
    type_ = shaped(element)
    empty = st.just({"items": [], "shape": [0]})
    items = data.draw(st.lists(st.none() | empty | shaped_values(values), max_size=5))
    whole = pa.array([None, *items], type_.arrow)[1:]
    texts, binaries = encode_text(whole, type_), encode_binary(whole, type_)
    assert same(decode_text_column(texts, type_), whole)
    assert same(decode_binary_column(binaries, type_), whole)
    for item, text, binary in zip(items, texts.to_pylist(), binaries.to_pylist(), strict=True):
        if item is not None:
            given = (tuple(item["items"]), tuple(item["shape"]))
            assert decode_value(text.encode(), type_, 0) == decode_value(binary, type_, 1) == given


@pytest.mark.parametrize("name", ["int4", "text"])
@settings(max_examples=25)
@given(data=st.data())
def test_shaped_arrays_that_are_lists_are_written_as_these(name: str, data: st.DataObject) -> None:
    element, values = SCALARS[name]
    type_ = shaped(element)
    lists = data.draw(st.lists(st.none() | st.lists(st.none() | values, max_size=3), max_size=5))
    items = [None if item is None else {"items": item, "shape": list(shaped_as([len(item)]))} for item in lists]
    bounded = {"items": [None], "shape": [1, 1, 0]}
    alone, beside = (pa.array([None, *found], type_.arrow)[1:] for found in (items, [*items, bounded]))
    for encode in (encode_text, encode_binary):
        assert encode(alone, type_).equals(encode(pa.array(lists, array(element).arrow), array(element)))
        assert encode(alone, type_).to_pylist() == encode(beside, type_).to_pylist()[:-1]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        *(
            (text, "22P02")
            for text in ("{{1,2},{3}}", "{{1},2}", "{1", "{1,}", "{,1}", "{{1}{2}}", "{1}x", "[1:3]={1}")
        ),
        ("[2:1]={}", "2202E"),
        ("{{{{{{{1}}}}}}}", "54000"),
        ("{{x}}", "22P02"),
    ],
)
def test_bad_shaped_arrays(text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        decode_value(text.encode(), shaped(by_name("int4")), 0)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        (b"", "22P03"),
        (b"\0\0\0\2", "42804"),
        (b"\0\0\0\1\0\0\0\x19\0\0\0\1\0", "42804"),
        (b"\0\0\0\1\0\0\0\x17\0\0\0\4\0", "22P03"),
        (b"\0\0\0\1\0\0\0\x17\0\0\0\4\0\0\0\1x", "22P03"),
    ],
)
def test_bad_binary_rows(data: bytes, sqlstate: str) -> None:
    type_ = row(Composite(1, "one", (("a", by_name("int4")),)))
    with pytest.raises(SqlError) as caught:
        decode_value(data, type_, 1)
    assert caught.value.sqlstate == sqlstate
