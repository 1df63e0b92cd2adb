"""Expressions in PostgreSQL's pretty form: without the parentheses that precedence makes unnecessary.

Owns: ``pretty``, which removes parentheses from a stored text, in which every operation has its own (``isSimpleNode``
of ruleutils.c defines which may be removed). Texts in another form, as users wrote them, lose no parentheses that they
need: a construct that is not understood stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+)|(?P<text>E?'(?:[^']|'')*'|"(?:[^"]|"")*")|(?P<word>[^\W\d][\w$.]*)|(?P<number>[\d.]+(?:e[+-]?\d+)?)"""
    r"""|(?P<sign>::|[(),\[\]]|[-+*/<>=~!@\#%^&|`?]+|.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
#: The end of a name that is called, or of an array's name, before a group.
_NAME: Final = re.compile(r"[\w\"\[\]]")
_BOOLEAN: Final = ("and", "or", "not")
#: Words before a parenthesis that are not function names.
_WORDS: Final = frozenset((*_BOOLEAN, "is", "from", "when", "then", "else", "collate", "zone"))
#: Words that stored texts spell differently: only users' own texts contain them.
_UNKNOWN: Final = frozenset(("between", "like", "ilike", "similar", "in", "overlaps", "isnull", "notnull", "escape"))
#: Words that separate operands more strongly than any operator.
_BETWEEN: Final = frozenset((*_BOOLEAN, ",", "case", "when", "then", "else", "end", "from"))
_OF_TESTS: Final = ("null", "true", "false", "unknown")


class _Group(Struct):
    """The text between two parentheses or brackets: tokens and groups, and their places in the text."""

    start: int
    before: str  # the token before the group
    end: int = -1
    parts: list[str | _Group] = field(default_factory=list)
    after: str = ""

    @property
    def is_operand(self) -> bool:
        """Whether the parentheses enclose an expression, not the arguments of a call or an array."""
        return not _NAME.match(self.before) or self.before.lower() in _WORDS

    @property
    def words(self) -> list[str]:
        """The group's own tokens, in lower case; '' for an inner group."""
        return [part.lower() if isinstance(part, str) else "" for part in self.parts]


def pretty(text: str) -> str:
    """An expression's text without unnecessary parentheses."""
    whole = _grouped(text)
    if whole is None:
        return text
    gone = set(_needless(whole))
    return "".join(letter for place, letter in enumerate(text) if place not in gone)


def _grouped(text: str) -> _Group | None:
    """The groups of a text; None if parentheses do not match."""
    stack, last = [_Group(-1, "(")], ""
    closed: _Group | None = None
    for match in _TOKEN.finditer(text):
        token = match[0]
        if match["blank"]:
            continue
        if closed is not None:
            closed.after = token
            closed = None
        if token in ("(", "["):
            stack.append(_Group(match.start(), last if token == "(" else "["))
        elif token in (")", "]"):
            if len(stack) == 1:
                return None
            closed = stack.pop()
            closed.end = match.start()
            stack[-1].parts.append(closed)
        else:
            stack[-1].parts.append(token)
        last = token
    return stack[0] if len(stack) == 1 else None


def _needless(group: _Group) -> Iterator[int]:
    kind = _kind(group)
    for place, part in enumerate(group.parts):
        if not isinstance(part, _Group):
            continue
        if part.is_operand and not _needs(part, group, kind, place):
            yield from (part.start, part.end)
        yield from _needless(part)


def _needs(child: _Group, parent: _Group, kind: str, place: int) -> bool:
    """Whether an operand's parentheses must stay."""
    own = _kind(child)
    if child.after[:1] in (".", "["):  # a field or an element of the operand
        return True
    if own == "simple":
        return False
    if child.after == "::" or (kind != "operator" and not _stands_alone(parent, place)):
        return True
    if kind in ("list", "case") or (not parent.is_operand and kind == "simple"):
        return False
    if kind in _BOOLEAN:
        return own not in ("operator", "test") and not _binds_tighter(own, kind)
    if kind == own == "operator":
        return not _is_stronger(child, parent, place)
    return kind != "simple" or parent.start >= 0


def _stands_alone(parent: _Group, place: int) -> bool:
    """Whether no neighbour could take a part of an operand; in a user's own text one might."""
    words = parent.words
    around = (*words[max(place - 1, 0) : place], *words[place + 1 : place + 2])
    return all(word in _BETWEEN for word in around)


def _binds_tighter(own: str, kind: str) -> bool:
    return (kind in ("and", "or") and own in ("and", "not")) or own == kind == "or"


def _is_stronger(child: _Group, parent: _Group, place: int) -> bool:
    """Whether arithmetic within arithmetic is parsed correctly without parentheses."""
    inner, outer = _priority(child), _priority(parent)
    return bool(inner and outer) and (inner > outer or (inner == outer and place == 0))


def _priority(group: _Group) -> int:
    """2 for multiplication, 1 for addition, 0 for everything else."""
    signs = [part for part in group.words if part in ("+", "-", "*", "/", "%")]
    others = [part for part in group.words if _is_operator(part) and part not in signs]
    if len(signs) != 1 or others or group.words[:1] == signs:
        return 0
    return 1 if signs[0] in ("+", "-") else 2


def _is_operator(token: str) -> bool:
    return token != "" and token != "::" and token[0] in "-+*/<>=~!@#%^&|`?"


def _kind(group: _Group) -> str:
    """The kind of an expression: "simple" for a name, a constant, a call or a cast of one."""
    words = group.words
    if not _UNKNOWN.isdisjoint(words):
        return "other"
    if "case" in words:
        return "case"
    if "," in words:
        return "list"
    for word in ("or", "and"):
        if word in words:
            return word
    if words[:1] == ["not"]:
        return "not"
    if "any" in words or "all" in words:
        return "other"
    if "is" in words:
        return "test" if words[-1] in _OF_TESTS or "distinct" in words else "other"
    if any(map(_is_operator, words)):
        return "operator"
    if {"collate", "zone"} & set(words):
        return "other"
    casts = words.count("::")
    inner = group.parts[0] if casts and isinstance(group.parts[0], _Group) else None
    return "simple" if inner is None or not inner.is_operand or _kind(inner) == "simple" else "cast"
