"""Statements that are planned before they run, and again where another transaction changes what they mean meanwhile.

PostgreSQL looks names up once it has the tables' locks; here a plan is made first, and again where the catalog is
another one when the statement may begin.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from catalog.catalog import Catalog
from planner.statements.statement import Statement


class Planned(Struct, frozen=True):
    """A statement, the catalog that it was planned for, and how it is planned for the session's present one."""

    statement: Statement
    catalog: Catalog
    again: Callable[[], Planned]
