"""COPY TO: Arrow batches to CopyData messages, one message per row, encoded column by column.

Owns: the escapes of the text format, the quotes of CSV, and the binary format's frame. Bytes to escape or quote are
searched in a whole column at once; columns without any are joined as they are. The protocol promises one message per
row (https://www.postgresql.org/docs/15/protocol-flow.html#PROTOCOL-COPY), and clients that read row by row rely on it.
The binary format's header is part of the first row's message, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import pack
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.copy.binary import SIGNATURE, TRAILER
from protocol.copy.encodings import encoded, encoded_text
from protocol.copy.format import CopyFormat
from protocol.encoder import copy_data
from protocol.rowmessages import line_messages, row_messages, slice_rows
from protocol.values.codec import Vector, value_bytes
from protocol.values.registry import encode_binary, encode_text

#: Bytes of a message before its payload: its kind and its length.
_HEAD: Final = 5
_ESCAPES: Final = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


class CopyWriter:
    """One COPY TO. Call ``header()``, then ``encode()`` for each batch, then ``trailer()``.

    All return messages or, if not ``framed``, the messages' payloads, for a file.
    """

    __slots__ = ("_format", "_framed", "_names", "_special", "_start", "_timezone", "_types")

    def __init__(
        self,
        types: Sequence[SqlType],
        names: Sequence[str],
        format_: CopyFormat,
        timezone: str = "UTC",
        framed: bool = True,
    ) -> None:
        self._framed = framed
        self._types = tuple(types)
        self._names = tuple(names)
        self._format = format_
        self._timezone = timezone
        self._start = SIGNATURE + pack(">ii", 0, 0) if format_.format == "binary" else b""
        self._special = np.zeros(256, bool)
        characters = f"{format_.delimiter}{format_.quote}\r\n" if format_.format == "csv" else "".join(_ESCAPES)
        self._special[list(f"{characters}{format_.delimiter}\\".encode())] = True

    def header(self) -> bytes:
        """The line of names before the rows."""
        if self._format.format == "binary" or not self._format.header:
            return b""
        names = [self._protected(pa.array([name]))[0].as_py() for name in self._names]
        return self._message(encoded_text(self._format.delimiter.join(names) + "\n", self._format))

    def encode(self, batch: pa.RecordBatch | pa.Table) -> bytes:
        """The batch's rows."""
        rows = self._binary_rows if self._format.format == "binary" else self._text_rows
        messages = b"".join([rows(part) for part in _parts(batch)])
        if not self._start or not messages:
            return messages
        start, self._start = self._start, b""
        if not self._framed:
            return start + messages
        first = 1 + int.from_bytes(messages[1:5])
        return copy_data(start + messages[5:first]) + messages[first:]

    def trailer(self) -> bytes:
        """The bytes after the rows."""
        if self._format.format != "binary":
            return b""
        start, self._start = self._start, b""
        return self._message(start + TRAILER)

    def _message(self, data: bytes) -> bytes:
        return copy_data(data) if self._framed else data

    def _rows(self, messages: memoryview, lengths: Vector) -> bytes:
        if self._framed:
            return bytes(messages)
        data = np.frombuffer(messages, np.uint8)
        carried = np.ones(len(data), bool)
        starts = np.cumsum(lengths) - lengths
        for place in range(_HEAD):
            carried[starts + place] = False
        return data[carried].tobytes()

    def _binary_rows(self, batch: pa.RecordBatch) -> bytes:
        columns = [encode_binary(column, type_) for column, type_ in zip(batch.columns, self._types, strict=True)]
        return self._rows(*row_messages(b"d", columns, batch.num_rows))

    def _text_rows(self, batch: pa.RecordBatch) -> bytes:
        null = self._format.null
        columns = [
            self._protected(encode_text(column, type_, self._timezone), place).fill_null(constant(null))
            for place, (column, type_) in enumerate(zip(batch.columns, self._types, strict=True))
        ]
        if not columns:
            return self._message(b"\n") * int(batch.num_rows)
        delimiter = self._format.delimiter
        if self._format.is_recoded:  # row by row, so that the first error is raised
            columns = [encoded(pc.binary_join_element_wise(*columns, constant(delimiter)), self._format)]
        parts = [column.view(pa.binary()) for column in columns]
        return self._rows(*line_messages(b"d", delimiter.encode(), b"\n", parts, batch.num_rows))

    def _protected(self, texts: pa.Array, place: int | None = None) -> pa.Array:
        """The texts of the column at a place (None: of the header line), escaped or quoted as needed."""
        special = bool(self._special[value_bytes(texts)].any())
        if self._format.format == "csv":
            return self._quoted(texts, special, place in self._format.force_quote)
        return self._escaped(texts) if special else texts

    def _escaped(self, texts: pa.Array) -> pa.Array:
        texts = pc.replace_substring(texts, "\\", "\\\\")
        for character, escape in _ESCAPES.items():
            texts = pc.replace_substring(texts, character, escape)
        if self._format.delimiter not in _ESCAPES:
            texts = pc.replace_substring(texts, self._format.delimiter, "\\" + self._format.delimiter)
        return texts

    def _quoted(self, texts: pa.Array, special: bool, forced: bool) -> pa.Array:
        if forced:
            return self._in_quotes(texts)
        needed = pc.equal(texts, constant(self._format.null))
        if len(self._types) == 1:
            needed = pc.or_(needed, pc.equal(texts, constant("\\.")))
        if special:
            for character in (self._format.delimiter, self._format.quote, "\n", "\r"):
                needed = pc.or_(needed, pc.match_substring(texts, character))
        if not pc.any(needed).as_py():
            return texts
        return pc.if_else(needed, self._in_quotes(texts), texts)

    def _in_quotes(self, inner: pa.Array) -> pa.Array:
        """Texts in quotes, NULL unquoted."""
        quote, escape = self._format.quote, self._format.escape
        if escape != quote:
            inner = pc.replace_substring(inner, escape, escape + escape)
        inner = pc.replace_substring(inner, quote, escape + quote)
        return pc.binary_join_element_wise(constant(quote), inner, constant(quote), constant(""))


def _parts(batch: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    """Batches with at most one slice's rows."""
    most = slice_rows(batch.num_columns)
    for whole in batch.to_batches(most) if isinstance(batch, pa.Table) else [batch]:
        for start in range(0, whole.num_rows, most):
            yield whole.slice(start, most)
