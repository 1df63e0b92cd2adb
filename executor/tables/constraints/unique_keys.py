"""Unique keys over columns, and unique indexes over expressions or a part of the rows, as SQL parts.

Owns: ``Key``. The parts of an index are computed over the rows to check; they are NULL, which equals nothing, in a row
that is not in the index. With NULLS NOT DISTINCT, a part is a row of the one value: it is never NULL, and equals
another such row whose value is NULL, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from catalog.objects import Index, Table, UniqueKey
from catalog.values.identifiers import quote_name
from catalog.values.types import SqlType
from executor.embedded.printing.dialect import DuckPrinter
from executor.printing.nodes import column_name, quoted
from executor.tables.changes import stored
from executor.tables.error_rows import shown
from planner.bind.binder import index_parts
from planner.bind.changes.index_expressions import IndexParts


class Key(Struct, frozen=True):
    """A unique key: the names of its parts in the rows of ``among``, their texts and types, and the table columns on
    which they depend. ``nulls_alike``: a part is a row of its value."""

    name: str
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    kinds: tuple[SqlType, ...]
    uses: tuple[str, ...]
    computed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    nulls_alike: bool = False

    def among(self, item: str, row_ids: bool = False) -> str:
        """Rows, as a FROM item, with the parts beside their columns."""
        if not self.computed:
            return item
        rowid = ", rowid" if row_ids else ""
        below = f"(SELECT *{rowid}, {', '.join(self.beside)} FROM {item})"
        return f"(SELECT *, {', '.join(self.computed)} FROM {below})"

    def stored(self, table: Table) -> str:
        """The table's rows with the parts and their row ids."""
        return self.among(stored(table), row_ids=True)

    def shown(self, values: tuple[object, ...]) -> str:
        """The parts and their values in an error's form."""
        if self.nulls_alike:
            values = tuple(value[0] for value in values if isinstance(value, tuple))
        written = (shown(value, kind) for value, kind in zip(values, self.kinds, strict=True))
        return f"({', '.join(self.texts)})=({', '.join(written)})"


def key_of(table: Table, key: UniqueKey | Index) -> Key:
    """The key of a table's constraint or unique index."""
    if isinstance(key, UniqueKey) and not key.nulls_alike:
        kinds = {column.name: column.type for column in table.columns}
        return Key(key.name, key.columns, key.columns, tuple(kinds[name] for name in key.columns), key.columns)
    index = _as_index(key) if isinstance(key, UniqueKey) else key
    bound = index_parts(table, index)
    names = tuple(f"__{key.name}_{place}" for place in range(len(bound.parts)))
    return Key(
        key.name,
        names,
        index.parts[: len(names)] if isinstance(key, Index) else key.columns,
        tuple(part.type for part in bound.parts),
        tuple(column.name for column in bound.columns),
        tuple(f"{value} AS {quoted(name)}" for value, name in zip(_values(bound, index), names, strict=True)),
        tuple(f"{quoted(column.name)} AS {quoted(column_name(column))}" for column in bound.columns),
        index.nulls_alike,
    )


def _as_index(key: UniqueKey) -> Index:
    """A key as the index that computes its parts."""
    return Index(key.name, tuple(map(quote_name, key.columns)), key.columns, unique=True, nulls_alike=key.nulls_alike)


def _values(bound: IndexParts, index: Index) -> Iterator[str]:
    """The parts in the engine's SQL."""
    printer = DuckPrinter(wide=True)
    if not index.nulls_alike:
        yield from map(printer.print_scalar, bound.unique)
        return
    where = None if bound.predicate is None else printer.print_scalar(bound.predicate)
    for part in bound.parts:
        value = f"row({printer.print_scalar(part)})"
        yield value if where is None else f"CASE WHEN {where} THEN {value} END"


def enforced(table: Table) -> list[UniqueKey | Index]:
    """All unique keys and unique indexes of a table."""
    return [*table.keys, *(index for index in table.indexes if index.unique)]
