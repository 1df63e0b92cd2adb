"""Names in FROM: what a column reference means.

Owns: ``Entry`` (a visible column), ``Source`` (a named item of FROM), ``Scope`` (all of one query level, with the
enclosing levels behind it), and PostgreSQL's errors for names that are missing (42703, 42P01) or ambiguous (42702).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import FIRST_OID
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, OID, SqlType
from planner.algebra.scalars import Call, Case, Column, ColumnRef, Literal, Scalar
from planner.bind.lookup.row_versions import version_of
from planner.bind.state.context import Binding

if TYPE_CHECKING:
    from planner.bind.state.environment import Environment

#: What PostgreSQL's tables have beside their own columns.
SYSTEM_COLUMNS: Final = ("tableoid", "xmin", "xmax", "cmin", "cmax", "ctid")
#: The schema of a relation in a view's text that does not name it: whatever a column's qualifier says was right.
ANY_SCHEMA: Final = ""
#: The transaction that made what is there from the beginning: BootstrapTransactionId.
_BOOTSTRAP: Final = Literal(1, SqlType("xid"))

#: Those of a column with everything around it: database, schema, table.
_NAMES: Final = 4


class Entry(Struct, frozen=True):
    """A column that FROM offers: name and value; for RowDescription, the table's column behind it and its modifier."""

    name: str
    scalar: Scalar
    table: int = 0
    attribute: int = 0
    typmod: int = -1
    is_sure: bool = False  # never NULL in the relation itself


class Source(Struct, frozen=True):
    """An item of FROM by name. ``key`` is a table's primary key, for GROUP BY, ``relation`` its name if aliased.

    ``value`` is what the name alone stands for, where that is no row: the only column of a function. ``padded`` rows
    may be those that an outer join fills up with NULLs. ``row`` is the relation (its oid) whose rows these are,
    ``kind`` the type of a function's rows, where it has a name. ``mark`` is NULL only in rows that were filled up.
    ``hidden`` columns have a name, but are none of ``*``. ``stored`` are the columns of a table's row, ``place``
    its ctid, where the statement speaks of one, and ``deleted`` its xmax, where that may be something.
    """

    name: str
    entries: tuple[Entry, ...]
    schema: str | None = None
    key: tuple[Column, ...] = ()
    relation: str = ""
    padded: bool = False
    value: Entry | None = None
    oid: int = 0
    row: int = 0
    kind: SqlType | None = None
    mark: Scalar | None = None
    hidden: tuple[Entry, ...] = ()
    stored: tuple[Column, ...] = ()
    place: Scalar | None = None
    deleted: Scalar | None = None

    def column_beyond(self, name: str) -> Entry | None:
        """A column that is none of ``*``: a hidden or a system column."""
        return next((item for item in self.hidden if item.name == name), None) or self._system_column(name)

    def _system_column(self, name: str) -> Entry | None:
        """A system column of a row of a table's; NULL in rows that an outer join has filled up."""
        value = self._system_value(name)
        if value is None:
            return None
        if not self.padded:
            return Entry(name, value)
        sure = next((item.scalar for item in self.entries if item.is_sure), None)
        if sure is None:
            return None
        return Entry(name, Case(((Call("is_null", (sure,), BOOL), Literal(None, value.type)),), value, value.type))

    def _system_value(self, name: str) -> Scalar | None:
        """What a system column is of a row that is there, as far as it can be told (``row_versions``)."""
        is_own = 0 < self.oid < FIRST_OID
        if name == "tableoid" and self.oid:
            return Literal(self.oid, OID)
        if name == "xmin" and (is_own or self.stored):
            return _BOOTSTRAP if is_own else version_of(self.stored)
        if name == "xmax" and self.deleted is not None:
            return self.deleted
        if name in ("xmax", "cmin", "cmax") and (is_own or self.stored):
            return Literal(0, SqlType("xid" if name == "xmax" else "cid"))
        return self.place if name == "ctid" else None


class Scope(Struct, frozen=True, eq=False, dict=True):
    """One query level: ``entries`` are visible without a qualifier and make up ``*``, ``sources`` are qualifiers.

    Around a subquery, ``host`` is where that stands.
    """

    sources: tuple[Source, ...] = ()
    entries: tuple[Entry, ...] = ()
    outer: Scope | None = None
    host: Environment | None = None

    @cached_property
    def named(self) -> Mapping[str, list[Entry]]:
        """The visible columns by name."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.name, []).append(entry)
        return found

    def levels(self) -> Iterable[Scope]:
        """This level and those around it, inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def source(self, name: str, schema: str | None = None, position: int | None = None) -> Source | None:
        """The item of FROM of this level that a qualifier names. Raises 42P09 where there are two."""
        fitting = (schema, ANY_SCHEMA)
        found = [item for item in self.sources if item.name == name and (schema is None or item.schema in fitting)]
        if len(found) > 1:
            raise SqlError("42P09", f'table reference "{name}" is ambiguous', position=position)
        return found[0] if found else None


