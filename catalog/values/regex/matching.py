"""Where a regular expression matches, as PostgreSQL finds it: the leftmost match, then the longest (or the shortest).

Owns: ``find`` and ``find_all``. A set of places in a text is an integer, bit n for the place before character n, so
that a whole set goes through a node in a few operations:

    after(node, S)    where a match of the node that begins in S may end
    before(node, S)   where a match that ends in S may begin

A match begins at the lowest bit of before(root, everywhere) and ends at the highest or lowest bit of after(root, that
place). Its groups are found by splitting that span from left to right, each part as long (or as short) as the rest
allows (section 9.7.3.5 of the manual; regexec.c's dissection). Matching backtracks only for patterns with back
references, for which spans are only candidates (``dissection``). If a group and a reference to it are at a fixed
distance in one sequence, the only candidate begins are those from which the text repeats itself at that distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Final

from catalog.values.regex.dissection import Dissection
from catalog.values.regex.tree import (
    Back,
    Char,
    Choice,
    Group,
    Look,
    Node,
    Pattern,
    Point,
    Repeat,
    captured,
    preference,
    refers,
    width,
)
from catalog.values.regex.tree import Sequence as Items

#: The first and the last place of the match and of each group; None for a group that is not part of the match.
Span = tuple[int, int] | None
Match = tuple[tuple[int, int], *tuple[Span, ...]]
_NOWHERE: Final = 0
_NODES: Final = 4096


def find(pattern: Pattern, text: str, start: int = 0) -> Match | None:
    """The first match at or after ``start``."""
    return next(_matches(pattern, text, start), None)


def find_all(pattern: Pattern, text: str, start: int = 0) -> Iterator[Match]:
    """All matches; after an empty match, the search continues one character further."""
    return _matches(pattern, text, start)


def _matches(pattern: Pattern, text: str, start: int) -> Iterator[Match]:
    places = _Text(text)
    dissection = Dissection(places, text)
    begins = places.before(pattern.root, places.all)
    greedy = preference(pattern.root) is not False
    while start <= len(text):
        here = begins >> start
        if not here:
            return
        begin = start + _lowest(here)
        ends = places.after(pattern.root, 1 << begin)
        end = _chosen(ends, greedy)
        groups: list[Span] = [None] * (pattern.groups + 1)
        if refers(pattern.root):
            found = _dissected(pattern, dissection, begin, ends, greedy)
            if found is None:
                start = begin + 1
                continue
            end, groups = found
        elif pattern.groups:
            places.take_apart(pattern.root, begin, end, groups)
        yield ((begin, end), *groups[1:])
        start = end + (begin == end)


def _dissected(
    pattern: Pattern, dissection: Dissection, begin: int, ends: int, greedy: bool
) -> tuple[int, list[Span]] | None:
    """The first end of a match, in order of preference, that the back references allow, and the match's groups."""
    while ends:
        end = _chosen(ends, greedy)
        groups: list[Span] = [None] * (pattern.groups + 1)
        if dissection.matches(pattern.root, begin, end, groups):
            return end, groups
        ends ^= 1 << end
    return None


def _lowest(places: int) -> int:
    return (places & -places).bit_length() - 1


def _chosen(places: int, greedy: bool) -> int:
    return places.bit_length() - 1 if greedy else _lowest(places)


@lru_cache(_NODES)
def _runs(items: tuple[Node, ...]) -> list[Node]:
    """Joins neighbours without captures and with the same preference into one part, as only their total length is
    chosen."""
    found: list[Node] = []
    run: list[Node] = []
    wants: bool | None = None
    for item in items:
        its = preference(item)
        if captured(item) or refers(item) or (its is not None and wants is not None and its != wants):
            found += [Items(tuple(run)), item] if run else [item]
            run, wants = [], None
            continue
        run.append(item)
        wants = wants if wants is not None else its
    return [*found, Items(tuple(run))] if run else found


@lru_cache(_NODES)
def _fewer(node: Repeat) -> Repeat:
    """One repetition fewer."""
    return Repeat(node.inner, node.least - 1, None if node.most is None else node.most - 1, node.greedy)


@lru_cache(_NODES)
def _echoes(node: Items) -> dict[int, list[tuple[int, int]]]:
    """For each group among a sequence's items: the distance of each reference from the group's begin, and the group's
    length, if both are the same in all matches."""
    found: dict[int, list[tuple[int, int]]] = {}
    for place, group in enumerate(node.items):
        if not isinstance(group, Group) or not (length := width(group)):
            continue
        distance = 0
        for before, item in pairwise(node.items[place:]):
            step = width(before)
            if step is None:
                break
            distance += step
            if isinstance(item, Back) and item.number == group.number and not item.ignore_case:
                found.setdefault(place, []).append((distance, length))
    return found


