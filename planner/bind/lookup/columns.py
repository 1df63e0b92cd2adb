"""Columns: what a reference to a column means among the names that FROM offers.

Owns: ``resolve``, and PostgreSQL's errors for names that are missing (42703, 42P01) or ambiguous (42702).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from planner.algebra.nodes import ColumnRef, Scalar
from planner.bind.state.bind_state import BindState
from planner.bind.state.environment import Scope
from planner.bind.state.from_names import Entry, Source

#: What PostgreSQL's tables have beside their own columns.
SYSTEM_COLUMNS: Final = ("tableoid", "xmin", "xmax", "cmin", "cmax", "ctid")
#: Those of a column with everything around it: database, schema, table.
_NAMES: Final = 4


def plain_column(scope: Scope, node: Any) -> Entry | None:
    """The one column of the innermost level that an unqualified name means: what ``resolve`` finds, at once. None for
    any other reference."""
    if len(node.fields) != 1:
        return None
    found = scope.named.get(getattr(node.fields[0], "sval", ""))
    return found[0] if found is not None and len(found) == 1 else None


def resolve(binding: BindState, scope: Scope, names: tuple[str, ...], node: Any) -> Entry:
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
    binding: BindState, level: Scope, qualifier: str | None, schema: str | None, name: str, node: Any
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


def _missing(binding: BindState, scope: Scope, names: tuple[str, ...], node: Any) -> SqlError:
    position = binding.position(node)
    *qualifiers, name = names
    if qualifiers:
        return missing_table(scope, qualifiers[-1], position)
    _refuse_system_column(binding, (source for level in scope.levels() for source in level.sources), name, node)
    return SqlError("42703", f'column "{name}" does not exist', hint=_close(name, scope), position=position)


def _refuse_system_column(binding: BindState, sources: Iterable[Source], name: str, node: Any) -> None:
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
