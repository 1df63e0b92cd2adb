"""Decides whether a part of a text matches a regular expression with back references, and what its groups match.

Owns: ``Dissection``. The sets of ``matching`` do not handle back references: for them, a reference matches any text
that its group could match. So a span that they find is split into parts, each as long (or as short) as possible; if a
back reference finds other characters than its group holds, the part before it is made shorter (or longer) (regexec.c:
cdissect and its callees). As there, a part is split in one way only for each of its lengths. The time can be
exponential in the pattern's length; ``STEPS`` limits it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Protocol

from catalog.values.errors import unsupported
from catalog.values.regex.tree import Back, Choice, Group, Node, Repeat, captured, preference, refers
from catalog.values.regex.tree import Sequence as Items

Span = tuple[int, int] | None
#: The most parts that one search examines in a short text; in a long text each part costs more.
STEPS: Final = 200_000
_LONG: Final = 512


class Places(Protocol):
    """A text's sets of places, and how parts without back references are split."""

    def after(self, node: Node, places: int) -> int: ...

    def before(self, node: Node, places: int) -> int: ...

    def parts(self, node: Items) -> list[Node]: ...

    def take_apart(self, node: Node, begin: int, end: int, groups: list[Span]) -> None: ...


class Dissection:
    """The dissection for one search in a text, from the text's beginning."""

    def __init__(self, places: Places, text: str) -> None:
        self._places = places
        self._text = text
        self._left, self._cost = STEPS, 1 + len(text) // _LONG

    def matches(self, node: Node, begin: int, end: int, groups: list[Span]) -> bool:
        """Whether a node matches the characters from ``begin`` to ``end``, which the sets allow; records its groups.
        Raises 0A000 if that takes too long."""
        found = self._matches(node, begin, end, groups)
        if not found:
            _forget(node, groups)
        return found

    def _matches(self, node: Node, begin: int, end: int, groups: list[Span]) -> bool:
        self._step()
        if not refers(node):
            self._places.take_apart(node, begin, end, groups)
            return True
        match node:
            case Back():
                return self._repeats(node, 1, 1, begin, end, groups)
            case Group():
                groups[node.number] = (begin, end)
                return self.matches(node.inner, begin, end, groups)
            case Items():
                return self._in_sequence(self._places.parts(node), begin, end, groups)
            case Choice():
                branches = (item for item in node.branches if self._may_take(item, begin, end))
                return any(self.matches(item, begin, end, groups) for item in branches)
            case Repeat(inner=Back() as inner):
                return self._repeats(inner, node.least, node.most, begin, end, groups)
            case Repeat():
                return self._in_iteration(node, begin, end, groups)
            case _:
                raise AssertionError(type(node))

    def _step(self) -> None:
        self._left -= self._cost
        if self._left < 0:
            raise unsupported(
                "a regular expression with back references that takes this long", "Use several simpler expressions."
            )

    def _may_take(self, node: Node, begin: int, end: int) -> bool:
        return bool(self._places.after(node, 1 << begin) >> end & 1)

    def _repeats(self, node: Back, least: int, most: int | None, begin: int, end: int, groups: list[Span]) -> bool:
        """The given number of repetitions of the group's text; an empty text may be repeated any number of times."""
        span = groups[node.number]
        if span is None:
            return False
        held, found = self._text[slice(*span)], self._text[begin:end]
        if not held:
            return not found
        times, rest = divmod(len(found), len(held))
        if rest or times < least or (most is not None and times > most):
            return False
        whole = held * times
        return found.lower() == whole.lower() if node.ignore_case else found == whole

    def _in_sequence(self, parts: list[Node], begin: int, end: int, groups: list[Span]) -> bool:
        part, *others = parts
        if not others:
            return self.matches(part, begin, end, groups)
        rest = 1 << end
        for item in reversed(others):
            rest = self._places.before(item, rest)
        middles = self._places.after(part, 1 << begin) & rest
        for middle in _in_order(middles, preference(part) is not False):
            for item in parts:
                _forget(item, groups)
            if self.matches(part, begin, middle, groups) and self._in_sequence(others, middle, end, groups):
                return True
        return False

    def _in_iteration(self, node: Repeat, begin: int, end: int, groups: list[Span]) -> bool:
        """Iterations one after the other; an iteration is empty only if the least number requires it (citerdissect and
        creviterdissect)."""
        greedy, least = preference(node.inner) is not False, node.least
        if least == 0:
            if begin == end:
                if greedy and node.most != 0 and self._may_take(node.inner, begin, end):
                    self.matches(node.inner, begin, end, groups)
                return True
            least = 1
        most = max(least, end - begin if node.most is None else min(node.most, end - begin))
        ends, choices = [begin], [self._choices(node.inner, begin, greedy)]
        while choices:
            self._step()
            middle, before, count = next(choices[-1], None), ends[-1], len(ends)
            if middle is None:
                choices.pop()
                ends.pop()
            elif middle == end:
                if count >= least and self._all_match(node.inner, [*ends, end], groups):
                    return True
            elif count < most and (middle != before or 0 <= end - middle <= least - count):
                ends.append(middle)
                choices.append(self._choices(node.inner, middle, greedy))
        return False

    def _choices(self, inner: Node, begin: int, greedy: bool) -> Iterator[int]:
        return _in_order(self._places.after(inner, 1 << begin), greedy)

    def _all_match(self, inner: Node, ends: list[int], groups: list[Span]) -> bool:
        for begin, end in pairwise(ends):
            _forget(inner, groups)
            if not self.matches(inner, begin, end, groups):
                return False
        return True


def _forget(node: Node, groups: list[Span]) -> None:
    for number in captured(node):
        groups[number] = None


def _in_order(places: int, greedy: bool) -> Iterator[int]:
    """The places of a set, in descending or ascending order."""
    while places:
        place = places.bit_length() - 1 if greedy else (places & -places).bit_length() - 1
        yield place
        places ^= 1 << place
