"""What items of FROM and their columns are called, so that no name means two (set_rtable_names, set_column_names)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from planner.bind.deparsing.trees import Query, Source


class Named(Struct, frozen=True):
    """A query's names: of items of FROM and of their columns, by the items' identity; ``used`` are all so far, and
    ``ctes`` those of WITH queries, also where they are not to be seen.
    """

    names: Mapping[int, str]
    columns: Mapping[int, tuple[str, ...]]
    used: frozenset[str] = frozenset()
    ctes: frozenset[str] = frozenset()


NOTHING: Final = Named({}, {})
#: What the rule that PostgreSQL 15 keeps a view as has in its FROM, too.
OF_VIEWS: Final = Named({}, {}, frozenset(("old", "new")))


def named(query: Query, outer: Named) -> Named:
    """The names of a query's items, different from each other and from those of the queries around it."""
    names, columns, used = dict(outer.names), dict(outer.columns), set(outer.used)
    for source in query.sources:
        called, count = source.name, 0
        while called in used:
            count += 1
            called = f"{source.name}_{count}"
        used.add(called)
        names[id(source)] = called
        columns[id(source)] = _columns(source)
    ctes = outer.ctes.union(item.name for item in query.ctes)
    return Named(names, columns, frozenset(used), ctes)


def _columns(source: Source) -> tuple[str, ...]:
    """An item's columns: as somebody has called them, else as they are; of equal ones the others get a number."""
    found: list[str] = []
    for wanted in (*source.given, *source.real[len(source.given) :]):
        called, count = wanted, 0
        while called in found:
            count += 1
            called = f"{wanted}_{count}"
        found.append(called)
    return tuple(found)


def shows_columns(source: Source, columns: tuple[str, ...]) -> bool:
    """Whether an item's columns are listed behind its name."""
    if source.kind == "function":
        return True
    is_other = columns != source.real
    return is_other or (source.kind != "relation" and bool(source.given))
