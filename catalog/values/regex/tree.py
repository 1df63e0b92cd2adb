"""Regular expressions as trees, which ``syntax`` parses and ``matching`` searches for.

Owns: the nodes, and the properties that follow from a node alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

#: Whether a node prefers the longest match, the shortest one, or has no preference.
Preference = bool | None
_NODES: Final = 8192


class Char(Struct, frozen=True, eq=False):
    """One character for which ``accepts`` is true."""

    accepts: Callable[[str], bool]


class Point(Struct, frozen=True, eq=False):
    """An empty match where ``kind`` holds: start, end, line_start, line_end, word_start, word_end, edge, inside."""

    kind: str


class Look(Struct, frozen=True, eq=False):
    """An empty match where the following (or preceding) text matches, or does not match."""

    inner: Node
    behind: bool
    negated: bool


class Group(Struct, frozen=True, eq=False):
    """A capturing group."""

    inner: Node
    number: int


class Sequence(Struct, frozen=True, eq=False):
    """The items in sequence."""

    items: tuple[Node, ...]


class Choice(Struct, frozen=True, eq=False):
    """One of several alternatives; if they match equally, the first."""

    branches: tuple[Node, ...]


class Repeat(Struct, frozen=True, eq=False):
    """A repeated item; ``most`` None: without limit. ``greedy`` None: {m}, whose preference is the item's."""

    inner: Node
    least: int
    most: int | None
    greedy: Preference


class Back(Struct, frozen=True, eq=False):
    """The characters that a group holds; ``like`` matches at least every text that the group can match."""

    number: int
    like: Node
    ignore_case: bool


Node = Char | Point | Look | Group | Sequence | Choice | Repeat | Back


@lru_cache(_NODES)
def refers(node: Node) -> bool:
    """Whether it contains a back reference."""
    match node:
        case Back():
            return True
        case Group() | Repeat():
            return refers(node.inner)
        case Sequence(items=inner) | Choice(branches=inner):
            return any(map(refers, inner))
        case _:
            return False


def anywhere(node: Node) -> Node:
    """A node that matches the same characters at any place."""
    match node:
        case Point() | Look():
            return Sequence(())
        case Group():
            return anywhere(node.inner)
        case Sequence():
            return Sequence(tuple(map(anywhere, node.items)))
        case Choice():
            return Choice(tuple(map(anywhere, node.branches)))
        case Repeat():
            return replace(node, inner=anywhere(node.inner))
        case Back():
            return node.like
        case _:
            return node


@lru_cache(_NODES)
def weight(node: Node) -> int:
    """The number of nodes on the way through it; a reference counts the nodes of its group, and of the groups to which
    that refers."""
    match node:
        case Back():
            return 1 + weight(node.like)
        case Group() | Repeat() | Look():
            return 1 + weight(node.inner)
        case Sequence(items=inner) | Choice(branches=inner):
            return 1 + sum(map(weight, inner))
        case _:
            return 1


@lru_cache(_NODES)
def width(node: Node) -> int | None:
    """The length of every match in characters; None if lengths differ."""
    match node:
        case Char():
            return 1
        case Group():
            return width(node.inner)
        case Sequence():
            widths = list(map(width, node.items))
            return None if None in widths else sum(filter(None, widths))
        case Choice():
            several = set(map(width, node.branches))
            return several.pop() if len(several) == 1 else None
        case Repeat():
            inner = width(node.inner)
            return None if inner is None or node.least != node.most else node.least * inner
        case Back():
            return width(node.like)
        case _:
            return 0


@lru_cache(_NODES)
def captured(node: Node) -> tuple[int, ...]:
    """The numbers of the groups in it."""
    match node:
        case Group():
            return (node.number, *captured(node.inner))
        case Sequence(items=inner) | Choice(branches=inner):
            return tuple(number for item in inner for number in captured(item))
        case Repeat():
            return captured(node.inner)
        case _:
            return ()


@lru_cache(_NODES)
def preference(node: Node) -> Preference:
    """Whether a node is greedy (True), not greedy (False), or neither (section 9.7.3.5 of the manual)."""
    match node:
        case Group():
            return preference(node.inner)
        case Sequence():
            return next((found for found in map(preference, node.items) if found is not None), None)
        case Choice():
            return True
        case Repeat():
            return preference(node.inner) if node.greedy is None else node.greedy
        case _:
            return None


class Pattern(Struct, frozen=True):
    """A tree and the number of its groups."""

    root: Node
    groups: int
