"""How a stream's rows lie in records and in memory, and how they are shown.

Owns the two schemas of a stream whose columns were altered. A record never loses columns: one that is added comes last,
and one that is dropped stays, NULL in rows to come. So the number of a batch's columns says which of them it has, in
the log as in memory, whenever and by whomever it was made; those that came later are filled in when it is read.

    stored     a, b, c            ALTER ... DROP COLUMN b, ADD COLUMN d        a, b (NULL), c, d
    shown      a, b, c                                                         a, c, d

The places of rows, in which ``__lsn`` and ``__ordinal`` say where in the log they came, are those of their own server's
log: where a stream is filled from another one's, they are columns of its records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catalog.objects import Stream
from catalog.values.times.infinite_dates import require_finite
from executor.identity_cache import Remembered

LSN: Final = "__lsn"
ORDINAL: Final = "__ordinal"

_BLANK: Final = pa.nulls(8192, pa.int64())

Integers = npt.NDArray[np.int64]


class Layout:
    """One stream's, from one ALTER to the next."""

    def __init__(self, shown: pa.Schema, stored: pa.Schema, places: Sequence[int], fills: Sequence[object]) -> None:
        """``places`` are those of what is shown among what is stored; ``fills`` what rows have of a column that came
        after them."""
        self.shown = shown
        self.with_places = shown.append(pa.field(LSN, pa.int64())).append(pa.field(ORDINAL, pa.int64()))
        self.schema = stored
        #: The place of each shown column in a record.
        self.places = tuple(places)
        self._fills = tuple(fills)
        self._is_plain = self.places == tuple(range(len(stored)))

    @classmethod
    def plain(cls, schema: pa.Schema) -> Layout:
        """Of columns as they were created."""
        return cls(schema, schema, range(len(schema)), [None] * len(schema))

    @classmethod
    def of(cls, stream: Stream) -> Layout:
        """A stream's."""
        shown = schema_of(stream)
        if home_of(stream):
            return PlacedLayout(shown)
        if not stream.layout:
            return cls.plain(shown)
        names = [column.name or f"__dropped_{place}" for place, column in enumerate(stream.layout)]
        fields = [pa.field(name, column.type.arrow) for name, column in zip(names, stream.layout, strict=True)]
        places = {column.name: place for place, column in enumerate(stream.layout) if column.name}
        return cls(shown, pa.schema(fields), [places[column.name] for column in stream.stored], stream.fills)

    def stored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that are shown so, as a record has them."""
        if self._is_plain:
            return batch
        given = dict(zip(self.places, batch.columns, strict=True))
        kinds = enumerate(self.schema.types)
        columns = [given[place] if place in given else pa.nulls(batch.num_rows, kind) for place, kind in kinds]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def widened(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a record, from whatever time, with all columns under their own names and nullability (which the log's
        small frames do not keep)."""
        if batch.schema is self.schema or batch.schema.equals(self.schema):
            return batch
        columns = list(batch.columns)
        columns += (self._filled(place, batch.num_rows) for place in range(len(columns), len(self.schema)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _filled(self, place: int, rows: int) -> pa.Array:
        """What rows of before a column have there."""
        return pa.repeat(pa.scalar(self._fills[place], self.schema.types[place]), rows)

    def picked(self, names: Sequence[str]) -> Layout:
        """The layout that shows some of the columns alone."""
        places = dict(zip(self.shown.names, self.places, strict=True))
        shown = pa.schema([self.shown.field(name) for name in names])
        return Layout(shown, self.schema, [places[name] for name in names], self._fills)

    def seen_of(self, given: Mapping[int, pa.Array], rows: int) -> list[pa.Array]:
        """What is shown of rows of which some columns are given, by their places in a record; they have no others."""
        return [given[place] if place in given else self._filled(place, rows) for place in self.places]

    def widened_values(self, rows: Sequence[tuple[object, ...]]) -> Sequence[tuple[object, ...]]:
        """Widens rows as values, all from one layout."""
        missing = self._fills[len(rows[0]) :] if rows else ()
        return [(*row, *missing) for row in rows] if missing else rows

    def seen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What is shown of a record's rows."""
        found = self.widened(batch)
        if self._is_plain:
            return found
        return pa.RecordBatch.from_arrays([found.column(place) for place in self.places], schema=self.shown)

    def placed(self, batches: Sequence[pa.RecordBatch], lsns: Integers, ordinals: Integers) -> list[pa.RecordBatch]:
        """Shown rows with their places."""
        placed = []
        position = 0
        lsn_column, ordinal_column = pa.array(lsns), pa.array(ordinals)
        for batch in batches:
            places = [column.slice(position, batch.num_rows) for column in (lsn_column, ordinal_column)]
            placed.append(pa.RecordBatch.from_arrays([*batch.columns, *places], schema=self.with_places))
            position += batch.num_rows
        return placed

    def unplaced(self, batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """The batch with null places."""
        return [
            pa.RecordBatch.from_arrays([*batch.columns, *[_blank(batch.num_rows)] * 2], schema=self.with_places)
            for batch in batches
        ]


class PlacedLayout(Layout):
    """Of a stream that another server's writers fill: rows keep their places there, which are in the records, too."""

    def __init__(self, shown: pa.Schema) -> None:
        super().__init__(shown, shown, range(len(shown)), [None] * len(shown))
        self.schema = self.with_places

    def seen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What is shown, and the places."""
        return self.widened(batch)

    def placed(self, batches: Sequence[pa.RecordBatch], lsns: Integers, ordinals: Integers) -> list[pa.RecordBatch]:
        """They have their places."""
        return list(batches)

    def unplaced(self, batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Places take nothing to make."""
        return list(batches)


def _blank(rows: int) -> pa.Array:
    """So many nulls in the place of LSNs or ordinals."""
    return _BLANK.slice(0, rows) if rows <= len(_BLANK) else pa.nulls(rows, pa.int64())


def home_of(stream: Stream) -> str:
    """The server whose writers fill a stream; '' for this one's own."""
    return stream.option("server")


def _schema_of(stream: Stream) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type.arrow) for column in stream.stored])


#: A stream's rows as they are shown, and their scales. One object for all callers, since schemas are then compared at a
#: glance.
schema_of: Final = Remembered(_schema_of)


def stored_rows(stream: Stream, batches: Sequence[pa.RecordBatch]) -> tuple[pa.RecordBatch, ...]:
    """A statement's rows as a record has them. Raises 0A000 for infinite dates."""
    require_finite(batches, "a stream")
    if not stream.layout:
        return tuple(batches)
    layout = Layout.of(stream)
    return tuple(layout.stored(batch) for batch in batches)
