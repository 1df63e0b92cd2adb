"""What a reader has looked up in a catalog: a result computed from it is valid while these look-ups give equal answers.

Owns: ``Look``, a catalog whose mappings note what is asked of them, and ``Seen``, what was asked and how another
version of the catalog would have answered. A plan, or a system relation's rows, thus outlive definitions that have
nothing to do with them. No look-up goes unnoticed, since a catalog is known by its fields alone. Roles, default
privileges and whether temporary relations exist are compared as wholes. The version and the next oid are not noted:
definitions alone read them, and results of definitions are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog

_MAPPINGS: Final = ("objects", "names", "schemas", "types", "rights", "functions", "extensions")


class _Noted(Mapping[Any, Any]):
    """A mapping that notes the keys that were looked up, found or not, and whether the whole mapping was iterated."""

    __slots__ = ("_items", "keys_asked", "was_walked")

    def __init__(self, items: Mapping[Any, Any]) -> None:
        self._items = items
        self.keys_asked: set[Any] = set()
        self.was_walked = False

    def __getitem__(self, key: Any) -> Any:
        self.keys_asked.add(key)
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        self.was_walked = True
        return iter(self._items)

    def __len__(self) -> int:
        self.was_walked = True
        return len(self._items)


class Seen(Struct, frozen=True, eq=False):
    """What was looked at in ``catalog``: of each field the keys, or None where all of it was."""

    catalog: Catalog
    parts: tuple[tuple[str, frozenset[Any] | None], ...]

    def holds(self, catalog: Catalog) -> bool:
        """Whether it is the same in another version of the catalog."""
        before = self.catalog
        if before is catalog:
            return True
        if before.roles is not catalog.roles or before.defaults is not catalog.defaults:
            return False
        if bool(before.temporary) != bool(catalog.temporary):
            return False
        return all(_agree(getattr(before, name), getattr(catalog, name), keys) for name, keys in self.parts)

    def within(self, catalog: Catalog) -> Seen:
        """This read set for another version of the catalog for which it holds, so that the older version can be
        freed."""
        return replace(self, catalog=catalog)


def _agree(before: Mapping[Any, Any], now: Mapping[Any, Any], keys: frozenset[Any] | None) -> bool:
    if before is now:
        return True
    return keys is not None and all(_same(before.get(key), now.get(key)) for key in keys)


def _same(one: Any, other: Any) -> bool:
    """Whether two look-ups found the same; what was defined anew is another object, if an equal one."""
    return one is other or (isinstance(one, int) and one == other)


class Look:
    """A catalog to be looked at, and what has been seen of it."""

    def __init__(self, catalog: Catalog) -> None:
        self._of = catalog
        self._noted = {name: _Noted(getattr(catalog, name)) for name in _MAPPINGS}
        #: Answers as the catalog does.
        self.catalog = replace(catalog, **self._noted)

    @property
    def seen(self) -> Seen:
        """What was looked at so far."""
        parts = ((name, None if it.was_walked else frozenset(it.keys_asked)) for name, it in self._noted.items())
        return Seen(self._of, tuple((name, keys) for name, keys in parts if keys is None or keys))
