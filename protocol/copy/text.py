"""The text format's backslash escapes.

https://www.postgresql.org/docs/15/sql-copy.html#id-1.9.3.55.9.2
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from protocol.compute import pc
from protocol.values.text.strings import utf8_column

_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def _replacement(match: re.Match[bytes]) -> bytes:
    escape = match.group(1)
    if escape in _LETTERS:
        return _LETTERS[escape]
    if escape[0] in b"01234567":
        return bytes((int(escape, 8) & 0xFF,))
    if escape[:1] == b"x" and len(escape) > 1:
        return bytes((int(escape[1:], 16),))
    return escape


def unescape_value(data: bytes) -> bytes:
    """One field's bytes without their escapes."""
    return _ESCAPE.sub(_replacement, data) if b"\\" in data else data


def unescape(column: pa.Array) -> pa.Array:
    """A column's texts without their escapes; no text may contain a zero byte.

    Raises ColumnError (22021) if the escaped bytes are not UTF-8.
    """
    if not _has_backslash(column).true_count:
        return column
    # Doubled backslashes are replaced first, from the left, so that each remaining backslash begins an escape. Zero
    # bytes stand in for them meanwhile.
    texts = pc.replace_substring(column, "\\\\", "\0")
    for letter, character in _LETTERS.items():
        texts = pc.replace_substring(texts, b"\\" + letter, character)
    others = _has_backslash(texts)
    texts = pc.replace_substring(texts, "\0", "\\")
    if not others.true_count:
        return texts
    values = column.filter(others).cast(pa.binary()).to_pylist()
    unescaped = utf8_column(pa.array([unescape_value(value) for value in values], pa.binary()))
    return pc.replace_with_mask(texts, others, unescaped)


def _has_backslash(texts: pa.Array) -> pa.BooleanArray:
    return pc.match_substring(texts, "\\")