def source_of(name: str, entries: Iterable[Entry], schema: str | None = None, key: tuple[Column, ...] = ()) -> Scope:
    """The scope of one item of FROM."""
    listed = tuple(entries)
    return Scope((Source(name, listed, schema, key),), listed)


def plain_column(scope: Scope, node: Any) -> Entry | None:
    """The one column of the innermost level that an unqualified name means: what ``resolve`` finds, at once. None for
    any other reference."""
    if len(node.fields) != 1:
        return None
    found = scope.named.get(getattr(node.fields[0], "sval", ""))
    return found[0] if found is not None and len(found) == 1 else None


def resolve(binding: Binding, scope: Scope, names: tuple[str, ...], node: Any) -> Entry:
    """The column that a reference means, the innermost level first."""
    if len(names) > _NAMES:
        message = f"improper qualified name (too many dotted names): {'.'.join(names)}"
        raise SqlError("42601", message, position=binding.position(node))
    qualifier, schema = (*names[-2::-1], None, None)[:2]
    for level in scope.levels():
        found = _in_level(binding, level, qualifier, schema, names[-1], node)
        if found is not None:
            return found
    raise _missing(binding, scope, names, node)


def _in_level(
    binding: Binding, level: Scope, qualifier: str | None, schema: str | None, name: str, node: Any
) -> Entry | None:
    if qualifier is None:
        matches = level.named.get(name)
        if matches is None:
            matches = [entry for source in level.sources if (entry := source.column_beyond(name)) is not None]
        item = None if matches else level.source(name)
        if item is not None and item.value is not None:
            return replace(item.value, name=name)
    else:
        source = level.source(qualifier, schema, binding.position(node))
        if source is None:
            return None
        matches = [entry for entry in source.entries if entry.name == name]
        if not matches:
            matches = [entry for entry in (source.column_beyond(name),) if entry is not None]
            _refuse_system_column(binding, () if matches else (source,), name, node)
        if not matches:
            message = f"column {qualifier}.{name} does not exist"
            raise SqlError("42703", message, hint=_close(name, level, qualifier), position=binding.position(node))
    if len(matches) > 1:
        raise SqlError("42702", f'column reference "{name}" is ambiguous', position=binding.position(node))
    return matches[0] if matches else None


def _missing(binding: Binding, scope: Scope, names: tuple[str, ...], node: Any) -> SqlError:
    position = binding.position(node)
    *qualifiers, name = names
    if qualifiers:
        return missing_table(scope, qualifiers[-1], position)
    _refuse_system_column(binding, (source for level in scope.levels() for source in level.sources), name, node)
    return SqlError("42703", f'column "{name}" does not exist', hint=_close(name, scope), position=position)


def _refuse_system_column(binding: Binding, sources: Iterable[Source], name: str, node: Any) -> None:
    """What rows of this relation, or rows here, have not. Raises 0A000."""
    if name in SYSTEM_COLUMNS and any(source.oid for source in sources):
        instead = "Use a key instead of a row's place, and a column of your own for its version."
        raise unsupported(f"the system column {name}", instead, binding.position(node))


def missing_table(scope: Scope, name: str, position: int | None) -> SqlError:
    """42P01 for a qualifier that no item of FROM has."""
    for level in scope.levels():
        for source in level.sources:
            if source.relation == name:
                hint = f'Perhaps you meant to reference the table alias "{source.name}".'
                message = f'invalid reference to FROM-clause entry for table "{name}"'
                return SqlError("42P01", message, hint=hint, position=position)
    return SqlError("42P01", f'missing FROM-clause entry for table "{name}"', position=position)


def _close(name: str, scope: Scope, qualifier: str | None = None) -> str | None:
    """PostgreSQL's hint: the one or two columns that were perhaps meant (parse_relation.c, searchRangeTableForCol)."""
    best, found = _FUZZY, list[str]()
    for source in scope.sources:
        for entry in source.entries:
            distance = _distance(name, entry.name)
            if qualifier not in (None, source.name) or distance > min(best, len(name) // 2):
                continue
            if distance < best:
                best, found = distance, []
            found.append(f'the column "{source.name}.{entry.name}"')
    if not 1 <= len(found) <= 2:
        return None
    return f"Perhaps you meant to reference {' or '.join(found)}."


_FUZZY: Final = 3


def _distance(left: str, right: str) -> int:
    """Levenshtein's."""
    row = list(range(len(right) + 1))
    for index, char in enumerate(left, 1):
        before, row[0] = row[0], index
        for column, other in enumerate(right, 1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (char != other))
    return row[-1]


def written_name(scope: Scope, scalar: Scalar) -> str:
    """A column's name with its source, as errors about grouping print it."""
    for level in scope.levels():
        for source in level.sources:
            for entry in source.entries:
                if isinstance(scalar, ColumnRef) and entry.scalar == scalar:
                    return f"{source.name}.{entry.name}"
    return scalar.column.name if isinstance(scalar, ColumnRef) else "?column?"
