"""Functions of LANGUAGE sql, whose calls are replaced with their bodies.

Owns: ``Function``, and the look-up of functions by name. A body is SQL text that is bound anew at each call, as
PostgreSQL's planner inlines such functions; no engine knows the function.

https://www.postgresql.org/docs/15/xfunc-sql.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from catalog.objects import PUBLIC
from catalog.postgres import PgProc


class Argument(Struct, frozen=True):
    """A parameter: its name ('' for none), its type's oid, and its default as SQL text."""

    name: str
    type: int
    default: str | None = None


class Function(Struct, frozen=True):
    """A function whose ``body`` is the text of one SELECT, or of an expression after RETURN (``returns``).

    ``result`` is its type's oid. With ``returns_set``, it yields rows in FROM: of one column, or of the columns of
    RETURNS TABLE (``columns``). A member of an ``extension`` may have, instead of a body, a canonical function by which
    it is ``computed``, or neither, if only its name exists. ``volatility`` is i, s or v, ``parallel`` s, r or u, as in
    pg_proc.
    """

    oid: int
    name: str
    arguments: tuple[Argument, ...]
    result: int
    body: str
    returns: bool = False
    volatility: str = "v"
    strict: bool = False
    leakproof: bool = False
    parallel: str = "u"
    schema: str = PUBLIC
    comment: str | None = None
    returns_set: bool = False
    columns: tuple[Argument, ...] = ()
    extension: str = ""
    computed: str = ""

    @property
    def types(self) -> tuple[int, ...]:
        """The oids of the parameter types, which distinguish functions with the same name."""
        return tuple(item.type for item in self.arguments)

    @property
    def named_types(self) -> tuple[int, ...]:
        """The oids of all types of its parameters and results."""
        return (*self.types, self.result, *(item.type for item in self.columns))

    @property
    def returned(self) -> tuple[object, ...]:
        """The result as RETURNS declares it."""
        return self.returns_set, self.result, self.columns

    @property
    def proc(self) -> PgProc:
        """A row of pg_proc, for the resolution of calls."""
        defaults = sum(item.default is not None for item in self.arguments)
        names = tuple(item.name for item in self.arguments)
        source = f"{self.schema}.{self.name}"
        return PgProc(
            *(self.oid, self.name, "f", self.types, defaults, 0, self.result, self.returns_set),
            *(self.strict, self.volatility, source, names),
        )


Functions = Mapping[str, tuple[Function, ...]]
NONE: Final[Functions] = MappingProxyType({})


def named(functions: Functions, name: str, schemas: Sequence[str]) -> list[Function]:
    """The functions with a name in some schemas, in the order of the schemas; of equal signatures only the first."""
    found: dict[tuple[int, ...], Function] = {}
    for schema in schemas:
        for item in functions.get(name, ()):
            if item.schema == schema:
                found.setdefault(item.types, item)
    return list(found.values())


def every(functions: Functions) -> Iterator[Function]:
    """All functions."""
    for items in functions.values():
        yield from items


def by_name(items: Iterable[Function]) -> Functions:
    """Functions by name."""
    found: dict[str, tuple[Function, ...]] = {}
    for item in items:
        found[item.name] = (*found.get(item.name, ()), item)
    return MappingProxyType(found)
