"""Rows of CSV files, as COPY FROM reads them (``protocol.copy``): same values, same errors.

Owns: the options that a relation has for its files, and the split of a file into blocks of lines. A column that is not
wanted is split off and checked for its encoding, but its values are not converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from catalog.objects import ColumnDefinition
from executor.files.followed_folders import Owner, stored_columns
from executor.files.parallel_parsing import parsed_ahead
from protocol.copy import BinaryBlock, Block, CopyFormat, CopyReader

#: Bytes that are read of a file at once, and of its first block: the largest has four times as many, which lie in a
#: processor's cache as they are looked through.
_PORTION: Final = 1 << 18
_TRUE: Final = ("true", "on", "yes", "1")


def batches(path: str, owner: Owner, wanted: Sequence[ColumnDefinition]) -> Iterator[pa.RecordBatch]:
    """The rows of a file in its order, with the wanted columns. Raises COPY's errors, OSError."""
    columns, names = stored_columns(owner), [item.name for item in wanted]
    known = [item.name for item in columns]
    only = None if set(names) == set(known) else tuple(map(known.index, names))
    reader = CopyReader(
        [item.type for item in columns], known, csv_format(owner), owner.name, block_size=_PORTION, only=only
    )
    for batch in parsed_ahead(_blocks(path, reader), reader.parse):
        yield batch.select(names)


def _blocks(path: str, reader: CopyReader) -> Iterator[Block | BinaryBlock]:
    with open(path, "rb") as file:
        while data := file.read(_PORTION):
            yield from reader.split(data)
    yield from reader.rest()


def csv_format(owner: Owner) -> CopyFormat:
    """COPY's options for a relation's files."""
    header = owner.option("header", "false").lower() in _TRUE
    return CopyFormat("csv", owner.option("delimiter", ","), owner.option("null"), header)
