"""Rewrites texts of sessions with standard_conforming_strings = off for the parser: '...' with backslash escapes
becomes E'...'.

Owns: finding the literals in a text, as far as this needs it (scan.l). Comments, quoted names, dollar quotes and
literals of other kinds are skipped. If one of them is not closed, the rest of the text stays as it is, and the parser
reports the error.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError, unsupported

#: The begin of a literal or of a token that may hide a quote; a word is matched whole, including its dollar signs.
_BEGINNING: Final = re.compile(r"""--|/\*|["'$]|[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*+|\d++""")
_ESCAPED: Final = re.compile(r"'(?:[^'\\]++|''|\\.)*+'", re.DOTALL)
_PLAIN: Final = re.compile(r"'[^']*+'")
_NAME: Final = re.compile(r'"[^"]*+"')
_LINE: Final = re.compile(r"[^\n\r]*+")
_TAG: Final = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*+)?\$")
#: What may separate two parts of one literal: blanks with at least one line break.
_BETWEEN: Final = re.compile(r"[ \t\f\v]*+(?:--[^\n\r]*+)?[\n\r](?:[ \t\f\v\n\r]++|--[^\n\r]*+[\n\r])*+(?=')")
_COMMENT: Final = re.compile(r"/\*|\*/")
_INSERTED: Final = " E"


class Conforming(Struct, frozen=True):
    """A text in which E marks the literals with escapes.

    ``inserted`` are the places in this text, from 0, after which it has two more characters than the text as sent.
    ``warnings`` are for the literals of the text as sent.
    """

    text: str
    inserted: tuple[int, ...]
    warnings: tuple[SqlError, ...]

    def position(self, position: int) -> int:
        """The position in the text as sent, from 1, for a position in this text."""
        index = position - 1
        return position - sum(min(index - place, len(_INSERTED)) for place in self.inserted if place < index)


def conforming(text: str) -> Conforming:
    """The rewritten text. Raises 0A000 for U&'...', which is ambiguous with the setting off."""
    pieces: list[str] = []
    inserted: list[int] = []
    warnings: list[SqlError] = []
    position = copied = 0
    if "\\" not in text:
        return Conforming(text, (), ())
    while (found := _BEGINNING.search(text, position)) is not None:
        start, word = found.start(), found[0].lower()
        if word == "u" and text.startswith("&'", found.end()):
            detail = "String constants with Unicode escapes cannot be used when standard_conforming_strings is off."
            message = "unsafe use of string constant with Unicode escapes"
            raise SqlError("0A000", message, detail, position=start + 1)
        if word == "n" and text.startswith("'", found.end()):
            raise unsupported("N'...' with standard_conforming_strings = off", "Write '...'.", start + 1)
        is_literal = word == "'"
        end = _literal_end(text, start) if is_literal else _end(text, found)
        if is_literal and "\\" in (literal := text[start:end]):
            pieces += (text[copied:start], _INSERTED)
            inserted.append(start + len(_INSERTED) * len(inserted))
            copied = start
            warnings.append(_warning(literal, start + 1))
        if end is None:
            break
        position = end
    return Conforming("".join((*pieces, text[copied:])), tuple(inserted), tuple(warnings))


def _literal_end(text: str, start: int) -> int | None:
    """The end of a literal that may continue on further lines; None if it is not closed."""
    while (found := _ESCAPED.match(text, start)) is not None:
        following = _BETWEEN.match(text, found.end())
        if following is None:
            return found.end()
        start = following.end()
    return None


def _end(text: str, found: re.Match[str]) -> int | None:
    """The end of the token that begins at a place; None if it is not closed."""
    start, word = found.start(), found[0].lower()
    match word:
        case "--":
            closed = _LINE.match(text, start)
        case "/*":
            return _comment_end(text, found.end())
        case '"':
            closed = _NAME.match(text, start)
        case "$":
            return _dollar_end(text, start)
        case "e" if text.startswith("'", found.end()):
            return _literal_end(text, found.end())
        case "b" | "x" if text.startswith("'", found.end()):
            closed = _PLAIN.match(text, found.end())
        case _:
            return found.end()
    return None if closed is None else closed.end()


def _comment_end(text: str, start: int) -> int | None:
    depth = 1
    for found in _COMMENT.finditer(text, start):
        depth += 1 if found[0] == "/*" else -1
        if not depth:
            return found.end()
    return None


def _dollar_end(text: str, start: int) -> int | None:
    tag = _TAG.match(text, start)
    if tag is None:
        return start + 1
    end = text.find(tag[0], tag.end())
    return None if end < 0 else end + len(tag[0])


def _warning(literal: str, position: int) -> SqlError:
    """PostgreSQL's warning for a literal's first escape."""
    char = literal[literal.index("\\") + 1]
    if char == "'":
        message = "nonstandard use of \\' in a string literal"
        hint = "Use '' to write quotes in strings, or use the escape string syntax (E'...')."
    elif char == "\\":
        message = "nonstandard use of \\\\ in a string literal"
        hint = "Use the escape string syntax for backslashes, e.g., E'\\\\'."
    else:
        message = "nonstandard use of escape in a string literal"
        hint = "Use the escape string syntax for escapes, e.g., E'\\r\\n'."
    return SqlError("22P06", message, hint=hint, position=position)
