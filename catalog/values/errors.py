"""User errors: each carries PostgreSQL's SQLSTATE and, where known, position, detail and hint.

Raised where the cause is known, turned into an ErrorResponse in one place (server/). Broken invariants are
assertions and never one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec import Struct

#: A notice with this SQLSTATE is a WARNING.
WARNING: Final = "01000"


class Subject(Struct, frozen=True):
    """The object to which a violated constraint belongs: fields of an error that clients read instead of its text."""

    schema: str | None
    table: str | None = None
    column: str | None = None
    constraint: str | None = None
    datatype: str | None = None


@dataclass(slots=True)
class SqlError(Exception):
    """An error that the client caused or must be told about.

    ``position`` is the 1-based index of a character in the statement's text. ``where`` is PostgreSQL's CONTEXT line,
    such as ``COPY t, line 3, column a: "x"``. ``routine`` is the PostgreSQL function that would raise it, for drivers
    that identify errors by it. ``row`` is the place, from 0, of the offending row among the statement's input rows.
    ``severity`` is set for a notice whose severity does not follow from its SQLSTATE.
    """

    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    where: str | None = None
    about: Subject | None = None
    routine: str | None = None
    row: int | None = None
    severity: str | None = None

    def __str__(self) -> str:
        return f"{self.sqlstate}: {self.message}"


def unsupported(
    construct: str, instead: str | None = None, position: int | None = None, rule: str | None = None
) -> SqlError:
    """The error 0A000 for a feature that Millstream lacks: names it, and the rule that it breaks if there is one, and
    suggests an alternative."""
    return SqlError("0A000", f"{construct} is not supported", rule, instead, position)


def syntax_error(message: str, position: int | None = None) -> SqlError:
    """The error 42601."""
    return SqlError("42601", message, position=position)


def undefined_table(name: str, position: int | None = None) -> SqlError:
    """The error 42P01."""
    return SqlError("42P01", f'relation "{name}" does not exist', position=position)


def duplicate_table(name: str) -> SqlError:
    """The error 42P07."""
    return SqlError("42P07", f'relation "{name}" already exists')


def invalid_text(type_name: str, text: str, position: int | None = None) -> SqlError:
    """The error 22P02 in PostgreSQL's words."""
    return SqlError("22P02", f'invalid input syntax for type {type_name}: "{text}"', position=position)


def out_of_range(message: str) -> SqlError:
    """The error 22003."""
    return SqlError("22003", message)


def division_by_zero() -> SqlError:
    """The error 22012."""
    return SqlError("22012", "division by zero")


def failed_transaction() -> SqlError:
    """The error 25P02."""
    return SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
