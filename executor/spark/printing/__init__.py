"""Statements, queries and types as Spark SQL, or the reason why Spark does not compute them.

1. ``print_path`` prints a view's statements with ``dialect.SparkPrinter``, ``print_query`` a query with
   ``query_dialect.QueryPrinter``. Both call ``statements.print_statements``.
2. ``in_subqueries.three_valued`` and ``recursions.without_loops`` rewrite relations that Spark computes otherwise.
3. ``delegation.delegated`` replaces expressions that only the embedded engine computes by calls of its kernel.
4. The printer writes the rest. Builders of calls are in ``functions`` and ``aggregates``; what they do not list is
   refused by name (0A000).

The engine imports this package when it prints its first statement, so that starting a server does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from catalog.values.errors import SqlError
from executor.spark.printing.delegation import values_of
from executor.spark.printing.dialect import SparkPrinter, spark_type
from executor.spark.printing.query_dialect import QueryPrinter
from executor.spark.printing.statements import Printed, View, print_statements
from planner.incremental.programs.program import State, Statement

__all__ = ["Printed", "View", "print_path", "print_query", "spark_type", "values_of"]


def print_path(statements: tuple[Statement, ...], states: tuple[State, ...], has_unscaled: bool) -> Printed | str:
    """The statements of a view's path."""
    return _printed(statements, states, partial(SparkPrinter, has_unscaled=has_unscaled))


def print_query(
    statement: Statement, state: State, has_unscaled: bool, has_kernel: bool, time_zone: str
) -> Printed | str:
    """A query by itself, which may be what no path of a view is."""
    printer = partial(QueryPrinter, has_unscaled=has_unscaled, has_kernel=has_kernel, time_zone=time_zone)
    return _printed((statement,), (state,), printer)


def _printed(
    statements: tuple[Statement, ...], states: tuple[State, ...], printer: Callable[[], SparkPrinter]
) -> Printed | str:
    try:
        return print_statements(statements, states, printer)
    except SqlError as error:
        return f"{error.message} on Spark"
