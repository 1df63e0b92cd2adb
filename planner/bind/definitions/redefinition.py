"""A relation under another definition, if its rows and their meaning do not change."""

from __future__ import annotations

from catalog.objects import CatalogObject, SystemView, Table
from planner.statements.definitions import AlterTable, Redefine


def redefined(
    tag: str, before: CatalogObject, after: CatalogObject, notices: tuple[str, ...] = (), renames: bool = False
) -> AlterTable | Redefine:
    """The statement that has ``after`` instead of ``before``; ``renames`` as in AlterTable."""
    if isinstance(before, Table) and isinstance(after, Table):
        return AlterTable(tag, before, after, notices=notices, renames=renames)
    assert not isinstance(before, Table | SystemView)
    assert not isinstance(after, Table | SystemView)
    return Redefine(tag, before, after, notices=notices)
