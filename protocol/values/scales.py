"""The display scales of a column's values, or the trailing blanks of character values (``catalog.values.scales``).

Owns: reading the scales from both forms, column by column; arrays and rows are split as their codecs do. Numerics of
declared scale and other types have no scales of their own. Texts and binary forms must be well-formed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from catalog.values.array_shapes import split_shaped
from catalog.values.nested_texts import split_array, split_row
from catalog.values.nested_types import delimiter_of
from catalog.values.scales import is_padded, is_unconstrained, scale_kind
from catalog.values.types import SqlType
from protocol.compute import pc
from protocol.values.nested import arrays, rows, shaped_arrays
from protocol.values.numbers.numeric_binary import sent_scales
from protocol.values.numbers.numeric_text import written_scales


def scales_of_texts(texts: pa.Array, kind: SqlType) -> pa.Array:
    """The scales of values in text form."""
    if kind.element is not None:
        decode, arrow = partial(scales_of_texts, kind=kind.element), scale_kind(kind).arrow
        if kind.name == "shaped":
            return shaped_arrays.column(texts, split_shaped, decode, arrow)
        return arrays.column(texts, partial(split_array, delimiter=delimiter_of(kind.element)), decode, arrow)
    if kind.row is not None:
        width = len(kind.row.fields)
        return rows.column(texts, kind, scale_kind(kind), lambda text: split_row(text, width), scales_of_texts)
    return _scales(texts, kind, written_scales)


def scales_of_binaries(binaries: pa.Array, kind: SqlType) -> pa.Array:
    """The scales of values in binary form."""
    if kind.element is not None:
        decode, arrow = partial(scales_of_binaries, kind=kind.element), scale_kind(kind).arrow
        if kind.name == "shaped":
            split = partial(shaped_arrays.split_shaped_binary, element=kind.element)
            return shaped_arrays.column(binaries, split, decode, arrow)
        return arrays.column(binaries, partial(arrays.split_binary, element=kind.element), decode, arrow)
    if kind.row is not None:
        kinds = [each for _, each in kind.row.fields]
        split_fields = partial(rows.split_binary, kinds=kinds)
        return rows.column(binaries, kind, scale_kind(kind), split_fields, scales_of_binaries)
    return _scales(binaries, kind, sent_scales)


def _scales(fields: pa.Array, kind: SqlType, of_numerics: Callable[[pa.Array], pa.Array]) -> pa.Array:
    if is_padded(kind):
        return pc.utf8_length(fields.cast(pa.string()))
    return of_numerics(fields) if is_unconstrained(kind) else pa.nulls(len(fields), pa.int32())
