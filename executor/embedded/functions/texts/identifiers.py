"""Functions of the engine that split texts into names or array elements.

Owns: ``FUNCTIONS``: parse_ident() (misc.c) and the elements of an array's text.
"""

from __future__ import annotations

import re
from typing import Final

from catalog.values.errors import SqlError
from catalog.values.nested_texts import split_array, split_row
from executor.embedded.functions.batches import Functions

_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"')
_PLAIN: Final = re.compile(r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*")
_BLANKS: Final = re.compile(r"[ \t\n\r\f\v]*")


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    assert found is not None
    return found.end()


def _parse_ident(text: str, strict: bool) -> list[str]:
    """The parts of a qualified name: quoted ones unchanged, others in lower case."""
    parts: list[str] = []
    place = _after_blanks(text, 0)
    while True:
        quoted, plain = _QUOTED.match(text, place), _PLAIN.match(text, place)
        found = quoted or plain
        if found is None or (quoted is not None and not quoted[1]):
            raise _no_identifier(text)
        parts.append(quoted[1].replace('""', '"') if quoted is not None else _lower(found[0]))
        place = _after_blanks(text, found.end())
        if not text.startswith(".", place):
            break
        place = _after_blanks(text, place + 1)
    if strict and place < len(text):
        raise _no_identifier(text)
    return parts


def _lower(name: str) -> str:
    """ASCII letters in lower case; in a multibyte encoding, PostgreSQL leaves other letters unchanged."""
    return "".join(char.lower() if char.isascii() else char for char in name)


def _no_identifier(text: str) -> SqlError:
    return SqlError("22023", f'string is not a valid identifier: "{text}"')


FUNCTIONS: Final[Functions] = {
    "names_parse": (_parse_ident, "VARCHAR[]"),
    "array_elements": (lambda text: list(split_array(text)), "VARCHAR[]"),
    "row_fields": (lambda text, width: list(split_row(text, width)), "VARCHAR[]"),
}
