"""COPY of columns such as regclass, whose texts are names: to and from the client they are the oids' names.

Owns: what stands around the plain reader and writer where a column is of such a type. Binary has the oids themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from catalog.values.types import TEXT, SqlType, array
from planner.bind.state.context import Context
from protocol.copy import BinaryBlock, Block, CopyReader, CopyWriter
from server.session.rows import Names, is_named, oids_named, shown_by_name

Types = tuple[SqlType, ...]


def are_named(types: Types) -> bool:
    """Whether a column is shown by name."""
    return any(map(is_named, types))


def read_as(types: Types) -> Types:
    """What the plain reader is to read: the names as they are, an array's as one text."""
    return tuple(TEXT if is_named(kind) else kind for kind in types)


def written_as(types: Types) -> Types:
    """What the plain writer is given."""
    return tuple((array(TEXT) if kind.element else TEXT) if is_named(kind) else kind for kind in types)


class NamedReader:
    """A reader whose batches have the oids; made with ``read_as``."""

    def __init__(self, plain: CopyReader, types: Types, context: Context) -> None:
        self.split, self.rest, self.locate, self.is_due = plain.split, plain.rest, plain.locate, plain.is_due
        self._parse = plain.parse
        self._types = types
        self._context = context

    def parse(self, block: Block | BinaryBlock) -> pa.RecordBatch:
        """The rows of a block. Raises what the plain reader raises, and 42P01 and the like for what there is not."""
        batch = self._parse(block)
        kinds = zip(batch.columns, self._types, strict=False)  # behind them come the decimals of numerics
        columns = [self._oids(column, kind) if is_named(kind) else column for column, kind in kinds]
        columns += batch.columns[len(columns) :]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _oids(self, texts: pa.Array, kind: SqlType) -> pa.Array:
        found = {text: oids_named(self._context, text, kind) for text in texts.unique().to_pylist() if text is not None}
        return pa.array([None if text is None else found[text] for text in texts.to_pylist()], kind.arrow)


def naming(plain: CopyWriter, types: Types, names: Names) -> Callable[[pa.RecordBatch], bytes]:
    """The writer's ``encode`` of batches that have the oids; made with ``written_as``."""
    return partial(_encode, plain, types, names)


def _encode(plain: CopyWriter, types: Types, names: Names, batch: pa.RecordBatch) -> bytes:
    return plain.encode(shown_by_name(batch, types, (), names))
