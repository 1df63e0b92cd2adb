"""Which queries of WITH read which, by the names in their parse trees.

Owns: ``read_first``, the order in which the queries of WITH RECURSIVE are bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from pglast.visitors import Visitor

from catalog.values.errors import SqlError
from planner.bind.state.bind_state import BindState


class _Names(Visitor):
    """Whether a name is that of a relation anywhere in a query."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.found = False

    def visit_RangeVar(self, ancestors: Any, node: Any) -> None:
        self.found |= node.relname == self._name and node.schemaname is None


class _Counts(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def visit_RangeVar(self, ancestors: Any, node: Any) -> None:
        """One relation in FROM."""
        self.found[node.relname] += node.schemaname is None


def references(query: Any) -> Counter[str]:
    """How often each bare name stands in FROM, anywhere in a query."""
    counts = _Counts()
    counts(query)
    return counts.found


def refers_to(query: Any, name: str) -> bool:
    """Whether a WITH query reads a relation of that name."""
    names = _Names(name)
    names(query)
    return names.found


def read_first(binding: BindState, items: Sequence[Any]) -> list[Any]:
    """The queries of WITH RECURSIVE, each behind those that it reads, else as written. Raises 0A000 for a circle."""
    places = {item.ctename: place for place, item in enumerate(items)}
    waits: list[int] = []
    readers: dict[int, list[int]] = {}
    for place, item in enumerate(items):
        read = {places[name] for name in references(item.ctequery) if name in places} - {place}
        waits.append(len(read))
        for other in read:
            readers.setdefault(other, []).append(place)
    ready = [place for place, count in enumerate(waits) if not count]  # a heap: the first as written comes first
    found: list[Any] = []
    while ready:
        place = heappop(ready)
        found.append(items[place])
        for reader in readers.get(place, ()):
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, reader)
    if len(found) < len(items):
        message = "mutual recursion between WITH items is not implemented"
        position = next(binding.position(item) for item, count in zip(items, waits, strict=True) if count)
        raise SqlError("0A000", message, position=position)
    return found
