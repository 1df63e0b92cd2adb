"""Which relations a search path finds by their unqualified names, and how regclass therefore shows them.

Owns: ``relation_visibility``, one row for each relation of pg_class. Of several relations with one name, the path finds
the one in its first schema. Functions look this up instead of comparing pg_class with itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from catalog.catalog import whole_path
from catalog.system.own_objects import MARK
from catalog.values.identifiers import quote_name

#: The columns of its rows.
VISIBILITY: Final = ("oid", "visible", "shown")
_MARKED: Final = re.compile(rf"{MARK}(\d+){MARK}")


class Visibility:
    """The result for a search path: rows (oid, visible, shown) in ``table``, and the shown names by oid in
    ``names``."""

    def __init__(self, classes: pa.Table, namespaces: pa.Table, path: tuple[str, ...]) -> None:
        """``classes`` and ``namespaces`` are the rows of pg_class and pg_namespace."""
        schemas: dict[int, str] = dict(zip(*_lists(namespaces, "oid", "nspname"), strict=True))
        oids, names, homes = _lists(classes, "oid", "relname", "relnamespace")
        places = {name: place for place, name in reversed([*enumerate(whole_path(path))])}
        positions = [places.get(schemas.get(home, ""), len(places)) for home in homes]
        first: dict[str, int] = {}
        for name, position in zip(names, positions, strict=True):
            first[name] = min(position, first.get(name, position))
        found = [at == first[name] < len(places) for name, at in zip(names, positions, strict=True)]
        shown = [
            quote_name(name) if is_found else f"{quote_name(schemas.get(home, ''))}.{quote_name(name)}"
            for name, home, is_found in zip(names, homes, found, strict=True)
        ]
        self.names: Mapping[int, str] = dict(zip(oids, shown, strict=True))
        self.table = pa.table([pa.array(oids, pa.int64()), pa.array(found), pa.array(shown)], [*VISIBILITY])

    def named(self, text: str) -> str:
        """A text in which ``relation_mark``'s marks are replaced with the relations' names in the form that the path
        requires."""
        return _MARKED.sub(lambda match: self.names.get(int(match[1]), match[0]), text)


def relation_mark(oid: int) -> str:
    """The mark for a relation's name in a text, which ``Visibility.named`` replaces."""
    return f"{MARK}{oid}{MARK}"


def _lists(table: pa.Table, *names: str) -> tuple[list[Any], ...]:
    return tuple(table.column(name).to_pylist() for name in names)
