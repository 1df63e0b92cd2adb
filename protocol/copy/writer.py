"""COPY TO: Arrow batches to bytes, column by column.

Owns: the escapes of the text format, the quotes of CSV, and the binary format's frame. What escapes or quotes is looked
for in a column's bytes at once; columns without it are joined as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import pack
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.types import SqlType
from protocol.compute import constant, pc
from protocol.copy.binary import SIGNATURE, TRAILER
from protocol.copy.format import CopyFormat
from protocol.values.codec import value_bytes
from protocol.values.framing import field_lengths, fixed_binaries, without_nulls
from protocol.values.registry import encode_binary, encode_text

#: Rows that are joined at once.
_SLICE: Final = 16_384
_ESCAPES: Final = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


class CopyWriter:
    """One COPY TO: ``header()``, then ``encode()`` of each batch, then ``trailer()``."""

    __slots__ = ("_format", "_names", "_special", "_timezone", "_types")

    def __init__(
        self, types: Sequence[SqlType], names: Sequence[str], format_: CopyFormat, timezone: str = "UTC"
    ) -> None:
        self._types = tuple(types)
        self._names = tuple(names)
        self._format = format_
        self._timezone = timezone
        self._special = np.zeros(256, bool)
        characters = f"{format_.delimiter}{format_.quote}\r\n" if format_.format == "csv" else "".join(_ESCAPES)
        self._special[list(f"{characters}{format_.delimiter}\\".encode())] = True

    def header(self) -> bytes:
        """What comes before the rows."""
        if self._format.format == "binary":
            return SIGNATURE + pack(">ii", 0, 0)
        if not self._format.header:
            return b""
        names = [self._protected(pa.array([name]))[0].as_py() for name in self._names]
        return (self._format.delimiter.join(names) + "\n").encode()

    def encode(self, batch: pa.RecordBatch | pa.Table) -> bytes:
        """The batch's rows."""
        rows = self._binary_rows if self._format.format == "binary" else self._text_rows
        return b"".join([rows(part) for part in _parts(batch)])

    def trailer(self) -> bytes:
        """What comes after the rows."""
        return TRAILER if self._format.format == "binary" else b""

    def _binary_rows(self, batch: pa.RecordBatch) -> bytes:
        parts = [fixed_binaries(np.full(batch.num_rows, batch.num_columns, ">i2"))]
        for column, type_ in zip(batch.columns, self._types, strict=True):
            fields = encode_binary(column, type_)
            parts += [fixed_binaries(field_lengths(fields).astype(">i4")), without_nulls(fields)]
        return bytes(value_bytes(pc.binary_join_element_wise(*parts, constant(b""))))

    def _text_rows(self, batch: pa.RecordBatch) -> bytes:
        null = self._format.null
        columns = [
            self._protected(encode_text(column, type_, self._timezone)).fill_null(constant(null))
            for column, type_ in zip(batch.columns, self._types, strict=True)
        ]
        if not columns:
            return b"\n" * int(batch.num_rows)
        rows = (
            pc.binary_join_element_wise(*columns, constant(self._format.delimiter)) if len(columns) > 1 else columns[0]
        )
        ended = pc.binary_join_element_wise(rows, constant(""), constant("\n"))
        return bytes(value_bytes(ended))

    def _protected(self, texts: pa.Array) -> pa.Array:
        """A column's texts, escaped or quoted where they must be."""
        special = bool(self._special[value_bytes(texts)].any())
        if self._format.format == "csv":
            return self._quoted(texts, special)
        return self._escaped(texts) if special else texts

    def _escaped(self, texts: pa.Array) -> pa.Array:
        texts = pc.replace_substring(texts, "\\", "\\\\")
        for character, escape in _ESCAPES.items():
            texts = pc.replace_substring(texts, character, escape)
        if self._format.delimiter not in _ESCAPES:
            texts = pc.replace_substring(texts, self._format.delimiter, "\\" + self._format.delimiter)
        return texts

    def _quoted(self, texts: pa.Array, special: bool) -> pa.Array:
        quote, escape = self._format.quote, self._format.escape
        needed = pc.equal(texts, constant(self._format.null))
        if len(self._types) == 1:
            needed = pc.or_(needed, pc.equal(texts, constant("\\.")))
        if special:
            for character in (self._format.delimiter, quote, "\n", "\r"):
                needed = pc.or_(needed, pc.match_substring(texts, character))
        if not pc.any(needed).as_py():
            return texts
        inner = texts
        if escape != quote:
            inner = pc.replace_substring(inner, escape, escape + escape)
        inner = pc.replace_substring(inner, quote, escape + quote)
        quoted = pc.binary_join_element_wise(constant(quote), inner, constant(quote), constant(""))
        return pc.if_else(needed, quoted, texts)


def _parts(batch: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    """Batches of at most a slice's rows."""
    for whole in batch.to_batches(_SLICE) if isinstance(batch, pa.Table) else [batch]:
        for start in range(0, whole.num_rows, _SLICE):
            yield whole.slice(start, _SLICE)
