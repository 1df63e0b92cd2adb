"""Checks that the values in a decoded struct have the declared types, as msgspec builds structs from any values.

Owns: that check, for structs read from files to which other processes can write. Texts must be such that a client could
have sent them, and integers must fit 64 bits, so that everything derived from them can be shown. A field that accepts
any value may only hold constants.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_ANY: Final = (object, Any)
_CONSTANTS: Final = (NoneType, bool, int, float, str, bytes, Decimal, dt.date, dt.time)

#: Whether a value has a type.
Test = Callable[[Any], bool]


class Typed:
    """The classes of structs to check."""

    def __init__(self, kinds: Iterable[type], within: Iterable[type] = ()) -> None:
        """``within``: further classes, whose items are also checked within the fields of other structs."""
        self._within = frozenset(within)
        self._kinds = frozenset(kinds) | self._within
        #: By class, the tests of its fields; made at the first struct of the class.
        self._tests: dict[type, tuple[tuple[str, Test], ...]] = {}

    def require(self, item: Any) -> None:
        """Raises TypeError or ValueError if a field of a struct does not have its type."""
        tests = self._tests.get(type(item)) or self._tests_of(type(item))
        for name, fits in tests:
            if not fits(getattr(item, name)):
                raise TypeError(f"{name} of {type(item).__name__} has the wrong type")

    def _tests_of(self, kind: type) -> tuple[tuple[str, Test], ...]:
        if kind not in self._kinds:
            raise TypeError(f"{kind.__name__} has no place here")
        found = tuple((name, self._test(hint)) for name, hint in get_type_hints(kind).items())
        self._tests[kind] = found
        return found

    def _test(self, kind: Any) -> Test:
        """The test of a declared type."""
        arguments, origin = get_args(kind), get_origin(kind)
        if origin is Literal:
            return lambda value: value in arguments
        if origin is tuple and arguments[-1] is Ellipsis:
            fits = self._test(arguments[0])
            return lambda value: isinstance(value, tuple) and all(map(fits, value))
        if origin is tuple:
            tests = tuple(map(self._test, arguments))
            return lambda value: (
                isinstance(value, tuple)
                and len(value) == len(tests)
                and all(fits(item) for fits, item in zip(tests, value, strict=True))
            )
        if origin is Mapping:
            named, of = map(self._test, arguments)
            return lambda value: (
                isinstance(value, Mapping) and all(named(name) and of(item) for name, item in value.items())
            )
        if arguments:
            return self._one_of(arguments)
        if kind in _ANY:
            return self._is_constant
        return lambda value: isinstance(value, kind) and self._is_sound(value, kind)

    def _one_of(self, kinds: tuple[Any, ...]) -> Test:
        """The test of a union, which may have many classes: that of the value's own class comes first."""
        tests = {kind: self._test(kind) for kind in kinds}

        def fits(value: Any) -> bool:
            own = tests.get(type(value))
            return (own is not None and own(value)) or any(test(value) for test in tests.values())

        return fits

    def _is_constant(self, value: Any) -> bool:
        if isinstance(value, tuple):
            return all(map(self._is_constant, value))
        return isinstance(value, _CONSTANTS) and self._is_sound(value, object)

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
