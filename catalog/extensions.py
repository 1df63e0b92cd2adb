"""Extensions: those that CREATE EXTENSION may create, and their members, as in PostgreSQL.

Owns: ``Extension``, a created extension; ``BaseType``, a type of one; and reading ``catalog/postgres/extensions``
(written by ``tools/postgres_extensions.py`` from a real server). Members' oids are in a range above users' oids, and
are the same in every database. ``catalog.system.own_objects`` has built-in objects that belong to no extension of this
kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct

from catalog.postgres import MEMBERS, rows
from catalog.values.identifiers import quote_name

_FOLDER: Final = "extensions"


class About(Struct, frozen=True):
    """PostgreSQL's description of an extension that can be created."""

    name: str
    version: str
    comment: str


class Extension(Struct, frozen=True):
    """A created extension; its members are in ``schema``."""

    oid: int
    name: str
    schema: str
    version: str
    comment: str | None = None


class BaseType(Struct, frozen=True):
    """A type of an extension. Every layer knows its values by the type's name (``catalog.values.types``)."""

    oid: int
    name: str
    extension: str
    schema: str
    comment: str | None = None

    def __str__(self) -> str:
        """The name as format_type() prints it."""
        return quote_name(self.name)


@cache
def available() -> Mapping[str, About]:
    """Extensions that may be created, by name."""
    found = (About(*(str(row[name]) for name in About.__struct_fields__)) for row in rows(f"{_FOLDER}/extensions"))
    return {item.name: item for item in found}


def path_of(extension: str, catalog: str) -> str:
    """The file with an extension's rows of one system catalog, in the naming of ``catalog.postgres``."""
    return f"{_FOLDER}/{extension}/{catalog}"


@cache
def has_rows(extension: str, catalog: str) -> bool:
    """Whether an extension adds rows to a system catalog."""
    return files("catalog.postgres").joinpath(f"{path_of(extension, catalog)}.tsv").is_file()


def members(extension: str, catalog: str) -> Iterator[dict[str, str | None]]:
    """The rows that an extension adds to a system catalog, in COPY's text format."""
    return rows(path_of(extension, catalog)) if has_rows(extension, catalog) else iter(())


def is_member(oid: int) -> bool:
    """Whether the object with this oid is a member of an extension."""
    return oid in MEMBERS
