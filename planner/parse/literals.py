"""The key under which texts that differ only in literals share a plan.

Owns: which literals of a text may become parameters, and ``Parameteriser``, which remembers that per *skeleton*, the
text without its plain literals. Only the first text of a skeleton goes through PostgreSQL's scanner (10 us for a short
INSERT, against 4 us). Knows nothing of plans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct
from pglast import parser

from catalog.values.types import INT4, INT8, NUMERIC, UNKNOWN, numeric
from planner.algebra.nodes import Literal
from planner.parse.lengths import LIMIT

_STATEMENTS: Final = frozenset(("INSERT", "SELECT", "UPDATE", "DELETE_P"))
_COMPARISONS: Final = frozenset(("ASCII_61", "ASCII_60", "ASCII_62", "LESS_EQUALS", "GREATER_EQUALS", "NOT_EQUALS"))
#: Tokens that may follow a literal that is a whole operand; others (an operator, a cast, COLLATE) could bind more
#: tightly.
_ENDS: Final = frozenset(
    ("", "ASCII_44", "ASCII_41", "ASCII_59", "AND", "OR", "ORDER", "GROUP_P", "LIMIT", "OFFSET")
) | frozenset(("RETURNING", "WHERE", "FROM", "HAVING", "UNION"))
_SIGNS: Final = frozenset(("ASCII_43", "ASCII_45", "ASCII_42"))
_COUNTS: Final = frozenset(("LIMIT", "OFFSET"))
#: Where such a literal may stand. Texts without a match need no scanner.
_OPERANDS: Final = re.compile(r"[=<>]\s*(?:['0-9]|--|/\*)|\b(?:limit|offset|insert|update)\b", re.IGNORECASE)
_TEXT_LITERAL: Final = re.compile(r"'(?:[^']|'')*'")
_INTEGER: Final = re.compile(r"[0-9]+")
_DECIMAL: Final = re.compile(r"[0-9]{1,20}\.[0-9]{1,18}")
#: The longest text to share if pglast looks up positions in quadratic time.
_SHARED: Final = 16 << 10


class _Place(Struct, frozen=True):
    """A literal that becomes a parameter: the characters [start, end); with its sign they begin at ``first``. ``cell``:
    it is a cell of INSERT ... VALUES."""

    first: int
    start: int
    end: int
    cell: bool


def parameterise(text: str) -> tuple[str, tuple[Literal, ...]]:
    """A text with $1, $2, ... for its literals, and the literals: the text and the literals' types are the key of the
    shared plan.

    The shared plan is ``parse(key)`` bound with the literals' types as parameter types (unknown: None). Only a single
    INSERT, SELECT, UPDATE or DELETE without parameters is rewritten, and in it only whole operands: a cell of VALUES,
    the right side of a comparison, LIMIT and OFFSET, and an integer that UPDATE adds. Every other literal may matter to
    binding (ORDER BY 1, a type modifier, DATE '...', a function's field) and stays. Texts without such literals are
    returned unchanged.
    """
    return _replace(text, _places(text))


def _places(text: str) -> list[_Place]:
    """The literals that may become parameters, in order."""
    if _OPERANDS.search(text) is None or len(text) > (LIMIT if text.isascii() else _SHARED):
        return []
    try:
        tokens = [token for token in parser.scan(text) if token.name not in ("SQL_COMMENT", "C_COMMENT")]
    except parser.ParseError:
        return []
    names = [token.name for token in tokens]
    if not names or names[0] not in _STATEMENTS or "PARAM" in names or "ASCII_59" in names[:-1]:
        return []
    return list(_operands(tokens, names))


def _operands(tokens: list[Any], names: list[str]) -> Iterator[_Place]:
    cells = _value_cells(names)
    arithmetic = names[0] == "UPDATE" and "SELECT" not in names
    depth = 0
    for index, name in enumerate(names):
        depth += (name == "ASCII_40") - (name == "ASCII_41")
        if name not in ("ICONST", "FCONST", "SCONST"):
            continue
        signed = name != "SCONST" and index > 0 and names[index - 1] == "ASCII_45" and index - 1 in cells
        first = index - 1 if signed else index
        if first not in cells and not _is_operand(names, index, arithmetic, depth):
            continue
        if (names[index + 1] if index + 1 < len(names) else "") in _ENDS:
            yield _Place(tokens[first].start, tokens[index].start, tokens[index].end + 1, first in cells)


def _replace(text: str, places: list[_Place]) -> tuple[str, tuple[Literal, ...]]:
    pieces: list[str] = []
    literals: list[Literal] = []
    position = 0
    for place in places:
        literal = _literal(text[place.start : place.end], place.first < place.start, place.cell)
        if literal is not None:
            literals.append(literal)
            pieces += (text[position : place.first], f"${len(literals)}")
            position = place.end
    return "".join([*pieces, text[position:]]), tuple(literals)


def _is_operand(names: list[str], index: int, arithmetic: bool, depth: int) -> bool:
    """Whether a literal is the right side of a comparison, the count of the whole query's LIMIT (a correlated subquery
    needs a constant) or, where no ORDER BY can be, an integer after + - or *."""
    before = names[index - 1] if index else ""
    counts = before in _COUNTS and depth == 0
    if names[index] == "ICONST" and (counts or (arithmetic and before in _SIGNS)):
        return True
    return before in _COMPARISONS


def _value_cells(names: list[str]) -> set[int]:
    """Indexes of the tokens that begin a cell of INSERT ... VALUES (...), (...)."""
    cells: set[int] = set()
    if names[0] != "INSERT" or "VALUES" not in names:
        return cells
    depth = 0
    for index in range(names.index("VALUES") + 1, len(names)):
        name = names[index]
        if depth == 1 and names[index - 1] in ("ASCII_40", "ASCII_44"):
            cells.add(index)
        depth += (name == "ASCII_40") - (name == "ASCII_41")
        if depth == 0 and name not in ("ASCII_41", "ASCII_44"):
            break
    return cells


def _literal(token: str, negative: bool, cell: bool) -> Literal | None:
    """A plain literal's value; None for a spelling that is left to the parser.

    A decimal in a cell has one type whatever its digits, since it is only cast to its column's type; elsewhere the
    digits decide the type.
    """
    if _TEXT_LITERAL.fullmatch(token):
        return Literal(token[1:-1].replace("''", "'"), UNKNOWN)
    if _INTEGER.fullmatch(token) and len(token) <= 18:
        number = -int(token) if negative else int(token)
        return Literal(number, INT4 if abs(number) < 1 << 31 else INT8)
    if _DECIMAL.fullmatch(token):
        decimal = Decimal(token)
        scale = len(token) - token.index(".") - 1
        kind = NUMERIC if cell else numeric(max(decimal.adjusted() + 1, 1) + scale, scale)
        return Literal(-decimal if negative else decimal, kind)
    return None


# --- skeletons -------------------------------------------------------------------------------------------------------

#: Literals as PostgreSQL's scanner finds them, too, if the rest of the text is plain (``_is_plain``): a quote begins a
#: string unless a prefix (E, B, X, U&) is directly before it, and a number is not next to a letter, digit or point.
_PIECES: Final = re.compile(r"((?<![\w&])'[^']*(?:''[^']*)*'|(?<![\w.])[0-9]+(?:\.[0-9]+)?(?![\w.]))", re.ASCII)
#: What could begin a token that hides literals or is a literal of another kind: a quoted name, a string, a dollar
#: quote, a comment.
_HIDING: Final = re.compile(r"""["'$\0]|--|/\*""")
_SKELETONS: Final = 4096
#: The longest skeleton that is remembered.
_LONGEST: Final = 2048


