"""Texts of arrays and rows: the parts between an array's braces, and between a row's parentheses.

Owns: splitting them, as PostgreSQL's array_in() and record_in() do. Knows nothing of the parts' types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from catalog.values.errors import SqlError, unsupported

#: The characters that C's isspace() treats as blank.
BLANKS: Final = " \t\n\v\f\r"
#: The patterns by delimiter.
_ELEMENTS: Final = {
    mark: re.compile(
        r'[ \t\n\v\f\r]*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>(?:[^'
        + mark
        + r'{}"\\]|\\.)+))[ \t\n\v\f\r]*(?P<end>['
        + mark
        + "}])",
        re.DOTALL,
    )
    for mark in ",;"
}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_FIELD: Final = re.compile(r'((?:[^",()\\]|\\.|"(?:[^"\\]|\\.|"")*")*)([,)])', re.DOTALL)
_PART: Final = re.compile(r'\\(.)|"((?:[^"\\]|\\.|"")*)"|([^"\\]+)', re.DOTALL)
_QUOTED: Final = re.compile(r'\\(.)|""', re.DOTALL)


def malformed_array(text: str, detail: str) -> SqlError:
    """The error 22P02 for a malformed array."""
    return SqlError("22P02", f'malformed array literal: "{text}"', detail)


#: The begin of the message, which is the same in the engine's error for such an array.
_NO_DIMENSIONS: Final = "an array of more than one dimension, or with bounds,"


def is_of_dimensions(error: SqlError) -> bool:
    """Whether an error is ``no_dimensions``, raised here or by the engine."""
    return error.sqlstate == "0A000" and error.message.startswith(_NO_DIMENSIONS)


def no_dimensions(position: int | None = None) -> SqlError:
    """The error 0A000 for an array whose dimensions or bounds the target cannot hold."""
    hint = "Declare the column as int[][]; ALTER TABLE ... ALTER COLUMN ... TYPE int[][] changes an existing column."
    return unsupported(f"{_NO_DIMENSIONS} in this place", hint, position)


def split_array(text: str, delimiter: str = ",") -> Iterator[str | None]:
    """The texts of an array's elements. Raises 22P02."""
    body = text.strip(BLANKS)
    if body.startswith("["):
        raise no_dimensions()
    if not body.startswith("{"):
        raise malformed_array(text, 'Array value must start with "{" or dimension information.')
    if not body.endswith("}"):
        raise malformed_array(text, "Unexpected end of input.")
    if not body[1:-1].strip(BLANKS):
        return
    if body[1:].lstrip(BLANKS).startswith("{"):
        raise no_dimensions()
    position, end = 1, delimiter
    while end == delimiter:
        match = _ELEMENTS[delimiter].match(body, position)
        if match is None:
            raise malformed_array(text, "Unexpected array element.")
        position, end = match.end(), match["end"]
        yield element_text(match, text, f'Unexpected "{end}" character.')
    if position != len(body):
        raise malformed_array(text, "Junk after closing right brace.")


def element_text(match: re.Match[str], text: str, detail: str) -> str | None:
    """An element's text, None for NULL, from a match with the groups ``quoted`` and ``plain``. Raises 22P02 with
    ``detail``."""
    if match["quoted"] is not None:
        return _ESCAPE.sub(r"\1", match["quoted"])
    plain = match["plain"].strip(BLANKS)
    if not plain:
        raise malformed_array(text, detail)
    return None if plain.lower() == "null" else _ESCAPE.sub(r"\1", plain)


def _bad_row(text: str, detail: str) -> SqlError:
    return SqlError("22P02", f'malformed record literal: "{text}"', detail)


def split_row(text: str, width: int) -> Iterator[str | None]:
    """The texts of the ``width`` fields of a row. Raises 22P02."""
    body = text.strip(BLANKS)
    if not body.startswith("("):
        raise _bad_row(text, "Missing left parenthesis.")
    position, end, count = 1, ",", 0
    while end == ",":
        match = _FIELD.match(body, position)
        if match is None:
            raise _bad_row(text, "Unexpected end of input.")
        count += 1
        if count > width:
            raise _bad_row(text, "Too many columns.")
        position, end = match.end(), match[2]
        yield _PART.sub(_plain, match[1]) if match[1] else None
    if count < width:
        raise _bad_row(text, "Too few columns.")
    if position != len(body):
        raise _bad_row(text, "Junk after right parenthesis.")


def _plain(match: re.Match[str]) -> str:
    if match[2] is None:
        return match[1] or match[3]
    return _QUOTED.sub(lambda escaped: escaped[1] or '"', match[2])
