"""COPY FROM: bytes to Arrow batches.

Owns: the choice between formats and between the ways of parsing a block. ``split`` keeps state and must be called in
order; ``parse`` keeps none and may run on any thread, since pyarrow releases the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from catalog.types import SqlType
from protocol.copy.binary import BinaryBlock, BinarySplitter, parse_binary
from protocol.copy.exact import parse_exactly
from protocol.copy.fast import NotFast, fast_parser
from protocol.copy.format import CopyFormat, CopyTarget
from protocol.copy.split import BLOCK_SIZE, Block, LineSplitter


class CopyReader:
    """One COPY FROM. Errors carry PostgreSQL's context, ``COPY relation, line 5, column x: "abc"``."""

    __slots__ = ("_fast", "_format", "_schema", "_splitter", "_target")

    def __init__(
        self,
        types: Sequence[SqlType],
        names: Sequence[str],
        format_: CopyFormat,
        relation: str,
        timezone: str = "UTC",
        block_size: int = BLOCK_SIZE,
    ) -> None:
        self._target = CopyTarget(tuple(types), tuple(names), relation, timezone)
        self._format = format_
        self._schema = pa.schema([(name, type_.arrow) for name, type_ in zip(names, types, strict=True)])
        binary = format_.format == "binary"
        self._splitter = BinarySplitter(self._target, block_size) if binary else LineSplitter(format_, block_size)
        self._fast = None if binary or not types else fast_parser(self._target, format_)

    def split(self, data: bytes) -> Sequence[Block | BinaryBlock]:
        """The blocks that are complete with these bytes."""
        return self._splitter.split(data)

    def rest(self) -> Sequence[Block | BinaryBlock]:
        """The last blocks, when the client is done."""
        return self._splitter.finish()

    def parse(self, block: Block | BinaryBlock) -> pa.RecordBatch:
        """The rows of a block. Raises PostgreSQL's error for the first wrong value by line and column."""
        return pa.RecordBatch.from_arrays(self._columns(block), schema=self._schema)

    def _columns(self, block: Block | BinaryBlock) -> list[pa.Array]:
        if isinstance(block, BinaryBlock):
            return parse_binary(block, self._target)
        if self._fast is not None:
            try:
                return self._fast.parse(block)
            except NotFast:
                pass
        return parse_exactly(block, self._target, self._format)

    def feed(self, data: bytes) -> list[pa.RecordBatch]:
        """Splits and parses."""
        return [self.parse(block) for block in self.split(data)]

    def finish(self) -> list[pa.RecordBatch]:
        """Splits and parses what is left."""
        return [self.parse(block) for block in self.rest()]
