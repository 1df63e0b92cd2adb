"""COPY FROM: bytes to Arrow batches.

Owns: the choice between formats and between the ways of parsing a block. ``split`` keeps state and must be called in
order; ``parse`` keeps none and may run on any thread, since pyarrow releases the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from catalog.values.errors import SqlError
from catalog.values.scales import scale_kind
from catalog.values.types import SqlType
from protocol.copy.binary import BinaryBlock, BinarySplitter, parse_binary
from protocol.copy.encodings import recoded
from protocol.copy.exact import check_header, line_of, parse_exactly
from protocol.copy.fast import FastParser, NotFast, fast_parser
from protocol.copy.format import CopyFormat, CopyTarget
from protocol.copy.split import BLOCK_SIZE, Block, LineSplitter


class CopyReader:
    """One COPY FROM. Errors carry PostgreSQL's context, ``COPY relation, line 5, column x: "abc"``."""

    __slots__ = ("_fast", "_format", "_header_checked", "_schema", "_splitter", "_target")

    def __init__(
        self,
        types: Sequence[SqlType],
        names: Sequence[str],
        format_: CopyFormat,
        relation: str,
        timezone: str = "UTC",
        block_size: int = BLOCK_SIZE,
        scaled: tuple[int, ...] = (),
        only: tuple[int, ...] | None = None,
    ) -> None:
        self._target = CopyTarget(tuple(types), tuple(names), relation, timezone, scaled, only)
        self._format = format_
        self._schema, self._fast = _prepared(self._target, format_)
        binary = format_.format == "binary"
        self._splitter = BinarySplitter(self._target, block_size) if binary else LineSplitter(format_, block_size)
        self._header_checked = not format_.match_header

    def split(self, data: bytes) -> Sequence[Block | BinaryBlock]:
        """The blocks that these bytes complete. Raises 22P04 if the header line does not match."""
        blocks = self._splitter.split(data)
        self._check_header()
        return blocks

    def is_due(self, size: int) -> bool:
        """Whether the next ``size`` bytes make ``split`` look for lines instead of only collecting the bytes."""
        return self._splitter.is_due(size)

    def rest(self) -> Sequence[Block | BinaryBlock]:
        """The last blocks, once the client has sent all data."""
        blocks = self._splitter.finish()
        self._check_header(at_end=True)
        return blocks

    def _check_header(self, at_end: bool = False) -> None:
        """Checks HEADER MATCH as soon as the header line is complete; missing data counts as an empty line."""
        splitter = self._splitter
        if self._header_checked or not isinstance(splitter, LineSplitter):
            return
        header = splitter.header if splitter.header is not None or not at_end else Block(b"", 1)
        if header is not None:
            self._header_checked = True
            check_header(recoded(header, self._target, self._format), self._target, self._format)

    def parse(self, block: Block | BinaryBlock) -> pa.RecordBatch:
        """The rows of a block. Raises PostgreSQL's error for the first wrong value by line and column."""
        return pa.RecordBatch.from_arrays(self._columns(block), schema=self._schema)

    def _columns(self, block: Block | BinaryBlock) -> list[pa.Array]:
        if isinstance(block, BinaryBlock):
            return parse_binary(block, self._target)
        block = recoded(block, self._target, self._format)
        if self._fast is not None:
            try:
                return self._fast.parse(block)
            except NotFast:
                pass
        return parse_exactly(block, self._target, self._format)

    def locate(self, error: SqlError, block: Block | BinaryBlock) -> None:
        """Adds to an error about one of a block's rows the row's line as context."""
        if error.row is None or error.where is not None or isinstance(block, BinaryBlock):
            return
        number, text = line_of(recoded(block, self._target, self._format), error.row, self._target, self._format)
        error.where = self._target.line_error(error.sqlstate, error.message, number, text).where

    def feed(self, data: bytes) -> list[pa.RecordBatch]:
        """Splits the bytes and parses the complete blocks."""
        return [self.parse(block) for block in self.split(data)]

    def finish(self) -> list[pa.RecordBatch]:
        """Splits and parses the remaining bytes."""
        return [self.parse(block) for block in self.rest()]


@lru_cache(maxsize=64)
def _prepared(target: CopyTarget, format_: CopyFormat) -> tuple[pa.Schema, FastParser | None]:
    """What COPYs with equal options and columns share; making it takes longer than parsing a few rows."""
    scales = [(f"scale of {target.names[place]}", scale_kind(target.types[place]).arrow) for place in target.scaled]
    schema = pa.schema([(target.names[place], target.types[place].arrow) for place in target.places] + scales)
    fast = None if format_.format == "binary" or not target.kinds else fast_parser(target, format_)
    return schema, fast
