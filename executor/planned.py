"""Statements that are planned before they run, and again where another transaction changes what they mean meanwhile.

Owns: which of them wait for the table writer's lock first. PostgreSQL looks names up once it has the tables' locks;
here a plan is made first, and again where the catalog is another one when the statement may begin.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import Table
from executor.definitions import ddl
from planner.definitions import CreateTableAs, Truncate
from planner.statements import CopyIn, CopyOut, Delete, Explain, Insert, Merge, Modifying, Statement, Update


class Planned(Struct, frozen=True):
    """A statement, the catalog that it was planned for, and how it is planned for the session's present one."""

    statement: Statement
    catalog: Catalog
    again: Callable[[], Planned]

    @property
    def adds_rows(self) -> bool:
        """Whether it is an INSERT or COPY, into a stream or a table."""
        return isinstance(self._changing, Insert | CopyIn)

    @property
    def writes_tables(self) -> bool:
        """Whether it needs the table writer's lock, under which no other transaction changes the catalog."""
        statement = self._changing
        if isinstance(statement, Insert | CopyIn):
            return isinstance(statement.target, Table)
        return isinstance(statement, Update | Delete | Merge | Modifying | Truncate | CreateTableAs | ddl.Definition)

    @property
    def _changing(self) -> Statement:
        """What may change something: of COPY TO what it copies, of EXPLAIN ANALYZE what it runs."""
        match self.statement:
            case CopyOut(query=statement) | Explain(analyze=True, statement=statement):
                return statement
            case statement:
                return statement
