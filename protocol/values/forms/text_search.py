"""tsvector and tsquery in binary (tsvectorsend(), tsquerysend()): words with a terminating zero byte, their positions
with weights in 16 bits; a query as a tree from the root, each operator before its right operand and that before the
left one."""

from __future__ import annotations

from typing import Final

from catalog.values.errors import SqlError
from catalog.values.forms.lexemes import (
    Operand,
    Operation,
    Places,
    Query,
    query_text,
    query_tree,
    vector_text,
    vector_words,
)
from protocol.utf8 import decode_utf8
from protocol.values.codec import Codec
from protocol.values.forms.form_codec import Binary, formed_codec, short, too_long

_VALUE, _OPERATION = 1, 2
_SYMBOLS: Final = {"!": 1, "&": 2, "|": 3, "<": 4}
_CODES: Final = {code: symbol for symbol, code in _SYMBOLS.items()}
_PLACE_BITS: Final = 14


class _Fields:
    """Reads a message's fields from the beginning."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def number(self, size: int) -> int:
        """An unsigned number. Raises 08P01."""
        found = self._data[self._place : self._place + size]
        if len(found) < size:
            raise short()
        self._place += size
        return int.from_bytes(found, "big")

    def word(self) -> str:
        """A text up to its terminating zero byte. Raises 08P01."""
        end = self._data.find(b"\0", self._place)
        if end < 0:
            raise SqlError("08P01", "invalid string in message")
        found = self._data[self._place : end]
        self._place = end + 1
        return decode_utf8(found)

    def end(self) -> None:
        """Checks that no bytes remain. Raises 22P03."""
        if self._place < len(self._data):
            raise too_long()


def _write_vector(text: str) -> bytes:
    words = vector_words(text)
    parts = [len(words).to_bytes(4, "big")]
    for word, places in words:
        parts += [word.encode(), b"\0", len(places).to_bytes(2, "big")]
        parts += [(weight << _PLACE_BITS | place).to_bytes(2, "big") for place, weight in places]
    return b"".join(parts)


def _read_vector(data: bytes) -> str:
    """The text of a binary tsvector. Raises 08P01, 22P03 and XX000."""
    fields, words = _Fields(data), dict[str, Places]()
    for _ in range(fields.number(4)):
        word = fields.word()
        pairs = (divmod(fields.number(2), 1 << _PLACE_BITS) for _ in range(fields.number(2)))
        places = [(place, weight) for weight, place in pairs]
        numbers = [place for place, _ in places]
        if numbers != sorted(set(numbers)):
            raise SqlError("XX000", "position information is misordered")
        words[word] = places
    fields.end()
    return vector_text(sorted(words.items(), key=lambda item: item[0].encode()))


def _write_query(text: str) -> bytes:
    tree = query_tree(text)
    items = [] if tree is None else _items(tree)
    return len(items).to_bytes(4, "big") + b"".join(items)


def _items(query: Query) -> list[bytes]:
    if isinstance(query, Operand):
        return [bytes((_VALUE, query.weights, query.prefix)) + query.word.encode() + b"\0"]
    head = bytes((_OPERATION, _SYMBOLS[query.symbol]))
    distance = query.distance.to_bytes(2, "big") if query.symbol == "<" else b""
    return [head + distance, *_items(query.right), *(_items(query.left) if query.left is not None else ())]


def _read_query(data: bytes) -> str:
    """The text of a binary tsquery. Raises 08P01, 22P03 and XX000."""
    fields = _Fields(data)
    left = [fields.number(4)]
    tree = _read_item(fields, left) if left[0] else None
    if left[0]:
        raise SqlError("XX000", "malformed tsquery: extra nodes")
    fields.end()
    return query_text(tree)


def _read_item(fields: _Fields, left: list[int]) -> Query:
    """A node and its operands; ``left`` is the number of nodes not yet read."""
    if not left[0]:
        raise SqlError("XX000", "malformed tsquery: operand not found")
    left[0] -= 1
    kind = fields.number(1)
    if kind == _VALUE:
        weights, prefix = fields.number(1), fields.number(1)
        if weights > 0xF:
            raise SqlError("XX000", "invalid tsquery: invalid weight bitmap")
        return Operand(fields.word(), weights, bool(prefix))
    if kind != _OPERATION:
        raise SqlError("XX000", f"unrecognized tsquery node type: {kind}")
    symbol = _CODES.get(fields.number(1))
    if symbol is None:
        raise SqlError("XX000", "invalid tsquery: unrecognized operator type")
    distance = fields.number(2) if symbol == "<" else 0
    right = _read_item(fields, left)
    return Operation(symbol, right, None if symbol == "!" else _read_item(fields, left), distance)


_BINARY: Final[Binary] = {"tsvector": (_write_vector, _read_vector), "tsquery": (_write_query, _read_query)}
CODECS: Final[dict[str, Codec]] = {name: formed_codec(name, _BINARY) for name in _BINARY}