class _Text:
    """A text, and the sets of its places."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.all = (1 << len(text) + 1) - 1
        self._chars: dict[Char, int] = {}
        self._where: dict[str, int] = {}
        self._alike: dict[int, int] = {}
        for place, char in enumerate(text):
            self._where[char] = self._where.get(char, 0) | 1 << place

    def _mask(self, node: Char) -> int:
        """The places before characters that a node matches."""
        known = self._chars.get(node)
        if known is None:
            known = 0
            for char, places in self._where.items():
                if node.accepts(char):
                    known |= places
            self._chars[node] = known
        return known

    def _of(self, accepts: Callable[[str], bool]) -> int:
        return sum(places for char, places in self._where.items() if accepts(char))

    def _echoed(self, distance: int, length: int) -> int:
        """The places from which this many characters are repeated at a distance."""
        alike = self._alike.get(distance)
        if alike is None:
            alike = _union(places & places >> distance for places in self._where.values())
            self._alike[distance] = alike
        found = alike
        for shift in range(1, length):
            found &= alike >> shift
        return found

    def _points(self, kind: str) -> int:
        """The places at which a zero-width condition holds."""
        match kind:
            case "start":
                return 1
            case "end":
                return 1 << len(self._text)
            case "line_start":
                return 1 | self._of("\n".__eq__) << 1
            case "line_end":
                return 1 << len(self._text) | self._of("\n".__eq__)
        follows = self._of(lambda char: char.isalnum() or char == "_")
        precedes = follows << 1
        match kind:
            case "word_start":
                return follows & ~precedes
            case "word_end":
                return precedes & ~follows
            case "edge":
                return follows ^ precedes
            case _:
                return self.all & ~(follows ^ precedes)

    def _seen(self, node: Look) -> int:
        """The places at which a look-ahead or look-behind holds."""
        found = self.after(node.inner, self.all) if node.behind else self.before(node.inner, self.all)
        return self.all & ~found if node.negated else found

    def after(self, node: Node, places: int) -> int:
        """The places where matches that begin at the given places may end."""
        if not places:
            return _NOWHERE
        match node:
            case Char():
                return (places & self._mask(node)) << 1
            case Point():
                return places & self._points(node.kind)
            case Look():
                return places & self._seen(node)
            case Group():
                return self.after(node.inner, places)
            case Back():
                return self.after(node.like, places)
            case Items():
                for item in node.items:
                    places = self.after(item, places)
                return places
            case Choice():
                return _union(self.after(branch, places) for branch in node.branches)
            case Repeat():
                return _repeated(partial(self.after, node.inner), places, node.least, node.most)

    def before(self, node: Node, places: int) -> int:
        """The places where matches that end at the given places may begin."""
        if not places:
            return _NOWHERE
        match node:
            case Char():
                return places >> 1 & self._mask(node)
            case Point():
                return places & self._points(node.kind)
            case Look():
                return places & self._seen(node)
            case Group():
                return self.before(node.inner, places)
            case Back():
                return self.before(node.like, places)
            case Items():
                echoes = _echoes(node)
                for place in range(len(node.items) - 1, -1, -1):
                    places = self.before(node.items[place], places)
                    for distance, length in echoes.get(place, ()):
                        places &= self._echoed(distance, length)
                return places
            case Choice():
                return _union(self.before(branch, places) for branch in node.branches)
            case Repeat():
                return _repeated(partial(self.before, node.inner), places, node.least, node.most)

    def parts(self, node: Items) -> list[Node]:
        """The parts of a sequence that are split one by one."""
        return _runs(node.items)

    # --- groups -------------------------------------------------------------------------------------------------------

    def take_apart(self, node: Node, begin: int, end: int, groups: list[Span]) -> None:
        """Records the groups of a node that matches from ``begin`` to ``end``."""
        if not captured(node):
            return
        match node:
            case Group():
                groups[node.number] = (begin, end)
                self.take_apart(node.inner, begin, end, groups)
            case Items():
                self._in_sequence(_runs(node.items), begin, end, groups)
            case Choice():
                for branch in node.branches:
                    if self.after(branch, 1 << begin) >> end & 1:
                        self.take_apart(branch, begin, end, groups)
                        return
            case Repeat():
                self._in_repetition(node, begin, end, groups)
            case _:
                raise AssertionError(type(node))

    def _in_sequence(self, parts: Sequence[Node], begin: int, end: int, groups: list[Span]) -> None:
        rests = [1 << end]  # where each part may end so that the following parts still reach the end
        for part in reversed(parts[1:]):
            rests.append(self.before(part, rests[-1]))
        for part, rest in zip(parts, reversed(rests), strict=True):
            middle = _chosen(self.after(part, 1 << begin) & rest, preference(part) is not False)
            self.take_apart(part, begin, middle, groups)
            begin = middle

    def _in_repetition(self, node: Repeat, begin: int, end: int, groups: list[Span]) -> None:
        """The captures of the last repetition count: x{m,n} is x{m-1,n-1} followed by x, if m is not 0 (regcomp.c,
        parseqatom)."""
        if node.least == 0:
            self._in_iteration(node, begin, end, groups)
            return
        middles = self.after(_fewer(node), 1 << begin) & self.before(node.inner, 1 << end)
        middle = begin if node.least == node.most == 1 else _chosen(middles, preference(node) is not False)
        self.take_apart(node.inner, middle, end, groups)

    def _in_iteration(self, node: Repeat, begin: int, end: int, groups: list[Span]) -> None:
        """Iterations one after the other; an iteration is empty only if the whole is (regexec.c, citerdissect and
        creviterdissect)."""
        greedy, left = preference(node.inner) is not False, node.most
        if begin == end and left != 0 and greedy and self.after(node.inner, 1 << begin) >> end & 1:
            self.take_apart(node.inner, begin, end, groups)
        rest = _repeated(partial(self.before, node.inner), 1 << end, 0, None)
        while begin < end:
            if left is not None:
                left -= 1
                rest = _repeated(partial(self.before, node.inner), 1 << end, 0, left)
            middle = _chosen(self.after(node.inner, 1 << begin) & rest & ~(1 << begin), greedy)
            for number in captured(node.inner):
                groups[number] = None
            self.take_apart(node.inner, begin, middle, groups)
            begin = middle


def _union(found: Iterator[int]) -> int:
    places = 0
    for item in found:
        places |= item
    return places


def _repeated(step: Callable[[int], int], places: int, least: int, most: int | None) -> int:
    """The places that this number of steps leads to."""
    for _ in range(least):
        places = step(places)
    found = new = places
    count = least
    while new and (most is None or count < most):
        new = step(new) & ~found
        found |= new
        count += 1
    return found
