"""CREATE TABLE (LIKE source ...): what is copied from another relation's definition.

Owns: the options of LIKE. Columns and NOT NULL are always copied, foreign keys never. A copied default uses the
source's sequence; a copied identity column gets its own sequence with the same options. See
https://www.postgresql.org/docs/15/sql-createtable.html.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import Check, ColumnDefinition, Index, Sequence, Table, UniqueKey
from catalog.values.errors import SqlError
from planner.bind.lookup.relations import require_object
from planner.bind.state.environment import Binding

#: Bits of TableLikeClause.options (parsenodes.h).
_COMMENTS: Final = 1 << 0
_CONSTRAINTS: Final = 1 << 2
_DEFAULTS: Final = 1 << 3
_GENERATED: Final = 1 << 4
_IDENTITY: Final = 1 << 5
_INDEXES: Final = 1 << 6


class Copied(Struct, frozen=True):
    """What LIKE brings; the names of keys and indexes are the source's, and so are the identities' sequences."""

    columns: tuple[ColumnDefinition, ...]
    identities: tuple[tuple[str, Sequence], ...] = ()
    checks: tuple[Check, ...] = ()
    keys: tuple[UniqueKey, ...] = ()
    indexes: tuple[Index, ...] = ()


def like(binding: Binding, node: Any) -> Copied:
    """What one LIKE clause brings."""
    source, options = require_object(binding, node.relation, placed=True), node.options
    if isinstance(source, Sequence):
        message = f'relation "{source.name}" is invalid in LIKE clause'
        detail = "This operation is not supported for sequences."
        raise SqlError("42809", message, detail, position=binding.position(node.relation))
    binding.need(source.oid)
    columns = tuple(_column(column, options) for column in source.columns)
    if not isinstance(source, Table):
        return Copied(columns)
    identities = {column.name for column in columns if column.identity}
    sequences = tuple(
        (item.owner[1], item)
        for item in binding.context.catalog.owned(source.oid)
        if item.owner is not None and item.owner[1] in identities
    )
    checks = tuple(replace(check, validated=True) for check in source.checks) if options & _CONSTRAINTS else ()
    keys, indexes = (source.keys, source.indexes) if options & _INDEXES else ((), ())
    if options & _COMMENTS:
        keys = tuple(key if key.index else replace(key, comment=None) for key in keys)
        return Copied(columns, sequences, checks, keys, indexes)
    checks = tuple(replace(check, comment=None) for check in checks)
    keys = tuple(replace(key, comment=None, index_comment=None) for key in keys)
    return Copied(columns, sequences, checks, keys, tuple(replace(index, comment=None) for index in indexes))


def _column(column: ColumnDefinition, options: int) -> ColumnDefinition:
    given = replace(column, comment=column.comment if options & _COMMENTS else None, grants=())
    if column.identity:
        return replace(given, default=None, sequences=(), identity=column.identity if options & _IDENTITY else "")
    if not options & _DEFAULTS:
        given = replace(given, default=None, sequences=())
    return given if options & _GENERATED else replace(given, generated=None)
