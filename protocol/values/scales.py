"""How many decimals the numerics of a column are written with: the scales beside its values (``catalog.scales``).

Owns: both forms' scales, column by column; arrays and rows are taken apart as their codecs do. Numerics of declared
digits have none, as all that is no numeric. Texts and binary forms are those of well-formed values.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from catalog.nested import split_array, split_row
from catalog.nesting import delimiter_of
from catalog.scales import is_unconstrained, scale_kind
from catalog.types import SqlType
from protocol.values import arrays, rows
from protocol.values.decimal_binary import sent_scales
from protocol.values.decimal_text import written_scales


def scales_of_texts(texts: pa.Array, kind: SqlType) -> pa.Array:
    """The scales of values in text form."""
    if kind.element is not None:
        split, element = partial(split_array, delimiter=delimiter_of(kind.element)), kind.element
        return arrays.column(texts, split, lambda items: scales_of_texts(items, element), scale_kind(kind).arrow)
    if kind.row is not None:
        width = len(kind.row.fields)
        return rows.column(texts, kind, scale_kind(kind), lambda text: split_row(text, width), scales_of_texts)
    return written_scales(texts) if is_unconstrained(kind) else pa.nulls(len(texts), pa.int32())


def scales_of_binaries(binaries: pa.Array, kind: SqlType) -> pa.Array:
    """The scales of values in binary form."""
    if kind.element is not None:
        split, element = partial(arrays.split_binary, element=kind.element), kind.element
        return arrays.column(binaries, split, lambda items: scales_of_binaries(items, element), scale_kind(kind).arrow)
    if kind.row is not None:
        kinds = [each for _, each in kind.row.fields]
        split_fields = partial(rows.split_binary, kinds=kinds)
        return rows.column(binaries, kind, scale_kind(kind), split_fields, scales_of_binaries)
    return sent_scales(binaries) if is_unconstrained(kind) else pa.nulls(len(binaries), pa.int32())
