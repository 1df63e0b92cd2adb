"""What a view goes on meaning when columns of what it reads are renamed, added and dropped.

A view is kept as text (and a continuous one as a program), in which columns have the names of its creation. Beside it
stands what these are called now, so that neither is ever written again. PostgreSQL keeps the columns' numbers instead.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from catalog.objects import FileTable, Stream, SystemView, Table, View
from catalog.values.scales import scale_name
from planner.algebra.nodes import Relation, Scan
from planner.algebra.walk import transform


def reads_of(items: Collection[Any]) -> tuple[tuple[int, tuple[tuple[str, str], ...]], ...]:
    """What a new view remembers of the relations that its text names: their columns, as called then and now."""
    kept = {item.oid: item for item in items if isinstance(item, Table | Stream | FileTable | View | SystemView)}
    return tuple((oid, tuple((column.name, column.name) for column in item.columns)) for oid, item in kept.items())


def follow_rename(view: View, oid: int, old: str, new: str) -> View:
    """The view when a column of a relation that it reads, itself or through others, is called otherwise."""
    reads = tuple(
        (item, tuple((text, new if item == oid and now == old else now) for text, now in names))
        for item, names in view.reads
    )
    if not view.continuous:
        return replace(view, reads=reads)
    known = {(item, text) for item, text, _ in view.moved}
    moved = tuple((item, text, new if (item, now) == (oid, old) else now) for item, text, now in view.moved)
    if moved == view.moved and (oid, old) not in known:
        moved = (*moved, (oid, old, new))
    return replace(view, reads=reads, moved=moved)


def follow_columns(view: View, oid: int, left: Collection[str]) -> View:
    """The view when a relation that it reads has lost columns that it does not use."""
    reads = tuple(
        (item, tuple((text, now) for text, now in names if item != oid or now in left)) for item, names in view.reads
    )
    return replace(view, reads=reads)


def with_current_names(relation: Relation, moved: tuple[tuple[int, str, str], ...]) -> Relation:
    """A program's relation reading columns, and the scales beside them, under the names that they have now."""
    names = {(oid, text): now for oid, text, now in moved}
    names |= {(oid, scale_name(text)): scale_name(now) for oid, text, now in moved}

    def change(node: Any) -> Any:
        if not isinstance(node, Scan):
            return node
        return replace(node, sources=tuple(names.get((node.oid, source), source) for source in node.sources))

    changed: Relation = transform(relation, change)
    return changed
