"""tsvector and tsquery (tsvector_parser.c, tsvector.c, tsquery.c): input without dictionaries, and output.

    tsvector    'a':1A,3 'cat'            words in the order of their bytes, each once, with places and weights
    tsquery     'cat':*A & ( 'a' | !'b' )  a tree of operands; what is read without parentheses is of the left

Owns: both texts, and the words and trees in them, from which the binary formats are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError

#: The characters that iswspace() treats as blank in a UTF-8 locale.
_BLANKS: Final = frozenset(" \t\n\v\f\r\u1680\u2028\u2029\u205f\u3000") | {
    chr(code) for code in range(0x2000, 0x200B) if code != 0x2007
}
_MOST_PLACES: Final = 256
_LAST_PLACE: Final = (1 << 14) - 1
_LONGEST: Final = (1 << 11) - 1
_MOST_BYTES: Final = (1 << 20) - 1
#: Weights by letter; D is not shown.
WEIGHTS: Final = "DCBA"
_OPERATORS: Final = "!|&()<"

#: Positions with weights.
Places = list[tuple[int, int]]


class _Words(Struct):
    """Reads the words of a text one by one (gettoken_tsvector())."""

    text: str
    name: str
    place: int = 0

    def error(self) -> SqlError:
        return SqlError("42601", f'syntax error in {self.name}: "{self.text}"')

    def char(self) -> str:
        return self.text[self.place : self.place + 1]

    def skip_blanks(self) -> None:
        while self.char() in _BLANKS and self.char():
            self.place += 1

    def next(self) -> tuple[str, Places] | None:
        """The next word and its positions; None at the end."""
        self.skip_blanks()
        if not self.char():
            return None
        word = self._quoted() if self.char() == "'" else self._plain()
        if not word:
            raise self.error()
        if self.name == "tsquery" or self.char() != ":":
            return word, []
        self.place += 1
        return word, self._places()

    def _escaped(self) -> str:
        self.place += 1
        if not (found := self.char()):
            raise SqlError("42601", f'there is no escaped character: "{self.text}"')
        return found

    def _plain(self) -> str:
        found: list[str] = []
        while (char := self.char()) and char not in _BLANKS and (char != ":" or self._begins(found)):
            if self.name == "tsquery" and char in _OPERATORS:
                break
            found.append(self._escaped() if char == "\\" else char)
            self.place += 1
        return "".join(found)

    def _begins(self, found: list[str]) -> bool:
        """Whether a colon is the first character of a word."""
        return not found and self.name == "tsvector"

    def _quoted(self) -> str:
        found: list[str] = []
        while True:
            self.place += 1
            char = self.char()
            if not char:
                raise self.error()
            if char == "'":
                self.place += 1
                if self.char() != "'":
                    return "".join(found)
            found.append(self._escaped() if char == "\\" else char)

    def _places(self) -> Places:
        found: Places = []
        while True:
            digits = re.compile("[0-9]+").match(self.text, self.place)
            if digits is None:
                raise self.error()
            place = min(int(digits[0]), _LAST_PLACE)
            if not place:
                raise SqlError("42601", f'wrong position info in tsvector: "{self.text}"')
            self.place = digits.end()
            weight = 0
            while (char := self.char()) and char not in _BLANKS and char != ",":
                letter = "A" if char == "*" else char.upper()
                if letter in WEIGHTS and letter:
                    if weight:
                        raise self.error()
                    weight = WEIGHTS.index(letter)
                elif not char.isdecimal():
                    raise self.error()
                self.place += 1
            found.append((place, weight))
            if char != ",":
                return found
            self.place += 1


def quoted(word: str) -> str:
    """A word in output form."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def vector_words(text: str) -> list[tuple[str, Places]]:
    """The words of a tsvector's text. Raises 42601 and 54000."""
    reader, known, size = _Words(text, "tsvector"), dict[str, Places](), 0
    while (found := reader.next()) is not None:
        word, places = found
        length = len(word.encode())
        if length >= _LONGEST:
            raise SqlError("54000", f"word is too long ({length} bytes, max {_LONGEST - 1} bytes)")
        size += length
        if size > _MOST_BYTES:
            raise SqlError("54000", f"string is too long for tsvector ({size} bytes, max {_MOST_BYTES} bytes)")
        known.setdefault(word, []).extend(places)
    return [(word, _unique(places)) for word, places in sorted(known.items(), key=lambda item: item[0].encode())]


def _unique(places: Places) -> Places:
    """Each position once, with the largest of its weights (uniquePos())."""
    largest: dict[int, int] = {}
    for place, weight in places:
        largest[place] = max(weight, largest.get(place, 0))
    return sorted(largest.items())[:_MOST_PLACES]


def vector_text(words: list[tuple[str, Places]]) -> str:
    """The output of tsvectorout()."""
    return " ".join(quoted(word) + _places_text(places) for word, places in words)


