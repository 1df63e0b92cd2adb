"""What Spark gets of statements and types, as SQL, or why it does not compute them: the door to all printers.

Loaded when the first is asked for: a start, which Spark comes up behind, does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from catalog.values.errors import SqlError
from executor.spark.adhoc import AdhocPrinter
from executor.spark.delegation import values_of
from executor.spark.dialect import SparkPrinter, spark_type
from executor.spark.statements import Printed, View, print_statements
from planner.incremental.programs.program import State, Statement

__all__ = ["Printed", "View", "print_path", "print_query", "spark_type", "values_of"]


def print_path(statements: tuple[Statement, ...], states: tuple[State, ...], has_unscaled: bool) -> Printed | str:
    """The statements of a view's path."""
    return _printed(statements, states, partial(SparkPrinter, has_unscaled=has_unscaled))


def print_query(
    statement: Statement, state: State, has_unscaled: bool, has_kernel: bool, time_zone: str
) -> Printed | str:
    """A query by itself, which may be what no path of a view is."""
    printer = partial(AdhocPrinter, has_unscaled=has_unscaled, has_kernel=has_kernel, time_zone=time_zone)
    return _printed((statement,), (state,), printer)


def _printed(
    statements: tuple[Statement, ...], states: tuple[State, ...], printer: Callable[[], SparkPrinter]
) -> Printed | str:
    try:
        return print_statements(statements, states, printer)
    except SqlError as error:
        return f"{error.message} on Spark"
