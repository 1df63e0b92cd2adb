"""Extensions: what CREATE EXTENSION may name, and the members that PostgreSQL's own would have.

Owns: ``Extension``, one that was created; ``BaseType``, a type of one; and reading ``catalog/postgres/extensions``
(written by ``tools/postgres_extensions.py`` from a real server). Members have oids of a range above those of users, the
same in every database. What is built in, and no object of anybody's, is in ``catalog.system.own_objects``.
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
    """What PostgreSQL says of an extension that may be created."""

    name: str
    version: str
    comment: str


class Extension(Struct, frozen=True):
    """An extension that was created; its members are in ``schema``."""

    oid: int
    name: str
    schema: str
    version: str
    comment: str | None = None


class BaseType(Struct, frozen=True):
    """A type of an extension. Its values are known to every layer by the type's name (``catalog.values.types``)."""

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
    """The file of an extension's rows of one system catalog, as ``catalog.postgres`` names them."""
    return f"{_FOLDER}/{extension}/{catalog}"


@cache
def has_rows(extension: str, catalog: str) -> bool:
    """Whether an extension adds rows to a system catalog."""
    return files("catalog.postgres").joinpath(f"{path_of(extension, catalog)}.tsv").is_file()


def members(extension: str, catalog: str) -> Iterator[dict[str, str | None]]:
    """The rows that an extension adds to a system catalog, as its text COPY has them."""
    return rows(path_of(extension, catalog)) if has_rows(extension, catalog) else iter(())


def is_member(oid: int) -> bool:
    """Whether something with that oid is a member of an extension."""
    return oid in MEMBERS
