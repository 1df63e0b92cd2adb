"""The interface through which builders of single expressions call the whole printer recursively.

An array's text contains the texts of its elements, and a cast of a row casts its fields. A family's builder gets these
from the printer that is passed to it, so that the families do not import each other. ``dialect.DuckPrinter`` implements
them with ``casts`` and ``scalar_functions``.
"""

from __future__ import annotations

from typing import Protocol

from catalog.values.types import SqlType
from executor.printing.nodes import Expr
from planner.algebra.nodes import Call, Cast, Literal, Scalar


class EntryPoints(Protocol):
    """A printer of one statement."""

    #: The session's time zone.
    timezone: str
    #: Whether decimals are computed with 38 digits throughout.
    wide: bool

    def type(self, sql_type: SqlType) -> Expr:
        """DuckDB's type for an SQL type."""
        ...

    def literal(self, literal: Literal) -> Expr:
        """A constant of its type."""
        ...

    def expression(self, scalar: Scalar) -> Expr:
        """A whole expression."""
        ...

    def call(self, node: Call, arguments: list[Expr]) -> Expr:
        """A call from the allow-list, over printed arguments."""
        ...

    def cast(self, argument: Expr, node: Cast) -> Expr:
        """A printed argument cast to another type."""
        ...

    def to_text(self, value: Expr, kind: SqlType) -> Expr:
        """A value's text by its cast."""
        ...

    def shown(self, value: Expr, kind: SqlType) -> Expr:
        """A value's text by its output function, which for boolean and character(n) differs from the cast to text."""
        ...
