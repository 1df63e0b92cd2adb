"""hstore (hstore_io.c): keys and values, which are texts, the values also NULL.

    "a"=>"1", "bb"=>NULL      each key once; the shorter ones first, then in the order of their bytes

Owns: both texts, the pairs in them, and the sort key of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError

#: Values by key, in the order of the keys.
Pairs = Mapping[str, str | None]

_BLANKS: Final = frozenset(" \t\n\v\f\r")
_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_PAIR: Final = re.compile(f"{_QUOTED}=>(?:NULL|{_QUOTED})", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL: Final = re.compile(r'(["\\])')


def pairs(text: str) -> dict[str, str | None]:
    """The pairs in a value's output form."""
    if "\\" not in text:
        return {found[1]: found[2] for found in _PAIR.finditer(text)}
    plain = (found.groups() for found in _PAIR.finditer(text))
    return {_unescaped(key): None if value is None else _unescaped(value) for key, value in plain}


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def shown(found: Pairs) -> str:
    """The output form of sorted pairs (hstore_out())."""
    return ", ".join(f"{_quoted(key)}=>{'NULL' if value is None else _quoted(value)}" for key, value in found.items())


def _quoted(text: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", text) if '"' in text or "\\" in text else text
    return f'"{escaped}"'


def unique(found: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    """Pairs sorted by key; of repeated keys, the first counts (hstoreUniquePairs())."""
    known: dict[str, str | None] = {}
    for key, value in found:
        known.setdefault(key, value)
    return {key: known[key] for key in sorted(known, key=key_order)}


def key_order(key: str) -> tuple[int, bytes]:
    """The sort key of a key."""
    data = key.encode()
    return len(data), data


class _Reader(Struct):
    """Reads a text from its beginning (parse_hstore())."""

    text: str
    place: int = 0

    def char(self) -> str:
        return self.text[self.place : self.place + 1]

    def skip_blanks(self) -> None:
        while self.char() and self.char() in _BLANKS:
            self.place += 1

    def error(self) -> SqlError:
        if not self.char():
            return SqlError("XX000", "Unexpected end of string")
        at = len(self.text[: self.place].encode())
        return SqlError("XX000", f'Syntax error near "{self.char()}" at position {at}')

    def expect(self, char: str) -> None:
        if self.char() != char:
            raise self.error()
        self.place += 1

    def word(self, is_key: bool) -> tuple[str, bool] | None:
        """A key or value, and whether it is quoted; None at the end."""
        self.skip_blanks()
        if not self.char():
            return None
        if self.char() == '"':
            self.place += 1
            return self._until(lambda char: char == '"', True), True
        if is_key and self.char() == "=":
            raise self.error()
        end = "=" if is_key else ","
        return self._until(lambda char: char == end or char in _BLANKS, False), False

    def _until(self, is_end: Callable[[str], bool], is_quoted: bool) -> str:
        found: list[str] = []
        while (char := self.char()) and not (is_end(char) and (found or is_quoted or char != ",")):
            if char == "\\":
                self.place += 1
                if not (char := self.char()):
                    raise self.error()
            found.append(char)
            self.place += 1
        if is_quoted:
            self.expect('"')
        return "".join(found)


def read_pairs(text: str) -> dict[str, str | None]:
    """The pairs of an input text (hstore_in()). Raises XX000."""
    reader, found = _Reader(text), list[tuple[str, str | None]]()
    while (key := reader.word(True)) is not None:
        reader.skip_blanks()
        reader.expect("=")
        reader.expect(">")
        value = reader.word(False)
        if value is None:
            raise reader.error()
        word, is_quoted = value
        found.append((key[0], None if word.lower() == "null" and not is_quoted else word))
        reader.skip_blanks()
        if not reader.char():
            break
        reader.expect(",")
    return unique(found)


def order_key(text: str) -> str:
    """A text that sorts as values do (hstore_cmp()): by all keys and values concatenated, then by their number, their
    ends, and which values are NULL. The empty value comes first."""
    if not text:
        return ""
    data, ends = b"", list[str]()
    found = pairs(text)
    for item in (item for pair in found.items() for item in pair):
        data += (item or "").encode()
        ends.append(f"{len(data):08x}{int(item is None)}")
    return f"{data.hex()} {len(found):08x}{''.join(ends)}"


def of_order_key(key: str) -> str:
    """The value for a text of ``order_key``."""
    if not key:
        return ""
    data, _, rest = key.partition(" ")
    octets, ends, begin, found = bytes.fromhex(data), rest[8:], 0, list[str | None]()
    for place in range(0, len(ends), 9):
        end = int(ends[place : place + 8], 16)
        found.append(octets[begin:end].decode() if ends[place + 8] == "0" else None)
        begin = end
    return shown({str(key): value for key, value in zip(found[::2], found[1::2], strict=True)})


READERS: Final[dict[str, Callable[[str], str]]] = {"hstore": lambda text: shown(read_pairs(text))}
