"""Converts enum values of another server to this server's positions of their labels.

Owns: the conversion, also within arrays and rows. If a type comes from another server, or was dropped and created
again, its labels may have other positions; the labels themselves are the same.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from catalog.values.types import Composite, SqlType
from executor.carriers import of_fields, with_values


def own_values(column: pa.ChunkedArray, kind: SqlType, own: SqlType) -> pa.ChunkedArray:
    """A column of a type, converted to this server's type of the same name (``catalog.type_mapping``)."""
    if kind == own:
        return column
    return pa.chunked_array([_own(chunk, kind, own) for chunk in column.chunks], own.arrow)


def _own(values: pa.Array, kind: SqlType, own: SqlType) -> pa.Array:
    match kind, own:
        case SqlType(name="shaped", element=SqlType() as element), SqlType(element=SqlType() as known):
            items, shape = values.flatten()
            return of_fields(values, [with_values(items, _own(items.flatten(), element, known)), shape], values.type)
        case SqlType(name="array", element=SqlType() as element), SqlType(element=SqlType() as known):
            return with_values(values, _own(values.flatten(), element, known))
        case SqlType(row=Composite(fields=fields)), SqlType(row=Composite(fields=others)):
            pairs = zip(values.flatten(), fields, others, strict=True)
            return of_fields(values, [_own(item, of, other) for item, (_, of), (_, other) in pairs], values.type)
        case _:
            return _placed(values, kind, own)


def _placed(values: pa.Array, kind: SqlType, own: SqlType) -> pa.Array:
    if kind.enum is None or own.enum is None:
        return values
    places = dict(zip(own.enum.labels, own.enum.places, strict=True))
    here = [places[label] for label in kind.enum.labels]
    found = pc.call_function("index_in", [values], pc.SetLookupOptions(pa.array(kind.enum.places, pa.int64())))
    return pa.array(here, pa.int64()).take(found)