def _places_text(places: Places) -> str:
    shown = ",".join(f"{place}{WEIGHTS[weight] if weight else ''}" for place, weight in places)
    return f":{shown}" if places else ""


# --- queries ---------------------------------------------------------------------------------------------------------


class Operand(Struct, frozen=True):
    """A word in a query; ``weights`` is a set of bits, from 1 for D to 8 for A."""

    word: str
    weights: int = 0
    prefix: bool = False


class Operation(Struct, frozen=True):
    """One of ! & | and <N>, whose ``distance`` is N; ! has only a right operand."""

    symbol: str
    right: Query
    left: Query | None = None
    distance: int = 0


Query = Operand | Operation
_PRIORITY: Final = {"|": 1, "&": 2, "<": 3, "!": 4}
_PHRASE: Final = re.compile("<(-|[0-9]+)>")
_MODIFIERS: Final = re.compile(":([aAbBcCdD*]*)")


class _Queries(Struct):
    """Reads a query by operator precedence; operators of equal precedence associate to the left."""

    words: _Words

    def whole(self) -> Query | None:
        self.words.skip_blanks()
        if not self.words.char():
            return None
        found = self.operation(0)
        if self.words.char():
            raise self.words.error()
        return found

    def operation(self, least: int) -> Query:
        left = self.operand()
        while (found := self._operator(least)) is not None:
            symbol, distance = found
            left = Operation(symbol, self.operation(_PRIORITY[symbol] + 1), left, distance)
        return left

    def _operator(self, least: int) -> tuple[str, int] | None:
        """The next operator, if its precedence is at least this."""
        words = self.words
        words.skip_blanks()
        char, phrase = words.char(), _PHRASE.match(words.text, words.place)
        if char in ("", ")"):
            return None
        if phrase is None and char not in "&|":
            raise words.error()
        symbol = "<" if phrase is not None else char
        if _PRIORITY[symbol] < least:
            return None
        words.place = phrase.end() if phrase is not None else words.place + 1
        distance = 0 if phrase is None else 1 if phrase[1] == "-" else int(phrase[1])
        if distance > _LAST_PLACE + 1:
            words_ = "distance in phrase operator must be an integer value between zero and"
            raise SqlError("22023", f"{words_} {_LAST_PLACE + 1} inclusive")
        return symbol, distance

    def operand(self) -> Query:
        words = self.words
        words.skip_blanks()
        match words.char():
            case "!":
                words.place += 1
                return Operation("!", self.operation(_PRIORITY["!"]))
            case "(":
                words.place += 1
                found = self.operation(0)
                if words.char() != ")":
                    raise words.error()
                words.place += 1
                return found
            case "":
                raise SqlError("42601", f'no operand in tsquery: "{words.text}"')
            case _:
                return self._word()

    def _word(self) -> Operand:
        found = self.words.next()
        assert found is not None
        word, weights, prefix = found[0], 0, False
        if len(word.encode()) >= _LONGEST:
            raise SqlError("54000", f'word is too long in tsquery: "{self.words.text}"')
        if (modifiers := _MODIFIERS.match(self.words.text, self.words.place)) is not None:
            self.words.place = modifiers.end()
            for letter in modifiers[1].upper():
                prefix |= letter == "*"
                weights |= 0 if letter == "*" else 1 << WEIGHTS.index(letter)
        return Operand(word, weights, prefix)


def query_tree(text: str) -> Query | None:
    """The tree of a tsquery's text; None for a text without words. Raises 42601, 22023 and 54000."""
    try:
        return _Queries(_Words(text, "tsquery")).whole()
    except RecursionError:
        raise SqlError("54001", "stack depth limit exceeded") from None


def query_text(query: Query | None, outside: int = -1, is_right: bool = False) -> str:
    """The output of tsqueryout(): with parentheses around a weaker operator within a stronger one, and around the right
    operand of a phrase operator."""
    if query is None:
        return ""
    if isinstance(query, Operand):
        letters = "".join(letter for letter in reversed(WEIGHTS) if query.weights >> WEIGHTS.index(letter) & 1)
        modifiers = "*" * query.prefix + letters
        return quoted(query.word) + (f":{modifiers}" if modifiers else "")
    priority = _PRIORITY[query.symbol]
    if query.symbol == "!":
        shown = "!" + query_text(query.right, priority)
    else:
        symbol = query.symbol if query.symbol != "<" else "<->" if query.distance == 1 else f"<{query.distance}>"
        right = query_text(query.right, priority, query.symbol == "<")
        shown = f"{query_text(query.left, priority)} {symbol} {right}"
    return f"( {shown} )" if priority < outside or (query.symbol == "<" and is_right) else shown


READERS: Final[dict[str, Callable[[str], str]]] = {
    "tsvector": lambda text: vector_text(vector_words(text)),
    "tsquery": lambda text: query_text(query_tree(text)),
}
