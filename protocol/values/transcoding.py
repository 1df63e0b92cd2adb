"""Text on the wire in a client encoding other than UTF8.

Owns: ``Transcoder``, which converts the strings of messages in both directions, the fields of rows and parameters'
values, and raises PostgreSQL's errors for bytes that are invalid in an encoding (22021) and for characters that the
other encoding lacks (22P05). A client with UTF8 has no transcoder, and its bytes are not converted.
https://www.postgresql.org/docs/15/multibyte.html
"""

from __future__ import annotations

import codecs
import re
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from catalog.values.encodings import CODECS, UTF8
from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from protocol.compute import constant, pc
from protocol.values.codec import validity, value_bytes

#: The strings in a client's messages: the number of bytes before the first, and the number of strings.
_STRINGS: Final = {
    **dict.fromkeys(b"QE", (0, 1)),
    **dict.fromkeys(b"PB", (0, 2)),
    **dict.fromkeys(b"DC", (1, 1)),
    ord("f"): (0, 1),
}
#: The server's messages that consist of strings, and the number of bytes before them.
_TEXTS: Final = {ord("E"): 0, ord("N"): 0, ord("S"): 0, ord("A"): 4}
_ROW_DESCRIPTION: Final = ord("T")
#: Bytes of a column in RowDescription after its name.
_FIELD: Final = 18
#: Types whose binary form is their text.
_TEXTUAL: Final = frozenset(("text", "varchar", "bpchar", "name", "json", "jsonb", "xml", "unknown", "enum"))


#: Bytes of a two-byte character in an EUC encoding.
_PAIRED: Final = range(0xA1, 0xFF)
#: The characters to which Python's codec decodes bytes that are invalid in SJIS.
_NO_SJIS: Final = re.compile("[\x80\uf8f0-\uf8f3]")
#: Encodings for which PostgreSQL checks a character's second byte, and that byte's least value.
_STRICT: Final = ("GB18030", "SJIS")
_LEAST_SECOND: Final = 0x40
_NO_FIRST: Final = 0xFF


