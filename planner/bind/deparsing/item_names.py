"""Unambiguous names for items of FROM and their columns (set_rtable_names, set_column_names)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from planner.bind.deparsing.trees import Query, Source, Var


class Named(Struct, frozen=True):
    """The names in a query: of items of FROM and of their columns, by the items' identity. ``used`` are all names taken
    so far, and ``ctes`` the names of WITH queries, also of hidden ones."""

    names: Mapping[int, str]
    columns: Mapping[int, tuple[str, ...]]
    used: frozenset[str] = frozenset()
    ctes: frozenset[str] = frozenset()


NOTHING: Final = Named({}, {})
#: The names that PostgreSQL 15 also has in the FROM of the rule that stores a view.
OF_VIEWS: Final = Named({}, {}, frozenset(("old", "new")))


def named(query: Query, outer: Named) -> Named:
    """Names for a query's items that differ from each other and from those of the outer queries."""
    names, columns, used = dict(outer.names), dict(outer.columns), set(outer.used)
    for source in query.sources:
        called, count = source.name, 0
        while called in used:
            count += 1
            called = f"{source.name}_{count}"
        used.add(called)
        names[id(source)] = called
        columns[id(source)] = _columns(source, columns, query.merged)
    ctes = outer.ctes.union(item.name for item in query.ctes) if query.ctes else outer.ctes
    return Named(names, columns, frozenset(used), ctes)


def _columns(source: Source, known: Mapping[int, tuple[str, ...]], merged: frozenset[str]) -> tuple[str, ...]:
    """The names of an item's columns: from USING or an alias, else their own; repeated names get a number.

    No other column gets a name in ``merged``.
    """
    names = (*source.given, *real_names(source, known)[len(source.given) :])
    taken = {*source.using.values(), *source.avoided, *(merged if source.kind != "join" else ())}
    found: list[str] = []
    for place, wanted in enumerate(names):
        called, count = source.using.get(place, wanted), 0
        while place not in source.using and called in taken:
            count += 1
            called = f"{wanted}_{count}"
        taken.add(called)
        found.append(called)
    return tuple(found)


def real_names(source: Source, known: Mapping[int, tuple[str, ...]]) -> tuple[str, ...]:
    """The names of an item's columns without aliases; for a join, the names that its inner items use."""
    if source.kind != "join":
        return source.real
    return tuple(
        known[id(node.source)][node.place] if isinstance(node, Var) else label
        for node, label in zip(source.parts, source.real, strict=True)
    )


def shows_columns(source: Source, columns: tuple[str, ...], known: Mapping[int, tuple[str, ...]]) -> bool:
    """Whether an item's column names are listed after its name."""
    if source.kind == "function":
        return True
    is_other = columns != real_names(source, known)
    return is_other or (source.kind != "relation" and bool(source.given))
