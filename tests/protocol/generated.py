"""Values of every type for property tests: strategies, and columns of the drawn values."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from catalog.values import multiranges
from catalog.values.ranges import Bounds, canonical
from catalog.values.ranges import packed as range_bytes
from catalog.values.times.timestamps import INFINITE_DAYS, INFINITE_MICROSECONDS
from catalog.values.times.timetz import DAY, LIMIT, packed
from catalog.values.types import MULTIRANGES, RANGES, SqlType, by_name, numeric
from protocol.values.text.jsons import canonical_jsonb

ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "+05:30"]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
INTERVALS = st.tuples(
    st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6), st.integers(-(9 * 10**15), 9 * 10**15)
)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda unscaled: Decimal(unscaled).scaleb(-scale, context=None))


#: Numbers of range bounds whose canonical forms are again within the types.
NUMBERS = {
    "int4range": st.integers(-(2**31), 2**31 - 2),
    "int8range": st.integers(-(2**63), 2**63 - 2),
    "numrange": st.integers(-(10**38) + 1, 10**38 - 1),
    "daterange": st.integers(-719_162, 2_932_895) | st.sampled_from((INFINITE_DAYS, -INFINITE_DAYS)),
    "tsrange": st.integers(-(10**16), 10**17) | st.sampled_from((INFINITE_MICROSECONDS, -INFINITE_MICROSECONDS)),
    "tstzrange": st.integers(-(10**16), 10**17) | st.sampled_from((INFINITE_MICROSECONDS, -INFINITE_MICROSECONDS)),
}


def bounds_of(kind: SqlType) -> st.SearchStrategy[Bounds]:
    """Bounds in ascending order."""
    number = st.none() | NUMBERS[kind.name]
    pairs = st.tuples(number, number).map(
        lambda pair: pair if pair[0] is None or pair[1] is None else (min(pair), max(pair))
    )
    return st.builds(lambda pair, lower, upper: Bounds(*pair, lower, upper), pairs, st.booleans(), st.booleans())


def ranges_of(kind: SqlType) -> st.SearchStrategy[bytes]:
    """Ranges in carried form."""
    return bounds_of(kind).map(lambda bounds: range_bytes(kind, canonical(kind, bounds)))


def multiranges_of(kind: SqlType) -> st.SearchStrategy[bytes]:
    """Multiranges in carried form."""
    return st.lists(ranges_of(multiranges.range_of(kind)), max_size=4).map(partial(multiranges.made, kind))


SCALARS: dict[str, tuple[SqlType, st.SearchStrategy[Any]]] = {
    "bool": (by_name("bool"), st.booleans()),
    "int2": (by_name("int2"), st.integers(-(2**15), 2**15 - 1)),
    "int4": (by_name("int4"), st.integers(-(2**31), 2**31 - 1)),
    "int8": (by_name("int8"), st.integers(-(2**63), 2**63 - 1)),
    "oid": (by_name("oid"), st.integers(0, 2**32 - 1)),
    "float4": (by_name("float4"), st.floats(width=32)),
    "float8": (by_name("float8"), st.floats()),
    "numeric(15,2)": (numeric(15, 2), decimals(15, 2)),
    "numeric": (by_name("numeric"), decimals(28, 18)),
    "numeric(38,0)": (numeric(38, 0), decimals(28, 0)),
    "numeric(3,3)": (numeric(3, 3), decimals(3, 3)),
    "text": (by_name("text"), TEXT),
    "varchar": (by_name("varchar"), TEXT),
    "name": (by_name("name"), TEXT),
    "bpchar(14)": (SqlType("bpchar", (14,)), TEXT.map(lambda text: text.rstrip(" "))),
    "bytea": (by_name("bytea"), st.binary(max_size=12)),
    "uuid": (by_name("uuid"), st.uuids().map(str)),
    "json": (by_name("json"), JSON_VALUES.map(json.dumps)),
    "jsonb": (by_name("jsonb"), JSON_VALUES.map(json.dumps).map(canonical_jsonb)),
    "date": (by_name("date"), st.dates()),
    "time": (by_name("time"), st.times()),
    "timestamp": (by_name("timestamp"), MOMENTS),
    "timestamptz": (by_name("timestamptz"), MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    "timetz": (by_name("timetz"), st.builds(packed, st.integers(0, DAY), st.integers(1 - LIMIT, LIMIT - 1))),
    "interval": (by_name("interval"), INTERVALS),
    **{name: (by_name(name), ranges_of(by_name(name))) for name in RANGES},
    **{name: (by_name(name), multiranges_of(by_name(name))) for name in MULTIRANGES},
}


def arrow_value(value: Any) -> Any:
    """A literal's value in the form that pyarrow accepts."""
    if isinstance(value, list):
        return [arrow_value(item) for item in value]
    return pa.MonthDayNano([*value[:2], value[2] * 1000]) if isinstance(value, tuple) else value


def column(values: list[Any], type_: SqlType) -> pa.Array:
    return pa.array([arrow_value(value) for value in values], type_.arrow)


def as_list(value: object) -> list[object]:
    """An array's value in the form that pyarrow accepts."""
    assert isinstance(value, tuple)
    return list(value)


def same(left: pa.Array, right: pa.Array) -> bool:
    """Equality in which NaN equals NaN, and -0 equals 0."""
    return left.type == right.type and repr(left.to_pylist()) == repr(right.to_pylist())
