"""COPY data in encodings other than UTF8, converted a block or a batch of rows at a time.

Owns: both directions and their errors (22021, 22P05). Lines are found before the conversion: in every encoding that
``CopyFormat`` may name, an ASCII byte is always an ASCII character, so that ends of lines, quotes and backslashes can
be found in the bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from catalog.values.errors import SqlError
from protocol.compute import constant, pc
from protocol.copy.exact import parse_exactly
from protocol.copy.format import CopyFormat, CopyTarget
from protocol.copy.split import Block, count_byte
from protocol.values.codec import value_bytes

#: Bytes of a two-byte character (EUC).
_PAIRED = range(0xA1, 0xFF)


def recoded(block: Block, target: CopyTarget, format_: CopyFormat) -> Block:
    """A block converted to UTF8. Raises the error of the first line with an invalid character."""
    if not format_.is_recoded:
        return block
    try:
        return replace(block, data=block.data.decode(format_.codec).encode())
    except UnicodeDecodeError as error:
        data, start = block.data, error.start
    line = data.rfind(block.end, 0, start)
    before = data[: line + len(block.end)] if line >= 0 else b""
    sqlstate, message = _undecoded(data[start : start + 2], format_)
    failure = target.line_error(sqlstate, message, block.line + count_byte(before, block.end[-1]))
    try:
        parse_exactly(recoded(replace(block, data=before), target, format_), target, format_)
    except SqlError as earlier:
        raise (failure if _is_of_a_cut_row(earlier) else earlier) from None
    raise failure


def _is_of_a_cut_row(error: SqlError) -> bool:
    """Whether the row continues in a line after this block."""
    return error.message == "unterminated CSV quoted field"


def _undecoded(found: bytes, format_: CopyFormat) -> tuple[str, str]:
    """The error for bytes that begin no character; ``found`` are at most two bytes."""
    encoding = format_.encoding
    if encoding.startswith("EUC") and not (len(found) == 2 and all(byte in _PAIRED for byte in found)):
        return "22021", f'invalid byte sequence for encoding "{encoding}": {_written(found)}'
    sequence = found if encoding.startswith("EUC") else found[:1]
    return "22P05", _no_equivalent(sequence, encoding, "UTF8")


def _no_equivalent(sequence: bytes, encoding: str, other: str) -> str:
    shown = _written(sequence)
    return f'character with byte sequence {shown} in encoding "{encoding}" has no equivalent in encoding "{other}"'


def _written(sequence: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in sequence)


def encoded_text(text: str, format_: CopyFormat) -> bytes:
    """A text in the format's encoding. Raises 22P05 for a character that the encoding lacks."""
    try:
        return text.encode(format_.codec)
    except UnicodeEncodeError as error:
        sequence = text[error.start].encode()
        raise SqlError("22P05", _no_equivalent(sequence, "UTF8", format_.encoding)) from None


def encoded(rows: pa.Array, format_: CopyFormat) -> pa.Array:
    """Texts without NULLs in the format's encoding, as binary. They are converted together, separated by zero bytes."""
    if not format_.is_recoded or not len(rows):
        return rows
    ended = pc.binary_join_element_wise(rows, constant(""), constant("\0"))
    joined = encoded_text(bytes(value_bytes(ended)).decode(), format_)
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == 0) - np.arange(len(rows))
    bounds = np.concatenate(([0], ends)).astype("<i4")
    data = joined.replace(b"\0", b"")
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(bounds), pa.py_buffer(data)])
