"""Assignments to identity columns: the errors of GENERATED ALWAYS, and OVERRIDING.

https://www.postgresql.org/docs/15/sql-insert.html
"""

from __future__ import annotations

from pglast.enums import OverridingKind

from catalog.objects import ColumnDefinition
from catalog.values.errors import SqlError


def takes_given(column: ColumnDefinition, override: OverridingKind | None) -> bool:
    """Whether a column takes the value that an INSERT gives it, and not its default. Raises 428C9."""
    if override == OverridingKind.OVERRIDING_USER_VALUE:
        return not column.identity
    if column.identity == "a" and override != OverridingKind.OVERRIDING_SYSTEM_VALUE:
        message = f'cannot insert a non-DEFAULT value into column "{column.name}"'
        raise SqlError("428C9", message, _detail(column), "Use OVERRIDING SYSTEM VALUE to override.")
    return True


def check_updated(column: ColumnDefinition) -> None:
    """UPDATE may set GENERATED ALWAYS to DEFAULT only. Raises 428C9."""
    if column.identity == "a":
        raise SqlError("428C9", f'column "{column.name}" can only be updated to DEFAULT', _detail(column))


def _detail(column: ColumnDefinition) -> str:
    return f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.'
