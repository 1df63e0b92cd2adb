"""User errors: each carries PostgreSQL's SQLSTATE and, where known, position, detail and hint.

Raised where the cause is known, turned into an ErrorResponse in one place (server/). Broken invariants are
assertions and never one of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct


class Subject(Struct, frozen=True):
    """What a constraint that was broken belongs to: fields of an error that clients read instead of its text."""

    schema: str | None
    table: str | None = None
    column: str | None = None
    constraint: str | None = None
    datatype: str | None = None


@dataclass(slots=True)
class SqlError(Exception):
    """An error that the client caused or must know of.

    ``position`` is the 1-based index of a character in the statement's text; ``where`` is PostgreSQL's CONTEXT
    line, such as ``COPY t, line 3, column a: "x"``; ``routine`` is PostgreSQL's function that would have raised it,
    where drivers know an error by that; ``row`` is the place, from 0, of the one to blame among the rows that a
    statement was given; ``severity`` is that of a notice that is one whatever its SQLSTATE.
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
    """0A000 for something that Millstream does not do: names it, and the rule that it breaks where there is one, and
    says what to write instead."""
    return SqlError("0A000", f"{construct} is not supported", rule, instead, position)


def syntax_error(message: str, position: int | None = None) -> SqlError:
    """42601."""
    return SqlError("42601", message, position=position)


def undefined_table(name: str, position: int | None = None) -> SqlError:
    """42P01."""
    return SqlError("42P01", f'relation "{name}" does not exist', position=position)


def duplicate_table(name: str) -> SqlError:
    """42P07."""
    return SqlError("42P07", f'relation "{name}" already exists')


def invalid_text(type_name: str, text: str, position: int | None = None) -> SqlError:
    """22P02 with PostgreSQL's wording."""
    return SqlError("22P02", f'invalid input syntax for type {type_name}: "{text}"', position=position)


def out_of_range(message: str) -> SqlError:
    """22003."""
    return SqlError("22003", message)


def division_by_zero() -> SqlError:
    """22012."""
    return SqlError("22012", "division by zero")


def failed_transaction() -> SqlError:
    """25P02."""
    return SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
