"""The parts of a printed statement that each engine writes in its own way.

Owns: ``Dialect``, the tables and methods that the engines override (``executor/embedded/printing/dialect.py``,
``executor/spark/printing/dialect.py``). A function that a dialect's tables do not list is refused (0A000): they are an
allow-list. Knows nothing of how relations become SELECTs (``executor/printing/selects.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.generator import Generator

from catalog.values.errors import unsupported
from catalog.values.types import SqlType
from executor.printing.nodes import Build, Expr, column_name, identifier, leaf_name
from planner.algebra.nodes import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Delta,
    Join,
    Literal,
    Parameter,
    ScalarSubquery,
    Scan,
    Snapshot,
    Unnest,
    Values,
    WindowCall,
)


class Dialect(ABC):
    """An engine's types, literals, functions and FROM items."""

    #: Scalar functions of ``planner.algebra.functions`` by canonical name.
    functions: ClassVar[Mapping[str, Build]] = {}
    #: The quotation mark around names.
    quote: ClassVar[str] = '"'

    def name(self, name: str) -> str:
        """A name in quotes, as text: a node for each name takes as long to make and print as an operator's node."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def column(self, column: Column) -> str:
        """The name of a column, which contains no quotes."""
        return f"{self.quote}{column_name(column)}{self.quote}"

    @abstractmethod
    def expression(self, scalar: Any) -> Expr:
        """One expression as a node, for a dialect that writes it at another place than its own."""

    def generator(self) -> Generator:
        """The dialect's generator, quoting every name."""
        return Grammar().generator(identify=True)

    def type(self, sql_type: SqlType) -> Expr:
        """The engine's type (an exp.DataType) for an SQL type."""
        raise unsupported(f"type {sql_type}")

    def literal(self, literal: Literal) -> Expr:
        """A constant of exactly the given type."""
        raise unsupported(f"literal of type {literal.type}")

    def parameter(self, parameter: Parameter) -> Expr:
        """$n, typed."""
        raise unsupported("parameter")

    def cast(self, argument: Expr, node: Cast) -> Expr:
        """A conversion with PostgreSQL's rounding, truncation and errors."""
        return exp.Cast(this=argument, to=self.type(node.type))

    def call(self, node: Call, arguments: list[Expr]) -> Expr:
        """A function or operator from the allow-list."""
        build = self.functions.get(node.function)
        if build is None:
            raise unsupported(f"function {node.function}")
        return build(self, arguments, node)

    def aggregate(self, node: AggregateCall, arguments: list[Expr], where: Expr | None, order: list[Expr]) -> Expr:
        """An aggregate call; ``where`` is its FILTER, ``order`` its ORDER BY (``exp.Ordered``)."""
        raise unsupported(f"aggregate {node.function}")

    def window(self, node: WindowCall, arguments: list[Expr], where: Expr | None, over: Expr) -> Expr:
        """A window call; ``over`` (exp.Window) is complete except for the function."""
        raise unsupported(f"window function {node.function}")

    def leaf(self, leaf: Scan | Snapshot | Delta) -> str:
        """The FROM item (with or without alias) of a leaf, as text."""
        return self.name(leaf_name(leaf))

    def source(self, leaf: Scan | Snapshot | Delta, name: str) -> str:
        """A leaf's column by its declared name, as text."""
        return f"{self.name(leaf_name(leaf))}.{self.name(name)}"

    def join(self, node: Join, right: Expr, on: Expr | None) -> Expr:
        """A join clause (exp.Join)."""
        if on is None:
            on = exp.true() if node.kind != "inner" else None
        if node.kind == "inner":
            return exp.Join(this=right, kind="CROSS" if on is None else "INNER", on=on)
        if node.kind in ("semi", "anti"):
            return exp.Join(this=right, kind=node.kind.upper(), on=on)
        return exp.Join(this=right, side=node.kind.upper(), on=on)

    def values(self, node: Values, rows: list[list[Expr]], alias: str) -> Expr:
        """A FROM item with literal rows and the columns c<id>."""
        names = [identifier(column_name(column)) for column in node.columns]
        tuples = [exp.Tuple(expressions=row) for row in rows]
        return exp.Values(expressions=tuples, alias=exp.TableAlias(this=identifier(alias), columns=names))

    def in_zone(self, name: str) -> str:
        """Prints the following parts for another TimeZone setting; returns the setting before."""
        raise unsupported("the time zone of another view")

    def unnest(self, items: Expr) -> Expr:
        """The elements of an array as rows, in the select list; several arrays are unnested in parallel."""
        raise unsupported("a set-returning function")

    def places(self, items: list[Expr]) -> Expr:
        """An array of the numbers from 1 to the length of the longest array."""
        raise unsupported("WITH ORDINALITY")

    def series(self, node: Unnest, alias: str) -> Expr | None:
        """A FROM item that yields the rows without an intermediate array, if the engine has one."""
        return None

    def subquery_scalar(self, node: ScalarSubquery, select: Expr) -> Expr:
        """A scalar subquery; the engine must raise on a second row."""
        return exp.Subquery(this=select)
