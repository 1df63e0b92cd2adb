"""to_date() and to_timestamp() as functions of the engine.

Owns: ``COLUMNS``, which read each distinct text of a batch once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Final

import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.times.pattern_reading import read_date, read_instant, read_timestamp
from executor.embedded.functions.batches import ColumnFunctions, raised


def _over_columns(read: Callable[..., date], kind: pa.DataType) -> Callable[..., pa.Array]:
    """The function over a batch of texts, with one pattern (and zone) for all of them."""

    def batch(texts: pa.ChunkedArray, *constants: pa.ChunkedArray) -> pa.Array:
        given = [column[0].as_py() for column in constants]
        known = texts.combine_chunks().dictionary_encode()
        try:
            values = [None if text is None else read(text, *given) for text in known.dictionary.to_pylist()]
        except SqlError as error:
            raise raised(error) from None
        return pa.array(values, kind).take(known.indices)

    return batch


COLUMNS: Final[ColumnFunctions] = {
    "moments_read_date": (_over_columns(read_date, pa.date32()), "DATE"),
    "moments_read_timestamp": (_over_columns(read_timestamp, pa.timestamp("us")), "TIMESTAMP"),
    "moments_read_instant": (
        _over_columns(read_instant, pa.timestamp("us", tz="UTC")),
        "TIMESTAMP WITH TIME ZONE",
    ),
}
