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
from executor.files.lenient_lines import Lines, Rejecting, is_lenient, lenient, told
from executor.files.parallel_parsing import parsed_ahead
from protocol.copy import BinaryBlock, Block, CopyFormat, CopyReader

#: Bytes that are read of a file at once, and of its first block: the largest has four times as many, which lie in a
#: processor's cache as they are looked through.
_PORTION: Final = 1 << 18
_QUOTE: Final = b'"'
_TRUE: Final = ("true", "on", "yes", "1")


def batches(
    path: str, owner: Owner, wanted: Sequence[ColumnDefinition], rejecting: Rejecting | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in its order, with the wanted columns. Raises COPY's errors, OSError."""
    reader, names = _reader(owner, wanted), [item.name for item in wanted]
    if is_lenient(owner):
        lines = _lines(owner, wanted)
        parsed = parsed_ahead(_blocks(path, reader), lambda block: lenient(block, lines, owner, wanted))
        yield from told(parsed, rejecting)
        return
    for batch in parsed_ahead(_blocks(path, reader), reader.parse):
        yield batch.select(names)


def _reader(owner: Owner, wanted: Sequence[ColumnDefinition]) -> CopyReader:
    columns, names = stored_columns(owner), [item.name for item in wanted]
    known = [item.name for item in columns]
    only = None if set(names) == set(known) else tuple(map(known.index, names))
    kinds = [item.type for item in columns]
    return CopyReader(kinds, known, csv_format(owner), owner.name, block_size=_PORTION, only=only)


def _lines(owner: Owner, wanted: Sequence[ColumnDefinition]) -> Lines[Block]:
    """How blocks are parsed line by line."""

    def parse(block: Block, columns: Sequence[ColumnDefinition] = wanted) -> pa.Table:
        batch = _reader(owner, columns).parse(block)
        return pa.Table.from_batches([batch]).select([item.name for item in columns])

    return Lines(parse, lambda block, column: parse(block, (column,)), _split, _joined, _shown)


def _split(block: Block) -> list[Block]:
    """A block's lines; those within quotes belong together."""
    found: list[Block] = []
    data, number, next_number = b"", block.line, block.line
    for piece in block.data.removesuffix(block.end).split(block.end):
        data, next_number = data + piece + block.end, next_number + 1
        if data.count(_QUOTE) % 2 == 0:
            found.append(Block(data, number, block.end))
            data, number = b"", next_number
    return [*found, Block(data, number, block.end)] if data else found


def _joined(lines: Sequence[Block]) -> Block:
    return Block(b"".join(line.data for line in lines), lines[0].line, lines[0].end)


def _shown(line: Block) -> tuple[int, bytes]:
    return line.line, line.data.removesuffix(line.end)


def _blocks(path: str, reader: CopyReader) -> Iterator[Block]:
    with open(path, "rb") as file:
        while data := file.read(_PORTION):
            yield from _of_lines(reader.split(data))
    yield from _of_lines(reader.rest())


def _of_lines(blocks: Sequence[Block | BinaryBlock]) -> Iterator[Block]:
    for block in blocks:
        assert isinstance(block, Block), "CSV has lines"
        yield block


def csv_format(owner: Owner) -> CopyFormat:
    """COPY's options for a relation's files."""
    header = owner.option("header", "false").lower() in _TRUE
    return CopyFormat("csv", owner.option("delimiter", ","), owner.option("null"), header)
