"""Read sets: what was looked up in a catalog. A result computed from the look-ups is valid as long as they give equal
answers.

Owns: ``Look``, a catalog whose mappings record look-ups, and ``Seen``, the recorded look-ups and their comparison with
another version of the catalog. Plans and the rows of system relations thus survive DDL that does not concern them. No
look-up is missed, as a catalog can only be read through its fields. Roles, default privileges and the existence of
temporary relations are compared as wholes. The version and the next oid are not recorded: only DDL reads them, and its
results are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog

_MAPPINGS: Final = ("objects", "names", "schemas", "types", "rights", "functions", "extensions")


class _Noted(Mapping[Any, Any]):
    """A mapping that records the keys that were looked up, whether found or not, and whether the whole mapping was
    iterated."""

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
    """The look-ups in ``catalog``: for each field the keys, or None if the whole field was read."""

    catalog: Catalog
    parts: tuple[tuple[str, frozenset[Any] | None], ...]

    def holds(self, catalog: Catalog) -> bool:
        """Whether all look-ups give equal answers in another version of the catalog."""
        before = self.catalog
        if before is catalog:
            return True
        if before.roles is not catalog.roles or before.defaults is not catalog.defaults:
            return False
        if bool(before.temporary) != bool(catalog.temporary):
            return False
        return all(_agree(getattr(before, name), getattr(catalog, name), keys) for name, keys in self.parts)

    def within(self, catalog: Catalog) -> Seen:
        """This read set with another version of the catalog for which it holds, so that the older version can be
        freed."""
        return replace(self, catalog=catalog)


def _agree(before: Mapping[Any, Any], now: Mapping[Any, Any], keys: frozenset[Any] | None) -> bool:
    if before is now:
        return True
    return keys is not None and all(_same(before.get(key), now.get(key)) for key in keys)


def _same(one: Any, other: Any) -> bool:
    """Whether two look-ups found the same object; a redefined object is not the same, even if it is equal."""
    return one is other or (isinstance(one, int) and one == other)


class Look:
    """A catalog to read, and the record of what was read."""

    def __init__(self, catalog: Catalog) -> None:
        self._of = catalog
        self._noted = {name: _Noted(getattr(catalog, name)) for name in _MAPPINGS}
        #: The catalog, with recording mappings.
        self.catalog = replace(catalog, **self._noted)

    @property
    def seen(self) -> Seen:
        """The look-ups so far."""
        parts = ((name, None if it.was_walked else frozenset(it.keys_asked)) for name, it in self._noted.items())
        return Seen(self._of, tuple((name, keys) for name, keys in parts if keys is None or keys))
