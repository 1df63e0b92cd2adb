"""What was made of immutable objects, for as long as they are the same ones.

To hash a definition of many columns, or a statement over it, takes longer than most of what is made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Remembered(Generic[_Key, _Value]):
    """``make`` with a memory of ``most`` objects, by identity. Safe for many threads, which may make a value twice."""

    def __init__(self, make: Callable[[_Key], _Value], most: int = 256) -> None:
        self._make = make
        self._most = most
        self._known: dict[int, tuple[_Key, _Value]] = {}

    def __call__(self, item: _Key) -> _Value:
        """What is made of an object."""
        known = self._known.get(id(item))
        if known is None or known[0] is not item:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[id(item)] = (item, self._make(item))
        return known[1]
