"""What a statement is bound against.

Owns: ``Context``, what the session knows: catalog, settings, declared types of parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import PUBLIC
from catalog.values.errors import SqlError
from catalog.values.times.styles import USUAL, Reading
from catalog.values.types import SqlType
from planner.statements.statement import Output

#: What the rows of a separated query look like, by its id: a select list, and the types in which it is computed.
Separated = Callable[[str], tuple[tuple[Output, SqlType], ...]]


def none_separated(query_id: str) -> tuple[tuple[Output, SqlType], ...]:
    """Where nobody keeps any. Raises 42704."""
    raise SqlError("42704", f'separated query "{query_id}" does not exist')


class Context(Struct, frozen=True):
    """What a statement is bound against. ``parameter_types[i]`` is what Parse declared of $i+1; None: infer it."""

    catalog: Catalog
    search_path: tuple[str, ...] = (PUBLIC,)
    parameter_types: tuple[SqlType | None, ...] = ()
    time_zone: str = "UTC"
    role: str = "millstream"
    #: Who has logged in, whatever SET ROLE says.
    session_role: str = "millstream"
    database: str = "millstream"
    separated: Separated = none_separated
    #: What the relations that a view's text names stand for, by schema as written ('': none) and name.
    names: Mapping[tuple[str, str], int] | None = None
    #: The same of the users' types that it names.
    types: Mapping[tuple[str, str], int] | None = None
    #: The same of the users' functions that it calls, each of which may be several.
    calls: Mapping[tuple[str, str], tuple[int, ...]] | None = None
    #: The columns of these relations that the text knows, by oid: as it calls them and as they are called now.
    reads: Mapping[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    #: Whether functions' bodies are bound when they are created; pg_dump writes them before what they read.
    checks_bodies: bool = True
    #: How dates and intervals of the text are read. What is kept is read as usual by everybody.
    reading: Reading = USUAL


def restricted(catalog: Catalog, role: str) -> int | None:
    """The oid of a role that may not do everything; None of a superuser. A role that is gone may do nothing."""
    found = catalog.roles.find(role)
    return -1 if found is None else None if found.superuser else found.oid


def within(context: Context, **changes: Any) -> Context:
    """A context with some fields replaced; column ids go on from the same allocator."""
    return replace(context, **changes)