class Transcoder(Struct, frozen=True):
    """Converts between UTF8 and ``encoding`` (PostgreSQL's name); ``codec`` is Python's codec for the encoding."""

    encoding: str
    codec: str

    def decoded(self, data: bytes) -> bytes:
        """A client's text converted to UTF8. Raises 22021 and 22P05."""
        if data.isascii():
            return data
        try:
            text = data.decode(self.codec)
        except UnicodeDecodeError as error:
            raise self._undecoded(data[error.start : error.start + 2]) from None
        if self.encoding == "SJIS" and (found := _NO_SJIS.search(text)) is not None:
            start = len(text[: found.start()].encode(self.codec))
            raise self._invalid(data[start : start + 2])
        return text.encode()

    def _undecoded(self, found: bytes) -> SqlError:
        """The error for bytes that begin no character; ``found`` are at most two bytes."""
        if not self._has_pairs:
            return _without_equivalent(found[:1], self.encoding, UTF8)
        is_cut = len(found) < 2 or (self.encoding in _STRICT and (found[1] < _LEAST_SECOND or found[0] == _NO_FIRST))
        if is_cut or (self.encoding.startswith("EUC") and not all(byte in _PAIRED for byte in found)):
            return self._invalid(found)
        return _without_equivalent(found, self.encoding, UTF8)

    def _invalid(self, found: bytes) -> SqlError:
        return SqlError("22021", f'invalid byte sequence for encoding "{self.encoding}": {_written(found)}')

    @property
    def _has_pairs(self) -> bool:
        """Whether the encoding has characters of more than one byte."""
        return not self.encoding.startswith(("LATIN", "ISO", "WIN", "KOI"))

    def encoded(self, data: bytes) -> bytes:
        """UTF8 text converted for the client. Raises 22P05."""
        if data.isascii():
            return data
        text = data.decode()
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:
            raise _without_equivalent(text[error.start].encode(), UTF8, self.encoding) from None

    # -- messages ----------------------------------------------------------------------------------------------

    def message(self, kind: int, body: bytes) -> bytes:
        """The body of a client's message, with its strings converted to UTF8. Raises 22021 and 22P05."""
        if body.isascii() or kind not in _STRINGS:
            return body
        position, count = _STRINGS[kind]
        pieces = [body[:position]]
        for _ in range(count):
            end = body.find(0, position)
            if end < 0:  # a broken message, for which its reader raises the error
                break
            pieces += (self.decoded(body[position:end]), b"\0")
            position = end + 1
        return b"".join((*pieces, body[position:]))

    def answers(self, data: bytes) -> bytes:
        """The server's messages, converted for the client; a character that the client's encoding lacks becomes a
        question mark. Rows must be converted already."""
        if data.isascii():
            return data
        pieces: list[bytes] = []
        start, size = 0, len(data)
        while start + 5 <= size:
            kind, end = data[start], start + 1 + int.from_bytes(data[start + 1 : start + 5])
            body = self._answer(kind, data[start + 5 : end])
            pieces += (data[start : start + 1], (len(body) + 4).to_bytes(4), body)
            start = end
        return b"".join(pieces)

    def _answer(self, kind: int, body: bytes) -> bytes:
        if kind == _ROW_DESCRIPTION:
            return self._row_description(body)
        if kind not in _TEXTS:
            return body
        head = _TEXTS[kind]
        return body[:head] + self._shown(body[head:])

    def _row_description(self, body: bytes) -> bytes:
        pieces, position = [body[:2]], 2
        while position < len(body):
            end = body.index(0, position)
            pieces += (self._shown(body[position:end]), body[end : end + 1 + _FIELD])
            position = end + 1 + _FIELD
        return b"".join(pieces)

    def _shown(self, data: bytes) -> bytes:
        return data if data.isascii() else data.decode().encode(self.codec, "replace")

    # -- values ------------------------------------------------------------------------------------------------

    def given(self, data: bytes | memoryview, kind: SqlType, is_text: bool) -> bytes:
        """A parameter's value, with text converted to UTF8. Raises 22021, 22P05, and 0A000 for text within a binary
        value."""
        found = bytes(data)
        if is_text or kind.name in _TEXTUAL:
            return self.decoded(found)
        self._require_plain(found.isascii(), kind)
        return found

    def fields(self, array: pa.Array, kind: SqlType, is_text: bool) -> pa.Array:
        """A column's fields for the client, converted together with zero bytes between. Raises 22P05, and 0A000 for
        text within a binary value."""
        if not (is_text or kind.name in _TEXTUAL or kind.element is not None or kind.row is not None):
            return array
        if pa.types.is_fixed_size_binary(array.type) or not len(array):
            return array
        if bytes(value_bytes(array)).isascii():
            return array
        if not is_text and kind.name not in _TEXTUAL:
            self._require_plain(False, kind)
            return array
        ended = pc.binary_join_element_wise(pc.fill_null(array.cast(pa.string()), ""), constant(""), constant("\0"))
        joined = self.encoded(bytes(value_bytes(ended)))
        ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == 0) - np.arange(len(array))
        bounds = np.concatenate(([0], ends)).astype("<i4")
        buffers = [validity(array), pa.py_buffer(bounds), pa.py_buffer(joined.replace(b"\0", b""))]
        return pa.Array.from_buffers(pa.binary(), len(array), buffers)

    def _require_plain(self, is_ascii: bool, kind: SqlType) -> None:
        """Raises 0A000 for a binary value that contains other than ASCII text, since its inner texts are not known
        here."""
        within = [] if kind.element is None else [kind.element]
        within += [] if kind.row is None else [field for _, field in kind.row.fields]
        if not is_ascii and any(item.name in _TEXTUAL for item in within):
            message = f"{kind} in binary form with client_encoding {self.encoding} is not supported"
            raise SqlError("0A000", message, hint="Use the text form, or SET client_encoding = UTF8.")


def transcoder(encoding: str) -> Transcoder | None:
    """The transcoder for PostgreSQL's encoding name; None if no conversion is needed."""
    codec = CODECS[encoding]
    return None if codec == "utf-8" else Transcoder(encoding, codecs.lookup(codec).name)


def _without_equivalent(sequence: bytes, encoding: str, other: str) -> SqlError:
    shown = _written(sequence)
    message = f'character with byte sequence {shown} in encoding "{encoding}" has no equivalent in encoding "{other}"'
    return SqlError("22P05", message)


def _written(sequence: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in sequence)
