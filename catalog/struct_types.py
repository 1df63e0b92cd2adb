"""Checks that the values in a decoded struct have the declared types, as msgspec builds structs from any values.

Owns: that check, for structs read from files to which other processes can write. Texts must be such that a client could
have sent them, and integers must fit 64 bits, so that everything derived from them can be shown. A field that accepts
any value may only hold constants.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_ANY: Final = (object, Any)
_CONSTANTS: Final = (NoneType, bool, int, float, str, bytes, Decimal, dt.date, dt.time)


class Typed:
    """The classes of structs to check."""

    def __init__(self, kinds: Iterable[type], within: Iterable[type] = ()) -> None:
        """``within``: further classes, whose items are also checked within the fields of other structs."""
        self._within = frozenset(within)
        self._hints = {kind: get_type_hints(kind) for kind in {*kinds, *self._within}}

    def require(self, item: Any) -> None:
        """Raises TypeError or ValueError if a field of a struct does not have its type."""
        for name, kind in self._hints[type(item)].items():
            if not self._fits(getattr(item, name), kind):
                raise TypeError(f"{name} of {type(item).__name__} has the wrong type")

    def _fits(self, value: Any, kind: Any) -> bool:
        arguments, origin = get_args(kind), get_origin(kind)
        if origin is Literal:
            return value in arguments
        if origin is tuple:
            if not isinstance(value, tuple):
                return False
            kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
            return len(value) == len(kinds) and all(map(self._fits, value, kinds))
        if origin is Mapping:
            named, of = arguments
            return isinstance(value, Mapping) and all(
                self._fits(name, named) and self._fits(item, of) for name, item in value.items()
            )
        if arguments:
            return any(self._fits(value, each) for each in arguments)
        if kind not in _ANY:
            return isinstance(value, kind) and self._is_sound(value, kind)
        if isinstance(value, tuple):
            return all(self._fits(item, kind) for item in value)
        return isinstance(value, _CONSTANTS) and self._is_sound(value, kind)

    def _is_sound(self, value: Any, kind: Any) -> bool:
        if isinstance(value, bool):
            return kind in (bool, *_ANY)
        if isinstance(value, str):
            value.encode()  # raises for half of a surrogate pair, which JSON can contain
            return "\0" not in value
        if kind is int:
            return bool(_LEAST <= value <= _MOST)
        if type(value) in self._within:
            self.require(value)
        return True