class _Skeleton(Struct, frozen=True):
    """The key of all texts with a skeleton, and for each literal whether a sign before it belongs to it and whether it
    is a cell."""

    key: str
    literals: tuple[tuple[bool, bool], ...]


class Parameteriser:
    """``parameterise`` with a memory. Threads may use it concurrently."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Skeleton | None] = {}

    def __call__(self, text: str) -> tuple[str, tuple[Literal, ...]]:
        """The result of ``parameterise`` for a text."""
        pieces = _PIECES.split(text)
        tokens = pieces[1::2]
        shape = ("\0".join(pieces[0::2]), "".join(map(_kind, tokens)))
        if len(shape[0]) > _LONGEST:
            return parameterise(text)
        known = self._known.get(shape)
        if known is not None:
            literals = []
            for token, (signed, cell) in zip(tokens, known.literals, strict=True):
                literal = _literal(token, signed, cell)
                if literal is None:
                    return parameterise(text)
                literals.append(literal)
            return known.key, tuple(literals)
        if shape in self._known:
            return parameterise(text)
        return self._learn(text, shape, pieces)

    def _learn(self, text: str, shape: tuple[str, str], pieces: list[str]) -> tuple[str, tuple[Literal, ...]]:
        places = _places(text)
        key, literals = _replace(text, places)
        if len(self._known) >= _SKELETONS:
            self._known.clear()
        same = len(literals) == len(places) and [(place.start, place.end) for place in places] == _spans(pieces)
        if same and all(map(_is_plain, pieces[0::2])):
            signs = tuple((place.first < place.start, place.cell) for place in places)
            self._known[shape] = _Skeleton(key, signs)
        else:
            self._known[shape] = None
        return key, literals


def _spans(pieces: list[str]) -> list[tuple[int, int]]:
    """The positions of the literals in the text that was split."""
    spans, position = [], 0
    for index, piece in enumerate(pieces):
        if index % 2:
            spans.append((position, position + len(piece)))
        position += len(piece)
    return spans


def _is_plain(piece: str) -> bool:
    """Whether the scanner is between two tokens before and after each piece of text between literals."""
    return piece.isascii() and _HIDING.search(piece) is None


def _kind(token: str) -> str:
    """The kind of a literal; literals of one kind are the same token for scanner and grammar: s (string), i (int4), f
    (larger numbers)."""
    if token[0] == "'":
        return "s"
    return "i" if "." not in token and (len(token) < 10 or int(token) < 1 << 31) else "f"
